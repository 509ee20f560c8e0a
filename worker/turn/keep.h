/* keep.h - Responses: the answer of a turn and what went into it, saved for whoever comes back
 *
 * Process: worker, loop thread; reads and saves on a SQL thread.
 * Rule:    saved before the client's last byte, so that its next request finds it. An answer that
 *          cannot be saved is delivered all the same; that is logged.
 */
#ifndef OTARI_WORKER_TURN_KEEP_H
#define OTARI_WORKER_TURN_KEEP_H

#include "storage/sql/store_response.h"

struct request;

struct keep_plan { /* in the request's arena; zeroed: nothing is to be kept */
	bool is_wanted;
	struct store_response_scope scope;
	struct str provider;
	struct str input; /* JSON array, its items with ids */
	struct str *item_ids;
	size_t item_count;
	uint32_t retention_hours; /* 0: for ever */
};

/* The response object of an answer: the body itself, or the `response` member of the last event of
 * a stream's bytes. STR_NULL: there is none. Pure. */
struct str keep_response_of(struct arena *a, struct str out, bool is_stream);
/* The row for it; ids of output items are added. ERR_INPUT: no response object. Pure. */
MUST_CHECK enum err_code keep_row(struct arena *a, const struct keep_plan *plan,
    struct str response, int64_t now_s, struct store_response *ret, struct err *reterr);

/* out: what the client gets, or of a stream what holds its last event; copied. True: done will be
 * called, when the client is still there. False: nothing is to be kept, or it cannot be kept. */
bool keep_start(struct request *req, const struct keep_plan *plan, struct str out, bool is_stream,
    void (*done)(void *arg), void *arg);

#endif
