/* failure.h - what a client is told when a provider refuses or breaks
 *
 * Process: worker. Pure. A provider's 401/403 is ours to fix and becomes 502; its message goes to
 * the client only for what the client itself did (400, 404, 413, 422, 429), with our credentials
 * blanked out should they occur.
 */
#ifndef OTARI_WORKER_UPSTREAM_FAILURE_H
#define OTARI_WORKER_UPSTREAM_FAILURE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct target;

struct failure {
	int status;          /* for the client */
	int upstream_status; /* 0: no answer */
	const char *type;    /* of the client's wire; NULL: the status's own */
	struct str message;
	struct str code, param; /* what OpenAI's errors say for programs; or empty */
	struct str cause;       /* for the operator: host, port and what happened; no secrets */
	struct str retry_after; /* as the provider sent it, checked; or empty */
};

/* An answer that is not 2xx. body: at most LIMIT_UPSTREAM_ERROR_BYTES of it. */
void failure_from_status(struct arena *a, int status, struct str body, struct str retry_after,
    const struct target *target, struct failure *ret);
/* An error within an answer of 200, whose text is shown but where it is about our credential. Only
 * status, upstream_status and message are set. */
void failure_from_event(
    struct arena *a, int status, struct str said, const struct target *target, struct failure *ret);
/* No (whole) answer. */
void failure_from_err(struct arena *a, const struct err *err, struct failure *ret);
/* Overwrites what a text of the provider's holds of our credentials: the key, and the values of
 * configured headers whose names say that they are one. */
void failure_mask(const struct target *target, char *text, size_t len);
struct str failure_masked(
    struct arena *a, const struct target *target, struct str text); /* a copy */

#endif
