/* error_event.h - how a stream that has begun says that it failed; nothing may follow it
 *
 * Process: worker. Pure. Messages: `event: error`; Chat: a data line with `error`, then [DONE];
 * Responses: `event: error`.
 */
#ifndef OTARI_WORKER_DIALECT_ERROR_EVENT_H
#define OTARI_WORKER_DIALECT_ERROR_EVENT_H

#include "base/buf.h"
#include "worker/dialect/conversation.h"

/* type NULL: chosen from status. sequence: the number that the next event of a Responses stream
 * has. */
void dialect_error_event(enum wire w, int status, const char *type, struct str message,
    const char *request_id, int64_t sequence, struct buf *out);

#endif
