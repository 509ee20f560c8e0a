#include "sandbox/spawner/filler.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "ipc/role.h"
#include "sandbox/spawner/broker.h"

/* One clone and what it sets up, on a busy host. */
#define ANSWER_MS 5000
/* Before the second start in a row; doubles. */
#define RESTART_MS     100
#define RESTART_MAX_MS 2000
/* So many sessions, and what ended those before is over. */
#define GOOD_LIFE 10u

static void
arm(struct filler *f, int ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	(void)event_add(f->ev_timer, &t);
}

/* The child's side of the fork: nothing of the broker's stays open, or its ends would not be seen.
 */
static _Noreturn void
become_filler(struct broker *b, int sock)
{
	enum { AT_SOCK = 3, AT_INIT, AT_END };
	struct jail j = b->jail;
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	sigemptyset(&none);
	(void)sigaction(SIGCHLD, &dfl, NULL);
	int s = fcntl(sock, F_DUPFD_CLOEXEC, AT_END), i = fcntl(j.init_fd, F_DUPFD_CLOEXEC, AT_END);
	if (s < 0 || i < 0 || !fd_dup_to(s, AT_SOCK, true) || !fd_dup_to(i, AT_INIT, true) ||
	    !fd_close_from(AT_END) || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
		_exit(1);
	j.init_fd = AT_INIT;
	role_set_title(b->argc, b->argv, 0, "otari: filler");
	filler_main(&j, AT_SOCK);
}

static void
lost(struct broker *b, const char *why, int sys_errno)
{
	struct filler *f = &b->filler;
	if (f->fd < 0)
		return;
	log_warn("the filler failed, no session is made until another runs", LOG_C("why", why),
	    LOG_INT("errno", sys_errno));
	f->in_flight = 0;
	filler_stop(b); /* filler_reaped() goes on */
}

/* False: nothing more to read now. */
static bool
take_one(struct broker *b)
{
	struct filler *f = &b->filler;
	struct filler_made m;
	int fds[SESSION_FDS_BORN];
	size_t nfds = SESSION_FDS_BORN;
	ssize_t n = f->fd < 0 ? 0 : fd_recv_msg(f->fd, &m, sizeof(m), fds, &nfds);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		lost(b, "it ended", n < 0 ? errno : 0);
		return false;
	}
	struct session *s = n == sizeof(m) && m.slot < b->slots.count ? b->slots.at[m.slot] : NULL;
	size_t want = s != NULL && s->is_born ? SESSION_FDS_BORN : SESSION_FDS;
	if (s == NULL || s->order_seq != m.seq || nfds != (m.sys_errno == 0 ? want : 0)) {
		for (size_t i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		lost(b, "it speaks nonsense", EPROTO);
		return false;
	}
	if (--f->in_flight > 0)
		arm(f, ANSWER_MS);
	else
		(void)event_del(f->ev_timer);
	if (f->failures > 0 && m.seq > f->good_seq)
		f->failures = 0;
	s->order_seq = 0;
	if (m.sys_errno != 0)
		lend_session_unmade(b, s, m.sys_errno);
	else if (!session_made(s, b->base, m.pid, fds))
		lend_session_gone(b, s);
	return true;
}

static void
on_filler(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	(void)take_one(arg);
}

static void
send_order(struct broker *b, struct session *s)
{
	struct filler *f = &b->filler;
	struct filler_order o = {.seq = ++f->seq, .slot = s->slot, .is_born = s->is_born};
	int fds[FILLER_FDS] = {cgroup_events_fd(&b->cgroup, s->slot)};
	size_t joins = cgroup_join_fds(&b->cgroup, s->slot, fds + 1);
	size_t nfds = joins > 0 ? 1 + joins : 0;
	s->order_seq = o.seq;
	if (fd_send_msg(f->fd, &o, sizeof(o), fds, nfds) != (ssize_t)sizeof(o))
		lost(b, "it does not take orders", errno);
	else if (f->in_flight++ == 0)
		arm(f, ANSWER_MS);
}

static bool
start(struct broker *b)
{
	struct filler *f = &b->filler;
	int pair[2];
	sigset_t every, old;
	if (!fd_socketpair_seqpacket(pair, false))
		return false;
	(void)sigfillset(&every);
	(void)sigprocmask(SIG_SETMASK, &every, &old);
	pid_t pid = fork();
	if (pid == 0)
		become_filler(b, pair[1]);
	int e = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	fd_close(&pair[1]);
	if (pid > 0) {
		f->pid = pid;
		f->fd = pair[0];
		f->ev = event_new(b->base, f->fd, EV_READ | EV_PERSIST, on_filler, b);
		if (f->ev != NULL && fd_set_nonblock(f->fd, true) && event_add(f->ev, NULL) == 0)
			return true;
		(void)kill(pid, SIGKILL);
		f->fd = -1;
	}
	fd_close(&pair[0]);
	errno = e;
	return false;
}

/* Anything that it cloned and could not tell: nobody knows these sessions. It is dead, so no other
 * one can come. */
static void
end_orphans(struct broker *b)
{
	pid_t *pids;
	size_t n = watch_children(&pids);
	for (size_t i = 0; i < n; i++) {
		const struct session *s;
		TAILQ_FOREACH(s, &b->sessions, link)
			if (s->pid == pids[i])
				break;
		if (s == NULL && pids[i] != b->zygote.pid && pids[i] != b->old_zygote.pid)
			(void)kill(pids[i], SIGKILL);
	}
	watch_children_free(&pids);
}

/* Not wanted any more, and never made. */
static void
forget_unmade(struct broker *b)
{
	struct session *s, *next;
	for (s = TAILQ_FIRST(&b->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->state == SESSION_DYING && s->pid == 0)
			lend_session_gone(b, s);
	}
}

static void
start_or_wait(struct broker *b)
{
	struct filler *f = &b->filler;
	struct session *s;
	forget_unmade(b); /* given up while there was no filler to order them from */
	if (!start(b)) {
		log_error("no filler could be started", LOG_INT("errno", errno));
		f->failures++;
		if (f->pid == 0)
			arm(f, RESTART_MAX_MS);
		return;
	}
	f->good_seq = f->seq + GOOD_LIFE;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_ORDERED && f->fd >= 0)
			send_order(b, s);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct broker *b = arg;
	if (b->filler.fd >= 0)
		lost(b, "it does not answer", ETIMEDOUT);
	else if (b->filler.pid == 0)
		start_or_wait(b);
}

void
filler_reaped(struct broker *b, pid_t pid)
{
	struct filler *f = &b->filler;
	if (f->pid != pid)
		return;
	f->pid = 0;
	while (take_one(b)) /* what it made and told before */
		;
	if (!b->is_draining)
		lost(b, "it ended", 0);
	end_orphans(b);
	forget_unmade(b);
	if (b->is_draining)
		return;
	int ms = f->failures < 5 ? RESTART_MS << f->failures : RESTART_MAX_MS;
	arm(f, f->failures++ == 0 ? 0 : ms);
}

bool
filler_init(struct broker *b)
{
	struct filler *f = &b->filler;
	f->fd = -1;
	f->ev_timer = evtimer_new(b->base, on_timer, b);
	if (f->ev_timer == NULL)
		return false;
	start_or_wait(b);
	return true;
}

void
filler_stop(struct broker *b)
{
	struct filler *f = &b->filler;
	if (f->ev_timer == NULL)
		return; /* none was ever started: everything is refused */
	if (f->ev != NULL)
		event_free(f->ev);
	f->ev = NULL;
	fd_close(&f->fd);
	(void)event_del(f->ev_timer);
	if (f->pid > 0)
		(void)kill(f->pid, SIGKILL);
}

void
filler_order(struct broker *b, struct session *s)
{
	if (b->filler.fd >= 0)
		send_order(b, s);
}
