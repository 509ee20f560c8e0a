/* change.h - an administrative change: one SQL unit, then published, only then answered
 *
 * Process: worker, loop thread; run on a SQL thread. Lies in the request's arena.
 */
#ifndef OTARI_WORKER_API_CHANGE_H
#define OTARI_WORKER_API_CHANGE_H

#include "worker/api/work.h"
#include "worker/env.h"

struct change {
	struct work work;
	enum publish_what what;
	/* SQL thread. */
	enum err_code (*commit)(struct change *c, struct db *db, struct err *reterr);
	/* Loop; the change is in force on every worker of this host and the client is there. */
	void (*answer)(struct request *req, struct change *c);
	const char *conflict; /* what the client reads with the 409 of ERR_CONFLICT; NULL: the
			       * error's own text */
};

/* Answers the request in every case. */
void change_start(struct request *req, struct change *c);

#endif
