/* serving.h - where a worker lends this host's sandbox: the listener, and those it had before
 *
 * Process: worker, loop thread; worker 1 alone is given such a listener.
 * Owns:    env->serve, which holds the sessions, and an HTTP server a listener. A reload that names
 *          another address changes the listener under the sessions: they can be reached at the new
 *          one, what runs on the old one is answered there.
 */
#ifndef OTARI_WORKER_SERVING_H
#define OTARI_WORKER_SERVING_H

#include "base/err.h"
#include "worker/http/http.h"

struct serving;
struct ssl_ctx_st;
struct worker_env;

/* tls: borrowed, or NULL. Nothing is served yet. */
struct serving *serving_new(
    struct worker_env *env, const struct http_server_config *cfg, struct ssl_ctx_st *tls);
/* Takes fd; in the place of what is listened on now. -1: nowhere, and the sessions are closed. */
MUST_CHECK enum err_code serving_listen(struct serving *s, int fd, struct err *reterr);
/* Stops accepting, closes sessions as they have answered; on_drained when no connection is left,
 * which may be at once. */
void serving_drain(struct serving *s, void (*on_drained)(void *arg), void *arg);
void serving_free(struct serving **s); /* NULL allowed; breaks off what runs */

#endif
