/* messages_reply.h - state of the Messages answer writer; private to messages_reply*.c */
#ifndef OTARI_WORKER_DIALECT_MESSAGES_REPLY_H
#define OTARI_WORKER_DIALECT_MESSAGES_REPLY_H

#include "worker/dialect/reply.h"

struct messages_reply {
	struct reply base;
	uint32_t index;      /* of the next block that is shown; dense over all blocks */
	uint32_t executions; /* shown by reply_code */
	bool has_call;       /* a tool_use of the client's went out */
	bool has_signature;  /* the open reasoning block has its signature */
	bool args_begun;     /* the open call's arguments turned out to be an object */
	struct buf *content; /* whole answers: the blocks, comma-separated */
	struct buf *text; /* whole: of the open block; streams: arguments not yet known to be one */
	struct buf *citations;
	struct str signature, encrypted, opaque_raw, reasoning_member; /* of the open block */
	struct str call_id, call_name; /* call_id: of a reasoning block, its item id */
	enum wire from;                /* who wrote the open block */
	struct turn_event finish;
	struct token_usage usage;
	enum wire usage_wire;
};

/* The result block of an execution, of its kind. */
void messages_write_code_result(struct jw *w, const struct code_record *rec);
/* The open block as one JSON value of a whole answer. */
void messages_write_whole_block(struct messages_reply *m, struct jw *w);
/* Members of `usage` and the end of a message. */
void messages_write_usage(struct messages_reply *m, struct jw *w);
const char *messages_stop_reason(const struct messages_reply *m);
/* The members of finish.raw, except that `in_delta` chooses container and stop_details or the rest.
 */
enum extra_place { EXTRA_ALL, EXTRA_IN_DELTA, EXTRA_BESIDE };
void messages_write_extra(struct messages_reply *m, struct jw *w, enum extra_place place);
/* What a thinking block is signed with that came from another wire (origin.h). */
struct str messages_own_signature(const struct messages_reply *m);
/* What stands in a redacted_thinking block. */
struct str messages_redacted_data(const struct messages_reply *m);

/* "event: NAME", {"type":"NAME" … messages_close_frame ends it. */
struct jw messages_open_frame(struct messages_reply *m, const char *name);
void messages_close_frame(struct messages_reply *m, struct jw *w);
/* content_block_stop; the next block has the next index. */
void messages_stop_frame(struct messages_reply *m);
void messages_stream_show(struct messages_reply *m); /* the open block's start, once */
void messages_stream_delta(struct messages_reply *m, const struct turn_event *ev);
void messages_stream_stop(struct messages_reply *m);
void messages_stream_citation(struct messages_reply *m, struct str raw);

#endif
