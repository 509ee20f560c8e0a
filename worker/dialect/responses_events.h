/* responses_events.h - state of the reader of Responses answers; private to responses_events*.c */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_EVENTS_H
#define OTARI_WORKER_DIALECT_RESPONSES_EVENTS_H

#include "worker/dialect/responses_queue.h"

struct responses_events {
	struct events base;
	struct responses_queue queue;
	bool has_items;     /* any came */
	bool is_incomplete; /* finish.reason is the wire's */
	bool ended;         /* a terminal event or [DONE] came, or the whole answer */
	struct turn_event finish;
};

/* output_item.added; output_item.done, or an item of a whole answer; all items of a response. */
void responses_item_added(struct responses_events *r, int64_t index, struct jval item);
void responses_item_done(struct responses_events *r, int64_t index, struct jval item);
void responses_output(struct responses_events *r, struct jval output);
/* Any other event of an item. ERR_PROTO: a delta event without its delta. */
MUST_CHECK enum err_code responses_item_event(
    struct responses_events *r, struct str type, struct jval v, struct err *reterr);

#endif
