#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/err.h"
#include "sandbox/spawner/queue.h"

#define NO_LIMIT 0

static int a, b; /* owners */

static void
add(struct queue *q, const char *workspace, uint64_t id, int64_t deadline_ms)
{
	cr_assert_eq(queue_add(q, &a, id, str_c(workspace), deadline_ms), QUEUE_ADDED);
}

static uint64_t
next(struct queue *q)
{
	struct queue_request r;
	if (!queue_next(q, &r))
		return 0;
	queue_session_ended(q, r.workspace);
	return r.id;
}

Test(queue, workspaces_take_turns_whatever_one_of_them_asks_for)
{
	struct queue q;
	queue_init(&q, 100, 50, NO_LIMIT);
	for (uint64_t i = 1; i <= 20; i++)
		add(&q, "flood", i, 1000);
	add(&q, "one", 100, 1000);
	add(&q, "two", 200, 1000);
	add(&q, "two", 201, 1000);
	static const uint64_t want[] = {1, 100, 200, 2, 201, 3, 4};
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		cr_expect_eq(next(&q), want[i], "%zu", i);
	add(&q, "one", 101, 1000); /* comes back: after the one whose turn it is */
	cr_expect_eq(next(&q), 5);
	cr_expect_eq(next(&q), 101);
	for (uint64_t i = 6; i <= 20; i++)
		cr_expect_eq(next(&q), i);
	cr_expect_eq(next(&q), 0);
	queue_done(&q);
}

Test(queue, a_workspace_with_all_its_sessions_waits_and_others_go_on)
{
	struct queue q;
	struct queue_request first, second, other, r;
	queue_init(&q, 100, 50, 2);
	for (uint64_t i = 1; i <= 4; i++)
		add(&q, "w", i, 1000);
	add(&q, "v", 10, 1000);
	cr_expect_eq(q.servable, 3);
	cr_assert(queue_next(&q, &first) && first.id == 1);
	cr_assert(queue_next(&q, &other) && other.id == 10);
	cr_assert(queue_next(&q, &second) && second.id == 2);
	cr_expect_not(queue_next(&q, &r), "a third at a time");
	cr_expect_eq(q.waiting, 2);
	cr_expect_eq(q.servable, 0);
	queue_session_ended(&q, second.workspace);
	cr_assert(queue_next(&q, &r));
	cr_expect_eq(r.id, 3);
	cr_expect_not(queue_next(&q, &second));
	queue_session_ended(&q, r.workspace);
	queue_session_ended(&q, first.workspace);
	queue_session_ended(&q, other.workspace);
	queue_done(&q);
}

Test(queue, is_bounded_in_all_and_for_each_workspace)
{
	struct queue q;
	queue_init(&q, 5, 3, NO_LIMIT);
	for (uint64_t i = 1; i <= 3; i++)
		add(&q, "w", i, 1000);
	cr_expect_eq(queue_add(&q, &a, 4, STR("w"), 1000), QUEUE_WORKSPACE_FULL);
	add(&q, "v", 5, 1000);
	add(&q, "", 6, 1000);
	cr_expect_eq(queue_add(&q, &a, 7, STR("x"), 1000), QUEUE_FULL);
	cr_expect_eq(next(&q), 1);
	add(&q, "x", 7, 1000);
	queue_done(&q);
}

Test(queue, requests_end_at_their_own_deadlines)
{
	struct queue q;
	struct queue_request r;
	queue_init(&q, 1000, 1000, NO_LIMIT);
	cr_expect_eq(queue_deadline(&q), INT64_MAX);
	srandom(1);
	for (uint64_t i = 1; i <= 500; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "w%ld", random() % 7);
		add(&q, name, i, random() % 1000);
	}
	for (int i = 0; i < 100; i++)
		(void)next(&q);
	int64_t last = 0;
	while (q.waiting > 0) {
		int64_t at = queue_deadline(&q);
		cr_assert_geq(at, last);
		cr_assert_not(queue_expired(&q, at - 1, &r));
		cr_assert(queue_expired(&q, at, &r));
		last = at;
	}
	cr_expect_not(queue_expired(&q, INT64_MAX, &r));
	queue_done(&q);
}

Test(queue, a_request_is_cancelled_and_an_owner_forgotten)
{
	struct queue q;
	struct queue_request r;
	queue_init(&q, 1000, 1000, NO_LIMIT);
	srandom(2);
	for (uint64_t i = 1; i <= 300; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "w%ld", random() % 5);
		cr_assert_eq(
		    queue_add(&q, random() % 3 == 0 ? &a : &b, i, str_c(name), random() % 1000),
		    QUEUE_ADDED);
	}
	cr_expect_not(queue_cancel(&q, &a, 1000));
	cr_expect_neq(queue_cancel(&q, &a, 7), queue_cancel(&q, &b, 7));
	cr_expect_not(queue_cancel(&q, &a, 7) || queue_cancel(&q, &b, 7), "twice");
	size_t before = q.waiting;
	queue_drop_owner(&q, &b);
	cr_expect(q.waiting > 0 && q.waiting < before);
	cr_expect_eq(q.servable, q.waiting);
	while (queue_next(&q, &r)) {
		cr_assert_eq(r.owner, &a);
		queue_session_ended(&q, r.workspace);
	}
	cr_expect_eq(q.waiting, 0);
	queue_done(&q);
}
