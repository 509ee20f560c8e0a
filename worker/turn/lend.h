/* lend.h - the files that a request gave for code that the provider runs, copied to the provider
 * one after the other
 *
 * Process: worker, loop thread; blobs are opened on an io thread. What a copy is called is noted on
 * a SQL thread: it serves every host until LEND_MARGIN_S before it expires.
 */
#ifndef OTARI_WORKER_TURN_LEND_H
#define OTARI_WORKER_TURN_LEND_H

#include "worker/turn/attach_plan.h"
#include "worker/upstream/failure.h"

#define LEND_MARGIN_S 300

struct lend;
struct request;
struct target;

/* Which account at which provider: a digest, in the arena. */
struct str lend_account(struct arena *a, const struct target *target);
/* done(NULL): every file of the plan that is meant for the provider has its lent_id. Otherwise f
 * says what the client is told, with the file id. Never called before it returns, nor after
 * lend_cancel. *ret NULL: there is nothing to copy and done will not be called. ERR_BUSY: no room
 * for the job. target is borrowed and outlives it. */
MUST_CHECK enum err_code lend_start(struct request *req, const struct target *target,
    struct attach_plan *plan, void (*done)(void *arg, const struct failure *f), void *arg,
    struct lend **ret, struct err *reterr);
/* The provider refused a request that named copies; one may be gone there. The next request copies
 * them again. */
void lend_forget(struct request *req, const struct target *target, const struct attach_plan *plan);
void lend_cancel(struct lend **l); /* NULL allowed */

#endif
