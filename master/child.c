#include "master/child.h"

#include <signal.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "ipc/chan.h"
#include "ipc/role.h"
#include "master/master.h"

/* The master itself was not running for so long: heartbeats of others say nothing then. */
#define MASTER_STALL_MS 3000

const char *
child_label(const struct child *c)
{
	static char text[32];
	if (c->number > 0)
		(void)snprintf(text, sizeof(text), "%s %u", role_name(c->role), c->number);
	else
		(void)snprintf(text, sizeof(text), "%s", role_name(c->role));
	return text;
}

/* The other roles write their slot themselves; the spawner does not map the board. */
static void
show_on_board(struct child *c)
{
	if (c->role != ROLE_SPAWNER && c->state != CHILD_KILLED)
		return;
	c->slot->state = c->state == CHILD_READY      ? BOARD_READY
			 : c->state == CHILD_DRAINING ? BOARD_DRAINING
						      : BOARD_DEAD;
	c->slot->heartbeat_ms = (uint64_t)clock_mono_ms();
}

void
child_set_state(struct child *c, enum child_state to, int64_t deadline_ms)
{
	CHECK(child_state_allowed(c->state, to));
	/* A builder lives for one build, which is logged by what came of it. */
	log_write(c->role == ROLE_BUILDER ? LOG_DEBUG : LOG_NOTICE, "child state",
	    (const struct log_field[]){LOG_C("child", child_label(c)), LOG_INT("child_pid", c->pid),
		LOG_C("from", child_state_name(c->state)), LOG_C("to", child_state_name(to))},
	    4);
	c->state = to;
	c->deadline_ms = deadline_ms;
	show_on_board(c);
	if (to == CHILD_READY)
		c->ready_ms = clock_mono_ms();
}

void
child_drain(struct child *c, int64_t deadline_ms)
{
	if (!child_state_is_wanted(c->state))
		return;
	if (c->chan == NULL && c->deadline_ms != 0)
		deadline_ms = c->deadline_ms; /* it ends already, and cannot be told */
	child_set_state(c, CHILD_DRAINING, deadline_ms);
	publish_retire(&c->m->publish, c->key);
	if (c->chan != NULL)
		chan_send(c->chan, MSG_DRAIN, 0, STR_NULL, NULL, 0);
}

void
child_kill(struct child *c, const char *why)
{
	if (c->state == CHILD_KILLED || c->state == CHILD_GONE)
		return;
	if (why != NULL)
		log_error("killing a child", LOG_C("child", child_label(c)),
		    LOG_INT("child_pid", c->pid), LOG_C("why", why));
	child_set_state(c, CHILD_KILLED, clock_mono_ms() + CHILD_END_MS);
	publish_leave(&c->m->publish, c->key);
	(void)kill(c->pid, SIGKILL);
}

struct child *
child_by_pid(struct master *m, pid_t pid)
{
	struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->pid == pid && c->state != CHILD_GONE) /* whose number may be used again */
			return c;
	return NULL;
}

size_t
child_awaited(const struct master *m, enum role role)
{
	size_t n = 0;
	int64_t now = clock_mono_ms();
	const struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if ((role == ROLE_MASTER || c->role == role) &&
		    (c->state != CHILD_KILLED || now <= c->deadline_ms))
			n++;
	return n;
}

void
child_channel_closed(struct child *c)
{
	int64_t end = clock_mono_ms();
	if (c->state == CHILD_STARTING || c->state == CHILD_READY)
		c->deadline_ms = end + CHILD_GRACE_MS;
	else if (c->state == CHILD_DRAINING && c->deadline_ms > end + CHILD_END_MS)
		c->deadline_ms = end + CHILD_END_MS;
}

void
child_forget(struct child **cp)
{
	struct child *c = *cp;
	*cp = NULL;
	publish_leave(&c->m->publish, c->key);
	TAILQ_REMOVE(&c->m->children, c, link);
	chan_free(&c->chan);
	board_release(c->slot);
	mem_free(c);
}

static const char *
late_text(enum child_state s)
{
	switch (s) {
	case CHILD_STARTING:
		return "not ready in time";
	case CHILD_DRAINING:
		return "did not finish in time";
	case CHILD_READY:
	case CHILD_KILLED:
	case CHILD_GONE:
	case CHILD_STATE_MAX:
		break;
	}
	return "did not end in time";
}

void
child_watch(struct master *m, int64_t now_ms)
{
	bool stalled = m->last_tick_ms != 0 && now_ms - m->last_tick_ms > MASTER_STALL_MS;
	struct child *c;
	TAILQ_FOREACH(c, &m->children, link) {
		if (c->deadline_ms != 0 && now_ms > c->deadline_ms && c->state != CHILD_KILLED) {
			if (c->state == CHILD_DRAINING && master_is_stopping(m))
				m->has_stopped_hard = true;
			child_kill(c, late_text(c->state));
			continue;
		}
		/* Only workers promise never to block their loop. */
		if (c->role != ROLE_WORKER || c->state != CHILD_READY || stalled)
			continue;
		int64_t beat = (int64_t)c->slot->heartbeat_ms;
		if (now_ms - beat > (int64_t)m->conf.heartbeat_timeout_ms)
			child_kill(c, "no heartbeat");
	}
}
