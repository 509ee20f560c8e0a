#include "master/child_state.h"

#include "base/check.h"

static const struct {
	const char *name;
	unsigned next; /* mask of 1u << enum child_state */
} states[CHILD_STATE_MAX] = {
    [CHILD_STARTING] = {"starting",
	1u << CHILD_READY | 1u << CHILD_DRAINING | 1u << CHILD_KILLED | 1u << CHILD_GONE},
    [CHILD_READY] = {"ready", 1u << CHILD_DRAINING | 1u << CHILD_KILLED | 1u << CHILD_GONE},
    [CHILD_DRAINING] = {"draining", 1u << CHILD_KILLED | 1u << CHILD_GONE},
    [CHILD_KILLED] = {"killed", 1u << CHILD_GONE},
    [CHILD_GONE] = {"gone", 0},
};

const char *
child_state_name(enum child_state s)
{
	CHECK(s < CHILD_STATE_MAX);
	return states[s].name;
}

bool
child_state_allowed(enum child_state from, enum child_state to)
{
	CHECK(from < CHILD_STATE_MAX && to < CHILD_STATE_MAX);
	return (states[from].next & 1u << to) != 0;
}

bool
child_state_is_wanted(enum child_state s)
{
	return s == CHILD_STARTING || s == CHILD_READY;
}
