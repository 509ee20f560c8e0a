/* carry_store.h - keeps what carry.h carries over, and fetches it
 *
 * Process: worker, loop thread; saves and reads on a SQL thread.
 * Rule:    saved before the client's last byte, so that its next request finds it. An answer whose
 *          results cannot be saved is delivered all the same, and a request goes on without what
 *          cannot be read; both are logged.
 * Limits:  CARRY_HOURS; CARRY_LOAD_MAX_BYTES a request.
 */
#ifndef OTARI_WORKER_TURN_CARRY_STORE_H
#define OTARI_WORKER_TURN_CARRY_STORE_H

#include "worker/turn/carry.h"

#define CARRY_HOURS          24
#define CARRY_LOAD_MAX_BYTES (8u * 1024u * 1024u)

struct request;

/* True: done will be called, when the client is still there. False: there is nothing to keep, or it
 * cannot be kept. */
bool carry_save(struct request *req, const struct store_response_scope *scope,
    const struct carry *c, void (*done)(void *arg), void *arg);
/* True: done will be called, when the client is still there; what was found is attached then.
 * False: the transcript names nothing, or it cannot be looked up. */
bool carry_load(struct request *req, const struct store_response_scope *scope,
    struct conversation *conv, void (*done)(void *arg), void *arg);

#endif
