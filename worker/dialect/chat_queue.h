/* chat_queue.h - puts a Chat answer's blocks in sequence; private to chat_events.c
 *
 * Chat interleaves: parallel calls by index, choices by index. One block is live at a time: it is
 * passed on as it grows; what belongs to a later block waits in that block's buffer. Text and
 * reasoning end when something else comes; a call ends when its arguments are a complete JSON value
 * and another block has begun, or with its choice. Choices come out one after the other.
 * Memory: all buffers together at most LIMIT_UPSTREAM_WHOLE_BYTES, CHAT_BLOCKS_MAX blocks a choice.
 */
#ifndef OTARI_WORKER_DIALECT_CHAT_QUEUE_H
#define OTARI_WORKER_DIALECT_CHAT_QUEUE_H

#include "base/buf.h"
#include "worker/dialect/events.h"

#define CHAT_BLOCKS_MAX 4096u

struct json_progress { /* is the text so far one complete JSON value? */
	unsigned depth;
	bool in_string, escaped, begun, complete;
};

struct chat_raw {
	struct chat_raw *next;
	struct str raw;
};

struct chat_block {
	struct chat_block *next;
	enum block_kind kind;
	struct str id, name;
	int64_t index; /* the wire's index of a call, or -1 */
	struct buf pending;
	struct chat_raw *raws, *raws_tail; /* annotations or raw deltas, while not live */
	struct json_progress progress;
	bool custom;            /* free text instead of JSON: wrapped as {"input": …} */
	bool started, over;     /* start went out; nothing more will come */
	bool gone;              /* stop went out */
	bool has_text, had_any; /* any text came; any delta of the wire came */
};

struct chat_choice {
	struct chat_choice *next;
	uint32_t number;
	struct chat_block *first, *live,
	    *last; /* all blocks; the one to pass on next; the latest */
	struct chat_block *calls_last;
	uint32_t count;
	bool has_call, has_refusal, has_finish;
	struct str reason_raw;
};

struct chat_queue {
	struct events *events;
	struct chat_choice *choices, *current; /* sorted by number; the one that is passed on */
	size_t held_bytes;
	uint32_t calls;
	bool overflowed;
};

struct chat_choice *chat_queue_choice(struct chat_queue *q, uint32_t number);
/* A new block at the end of the choice. Ends a text before it. */
struct chat_block *chat_queue_open(
    struct chat_queue *q, struct chat_choice *c, enum block_kind kind);
void chat_queue_text(
    struct chat_queue *q, struct chat_choice *c, struct chat_block *b, struct str s);
/* An annotation of a text block, or a raw delta of any other. */
void chat_queue_raw(
    struct chat_queue *q, struct chat_choice *c, struct chat_block *b, struct str raw);
/* Passes on what can be. all: everything, for nothing more will come. */
void chat_queue_pump(struct chat_queue *q, bool all);

#endif
