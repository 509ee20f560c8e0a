/* completion_plan.h - what the turn of a request that was read is to do: who runs its code, within
 * which limits, what is kept of it
 *
 * Process: worker, loop thread. From the request, its caller and the policy snapshot; no I/O.
 */
#ifndef OTARI_WORKER_API_COMPLETION_PLAN_H
#define OTARI_WORKER_API_COMPLETION_PLAN_H

#include "worker/request.h"
#include "worker/turn/turn.h"

struct completion_read { /* borrowed; the plan copies or points into the request's arena */
	enum wire wire;  /* of the client */
	struct conversation *conv;
	size_t body_bytes;
	const struct target *target;
	uint32_t documents; /* formats that reach the model as they are */
	const struct recalled *recalled;
};

/* The client's choice of who runs code, as it was sent; STR_NULL: none. */
struct str completion_executor_header(const struct request *req);
/* Whose kept answers the request may go on from. */
struct store_response_scope completion_scope(const struct request *req);
/* Fills plan, which is zeroed, and shows the model our tool where we run the code. False: the
 * request was refused, and answered. */
MUST_CHECK bool completion_plan(
    struct request *req, const struct completion_read *read, struct turn_plan *plan);

#endif
