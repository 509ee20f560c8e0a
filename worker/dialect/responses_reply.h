/* responses_reply.h - state of the Responses answer writer and what its files share; private to
 * responses_reply*.c
 *
 * Streamed and whole answers are written by the same code: the frames of the life cycle are left
 * out of a whole answer, its items are collected in both, for the last event of a stream repeats
 * them. One item is open at a time; a message stays open over the blocks that are its parts.
 */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_REPLY_H
#define OTARI_WORKER_DIALECT_RESPONSES_REPLY_H

#include "worker/dialect/citation.h"
#include "worker/dialect/live_input.h"
#include "worker/dialect/reply.h"

enum responses_open { OPEN_NONE, OPEN_MESSAGE, OPEN_CALL };

struct responses_reply {
	struct reply base;
	int64_t sequence;   /* of the next event */
	uint32_t index;     /* output_index of the open item, or of the next */
	struct buf *output; /* items so far, comma-separated */
	enum responses_open item;
	struct str item_id;   /* of the open item, or of the open reasoning block */
	struct str extra_raw; /* its other members: an object, or empty */
	struct buf *content;  /* a message's closed parts, comma-separated */
	uint32_t parts;
	/* of the open block */
	enum wire from;
	struct str block_id, block_extra;
	struct buf *text;
	struct buf *notes;               /* its annotations, comma-separated, once it is closed */
	struct citation_list notes_kept; /* as they came */
	struct buf *summary, *reasoning; /* closed parts of reasoning's summary, of its content */
	uint32_t summary_parts, reasoning_parts;
	bool part_open, is_content; /* a part of the content, not of the summary */
	struct str name, signature, encrypted;
	/* of the open call, which stays open behind its block */
	struct str call_id, call_name;
	struct buf *arguments;
	/* of a custom tool: as it came; as far as it is an object; its text as far as known */
	struct buf *wrapped, *object, *input;
	struct live_input unwrap;
	bool custom; /* the call is of a custom tool: its argument is free text */
	bool args_begun;
	bool has_refusal; /* of the whole answer */
	struct turn_event finish;
	struct jval settings; /* members of a Responses provider's answer */
	struct token_usage usage;
	enum wire usage_wire;
};

void responses_reply_need_start(struct responses_reply *m);
/* Opens an event: {"type":NAME,"sequence_number":N; false in a whole answer. */
bool responses_open(struct responses_reply *m, const char *name, struct jw *w);
/* … with "item_id" and "output_index". */
bool responses_open_item(struct responses_reply *m, const char *name, struct jw *w);
void responses_close(struct responses_reply *m, struct jw *w);
/* An id for the item at the present index; the same whenever it is asked for. */
struct str responses_item_id(struct responses_reply *m, const char *prefix);
/* Puts the members of an object behind those already written; not the id. */
void responses_write_extra(struct responses_reply *m, struct jw *w, struct str raw);
/* The writer of the next item in `output`. */
struct jw responses_item_begin(struct responses_reply *m);
/* Announces an item: its first event, the item written by the caller between the two. */
bool responses_added(struct responses_reply *m, struct jw *w);
/* The closing event of the item last written to `output`, which begins at `from`. */
void responses_item_done_event(struct responses_reply *m, size_t from);

/* responses_reply_items.c: blocks */
void responses_block_start(struct responses_reply *m, const struct turn_event *ev);
void responses_block_delta(struct responses_reply *m, const struct turn_event *ev);
void responses_block_stop(struct responses_reply *m);
/* responses_reply_notes.c: annotations wait for the end of their part, as the service sends them.
 * responses_write_notes puts them into `notes`, an event for each. */
void responses_annotation(struct responses_reply *m, const struct turn_event *ev);
void responses_write_notes(struct responses_reply *m);
/* Closes the open message or call. status: "completed" or "incomplete". */
void responses_close_item(struct responses_reply *m, const char *status);
/* responses_reply_hosted.c: a hosted tool's item that came whole, with the events of its kind; an
 * event that has no members of its own. */
void responses_plain_event(struct responses_reply *m, const char *name);
void responses_hosted_item(struct responses_reply *m, struct str raw);
/* responses_reply_call.c */
void responses_call_start(struct responses_reply *m, const struct turn_event *ev);
void responses_call_delta(struct responses_reply *m, struct str text);
void responses_call_stop(struct responses_reply *m);
void responses_call_write(struct responses_reply *m, struct jw *w, const char *status);
/* responses_reply_object.c: the response object. status: in_progress, completed, incomplete. */
void responses_write_object(struct responses_reply *m, struct jw *w, const char *status);
/* NULL: the answer is complete. */
const char *responses_incomplete_reason(const struct responses_reply *m);

#endif
