#include "master/publish.h"

#include "base/check.h"
#include "base/mem.h"

void
publish_init(struct publish *p, const struct publish_ops *ops, void *arg)
{
	*p = (struct publish){.ops = ops, .arg = arg, .retry_ms = PUBLISH_RETRY_MS};
	p->waiters = MEM_NEW_ARRAY(struct publish_waiter, PUBLISH_WAITERS_MAX);
	p->targets = MEM_NEW_ARRAY(struct publish_target, PUBLISH_TARGETS_MAX);
}

void
publish_done(struct publish *p)
{
	mem_free(p->waiters);
	mem_free(p->targets);
	p->waiters = NULL;
	p->targets = NULL;
}

/* The array stays dense: the last one moves into the gap. */
static struct publish_waiter
take_waiter(struct publish *p, size_t i)
{
	struct publish_waiter w = p->waiters[i];
	p->waiters[i] = p->waiters[--p->waiter_count];
	return w;
}

static void
start_next(struct publish *p)
{
	if (p->building != 0 || p->pending == 0)
		return;
	p->building = p->pending;
	p->pending = 0;
	if ((p->building & p->retry) == p->retry)
		p->retry = 0;
	uint64_t g = ++p->last_generation;
	for (size_t i = 0; i < p->waiter_count; i++)
		if (p->waiters[i].generation == 0)
			p->waiters[i].generation = g;
	p->ops->build(p->arg, p->building, g);
}

static uint64_t
acked_by_all(const struct publish *p)
{
	uint64_t least = p->built_generation;
	for (size_t i = 0; i < p->target_count; i++)
		if (p->targets[i].acked < least)
			least = p->targets[i].acked;
	return least;
}

static void
answer_in_force(struct publish *p)
{
	uint64_t in_force = acked_by_all(p);
	for (size_t i = 0; i < p->waiter_count;) {
		uint64_t g = p->waiters[i].generation;
		if (g == 0 || g > in_force) {
			i++;
			continue;
		}
		struct publish_waiter w = take_waiter(p, i);
		p->ops->answer(p->arg, w.who, w.id, NULL);
		i = 0; /* the answer may have made others leave */
	}
}

void
publish_note(struct publish *p, uint32_t what)
{
	p->pending |= what;
	start_next(p);
}

void
publish_ask(struct publish *p, uint64_t who, uint32_t id, uint32_t what, int64_t deadline_ms)
{
	if (p->waiter_count == PUBLISH_WAITERS_MAX) {
		p->ops->answer(p->arg, who, id, "too many publications are waiting");
		publish_note(p, what);
		return;
	}
	p->waiters[p->waiter_count++] =
	    (struct publish_waiter){.who = who, .id = id, .deadline_ms = deadline_ms};
	publish_note(p, what);
}

static void
fail_waiters(struct publish *p, uint64_t generation, const char *error)
{
	for (size_t i = 0; i < p->waiter_count;) {
		if (p->waiters[i].generation != generation) {
			i++;
			continue;
		}
		struct publish_waiter w = take_waiter(p, i);
		p->ops->answer(p->arg, w.who, w.id, error);
		i = 0;
	}
}

void
publish_built(struct publish *p, bool ok, const char *error, int64_t now_ms)
{
	CHECK(p->building != 0);
	uint32_t what = p->building;
	p->building = 0;
	if (ok) {
		p->built_generation = p->last_generation;
		p->retry_ms = PUBLISH_RETRY_MS;
		answer_in_force(p);
	} else {
		fail_waiters(p, p->last_generation, error);
		/* A changed database must come into force some day; a configuration that was
		 * refused waits for a person, and the rest is built without it at once. */
		p->retry |= what & (PUBLISH_DO_KEYS | PUBLISH_DO_POLICY);
		p->retry_at_ms = now_ms;
		if ((what & PUBLISH_DO_RELOAD) == 0) {
			p->retry_at_ms += p->retry_ms;
			p->retry_ms *= 2;
			if (p->retry_ms > PUBLISH_RETRY_MAX_MS)
				p->retry_ms = PUBLISH_RETRY_MAX_MS;
		}
	}
	start_next(p);
}

static struct publish_target *
find_target(struct publish *p, uint64_t who)
{
	for (size_t i = 0; i < p->target_count; i++)
		if (p->targets[i].who == who)
			return &p->targets[i];
	return NULL;
}

void
publish_join(struct publish *p, uint64_t who)
{
	CHECK(find_target(p, who) == NULL && p->target_count < PUBLISH_TARGETS_MAX);
	p->targets[p->target_count++] = (struct publish_target){.who = who};
}

void
publish_ack(struct publish *p, uint64_t who, uint64_t generation)
{
	struct publish_target *t = find_target(p, who);
	/* A generation that was never sent is a lie; it must not release anybody. */
	if (t == NULL || generation > p->built_generation || generation <= t->acked)
		return;
	t->acked = generation;
	answer_in_force(p);
}

void
publish_retire(struct publish *p, uint64_t who)
{
	struct publish_target *t = find_target(p, who);
	if (t == NULL)
		return;
	*t = p->targets[--p->target_count];
	answer_in_force(p);
}

void
publish_leave(struct publish *p, uint64_t who)
{
	for (size_t i = 0; i < p->waiter_count;) {
		if (p->waiters[i].who == who)
			(void)take_waiter(p, i);
		else
			i++;
	}
	publish_retire(p, who);
}

void
publish_tick(struct publish *p, int64_t now_ms)
{
	for (size_t i = 0; i < p->waiter_count;) {
		if (p->waiters[i].deadline_ms > now_ms) {
			i++;
			continue;
		}
		struct publish_waiter w = take_waiter(p, i);
		p->ops->answer(p->arg, w.who, w.id,
		    w.generation > p->built_generation || w.generation == 0
			? "the build is not ready yet"
			: "not every worker has taken it over yet");
		i = 0;
	}
	if (p->retry != 0 && now_ms >= p->retry_at_ms) {
		uint32_t what = p->retry;
		p->retry = 0;
		publish_note(p, what);
	}
}

bool
publish_is_settled(const struct publish *p)
{
	return p->building == 0 && p->pending == 0 && acked_by_all(p) == p->built_generation;
}
