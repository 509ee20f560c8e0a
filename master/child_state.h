/* child_state.h - the life of a child, as a table of what may follow what. Pure. */
#ifndef OTARI_MASTER_CHILD_STATE_H
#define OTARI_MASTER_CHILD_STATE_H

#include <stdbool.h>

enum child_state {
	CHILD_STARTING, /* exec'd; READY not said yet */
	CHILD_READY,
	CHILD_DRAINING, /* told to finish; its end is awaited */
	CHILD_KILLED,   /* SIGKILL was sent; its end is awaited */
	CHILD_GONE,     /* reaped */
	CHILD_STATE_MAX,
};

const char *child_state_name(enum child_state s);
bool child_state_allowed(enum child_state from, enum child_state to);
/* It is or may become useful: not told to go. */
bool child_state_is_wanted(enum child_state s);

#endif
