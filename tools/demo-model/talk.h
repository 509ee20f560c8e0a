/* talk.h - what a script needs to know of a Chat Completions request
 *
 * Process: the demo model and the tests' fake provider. Pure.
 * Owns:    nothing: the strings point into the request.
 */
#ifndef OTARI_TOOLS_DEMO_MODEL_TALK_H
#define OTARI_TOOLS_DEMO_MODEL_TALK_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct talk {
	struct buf system;    /* system and developer texts */
	struct buf user;      /* texts of the last user message */
	struct buf users;     /* texts of all user messages, in order */
	struct buf results;   /* tool results after the last user message */
	size_t result_count;  /* how many */
	const char *run_name; /* name of the function that runs code, or NULL */
};

/* Reads messages and tools; what it does not know it passes over. */
void talk_read(struct talk *t, const json_t *request);
void talk_done(struct talk *t);
/* The function of a tool list that takes source text as its string parameter `code`. */
const char *talk_find_runner(const json_t *tools);

#endif
