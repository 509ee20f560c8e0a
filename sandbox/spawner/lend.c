#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/spawner/broker.h"

/* Between two tries after a session could not be made. */
#define HOLD_BACK_S 1

static void
answer(struct broker_worker *w, uint64_t id, enum lease_status status, const char *text)
{
	struct lease_answer a = {.type = LEASE_MSG_ANSWER, .status = (uint32_t)status, .id = id};
	struct err e;
	(void)snprintf(a.text, sizeof(a.text), "%s", text);
	/* A worker that does not read waits for its own deadline. */
	if (lease_send(w->fd, &a, NULL, 0, &e) != ERR_OK)
		log_warn("lease answer lost", LOG_ERR(&e), LOG_INT("worker", w->number));
}

/* For a test. */
static bool
is_set_aside(const struct broker *b, const struct session *s)
{
	return s == b->test || s == b->zygote.place;
}

static void
move_to(struct session *s, struct session_list *l)
{
	if (s->lend_list != NULL)
		TAILQ_REMOVE(s->lend_list, s, lend);
	s->lend_list = l;
	if (l != NULL)
		TAILQ_INSERT_TAIL(l, s, lend);
}

/* One that lives, of a list; those that died meanwhile go. */
static struct session *
first_idle(struct session_list *l)
{
	struct session *s;
	while ((s = TAILQ_FIRST(l)) != NULL && s->state != SESSION_IDLE)
		move_to(s, NULL);
	return s;
}

static struct session *
find_idle(struct broker *b)
{
	struct session *s = first_idle(&b->idle_born); /* its libraries are loaded */
	return s != NULL ? s : first_idle(&b->idle_cold);
}

static void
uncharge(struct broker *b, struct session *s)
{
	struct queue_workspace *w = s->workspace;
	s->workspace = NULL;
	if (w != NULL)
		queue_session_ended(&b->queue, w);
}

static void
hand_over(struct broker *b, struct session *s, const struct queue_request *r)
{
	struct broker_worker *w = r->owner;
	struct lease_answer a = {.type = LEASE_MSG_ANSWER, .status = LEASE_OK, .id = r->id};
	struct err e;
	s->workspace = r->workspace;
	if (lease_send(w->fd, &a, s->fds, LEASE_FDS, &e) == ERR_OK) {
		s->owner = w;
		s->lease_id = r->id;
		move_to(s, &w->leases);
		session_handed_over(s);
		watch_start(b);
	} else {
		log_warn("lease lost", LOG_ERR(&e), LOG_INT("worker", w->number));
		session_kill(s);
		uncharge(b, s);
	}
}

/* Those of before the zygote make room, one for one that is better. */
static void
drop_one_cold(struct broker *b)
{
	struct session *s = first_idle(&b->idle_cold);
	if (s != NULL)
		session_kill(s);
}

static void
on_built(void *arg, struct session *s)
{
	zygote_give(arg, s);
}

static void
on_ready(void *arg, struct session *s, int sys_errno)
{
	struct broker *b = arg;
	if (s == b->test) {
		selftest_ready(b, sys_errno);
		return;
	}
	if (s == b->zygote.place) {
		if (sys_errno == 0)
			zygote_placed(b);
		else
			session_kill(s); /* which the zygote hears of */
		return;
	}
	if (s->is_born && sys_errno != 0) {
		session_kill(s);
		zygote_child_failed(b, "its child ended", sys_errno);
		lend_step(b);
		return;
	}
	if (sys_errno != 0) {
		struct jail_fail f = {SB_INTERPRETER, sys_errno, "start of the interpreter"};
		session_kill(s);
		lend_session_failed(b, &f);
		return;
	}
	stats_made(b, s);
	if (s->is_born)
		drop_one_cold(b);
	move_to(s, s->is_born ? &b->idle_born : &b->idle_cold);
	lend_step(b);
}

static void
on_frame(void *arg, struct session *s, uint8_t type, struct str payload)
{
	struct broker *b = arg;
	if (s == b->test)
		selftest_frame(b, type, payload);
	else
		session_kill(s); /* it has nothing to say before it is asked */
}

static void
on_failed(void *arg, struct session *s, const struct jail_fail *f)
{
	struct broker *b = arg;
	if (s == b->test) {
		selftest_failed(b, f);
		return;
	}
	if (s == b->zygote.place)
		return; /* the zygote hears of its end; nobody who waits loses by it */
	if (f->layer == SB_MEMORY_CGROUP && f->sys_errno == ENODEV) {
		bounds_lost(b); /* whoever waits asks the next spawner */
		return;
	}
	if (s->is_born && f->layer == SB_INTERPRETER) {
		zygote_child_failed(b, f->step, f->sys_errno);
		lend_step(b);
		return;
	}
	lend_session_failed(b, f);
}

static const struct session_ops ops = {on_built, on_ready, on_frame, on_failed};

struct session *
lend_new_session(struct broker *b, bool is_born)
{
	uint32_t slot;
	if (!bounds_take_slot(b, &slot)) {
		errno = EAGAIN;
		return NULL;
	}
	struct session *s = session_new(slot, is_born, &ops, b);
	s->ordered_us = clock_mono_us();
	b->slots.at[slot] = s;
	TAILQ_INSERT_TAIL(&b->sessions, s, link);
	b->total++;
	filler_order(b, s);
	return s;
}

static void
hold_back(struct broker *b)
{
	struct timeval t = {HOLD_BACK_S, 0};
	b->is_holding_back = true;
	(void)event_add(b->ev_refill, &t);
}

void
lend_session_failed(struct broker *b, const struct jail_fail *f)
{
	char text[LEASE_TEXT_MAX];
	const char *name = f->sys_errno == 0 ? NULL : strerrorname_np(f->sys_errno);
	enum sandbox_layer l = (enum sandbox_layer)f->layer;
	(void)snprintf(text, sizeof(text), "layer=%s errno=%s step=\"%.47s\"", lease_layer_name(l),
	    name != NULL ? name : "0", f->step);
	log_warn("a sandbox session could not be made, trying again", LOG_C("why", text));
	b->stats.failed++;
	struct queue_request r;
	if (queue_next(&b->queue, &r)) {
		answer(r.owner, r.id, LEASE_FAILED, text);
		queue_session_ended(&b->queue, r.workspace);
	}
	hold_back(b);
	lend_step(b);
}

void
lend_session_gone(struct broker *b, struct session *s)
{
	bool was_test = s == b->test, was_place = s == b->zygote.place;
	if (was_place)
		b->zygote.place = NULL;
	bounds_session_gone(b, s);
	TAILQ_REMOVE(&b->sessions, s, link);
	b->total--;
	move_to(s, NULL);
	uncharge(b, s);
	slots_give(&b->slots, s->slot);
	session_free(&s);
	if (was_test) {
		struct jail_fail f = {SB_INTERPRETER, EPIPE, "the tested session ended"};
		b->test = NULL;
		selftest_failed(b, &f);
	}
	if (was_place)
		zygote_failed(b, "the session of its test ended", EPIPE);
	lend_step(b);
}

void
lend_session_unmade(struct broker *b, struct session *s, int sys_errno)
{
	struct jail_fail f = {SB_PID_NS, sys_errno, "clone of a session"};
	bool is_wanted = s->state != SESSION_DYING;
	session_kill(s);
	if (is_wanted)
		on_failed(b, s, &f);
	lend_session_gone(b, s);
}

static void
arm_deadline(struct broker *b)
{
	int64_t first = queue_deadline(&b->queue);
	if (first == INT64_MAX) {
		(void)event_del(b->ev_deadline);
		return;
	}
	int64_t left = first - clock_mono_ms();
	if (left < 1)
		left = 1;
	struct timeval t = {left / 1000, left % 1000 * 1000};
	(void)event_add(b->ev_deadline, &t);
}

static void
serve_queue(struct broker *b)
{
	struct queue_request r;
	struct session *s;
	if (b->is_tested && b->report.refused != 0)
		while (queue_expired(&b->queue, INT64_MAX, &r))
			answer(r.owner, r.id, LEASE_REFUSED, b->report.text);
	while (b->is_tested && (s = find_idle(b)) != NULL && queue_next(&b->queue, &r))
		hand_over(b, s, &r);
	while (queue_expired(&b->queue, clock_mono_ms(), &r))
		answer(r.owner, r.id, LEASE_BUSY, "all sandboxes are in use");
}

struct tally {
	size_t starting, idle_born, idle_cold;
};

static struct tally
tally(const struct broker *b)
{
	struct tally t = {0};
	const struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link) {
		if (is_set_aside(b, s))
			continue;
		if (s->state == SESSION_IDLE)
			*(s->is_born ? &t.idle_born : &t.idle_cold) += 1;
		else if (s->state <= SESSION_STARTING)
			t.starting++;
	}
	return t;
}

/* The pool and one more for each that waits and may have one. */
static void
refill(struct broker *b)
{
	struct tally t = tally(b);
	size_t wanted = b->queue.servable;
	/* With a zygote the pool is of its children; the others go as these come. */
	bool is_born = zygote_is_ready(b);
	while (!b->is_holding_back && b->total + b->elsewhere < b->settings.max_sessions) {
		size_t coming = t.starting + t.idle_born + (is_born ? 0 : t.idle_cold);
		if (t.starting >= BROKER_STARTING_MAX || coming >= wanted + b->settings.pool_size)
			break;
		/* For the pool alone one at a time: whoever comes meanwhile has the cores. */
		if (t.starting > 0 && coming >= wanted)
			break;
		if (lend_new_session(b, is_born) == NULL)
			hold_back(b);
		else
			t.starting++;
	}
}

/* Workers ask the spawner that takes this one's place again. */
void
lend_drain(struct broker *b)
{
	struct session *s;
	struct queue_request r;
	b->is_draining = true;
	filler_stop(b);
	zygote_stop(b);
	while (queue_expired(&b->queue, INT64_MAX, &r))
		;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state != SESSION_LEASED)
			session_kill(s);
	stats_tell(b); /* what is lent now only gets less */
	lend_step(b);
}

static void
end_when_drained(struct broker *b)
{
	const struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED)
			return;
	log_notice("the last session has ended, this spawner has drained");
	broker_stop(b, 0);
}

void
lend_step(struct broker *b)
{
	if (b->is_draining) {
		stats_changed(b);
		end_when_drained(b);
		return;
	}
	serve_queue(b);
	arm_deadline(b);
	if (b->is_tested && b->report.refused == 0)
		refill(b);
	stats_changed(b);
}

void
lend_request(struct broker *b, struct broker_worker *w, const struct lease_request *r)
{
	int64_t deadline_ms = clock_mono_ms() + r->queue_ms;
	if (b->is_draining)
		return;
	switch (queue_add(&b->queue, w, r->id, str_c(r->workspace), deadline_ms)) {
	case QUEUE_ADDED:
		lend_step(b);
		break;
	case QUEUE_FULL:
		answer(w, r->id, LEASE_BUSY, "too many wait for a sandbox");
		break;
	case QUEUE_WORKSPACE_FULL:
		answer(w, r->id, LEASE_BUSY, "too many of this workspace wait for a sandbox");
		break;
	}
}

static void
end_session(struct broker *b, struct session *s)
{
	s->owner = NULL;
	move_to(s, NULL);
	session_kill(s);
	uncharge(b, s);
}

void
lend_release(struct broker *b, struct broker_worker *w, uint64_t id)
{
	struct session *s;
	if (queue_cancel(&b->queue, w, id)) {
		arm_deadline(b);
		return;
	}
	TAILQ_FOREACH(s, &w->leases, lend)
		if (s->lease_id == id) {
			end_session(b, s);
			lend_step(b); /* its workspace may have another */
			return;
		}
}

void
lend_worker_gone(struct broker *b, struct broker_worker *w)
{
	struct session *s;
	queue_drop_owner(&b->queue, w);
	while ((s = TAILQ_FIRST(&w->leases)) != NULL)
		end_session(b, s);
	arm_deadline(b);
}
