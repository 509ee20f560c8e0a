/* publish.h - the worker's side of bringing a change into force; publish_request is in env.h
 *
 * Process: worker, loop thread.
 */
#ifndef OTARI_WORKER_PUBLISH_H
#define OTARI_WORKER_PUBLISH_H

#include "base/err.h"

struct msg;
struct publish;
struct worker_env;

struct publish *publish_new(struct worker_env *env);
void publish_free(struct publish **p); /* who waits is told that it is not in force */
/* MSG_PUBLISHED */
MUST_CHECK enum err_code publish_on_answer(
    struct worker_env *env, struct msg *m, struct err *reterr);

#endif
