/* live.h - calls of our tools as the client sees them, while the model still writes them
 *
 * Process: worker, loop thread; part of a turn (turn.h).
 * Order:   a client sees each call of ours with its result right behind it, where the model put the
 *          call. So the first call of a round goes out as it comes; what the model writes behind it
 *          is held until the result is there. A later call of ours that was held goes out whole
 *          then, and holds what stands behind it in its turn. Streamed and whole answers alike.
 *          Where executions are not shown nothing is held.
 * Ends:    every call that a client has seen gets one result. Calls that nobody runs (the answer
 * was cut or refused, the provider or the sandbox failed) get an error, a call that is cut is
 *          closed validly first.
 * Limits:  CODE_SOURCE_MAX bytes of a call; held text LIMIT_UPSTREAM_WHOLE_BYTES a round.
 */
#ifndef OTARI_WORKER_TURN_LIVE_H
#define OTARI_WORKER_TURN_LIVE_H

#include "base/buf.h"
#include "worker/dialect/live_input.h"
#include "worker/dialect/turn_event.h"

struct code_record;
struct held;
struct tool_call;
struct turn;

struct turn_live {
	struct tool_call *open; /* the model writes it */
	struct live_input reader;
	struct buf json, text;     /* of it, as far as it is certain */
	size_t json_out, text_out; /* what of them the client has */
	struct tool_call *shown;   /* begun at the client; its result is to come */
	struct held *held, *held_last;
	struct buf held_text; /* of the held blocks, one behind the other */
};

void turn_live_init(struct turn_live *live);
void turn_live_done(struct turn_live *live);
void turn_live_round(struct turn_live *live); /* a new round begins */
/* A call of ours, of the first choice: its start, its arguments, its end. */
void turn_live_begin(struct turn *t, const struct turn_event *ev, struct tool_call *call);
void turn_live_piece(struct turn *t, struct str arguments);
void turn_live_end(struct turn *t);
/* An event of any other block. */
void turn_live_block(struct turn *t, const struct turn_event *ev);
/* The result of the oldest call that has none; then whatever waited for it. */
void turn_live_result(struct turn *t, const struct code_record *rec);
/* No call of this round will be run any more. is_broken: the answer ends with an error, and what
 * was held is lost with it. */
void turn_live_settle(struct turn *t, bool is_broken);

#endif
