#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "master/publish.h"

struct world {
	struct publish p;
	uint32_t built_what[16];
	unsigned builds, in_force, failed;
	uint64_t generation, last_who;
	uint32_t last_id;
	char last_error[128];
};

static void
on_build(void *arg, uint32_t what, uint64_t generation)
{
	struct world *w = arg;
	cr_assert_lt(w->builds, 16u);
	w->built_what[w->builds++] = what;
	w->generation = generation;
}

static void
on_answer(void *arg, uint64_t who, uint32_t id, const char *error)
{
	struct world *w = arg;
	w->last_who = who;
	w->last_id = id;
	if (error == NULL)
		w->in_force++;
	else
		w->failed++;
	(void)snprintf(w->last_error, sizeof(w->last_error), "%s", error != NULL ? error : "");
}

static const struct publish_ops ops = {on_build, on_answer};

static void
start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	publish_init(&w->p, &ops, w);
	publish_join(&w->p, 1);
	publish_join(&w->p, 2);
}

static void
built(struct world *w)
{
	publish_built(&w->p, true, NULL, 0);
}

Test(publish, is_in_force_when_every_target_says_so)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 77, PUBLISH_DO_KEYS, 1000);
	cr_assert_eq(w.builds, 1);
	cr_assert_eq(w.built_what[0], PUBLISH_DO_KEYS);
	built(&w);
	publish_ack(&w.p, 1, 1);
	cr_assert_eq(w.in_force, 0, "one target is missing");
	cr_assert_not(publish_is_settled(&w.p));
	publish_ack(&w.p, 2, 1);
	cr_assert_eq(w.in_force, 1);
	cr_assert(w.last_who == 1 && w.last_id == 77);
	cr_assert(publish_is_settled(&w.p));
	publish_done(&w.p);
}

Test(publish, who_asks_during_a_build_shares_the_next_one)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	publish_ask(&w.p, 1, 2, PUBLISH_DO_KEYS, 1000);
	publish_ask(&w.p, 2, 3, PUBLISH_DO_POLICY, 1000);
	cr_assert_eq(w.builds, 1, "single flight");
	built(&w);
	cr_assert_eq(w.builds, 2, "the others share the next");
	cr_assert_eq(w.built_what[1], PUBLISH_DO_KEYS | PUBLISH_DO_POLICY);
	publish_ack(&w.p, 1, 1);
	publish_ack(&w.p, 2, 1);
	cr_assert_eq(w.in_force, 1, "only who asked before the first build");
	built(&w);
	publish_ack(&w.p, 1, 2);
	publish_ack(&w.p, 2, 2);
	cr_assert_eq(w.in_force, 3);
	cr_assert_eq(w.builds, 2);
	publish_done(&w.p);
}

Test(publish, does_not_wait_for_the_dead_and_the_draining)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	publish_ask(&w.p, 2, 9, PUBLISH_DO_KEYS, 1000);
	built(&w);
	publish_ack(&w.p, 1, 1);
	publish_leave(&w.p, 2);
	cr_assert_eq(w.in_force, 1);
	built(&w);
	publish_ack(&w.p, 1, 2);
	cr_assert_eq(w.in_force, 1, "what the dead one asked is not answered");
	publish_leave(&w.p, 1);
	publish_ask(&w.p, 5, 4, PUBLISH_DO_KEYS, 1000);
	built(&w);
	cr_assert_eq(w.in_force, 2, "without targets it is in force at once");
	publish_done(&w.p);
}

Test(publish, who_drains_is_not_waited_for_but_gets_its_answer)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 8, PUBLISH_DO_KEYS, 1000);
	publish_retire(&w.p, 1);
	built(&w);
	publish_ack(&w.p, 2, 1);
	cr_assert_eq(w.in_force, 1);
	cr_assert_eq(w.last_id, 8);
	publish_done(&w.p);
}

Test(publish, a_newcomer_is_waited_for)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	built(&w);
	publish_join(&w.p, 3);
	publish_ack(&w.p, 1, 1);
	publish_ack(&w.p, 2, 1);
	cr_assert_eq(w.in_force, 0);
	publish_ack(&w.p, 3, 1);
	cr_assert_eq(w.in_force, 1);
	publish_done(&w.p);
}

Test(publish, an_acknowledgement_of_what_was_never_sent_counts_for_nothing)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	publish_ack(&w.p, 1, 99);
	publish_ack(&w.p, 2, 99);
	publish_ack(&w.p, 44, 1);
	built(&w);
	cr_assert_eq(w.in_force, 0);
	publish_done(&w.p);
}

Test(publish, late_waiters_are_told_once_and_the_change_comes_anyway)
{
	struct world w;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	publish_tick(&w.p, 999);
	cr_assert_eq(w.failed, 0);
	publish_tick(&w.p, 1000);
	cr_assert_eq(w.failed, 1);
	built(&w);
	publish_ack(&w.p, 1, 1);
	publish_ack(&w.p, 2, 1);
	cr_assert_eq(w.in_force + w.failed, 1, "one answer");
	cr_assert(publish_is_settled(&w.p));
	publish_done(&w.p);
}

Test(publish, a_failed_build_is_tried_again_with_growing_pauses)
{
	struct world w;
	int64_t now = 0;
	start(&w);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 100000);
	publish_built(&w.p, false, "no database", now);
	cr_assert_eq(w.failed, 1);
	cr_assert_str_eq(w.last_error, "no database");
	for (int64_t wait = 1000; wait <= 8000; wait *= 2) {
		unsigned before = w.builds;
		publish_tick(&w.p, now + wait - 1);
		cr_assert_eq(w.builds, before, "too early after %ld", (long)wait);
		now += wait;
		publish_tick(&w.p, now);
		cr_assert_eq(w.builds, before + 1, "not tried after %ld", (long)wait);
		publish_built(&w.p, false, "no database", now);
	}
	publish_tick(&w.p, now + 100000);
	built(&w);
	cr_assert_eq(w.p.retry, 0);
	unsigned before = w.builds;
	publish_tick(&w.p, now + 200000);
	cr_assert_eq(w.builds, before, "a good build owes nothing");
	publish_done(&w.p);
}

Test(publish, a_refused_configuration_is_not_tried_again_but_the_rest_is)
{
	struct world w;
	start(&w);
	publish_note(&w.p, PUBLISH_DO_RELOAD | PUBLISH_DO_KEYS | PUBLISH_DO_POLICY);
	publish_ask(&w.p, 1, 1, PUBLISH_DO_KEYS, 1000);
	publish_built(&w.p, false, "otari.conf:3: no", 0);
	cr_assert_eq(w.builds, 2);
	cr_assert_eq(w.built_what[1], PUBLISH_DO_KEYS);
	built(&w);
	publish_tick(&w.p, 0);
	cr_assert_eq(w.builds, 3);
	cr_assert_eq(w.built_what[2], PUBLISH_DO_KEYS | PUBLISH_DO_POLICY, "without RELOAD");
	publish_done(&w.p);
}

Test(publish, a_storm_of_asks_is_bounded)
{
	struct world w;
	start(&w);
	for (uint32_t i = 0; i < PUBLISH_WAITERS_MAX + 10; i++)
		publish_ask(&w.p, 1, i, PUBLISH_DO_KEYS, 1000);
	cr_assert_eq(w.failed, 10);
	built(&w);
	built(&w);
	cr_assert_eq(w.builds, 2, "two builds for all of them");
	publish_ack(&w.p, 1, 2);
	publish_ack(&w.p, 2, 2);
	cr_assert_eq(w.in_force, PUBLISH_WAITERS_MAX);
	publish_done(&w.p);
}
