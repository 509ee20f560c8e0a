#include "sandbox/spawner/session.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/mem.h"

/* A cold interpreter on a busy host. */
#define START_TIMEOUT_S 30

static void
fail(struct session *s, enum sandbox_layer layer, int sys_errno, const char *step)
{
	struct jail_fail f = {(uint32_t)layer, sys_errno, ""};
	(void)snprintf(f.step, sizeof(f.step), "%s", step);
	session_kill(s);
	s->ops->failed(s->arg, s, &f);
}

static void
close_born(struct session *s)
{
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->born_fds[i]);
}

static void
failed(struct session *s, struct jail_fail *f)
{
	f->step[sizeof(f->step) - 1] = '\0';
	session_kill(s);
	s->ops->failed(s->arg, s, f);
}

static void
on_status(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct session *s = arg;
	struct jail_fail f;
	ssize_t n = read(fd, &f, sizeof(f));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	(void)event_del(s->ev_status);
	if (n != sizeof(f)) { /* the end: otari-init runs */
		event_free(s->ev_status);
		s->ev_status = NULL;
		fd_close(&s->status_fd);
		if (s->is_born && s->state == SESSION_STARTING && s->zygote_seq == 0) {
			s->ops->built(s->arg, s);
			close_born(s);
		}
		return;
	}
	failed(s, &f);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	fail(arg, SB_INTERPRETER, ETIMEDOUT, "session start");
}

/* False: the session is dying, stop. */
static bool
take_frame(struct session *s, uint8_t type, struct str payload)
{
	struct frame_ready r;
	if (type != FRAME_READY) {
		s->ops->frame(s->arg, s, type, payload);
		return s->state != SESSION_DYING;
	}
	if (s->state != SESSION_STARTING || !frame_ready_get(payload, &r)) {
		fail(s, SB_INTERPRETER, EPROTO, "otari-init");
		return false;
	}
	s->state = SESSION_IDLE;
	(void)event_del(s->ev_late);
	s->ops->ready(s->arg, s, r.sys_errno);
	return s->state != SESSION_DYING;
}

static void
on_ctl(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct session *s = arg;
	ssize_t n = recv(fd, s->in + s->in_len, sizeof(s->in) - s->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* The status pipe may hold the reason: let it speak first. */
		(void)event_del(s->ev_ctl);
		if (s->ev_status != NULL)
			on_status(s->status_fd, 0, s);
		if (s->state == SESSION_STARTING)
			fail(s, SB_INTERPRETER, EPIPE, "otari-init ended");
		return;
	}
	s->in_len += (size_t)n;
	size_t pos = 0;
	struct frame_head h;
	while (s->in_len - pos >= FRAME_HEAD) {
		uint8_t raw[FRAME_HEAD];
		memcpy(raw, s->in + pos, FRAME_HEAD);
		if (!frame_head_get(raw, &h) || FRAME_HEAD + h.len > sizeof(s->in)) {
			fail(s, SB_INTERPRETER, EPROTO, "otari-init");
			return;
		}
		if (s->in_len - pos < FRAME_HEAD + h.len)
			break;
		pos += FRAME_HEAD + h.len;
		if (!take_frame(s, h.type, str_n(s->in + pos - h.len, h.len)))
			return;
		if (s->state == SESSION_LEASED)
			return;
	}
	memmove(s->in, s->in + pos, s->in_len - pos);
	s->in_len -= pos;
}

static bool
listen_to(struct session *s, struct event_base *base)
{
	struct timeval late = {START_TIMEOUT_S, 0};
	s->ev_ctl = event_new(base, s->fds[LEASE_FD_CTL], EV_READ | EV_PERSIST, on_ctl, s);
	s->ev_status = event_new(base, s->status_fd, EV_READ | EV_PERSIST, on_status, s);
	s->ev_late = evtimer_new(base, on_late, s);
	return s->ev_ctl != NULL && s->ev_status != NULL && s->ev_late != NULL &&
	       event_add(s->ev_ctl, NULL) == 0 && event_add(s->ev_status, NULL) == 0 &&
	       event_add(s->ev_late, &late) == 0;
}

struct session *
session_new(uint32_t slot, bool is_born, const struct session_ops *ops, void *arg)
{
	struct session *s = MEM_NEW(struct session);
	s->state = SESSION_ORDERED;
	s->slot = slot;
	s->is_born = is_born;
	s->ops = ops;
	s->arg = arg;
	s->pidfd = s->status_fd = -1;
	for (int i = 0; i < LEASE_FDS; i++)
		s->fds[i] = s->born_fds[i] = -1;
	return s;
}

bool
session_made(struct session *s, struct event_base *base, pid_t pid, const int *fds)
{
	bool is_wanted = s->state == SESSION_ORDERED;
	siginfo_t si;
	s->pid = pid;
	s->pidfd = fds[SESSION_FD_PID];
	s->status_fd = fds[SESSION_FD_STATUS];
	memcpy(s->fds, fds + SESSION_FD_CTL, sizeof(s->fds));
	if (s->is_born) {
		s->born_fds[LEASE_FD_CTL] = fds[SESSION_FD_BORN_REQUEST];
		s->born_fds[LEASE_FD_OUT] = fds[SESSION_FD_BORN_OUT];
		s->born_fds[LEASE_FD_ERR] = fds[SESSION_FD_BORN_ERR];
	}
	s->state = SESSION_STARTING;
	if (!is_wanted || !listen_to(s, base))
		session_kill(s);
	/* It may have ended, and as nobody's known child, before we heard of it. */
	if (waitid(P_PIDFD, (id_t)s->pidfd, &si, WEXITED | WNOHANG | WNOWAIT) == 0)
		return true;
	struct jail_fail f;
	if (s->state == SESSION_STARTING && read(s->status_fd, &f, sizeof(f)) == sizeof(f))
		failed(s, &f);
	else if (s->state == SESSION_STARTING)
		fail(s, SB_INTERPRETER, EPIPE, "otari-init ended");
	return false;
}

void
session_handed_over(struct session *s)
{
	s->state = SESSION_LEASED;
	event_free(s->ev_ctl);
	s->ev_ctl = NULL;
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->fds[i]);
}

void
session_ask_selftest(struct session *s)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, FRAME_SELFTEST, 0);
	if (send(s->fds[LEASE_FD_CTL], head, sizeof(head), MSG_NOSIGNAL) != (ssize_t)sizeof(head))
		fail(s, SB_INTERPRETER, EPIPE, "otari-init");
}

void
session_kill(struct session *s)
{
	if (s->state == SESSION_DYING)
		return;
	s->state = SESSION_DYING;
	if (s->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
	if (s->ev_ctl != NULL)
		(void)event_del(s->ev_ctl);
	if (s->ev_status != NULL)
		(void)event_del(s->ev_status);
	if (s->ev_late != NULL)
		(void)event_del(s->ev_late);
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->fds[i]);
	close_born(s);
}

void
session_free(struct session **sp)
{
	struct session *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	session_kill(s);
	if (s->ev_ctl != NULL)
		event_free(s->ev_ctl);
	if (s->ev_status != NULL)
		event_free(s->ev_status);
	if (s->ev_late != NULL)
		event_free(s->ev_late);
	fd_close(&s->pidfd);
	fd_close(&s->status_fd);
	mem_free(s);
}
