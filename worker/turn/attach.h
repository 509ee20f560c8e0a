/* attach.h - fetches what attach_plan.h asks for: rows by a SQL job, sizes and bytes by an io job
 *
 * Process: worker, loop thread. While a job runs the request's arena belongs to its thread.
 * Limits:  max_inline_bytes of shown files together, else ERR_TOOLARGE.
 */
#ifndef OTARI_WORKER_TURN_ATTACH_H
#define OTARI_WORKER_TURN_ATTACH_H

#include "worker/turn/attach_plan.h"

struct attach;
struct request;

struct attach_options {
	struct str user_id, workspace_id; /* whose files; workspace STR_NULL: all of the user's */
	struct str account; /* at the provider, whose copies count; STR_NULL: none do */
	uint64_t max_inline_bytes;
};

/* done(NULL): plan is filled and its names are set. Errors: ERR_TOOLARGE, ERR_BUSY, ERR_INPUT
 * (attach_check), ERR_IO (a seed's bytes are gone; the text names the file id). Not called after
 * attach_cancel. Never called before it returns. */
MUST_CHECK enum err_code attach_start(struct request *req, struct attach_plan *plan,
    const struct attach_options *opt, void (*done)(void *arg, const struct err *err), void *arg,
    struct attach **ret, struct err *reterr);
void attach_cancel(
    struct attach **a); /* NULL allowed; plan and arena stay in use until the job ended */

#endif
