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

static void
unqueue(struct broker *b, struct broker_waiting *q)
{
	TAILQ_REMOVE(&b->queue, q, link);
	b->waiting--;
	mem_free(q);
}

static bool
workspace_is_full(const struct broker *b, const char *workspace)
{
	uint32_t max = b->settings.max_sessions_per_workspace, n = 0;
	const struct session *s;
	if (max == 0)
		return false;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED && strcmp(s->workspace, workspace) == 0)
			n++;
	return n >= max;
}

/* For a test. */
static bool
is_set_aside(const struct broker *b, const struct session *s)
{
	return s == b->test || s == b->zygote.place;
}

static struct session *
find_idle(struct broker *b)
{
	struct session *s, *cold = NULL;
	TAILQ_FOREACH(s, &b->sessions, link) {
		if (s->state != SESSION_IDLE || is_set_aside(b, s))
			continue;
		if (s->is_born)
			return s; /* its libraries are loaded */
		cold = s;
	}
	return cold;
}

static bool
hand_over(struct broker *b, struct broker_waiting *q)
{
	struct session *s = find_idle(b);
	if (s == NULL)
		return false;
	struct lease_answer a = {.type = LEASE_MSG_ANSWER, .status = LEASE_OK, .id = q->id};
	struct err e;
	s->owner = q->worker;
	s->lease_id = q->id;
	memcpy(s->workspace, q->workspace, sizeof(s->workspace));
	if (lease_send(q->worker->fd, &a, s->fds, LEASE_FDS, &e) == ERR_OK) {
		session_handed_over(s);
		watch_start(b);
	} else {
		log_warn("lease lost", LOG_ERR(&e), LOG_INT("worker", q->worker->number));
		session_kill(s);
	}
	return true;
}

/* Those of before the zygote make room, one for one that is better. */
static void
drop_one_cold(struct broker *b)
{
	struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_IDLE && !s->is_born && !is_set_aside(b, s)) {
			session_kill(s);
			return;
		}
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
	if (s == b->zygote.place && sys_errno == 0) {
		zygote_placed(b);
		return;
	}
	if (s->is_born && sys_errno != 0) {
		session_kill(s);
		zygote_failed(b, "its child ended", sys_errno);
		lend_step(b);
		return;
	}
	if (s->is_born)
		drop_one_cold(b);
	if (sys_errno != 0) {
		struct jail_fail f = {SB_INTERPRETER, sys_errno, "start of the interpreter"};
		session_kill(s);
		lend_session_failed(b, &f);
		return;
	}
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
	if (s->is_born && f->layer == SB_INTERPRETER) {
		zygote_failed(b, f->step, f->sys_errno);
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
	if (!slots_take(&b->slots, &slot)) {
		errno = EAGAIN;
		return NULL;
	}
	struct session *s = session_new(slot, is_born, &ops, b);
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
	struct broker_waiting *q = TAILQ_FIRST(&b->queue);
	if (q != NULL) {
		answer(q->worker, q->id, LEASE_FAILED, text);
		unqueue(b, q);
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
	TAILQ_REMOVE(&b->sessions, s, link);
	b->total--;
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
	int64_t first = INT64_MAX;
	const struct broker_waiting *q;
	TAILQ_FOREACH(q, &b->queue, link)
		if (q->deadline_ms < first)
			first = q->deadline_ms;
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
	int64_t now = clock_mono_ms();
	struct broker_waiting *next;
	for (struct broker_waiting *q = TAILQ_FIRST(&b->queue); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (b->is_tested && b->report.refused != 0)
			answer(q->worker, q->id, LEASE_REFUSED, b->report.text);
		else if (b->is_tested && !workspace_is_full(b, q->workspace) && hand_over(b, q))
			;
		else if (now >= q->deadline_ms)
			answer(q->worker, q->id, LEASE_BUSY, "all sandboxes are in use");
		else
			continue;
		unqueue(b, q);
	}
}

static size_t
count(const struct broker *b, enum session_state state, bool only_born)
{
	size_t n = 0;
	const struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == state && !is_set_aside(b, s) && (!only_born || s->is_born))
			n++;
	return n;
}

void
lend_step(struct broker *b)
{
	serve_queue(b);
	arm_deadline(b);
	if (!b->is_tested || b->report.refused != 0)
		return;
	/* The pool and one more for each that waits; the clones start side by side. */
	while (!b->is_holding_back && b->total < b->settings.max_sessions) {
		size_t starting =
		    count(b, SESSION_ORDERED, false) + count(b, SESSION_STARTING, false);
		/* With a zygote the pool is of its children; the others go as these come. */
		bool is_born = zygote_is_ready(b);
		size_t coming = starting + count(b, SESSION_IDLE, is_born);
		if (starting >= BROKER_STARTING_MAX || coming >= b->waiting + b->settings.pool_size)
			break;
		/* For the pool alone one at a time: whoever comes meanwhile has the cores. */
		if (starting > 0 && coming >= b->waiting)
			break;
		if (lend_new_session(b, is_born) == NULL)
			hold_back(b);
	}
}

void
lend_request(struct broker *b, struct broker_worker *w, const struct lease_request *r)
{
	if (b->waiting >= BROKER_WAITING_MAX) {
		answer(w, r->id, LEASE_BUSY, "too many wait for a sandbox");
		return;
	}
	struct broker_waiting *q = MEM_NEW(struct broker_waiting);
	q->worker = w;
	q->id = r->id;
	q->deadline_ms = clock_mono_ms() + r->queue_ms;
	memcpy(q->workspace, r->workspace, sizeof(q->workspace));
	TAILQ_INSERT_TAIL(&b->queue, q, link);
	b->waiting++;
	lend_step(b);
}

static void
end_session(struct broker *b, struct session *s)
{
	(void)b;
	s->owner = NULL;
	session_kill(s);
}

void
lend_release(struct broker *b, struct broker_worker *w, uint64_t id)
{
	struct broker_waiting *q;
	TAILQ_FOREACH(q, &b->queue, link)
		if (q->worker == w && q->id == id) {
			unqueue(b, q);
			arm_deadline(b);
			return;
		}
	struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED && s->owner == w && s->lease_id == id)
			end_session(b, s);
}

void
lend_worker_gone(struct broker *b, struct broker_worker *w)
{
	struct broker_waiting *next;
	for (struct broker_waiting *q = TAILQ_FIRST(&b->queue); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->worker == w)
			unqueue(b, q);
	}
	struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED && s->owner == w)
			end_session(b, s);
	arm_deadline(b);
}
