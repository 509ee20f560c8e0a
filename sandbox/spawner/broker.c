#include "sandbox/spawner/broker.h"

#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/fds.h"

void
broker_stop(struct broker *b, int code)
{
	b->exit_code = code;
	(void)event_base_loopbreak(b->base);
}

static void
tell_state(struct broker_worker *w)
{
	const struct broker *b = w->broker;
	struct lease_state m = {.type = LEASE_MSG_STATE,
	    .refused = b->report.refused,
	    .memory_mib = (uint32_t)(b->settings.memory_bytes >> 20)};
	struct err e;
	_Static_assert(sizeof(m.text) == sizeof(b->report.text), "one text");
	__builtin_memcpy(m.text, b->report.text, sizeof(m.text));
	if (lease_send(w->fd, &m, NULL, 0, &e) != ERR_OK)
		log_warn("sandbox state not told", LOG_ERR(&e), LOG_INT("worker", w->number));
}

void
broker_tested(struct broker *b)
{
	struct err e;
	b->report.type = LEASE_MSG_SELFTEST;
	if (lease_send(FD_CTL, &b->report, NULL, 0, &e) != ERR_OK)
		log_error("self-test report not sent", LOG_ERR(&e));
	struct broker_worker *w;
	TAILQ_FOREACH(w, &b->workers, link)
		tell_state(w);
	lend_step(b);
}

static void
drop_worker(struct broker_worker *w)
{
	struct broker *b = w->broker;
	TAILQ_REMOVE(&b->workers, w, link);
	lend_worker_gone(b, w);
	event_free(w->ev);
	fd_close(&w->fd);
	mem_free(w);
	lend_step(b);
}

static void
on_worker(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct broker_worker *w = arg;
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds = 0;
	struct err e;
	enum err_code rc = lease_recv(fd, &m, fds, &nfds, &e);
	if (rc == ERR_BUSY)
		return;
	for (size_t i = 0; rc == ERR_OK && i < nfds; i++)
		fd_close(&fds[i]);
	if (rc == ERR_OK && m.type == LEASE_MSG_LEASE) {
		lend_request(w->broker, w, &m.request);
	} else if (rc == ERR_OK && m.type == LEASE_MSG_RELEASE) {
		lend_release(w->broker, w, m.release.id);
	} else {
		if (rc == ERR_OK)
			rc = err_set(&e, ERR_PROTO, "unexpected message %#x", m.type);
		if (rc != ERR_NOTFOUND)
			log_warn("a worker's sandbox channel broke, its sessions end", LOG_ERR(&e),
			    LOG_INT("worker", w->number));
		drop_worker(w);
	}
}

static void
add_worker(struct broker *b, uint32_t number, int fd)
{
	struct broker_worker *w = MEM_NEW(struct broker_worker);
	w->broker = b;
	w->number = number;
	w->fd = fd;
	TAILQ_INIT(&w->leases);
	w->ev = event_new(b->base, fd, EV_READ | EV_PERSIST, on_worker, w);
	if (w->ev == NULL || !fd_set_nonblock(fd, true) || event_add(w->ev, NULL) != 0) {
		if (w->ev != NULL)
			event_free(w->ev);
		fd_close(&w->fd);
		mem_free(w);
		return;
	}
	TAILQ_INSERT_TAIL(&b->workers, w, link);
	if (b->is_tested)
		tell_state(w);
}

static void
on_master(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct broker *b = arg;
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds = 0;
	struct err e;
	enum err_code rc = lease_recv(fd, &m, fds, &nfds, &e);
	if (rc == ERR_BUSY)
		return;
	/* A master that ends without having read all that it was told. */
	if (rc == ERR_IO && e.sys_errno == ECONNRESET)
		rc = ERR_NOTFOUND;
	if (rc != ERR_OK) {
		if (rc != ERR_NOTFOUND)
			log_error("channel to the master broke", LOG_ERR(&e));
		broker_stop(b, rc == ERR_NOTFOUND ? 0 : 1);
		return;
	}
	if (m.type == LEASE_MSG_ADD_WORKER && nfds == 1) {
		add_worker(b, m.worker.worker, fds[0]);
		return;
	}
	/* The new file takes the place of the old descriptor. */
	if (m.type == LEASE_MSG_LOG && nfds == 1 && fd_dup_to(fds[0], FD_LOG, true)) {
		(void)fd_dup_to(FD_LOG, STDOUT_FILENO, false);
		(void)fd_dup_to(FD_LOG, STDERR_FILENO, false);
	}
	for (size_t i = 0; i < nfds; i++)
		fd_close(&fds[i]);
	struct broker_worker *w;
	if (m.type == LEASE_MSG_STOP) {
		broker_stop(b, 0);
	} else if (m.type == LEASE_MSG_DRAIN) {
		lend_drain(b);
	} else if (m.type == LEASE_MSG_ELSEWHERE) {
		b->elsewhere = m.elsewhere.sessions;
		lend_step(b);
	} else if (m.type == LEASE_MSG_LOG) {
		return;
	} else if (m.type == LEASE_MSG_REMOVE_WORKER) {
		TAILQ_FOREACH(w, &b->workers, link)
			if (w->number == m.worker.worker)
				break;
		if (w != NULL)
			drop_worker(w);
	} else {
		log_error("unexpected message of the master");
		broker_stop(b, 1);
	}
}

static void
on_parent(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	broker_stop(arg, 1);
}

static void
on_child(evutil_socket_t sig, short what, void *arg)
{
	(void)sig, (void)what;
	struct broker *b = arg;
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
		struct session *s;
		TAILQ_FOREACH(s, &b->sessions, link)
			if (s->pid == pid)
				break;
		filler_reaped(b, pid);
		zygote_reaped(b, pid);
		if (s != NULL)
			lend_session_gone(b, s);
	}
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	lend_step(arg);
}

static void
on_refill(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct broker *b = arg;
	b->is_holding_back = false;
	lend_step(b);
}

static bool
start_events(struct broker *b, int parent_fd)
{
	b->base = event_base_new();
	if (b->base == NULL)
		return false;
	b->ev_master = event_new(b->base, FD_CTL, EV_READ | EV_PERSIST, on_master, b);
	b->ev_child = evsignal_new(b->base, SIGCHLD, on_child, b);
	b->ev_deadline = evtimer_new(b->base, on_deadline, b);
	b->ev_refill = evtimer_new(b->base, on_refill, b);
	if (parent_fd >= 0) {
		b->ev_parent = event_new(b->base, parent_fd, EV_READ, on_parent, b);
		if (b->ev_parent == NULL || event_add(b->ev_parent, NULL) != 0)
			return false;
	}
	return b->ev_master != NULL && b->ev_child != NULL && b->ev_deadline != NULL &&
	       b->ev_refill != NULL && event_add(b->ev_master, NULL) == 0 &&
	       event_add(b->ev_child, NULL) == 0;
}

int
broker_run(struct broker *b, int parent_fd)
{
	TAILQ_INIT(&b->workers);
	TAILQ_INIT(&b->sessions);
	TAILQ_INIT(&b->idle_born);
	TAILQ_INIT(&b->idle_cold);
	queue_init(&b->queue, BROKER_WAITING_MAX, BROKER_WAITING_EACH_MAX,
	    b->settings.max_sessions_per_workspace);
	if (!start_events(b, parent_fd)) {
		log_error("no event loop");
		return 1;
	}
	if (b->is_tested) {
		broker_tested(b);
	} else {
		slots_init(&b->slots, bounds_slots(b));
		if (!filler_init(b))
			return 1;
		selftest_start(b);
	}
	(void)event_base_dispatch(b->base);
	/* As pid 1 of its namespace this process takes every session with it. */
	return b->exit_code;
}
