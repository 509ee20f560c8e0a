/* current.h - the snapshots and secrets that this worker works with; swapped on its loop
 *
 * Process: worker, loop thread. A request that needs one beyond its callback holds a reference.
 */
#ifndef OTARI_WORKER_CURRENT_H
#define OTARI_WORKER_CURRENT_H

#include <stdbool.h>

#include "base/err.h"

struct msg;
struct worker_env;

/* MSG_POLICY, MSG_KEYS, MSG_SECRETS: maps, checks, swaps; acknowledges the last of a build.
 * *ret_needs_successor: a setting changed that only a new process takes over. */
MUST_CHECK enum err_code current_take(
    struct worker_env *env, struct msg *m, bool *ret_needs_successor, struct err *reterr);
/* Everything that a request may need is there. */
bool current_is_complete(const struct worker_env *env);
void current_drop(struct worker_env *env);

#endif
