/* recall_load.h - fetches the kept responses that a request goes on from
 *
 * Process: worker, loop thread; reads on a SQL thread. Results in the request's arena.
 * Limits:  RECALL_LOAD_MAX_BYTES of texts together.
 */
#ifndef OTARI_WORKER_TURN_RECALL_LOAD_H
#define OTARI_WORKER_TURN_RECALL_LOAD_H

#include "worker/turn/recall.h"

#define RECALL_LOAD_MAX_BYTES (64u * 1024u * 1024u)

struct request;

/* done: on the loop, the client is there, *ret is filled. Whatever goes wrong is answered here. All
 * that is given is in the request's arena. */
void recall_load_start(struct request *req, const struct store_response_scope *scope,
    const struct recall_wants *wants, struct recall_found *ret, void (*done)(void *arg), void *arg);

#endif
