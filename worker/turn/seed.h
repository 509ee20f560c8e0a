/* seed.h - the files that a request brought, put into a code session one after the other
 *
 * Process: worker, loop thread; blobs are opened on an io thread.
 */
#ifndef OTARI_WORKER_TURN_SEED_H
#define OTARI_WORKER_TURN_SEED_H

#include "worker/turn/attach_plan.h"

struct code_session;
struct request;
struct seed;

/* done(NULL): every file of the plan that is meant for the sandbox is there. ERR_IO, ERR_TOOLARGE,
 * ERR_BUSY: the text names the file id. Never called before it returns, nor after seed_cancel. *ret
 * NULL: there is nothing to put and done will not be called. ERR_BUSY: no room for the job. */
MUST_CHECK enum err_code seed_start(struct request *req, struct code_session *session,
    const struct attach_plan *plan, void (*done)(void *arg, const struct err *err), void *arg,
    struct seed **ret, struct err *reterr);
void seed_cancel(struct seed **s); /* NULL allowed; before the session is closed */

#endif
