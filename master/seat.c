#include "master/seat.h"

#include <sys/wait.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "ipc/chan.h"
#include "ipc/role.h"
#include "master/dispatch.h"
#include "master/link.h"
#include "master/listen.h"
#include "master/master.h"
#include "master/snapshots.h"
#include "master/spawn.h"

#define EXIT_DO_NOT_RESPAWN 2
/* In a row, before anything was served: the start has failed. */
#define START_FAILURES_MAX 3u

static void
on_respawn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	seat_fill(arg);
}

void
seat_init(struct seat *s, struct master *m, enum role role, uint32_t number)
{
	*s = (struct seat){.m = m, .role = role, .number = number, .listen_fd = -1};
	s->respawn = evtimer_new(m->base, on_respawn, s);
	CHECK(s->respawn != NULL);
}

void
seat_done(struct seat *s)
{
	if (s->respawn != NULL)
		event_free(s->respawn);
	s->respawn = NULL;
	fd_close(&s->listen_fd);
}

static void
fill_later(struct seat *s, uint32_t delay_ms)
{
	struct timeval t = {delay_ms / 1000, (delay_ms % 1000) * 1000};
	(void)event_add(s->respawn, &t);
}

/* Sockets of seats that are not filled any more are served by worker 1. */
static void
inherit_sockets(struct master *m, struct child *c)
{
	for (uint32_t i = 1; i < m->worker_seats; i++)
		if (!m->workers[i].is_wanted && m->workers[i].listen_fd >= 0)
			dispatch_send_listener(c, m->workers[i].listen_fd);
}

/* NULL: it could not be started; that was logged. */
static struct child *
start_child(struct seat *s)
{
	struct master *m = s->m;
	struct err e = {0};
	struct child *c;
	int ctl;
	s->starts++;
	/* A lent session lives in one process, and so must all that is asked of it. */
	int serve_fd = s->number == 1 ? m->serve_fd : -1;
	struct spawn_fd fds[3] = {
	    {s->listen_fd, FD_LISTEN}, {m->admin_fd, FD_ADMIN}, {serve_fd, FD_SERVE}};
	size_t n = s->role == ROLE_WORKER ? ARRAY_LEN(fds) : 0;
	if (spawn_role(m, s->role, s->number, fds, n, &c, &ctl, &e) != ERR_OK) {
		log_error("cannot start a child", LOG_C("role", role_name(s->role)), LOG_ERR(&e));
		return NULL;
	}
	c->seat = s;
	if (dispatch_attach(c, ctl, &e) != ERR_OK) {
		child_kill(c, e.msg);
		return c; /* its end is handled like any other */
	}
	if (s->role == ROLE_WORKER)
		link_send_socket(m, c);
	snapshots_send_all(m, c);
	if (s->role == ROLE_WORKER && s->number == 1)
		inherit_sockets(m, c);
	return c;
}

void
seat_fill(struct seat *s)
{
	if (!s->is_wanted || s->child != NULL || master_is_stopping(s->m))
		return;
	(void)event_del(s->respawn);
	if (s->role == ROLE_SPAWNER) {
		s->starts++;
		(void)link_start_spawner(s->m);
	} else {
		s->child = start_child(s);
	}
	if (s->child == NULL)
		fill_later(s, backoff_next(&s->backoff, false, 0));
}

void
seat_recycle(struct child *c)
{
	struct seat *s = c->seat;
	if (s == NULL || s->child != c || s->next != NULL || !s->is_wanted ||
	    c->state != CHILD_READY || master_is_stopping(s->m))
		return;
	s->next = start_child(s);
}

static void
drain_child(struct child *c)
{
	if (c != NULL)
		child_drain(c, clock_mono_ms() + c->m->conf.drain_timeout_ms + CHILD_GRACE_MS);
}

void
seat_recycle_all(struct master *m)
{
	for (uint32_t i = 0; i < m->worker_seats; i++) {
		struct child *c = m->workers[i].child;
		if (c == NULL)
			continue;
		c->wants_successor = true; /* one that still starts is followed when it is ready */
		seat_recycle(c);
	}
	/* One after the other: two would read the same spools. */
	drain_child(m->sweeper.child);
}

void
seat_child_ready(struct seat *s, struct child *c)
{
	if (s->next == c) {
		struct child *old = s->child;
		s->child = c;
		s->next = NULL;
		drain_child(old);
	}
	/* Settings changed again while it started. */
	if (c->wants_successor)
		seat_recycle(c);
}

void
seat_leave(struct seat *s)
{
	s->child = NULL;
	s->next = NULL;
}

/* Says how it ended; an end nobody asked for is worth a person's look. */
static void
log_end(const struct child *c, int status, bool was_asked, uint32_t delay_ms)
{
	bool is_signal = WIFSIGNALED(status);
	int code = is_signal ? WTERMSIG(status) : WEXITSTATUS(status);
	bool is_fine = was_asked && (is_signal ? c->state == CHILD_KILLED : code == 0);
	log_write(is_fine ? LOG_NOTICE : LOG_WARN, "child ended",
	    (const struct log_field[]){LOG_C("child", child_label(c)), LOG_INT("child_pid", c->pid),
		LOG_INT(is_signal ? "signal" : "exit_code", code), LOG_INT("restart_ms", delay_ms)},
	    was_asked ? 3 : 4);
}

void
seat_child_ended(struct seat *s, struct child *c, int status)
{
	struct master *m = s->m;
	bool is_current = s->child == c;
	bool is_next = s->next == c;
	bool was_asked =
	    c->state == CHILD_DRAINING || master_is_stopping(m) || (!is_current && !is_next);
	bool was_ready = c->ready_ms != 0;
	if (is_next)
		s->next = NULL;
	if (is_current) {
		s->child = s->next;
		s->next = NULL;
	}
	bool give_up = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DO_NOT_RESPAWN;
	bool again =
	    is_current && s->child == NULL && s->is_wanted && !give_up && !master_is_stopping(m);
	uint32_t delay = 0;
	if (again)
		delay = was_asked ? 0
				  : backoff_next(&s->backoff, was_ready,
					was_ready ? clock_mono_ms() - c->ready_ms : 0);
	log_end(c, status, was_asked, delay);
	if (is_next && !was_asked)
		log_error("a worker's successor does not start, the old one goes on with the old "
			  "settings",
		    LOG_INT("worker", s->number));
	if (m->phase == MASTER_START && s->backoff.failures >= START_FAILURES_MAX) {
		master_fail(m, 1, "a child does not start; its reason is in the log");
		return;
	}
	if (again && delay == 0)
		seat_fill(s);
	else if (again)
		fill_later(s, delay);
	else if (is_current && give_up && !master_is_stopping(m)) {
		s->is_wanted = false;
		log_error("a child will not be started again", LOG_C("role", role_name(s->role)));
		if (m->phase == MASTER_START && s->role != ROLE_SPAWNER)
			master_fail(m, 2, "a child refuses to start; its reason is in the log");
	}
}

static enum err_code
open_socket(struct master *m, struct seat *s, struct err *reterr)
{
	uint16_t port = m->port;
	bool is_first = m->worker_seats == 0;
	enum err_code rc = listen_open(m->conf.host, &port, is_first, &s->listen_fd, reterr);
	if (rc == ERR_OK)
		m->port = port;
	return rc;
}

static void
leave_to(struct seat *s, struct child *heir)
{
	if (heir != NULL && s->listen_fd >= 0)
		dispatch_send_listener(heir, s->listen_fd);
}

void
seat_set_workers(struct master *m, uint32_t n)
{
	struct err e;
	for (uint32_t i = 0; i < n; i++) {
		struct seat *s = &m->workers[i];
		if (s->listen_fd < 0 && open_socket(m, s, &e) != ERR_OK) {
			if (m->worker_seats == 0)
				master_fail(m, 1, e.msg);
			else
				log_error("no socket for another worker", LOG_ERR(&e));
			return;
		}
		if (i >= m->worker_seats)
			m->worker_seats = i + 1;
		s->is_wanted = true;
		seat_fill(s);
	}
	/* Too many: the worker finishes, and its socket, with what waits in its queue, goes to
	 * worker 1, so that no connection is lost. (The kernel cannot move a queue, and closing the
	 * socket would reset what is in it.) */
	for (uint32_t i = n; i < m->worker_seats; i++) {
		struct seat *s = &m->workers[i];
		if (!s->is_wanted)
			continue;
		s->is_wanted = false;
		(void)event_del(s->respawn);
		leave_to(s, m->workers[0].child);
		leave_to(s, m->workers[0].next);
		drain_child(s->child);
		drain_child(s->next);
		seat_leave(s);
	}
}

bool
seat_all_ready(const struct master *m)
{
	const struct seat *s;
	for (uint32_t i = 0; i < m->worker_seats; i++) {
		s = &m->workers[i];
		if (s->is_wanted && (s->child == NULL || s->child->state != CHILD_READY))
			return false;
	}
	s = &m->sweeper;
	return !s->is_wanted || (s->child != NULL && s->child->state == CHILD_READY);
}
