/* forward.h - the fast path: a request's bytes to the provider, the provider's bytes to the client
 *
 * Process: worker, loop thread.
 * Owns:    its state, which hangs on the request (req->state) and ends with it.
 * Memory:  streams: one event; whole answers: the answer (LIMIT_UPSTREAM_WHOLE_BYTES).
 */
#ifndef OTARI_WORKER_TURN_FORWARD_H
#define OTARI_WORKER_TURN_FORWARD_H

#include "worker/turn/fastpath.h"
#include "worker/upstream/target.h"

struct request;

/* Answers the request, whatever happens. body, target and end_user are in the request's arena (or
 * the exchange). end_user: as the client tagged it; empty: not. */
void forward_start(struct request *req, const struct fastpath *fast, const struct target *target,
    struct str end_user);

#endif
