/* turn_event.h - the one vocabulary for what a model answers, streamed or whole
 *
 * Process: worker; pure data, borrowed for the call that delivers it.
 * Order:   START, then blocks one after another — never two open at once: START, any
 * DELTA/ANNOTATION, STOP — then FINISH (one a choice), USAGE, END. ERROR instead of END when it
 * failed. PING anywhere. A reader puts what its provider interleaves (parallel calls of Chat) in
 * sequence. Both forms of the same turn give the same blocks in the same order.
 */
#ifndef OTARI_WORKER_DIALECT_TURN_EVENT_H
#define OTARI_WORKER_DIALECT_TURN_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "worker/dialect/conversation.h"

enum turn_event_type {
	TURN_START,
	TURN_BLOCK_START,
	TURN_BLOCK_DELTA,
	TURN_BLOCK_STOP,
	TURN_ANNOTATION,
	TURN_FINISH,
	TURN_USAGE,
	TURN_END,
	TURN_ERROR,
	TURN_PING,
};

enum block_kind {
	BLOCK_TEXT,
	BLOCK_REASONING,
	BLOCK_CALL,
	BLOCK_REFUSAL,
	BLOCK_AUDIO,
	BLOCK_OPAQUE, /* raw holds the complete block of raw_wire */
};

enum delta_field {
	DELTA_TEXT, /* text, reasoning text, refusal text, or the next piece of a call's arguments
		     */
	DELTA_SIGNATURE,
	DELTA_ENCRYPTED,
	DELTA_RAW, /* a delta of an opaque block, raw JSON of raw_wire */
};

enum finish_reason {
	FINISH_STOP,
	FINISH_LENGTH,
	FINISH_TOOL,
	FINISH_STOP_SEQUENCE,
	FINISH_REFUSAL,
	FINISH_CONTENT_FILTER,
	FINISH_PAUSE,
	FINISH_CONTEXT, /* context window exceeded */
	FINISH_OTHER,   /* reason_raw says what */
};

struct token_usage { /* tokens; -1: not reported. input counts everything, cached parts included */
	int64_t input, output;
	int64_t cache_read, cache_write; /* parts of input */
	int64_t reasoning;               /* part of output */
	struct str raw;                  /* the provider's own object, for the same wire */
};
#define TOKEN_USAGE_NONE ((struct token_usage){-1, -1, -1, -1, -1, {NULL, 0}})

struct turn_event {
	enum turn_event_type type;
	uint32_t choice;      /* Chat's n > 1; else 0 */
	enum block_kind kind; /* BLOCK_* events: of the open block */
	enum delta_field field;
	struct str text; /* DELTA: decoded text */
	struct str id;   /* START: the provider's message id; BLOCK_START: call id or item id */
	struct str name; /* START: the provider's model string; BLOCK_START of a call: tool name */
	struct str raw;  /* opaque blocks and deltas, annotations; FINISH: other members of the
			    answer; one line. What blocks and text of Responses carry in it:
			    responses_events.c */
	enum wire raw_wire;
	enum finish_reason reason;
	struct str reason_raw, stop_sequence;
	struct token_usage usage;
	/* ERROR: what a client is told; status as HTTP would say it */
	int status;
	struct str error_type, error_message;
};

/* Returning false stops the reader. */
typedef bool turn_on_event(void *arg, const struct turn_event *ev);

void token_usage_add(struct token_usage *sum, const struct token_usage *round); /* -1 + n = n */

#endif
