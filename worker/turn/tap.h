/* tap.h - looks at a provider's bytes as they pass: reads usage, shows the alias, drops a chunk
 * nobody asked for
 *
 * Process: worker. Pure. Streams are handed on event by event (framing as the provider sent it);
 * whole answers at once. Limits:  LIMIT_SSE_EVENT_BYTES an event.
 */
#ifndef OTARI_WORKER_TURN_TAP_H
#define OTARI_WORKER_TURN_TAP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "worker/dialect/turn_event.h"

struct tap {
	enum wire wire;
	bool drop_usage_chunk; /* Chat: we asked for it, the client did not */
	struct str show_model; /* empty: the provider's string stays */
	int64_t events;        /* with data, passed on so far */
	struct token_usage usage;
	bool has_error;     /* an error event passed */
	bool has_end;       /* the wire's last event passed: [DONE], message_stop */
	bool has_finish;    /* Chat: a choice said why it ended; some servers send no [DONE] */
	struct buf pending; /* an event that is not complete yet */
	size_t scanned;     /* of pending: no event end before this */
	struct arena *scratch;
};

void tap_init(struct tap *t, enum wire wire, struct str show_model, bool drop_usage_chunk);
void tap_done(struct tap *t);
/* Appends what the client is to get to out. ERR_TOOLARGE: an event over the limit. */
MUST_CHECK enum err_code tap_stream(
    struct tap *t, struct str bytes, struct buf *out, struct err *reterr);
/* The provider closed the stream in good order. An event that only lacks its blank line is handed
 * on, a cut one is dropped. A Chat answer that ended without [DONE] gets one. */
void tap_stream_end(struct tap *t, struct buf *out);
/* False: it is no JSON object, and nothing was handed on. */
MUST_CHECK bool tap_whole(struct tap *t, struct str body, struct buf *out);

#endif
