#include "master/link.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "ipc/chan.h"
#include "master/cgroups.h"
#include "master/master.h"
#include "master/spawn.h"

struct link {
	struct master *m;
	struct child *child;
	int fd;
	struct event *ev;
	uint32_t range;          /* of user ids: of nobody else as long as this is there */
	uint32_t max, elsewhere; /* sessions: of its settings, and lent by others as it was told */
	bool may_lend;           /* workers got sockets to it */
	bool has_report;
	struct lease_selftest report;
	struct lease_stats stats;
};

enum { SANDBOX_OFF, SANDBOX_TESTING, SANDBOX_READY, SANDBOX_REFUSED };

bool
link_is_wanted(const struct master_conf *c)
{
	return str_starts(c->sandbox.url, STR("local:"));
}

void
link_settings(const struct master_conf *c, struct sandbox_settings *ret)
{
	const struct sandbox_conf *s = &c->sandbox;
	/* Padding is compared, so every byte is set. */
	memset(ret, 0, sizeof(*ret));
	sandbox_settings_default(ret);
	if (s->python.ptr != NULL)
		(void)str_copy(ret->python, sizeof(ret->python), s->python);
	(void)str_copy(ret->rootfs, sizeof(ret->rootfs), s->rootfs);
	if (s->preload.ptr != NULL)
		(void)str_copy(ret->preload, sizeof(ret->preload), s->preload);
	if (s->memory_bytes > 0)
		ret->memory_bytes = s->memory_bytes;
	if (s->workspace_bytes > 0)
		ret->workspace_bytes = s->workspace_bytes;
	if (s->workspace_inodes > 0)
		ret->workspace_inodes = s->workspace_inodes;
	if (s->file_bytes > 0)
		ret->file_bytes = s->file_bytes;
	if (s->output_bytes > 0)
		ret->output_bytes = s->output_bytes;
	if (s->pids > 0)
		ret->pids = s->pids;
	if (s->open_files > 0)
		ret->open_files = s->open_files;
	if (s->max_sessions > 0)
		ret->max_sessions = s->max_sessions;
	ret->max_sessions_per_workspace = s->max_sessions_per_workspace;
	ret->pool_size = s->pool_size;
	ret->uid_base = geteuid() == 0 ? s->uid_base : 0;
	ret->cpu_percent = s->cpu_percent;
	ret->require_cgroup = s->require_cgroup;
	ret->log_level = c->log_level;
	ret->log_json = c->log_json;
}

static bool
tell(struct link *l, const void *msg, const int *fds, size_t nfds)
{
	struct err e;
	if (lease_send(l->fd, msg, fds, nfds, &e) == ERR_OK)
		return true;
	/* It has ended: that says what happened. */
	if (e.sys_errno == EPIPE || e.sys_errno == ECONNRESET)
		return false;
	child_kill(l->child, e.msg);
	return false;
}

static void
stop(struct link *l)
{
	struct lease_worker msg = {LEASE_MSG_STOP, 0};
	if (l == NULL || !child_state_is_wanted(l->child->state))
		return;
	if (tell(l, &msg, NULL, 0))
		child_set_state(l->child, CHILD_DRAINING, clock_mono_ms() + CHILD_GRACE_MS);
}

static bool
is_range_used(const struct master *m, uint32_t range)
{
	const struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->spawner_link != NULL && c->spawner_link->range == range)
			return true;
	return false;
}

/* One that no living spawner has, the longest out of use: what a killed one leaves may take a
 * moment to die. False: all are in use. */
static bool
take_range(struct master *m)
{
	for (uint32_t i = 1; i <= LEASE_UID_RANGES; i++) {
		uint32_t range = (m->link_range + i) % LEASE_UID_RANGES;
		if (!is_range_used(m, range)) {
			m->link_range = range;
			return true;
		}
	}
	return false;
}

/* Sessions that it may still have lent: one that drains says so, and it gets less. */
static uint32_t
may_have_lent(const struct link *l)
{
	if (!l->may_lend || (l->has_report && l->report.refused != 0))
		return 0;
	return l->stats.is_draining != 0 ? l->stats.leased : l->max;
}

/* What all others lend is not for this one to lend. */
static void
tell_elsewhere(struct link *l)
{
	const struct child *c;
	struct lease_elsewhere msg = {LEASE_MSG_ELSEWHERE, 0};
	TAILQ_FOREACH(c, &l->m->children, link)
		if (c->spawner_link != NULL && c->spawner_link != l)
			msg.sessions += may_have_lent(c->spawner_link);
	if (msg.sessions == l->elsewhere || !child_state_is_wanted(l->child->state))
		return;
	l->elsewhere = msg.sessions;
	(void)tell(l, &msg, NULL, 0);
}

static void
tell_all_elsewhere(struct master *m)
{
	if (m->link != NULL)
		tell_elsewhere(m->link);
	if (m->next_link != NULL)
		tell_elsewhere(m->next_link);
}

/* Sessions that it lent go on in it; what waits is asked for again from the next one. */
static void
drain(struct link *l)
{
	struct lease_worker msg = {LEASE_MSG_DRAIN, 0};
	int64_t until = clock_mono_ms() + l->m->conf.drain_timeout_ms + CHILD_GRACE_MS;
	if (child_state_is_wanted(l->child->state) && tell(l, &msg, NULL, 0))
		child_set_state(l->child, CHILD_DRAINING, until);
}

/* Also to one that drains: requests that it still has may want a sandbox. */
static void
send_sockets(struct master *m)
{
	struct child *w;
	TAILQ_FOREACH(w, &m->children, link)
		if (w->role == ROLE_WORKER &&
		    (child_state_is_wanted(w->state) || w->state == CHILD_DRAINING))
			link_send_socket(m, w);
}

/* The one that was tested beside the old one takes its place. */
static void
hand_over(struct master *m)
{
	struct link *old = m->link;
	m->link = m->next_link;
	m->next_link = NULL;
	m->spawner.child = m->link->child;
	m->link->may_lend = true;
	send_sockets(m);
	if (old != NULL)
		drain(old);
}

static void
on_selftest(struct link *l, const struct lease_selftest *r)
{
	struct master *m = l->m;
	l->report = *r;
	l->has_report = true;
	if (l == m->next_link)
		hand_over(m);
	if (l == m->link)
		board_sandbox_layers(m->board, r);
	if (l == m->link)
		m->board->sandbox_state = r->refused != 0 ? SANDBOX_REFUSED : SANDBOX_READY;
	if (r->refused != 0)
		log_error("sandbox refused", LOG_C("why", r->text));
	for (size_t i = 0; i < SB_LAYERS_; i++)
		if (r->layer[i].state == SB_DEGRADED)
			log_notice("sandbox layer degraded",
			    LOG_C("layer", lease_layer_name((enum sandbox_layer)i)),
			    LOG_C("why", r->layer[i].text));
	if (l->child->state == CHILD_STARTING) {
		child_set_state(l->child, CHILD_READY, 0);
		master_step(m);
	}
}

/* One that drains goes on counting, but the pool is its successor's. */
static void
on_stats(struct link *l, const struct lease_stats *s)
{
	struct master *m = l->m;
	if (l == m->link) {
		board_sandbox_stats(m->board, s, &l->stats);
		board_gauge(l->child->slot, BG_POOL_READY, s->ready);
	}
	l->stats = *s;
	if (l != m->link)
		tell_all_elsewhere(m);
}

static void
on_link(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct link *l = arg;
	union lease_msg msg;
	int fds[LEASE_FDS];
	size_t nfds;
	struct err e = {0};
	enum err_code rc = lease_recv(fd, &msg, fds, &nfds, &e);
	if (rc == ERR_BUSY)
		return;
	/* One that ended without having read all that it was told. */
	if (rc == ERR_IO && e.sys_errno == ECONNRESET)
		rc = ERR_NOTFOUND;
	if (rc == ERR_OK) {
		for (size_t i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		if (msg.type == LEASE_MSG_SELFTEST) {
			on_selftest(l, &msg.selftest);
			return;
		}
		if (msg.type == LEASE_MSG_STATS) {
			on_stats(l, &msg.stats);
			return;
		}
		(void)err_set(&e, ERR_PROTO, "unexpected message");
	}
	(void)event_del(l->ev);
	/* Its end says what happened; only one that goes on talking nonsense must be stopped. */
	if (rc != ERR_NOTFOUND)
		child_kill(l->child, e.msg);
	else if (l->child->state != CHILD_KILLED)
		l->child->deadline_ms = clock_mono_ms() + CHILD_GRACE_MS;
}

static struct link *
open_link(struct master *m)
{
	struct err e;
	struct child *c;
	int ctl;
	struct spawn_fd fds[] = {{m->init_exe_fd, FD_INIT_EXE}};
	if (!take_range(m)) {
		log_notice("a new spawner waits until one that drains has ended");
		return NULL;
	}
	cgroups_step_aside(m);
	cgroups_sweep(m); /* of a master before this one */
	if (spawn_role(m, ROLE_SPAWNER, 0, fds, ARRAY_LEN(fds), &c, &ctl, &e) != ERR_OK) {
		log_error("cannot start the spawner", LOG_ERR(&e));
		return NULL;
	}
	struct link *l = MEM_NEW(struct link);
	c->seat = &m->spawner;
	c->spawner_link = l;
	l->m = m;
	l->child = c;
	l->range = m->link_range;
	l->fd = ctl;
	l->ev = event_new(m->base, ctl, EV_READ | EV_PERSIST, on_link, l);
	CHECK(l->ev != NULL && event_add(l->ev, NULL) == 0);
	struct lease_settings s = {.type = LEASE_MSG_SETTINGS};
	link_settings(&m->conf, &s.settings);
	if (s.settings.uid_base != 0)
		s.settings.uid_base += l->range * LEASE_UIDS;
	l->max = s.settings.max_sessions;
	/* When it fails the child is killed, and its end handled. */
	if (tell(l, &s, NULL, 0))
		tell_elsewhere(l);
	return l;
}

bool
link_start_spawner(struct master *m)
{
	CHECK(m->link == NULL);
	m->is_link_due = false;
	m->link = open_link(m);
	if (m->link == NULL)
		return false;
	m->link->may_lend = true;
	m->spawner.child = m->link->child;
	m->board->sandbox_state = SANDBOX_TESTING;
	send_sockets(m);
	return true;
}

void
link_replace_spawner(struct master *m)
{
	struct link *older = m->next_link;
	m->next_link = NULL;
	if (older != NULL)
		child_kill(older->child, NULL);
	if (m->link == NULL)
		return; /* its seat is filled with the new settings anyway */
	m->next_link = open_link(m);
	m->is_link_due = m->next_link == NULL; /* when another one has ended */
}

int
link_add_worker(struct master *m, const struct child *c)
{
	int pair[2];
	struct link *l = m->link;
	if (l == NULL || !child_state_is_wanted(l->child->state))
		return -1;
	if (!fd_socketpair_seqpacket(pair, true)) {
		struct err e;
		(void)err_set(&e, ERR_IO, "socketpair");
		log_error("no sandbox for a worker", LOG_ERR(&e));
		return -1;
	}
	struct lease_worker add = {LEASE_MSG_ADD_WORKER, (uint32_t)c->key};
	bool ok = tell(l, &add, &pair[1], 1);
	fd_close(&pair[1]);
	if (!ok)
		fd_close(&pair[0]);
	return pair[0];
}

void
link_send_socket(struct master *m, struct child *c)
{
	if (c->chan == NULL)
		return;
	int fd = link_add_worker(m, c);
	if (fd >= 0)
		chan_send(c->chan, MSG_SPAWNER, 0, STR_NULL, &fd, 1);
	fd_close(&fd);
}

void
link_remove_worker(struct master *m, const struct child *c)
{
	struct link *l = m->link;
	struct lease_worker gone = {LEASE_MSG_REMOVE_WORKER, (uint32_t)c->key};
	if (l != NULL && child_state_is_wanted(l->child->state))
		(void)tell(l, &gone, NULL, 0);
}

void
link_reopen_log(struct master *m)
{
	struct lease_worker log = {LEASE_MSG_LOG, 0};
	struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->spawner_link != NULL && c->state != CHILD_KILLED)
			(void)tell(c->spawner_link, &log, &m->log_fd, 1);
}

void
link_stop(struct master *m)
{
	struct child *c;
	struct lease_worker msg = {LEASE_MSG_STOP, 0};
	if (m->next_link != NULL)
		child_kill(m->next_link->child, NULL);
	stop(m->link);
	TAILQ_FOREACH(c, &m->children, link) /* those that drain */
		if (c->spawner_link != NULL && c->spawner_link != m->link &&
		    c->state == CHILD_DRAINING) {
			c->deadline_ms = clock_mono_ms() + CHILD_GRACE_MS;
			(void)tell(c->spawner_link, &msg, NULL, 0);
		}
}

/* What runs in it goes on; it lends nothing more, and its seat is free. */
static void
leave_current(struct master *m)
{
	struct link *old = m->link;
	m->link = NULL;
	seat_leave(&m->spawner);
	drain(old);
}

static void
show_none(struct master *m)
{
	board_sandbox_layers(m->board, NULL);
	board_sandbox_stats(m->board, NULL, NULL);
	m->board->sandbox_state = link_is_wanted(&m->conf) ? SANDBOX_REFUSED : SANDBOX_OFF;
}

/* The settings in force belong to a spawner that did not come to life, and no other one may lend.
 */
static void
give_up_current(struct master *m)
{
	if (m->link == NULL || !m->spawner.is_wanted || master_is_stopping(m))
		return;
	log_error("no spawner runs with the new settings, the old one lends nothing more");
	leave_current(m);
	seat_fill(&m->spawner);
}

void
link_retire(struct master *m)
{
	if (m->next_link != NULL)
		child_kill(m->next_link->child, NULL);
	m->is_link_due = false;
	if (m->link == NULL)
		return;
	leave_current(m);
	show_none(m);
}

void
link_lost(struct master *m, struct child *spawner)
{
	struct link *l = spawner->spawner_link;
	spawner->spawner_link = NULL;
	event_free(l->ev);
	fd_close(&l->fd);
	cgroups_sweep(m);
	if (l == m->link) {
		m->link = NULL;
		board_sandbox_layers(m->board, NULL);
		board_sandbox_stats(m->board, NULL, NULL);
		m->board->sandbox_state = link_is_wanted(&m->conf) ? SANDBOX_REFUSED : SANDBOX_OFF;
	}
	if (l == m->next_link) {
		m->next_link = NULL;
		give_up_current(m);
	}
	mem_free(l);
	tell_all_elsewhere(m);
	if (m->is_link_due && m->link != NULL && !master_is_stopping(m))
		link_replace_spawner(m);
}

const struct lease_selftest *
link_selftest(const struct master *m)
{
	return m->link != NULL && m->link->has_report ? &m->link->report : NULL;
}

const struct lease_stats *
link_stats(const struct master *m)
{
	return m->link != NULL && m->link->stats.type != 0 ? &m->link->stats : NULL;
}
