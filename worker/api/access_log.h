/* access_log.h - one line and the counters for each finished exchange
 *
 * Process: worker, loop thread. Nothing of a key, a query string, a body or a header is written.
 */
#ifndef OTARI_WORKER_API_ACCESS_LOG_H
#define OTARI_WORKER_API_ACCESS_LOG_H

#include "worker/env.h"
#include "worker/request.h"

struct access_entry {
	int status; /* 0: never answered */
	uint64_t bytes_in, bytes_out;
	bool aborted;
};

/* req NULL: the HTTP layer refused the head. */
void access_log(struct worker_env *env, struct http_exchange *x, const struct request *req,
    const struct access_entry *e);

#endif
