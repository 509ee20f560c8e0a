/* responses_queue.h - puts the items of a Responses answer in sequence; private to
 * responses_events*.c
 *
 * Items are numbered by output_index and may grow side by side; servers leave numbers, ids, deltas
 * or the closing events out. One item is live at a time: what it holds is passed on as it comes,
 * what belongs to a later one waits in that one. An item is closed by its own closing event, or,
 * where a server sends none, when its parts are closed and another item has begun.
 * A message gives one block for each of its parts; a reasoning item one block, its parts set apart
 * by a blank line (responses_events.c says how a writer of the same wire finds the borders).
 * Memory: what waits together at most LIMIT_UPSTREAM_WHOLE_BYTES; RESPONSES_PARTS_MAX parts.
 */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_QUEUE_H
#define OTARI_WORKER_DIALECT_RESPONSES_QUEUE_H

#include "base/buf.h"
#include "worker/dialect/events.h"

#define RESPONSES_PARTS_MAX 4096u

enum responses_kind {
	ITEM_MESSAGE,
	ITEM_REASONING,
	ITEM_CALL,
	ITEM_CUSTOM, /* a call whose argument is free text: passed on as {"input": …} */
	ITEM_OPAQUE, /* only whole, when it is closed */
};

enum responses_part_kind { RPART_TEXT, RPART_REFUSAL, RPART_SUMMARY, RPART_REASONING, RPART_CALL };

struct responses_note {
	struct responses_note *next;
	struct str raw;
};

struct responses_part {
	struct responses_part *next;
	enum responses_part_kind kind;
	int64_t index;
	struct buf pending; /* not passed on yet */
	size_t fed_bytes;   /* all text so far, and a hash of it */
	uint64_t fed_hash;  /* tells whether a later full text goes on from it */
	struct responses_note *notes, *notes_tail; /* not passed on yet */
	uint32_t note_count;                       /* all so far */
	bool begun;                                /* its block, or its share of one, has begun */
	bool closed;
};

struct responses_item {
	struct responses_item *next;
	enum responses_kind kind;
	int64_t index;
	struct str id, call_id, name, encrypted;
	struct str extra_raw; /* members that have no event: an object, or empty */
	struct str raw;       /* ITEM_OPAQUE: the item */
	struct responses_part *parts, *last, *live;
	bool announced; /* its own event told of it, not a delta */
	bool started;   /* a block of it is open */
	bool shown;     /* something of it was passed on */
	bool done;      /* the wire closed it */
	bool gone;      /* passed on and left behind */
};

struct responses_queue {
	struct events *events;
	struct responses_item *first, *live;
	size_t held_bytes;
	uint32_t parts, calls;
	bool overflowed, has_call, has_refusal;
};

enum responses_kind responses_kind_of(struct jval item);
/* The item that an event speaks of; NULL when it is new. index -1, id empty: not said. */
struct responses_item *responses_find(
    struct responses_queue *q, int64_t index, struct str id, enum responses_kind kind);
/* By its id alone; an open one before closed ones. */
struct responses_item *responses_find_id(
    struct responses_queue *q, struct str id, enum responses_kind kind);
/* A new one, in its place behind what was already passed on. NULL: too many. */
struct responses_item *responses_add(
    struct responses_queue *q, int64_t index, struct str id, enum responses_kind kind);
struct responses_part *responses_part_of(struct responses_queue *q, struct responses_item *it,
    enum responses_part_kind kind, int64_t index);
/* The next piece. */
void responses_feed(struct responses_queue *q, struct responses_part *p, struct str s);
/* The whole text: what of it did not come in pieces is fed. */
void responses_feed_whole(struct responses_queue *q, struct responses_part *p, struct str s);
void responses_feed_note(struct responses_queue *q, struct responses_part *p, struct str raw);
/* What a part's fed_hash is when this is its text. */
uint64_t responses_hash(struct str s);
/* Passes on what can be. all: everything, for nothing more will come. */
void responses_pump(struct responses_queue *q, bool all);

#endif
