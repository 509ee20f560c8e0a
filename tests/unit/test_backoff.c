#include <criterion/criterion.h>

#include "base/err.h"
#include "master/backoff.h"
#include "master/child_state.h"

Test(backoff, doubles_to_a_minute_and_starts_anew_after_a_good_life)
{
	static const struct {
		const char *name;
		bool was_ready;
		int64_t ready_ms;
		uint32_t delay_ms;
	} rows[] = {
	    {"first death before READY", false, 0, 1000},
	    {"second", false, 0, 2000},
	    {"third", false, 0, 4000},
	    {"4", false, 0, 8000},
	    {"5", false, 0, 16000},
	    {"6", false, 0, 32000},
	    {"the most", false, 0, 60000},
	    {"stays there", false, 0, 60000},
	    {"a good life: at once", true, BACKOFF_GOOD_LIFE_MS, 0},
	    {"a short life after it", true, 500, 1000},
	    {"another short one", true, 500, 2000},
	    {"good again", true, 3600000, 0},
	};
	struct backoff b = {0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(backoff_next(&b, rows[i].was_ready, rows[i].ready_ms),
		    rows[i].delay_ms, "%s", rows[i].name);
	for (int i = 0; i < 1000; i++)
		cr_assert_leq(backoff_next(&b, false, 0), BACKOFF_MAX_MS);
}

Test(child_state, only_goes_forward)
{
	static const struct {
		enum child_state from, to;
		bool allowed;
	} rows[] = {
	    {CHILD_STARTING, CHILD_READY, true},
	    {CHILD_STARTING, CHILD_GONE, true},
	    {CHILD_STARTING, CHILD_KILLED, true},
	    {CHILD_READY, CHILD_DRAINING, true},
	    {CHILD_READY, CHILD_STARTING, false},
	    {CHILD_DRAINING, CHILD_READY, false},
	    {CHILD_DRAINING, CHILD_KILLED, true},
	    {CHILD_KILLED, CHILD_DRAINING, false},
	    {CHILD_KILLED, CHILD_GONE, true},
	    {CHILD_GONE, CHILD_STARTING, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(child_state_allowed(rows[i].from, rows[i].to), rows[i].allowed,
		    "%s to %s", child_state_name(rows[i].from), child_state_name(rows[i].to));
	for (int s = 0; s < CHILD_STATE_MAX; s++)
		cr_expect_not(child_state_allowed((enum child_state)s, (enum child_state)s));
}
