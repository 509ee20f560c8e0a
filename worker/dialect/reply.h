/* reply.h - what the writers of answers share
 *
 * Process: worker. In the arena of the request; buffers of a whole answer are freed with it. A
 * writer keeps its own state behind struct reply, which must come first in it.
 */
#ifndef OTARI_WORKER_DIALECT_REPLY_H
#define OTARI_WORKER_DIALECT_REPLY_H

#include "base/json_write.h"
#include "worker/dialect/dialect.h"

struct reply {
	struct arena *arena;
	struct reply_options opt;
	struct buf *out; /* borrowed */
	bool started;    /* the answer's head went out (streams) or is known */
	bool over;       /* END or ERROR came */
	bool open;       /* a block is open */
	bool shown;      /* its start went out */
	enum block_kind kind;
	struct str id, model;
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

#endif
