/* reply.h - what the writers of answers share
 *
 * Process: worker. In the arena of the request; buffers of a whole answer are freed with it. A
 * writer keeps its own state behind struct reply, which must come first in it.
 */
#ifndef OTARI_WORKER_DIALECT_REPLY_H
#define OTARI_WORKER_DIALECT_REPLY_H

#include "base/json_write.h"
#include "worker/dialect/dialect.h"

enum reply_code { REPLY_CODE_NONE, REPLY_CODE_INPUT, REPLY_CODE_RUNS };

struct reply {
	struct arena *arena;
	struct reply_options opt;
	struct buf *out; /* borrowed */
	bool started;    /* the answer's head went out (streams) or is known */
	bool over;       /* END or ERROR came */
	bool open;       /* a block is open */
	bool shown;      /* its start went out */
	enum block_kind kind;
	enum reply_code code; /* streams: of the execution that is shown in steps */
	struct str id, model;
	struct buf *code_list; /* of executions that no block shows; NULL: none */
};

/* A heap buffer that is freed with the arena. */
struct buf *reply_buf(struct arena *a);
/* Model, and the id: the provider's when it looks like one of this wire. */
void reply_head(struct reply *r, const struct turn_event *start, const char *id_prefix);
/* The type that an error names: the event's own, where it is this wire's word; NULL: by status. */
const char *reply_error_type(struct reply *r, const struct turn_event *ev, enum wire w);
/* "event: NAME\ndata: " (NAME may be NULL) … JSON by the caller … blank line */
void sse_begin(struct buf *out, const char *name);
void sse_end(struct buf *out);
/* Puts an execution on the list, where no block shows it. */
void reply_list_code(struct reply *r, const struct code_record *rec);
/* May an execution be written in the wire's own blocks now? */
bool reply_can_show_code(const struct reply *r);
/* … and in steps? */
bool reply_can_begin_code(const struct reply *r);

#endif
