/* auth.h - who is calling
 *
 * Process: worker, loop thread. Reads the snapshots and copies what is needed into the request's
 * arena. A credential is hashed at once; it is never logged, copied or echoed.
 */
#ifndef OTARI_WORKER_API_AUTH_H
#define OTARI_WORKER_API_AUTH_H

#include "worker/request.h"

enum auth_verdict {
	AUTH_OK,
	AUTH_MISSING,    /* no credential header */
	AUTH_BAD_FORMAT, /* Authorization without Bearer */
	AUTH_UNKNOWN,
	AUTH_INACTIVE,
	AUTH_EXPIRED,
	AUTH_BLOCKED, /* the key's user */
};

const char *auth_text(enum auth_verdict v);
/* Any header that holds a valid key authenticates; else the first one's fault is told. Fills
 * req->caller. */
enum auth_verdict auth_request(struct request *req);

#endif
