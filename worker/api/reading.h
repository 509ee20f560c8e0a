/* reading.h - a request that is one read of the database
 *
 * Process: worker. Lies in the request's arena.
 */
#ifndef OTARI_WORKER_API_READING_H
#define OTARI_WORKER_API_READING_H

#include "worker/api/work.h"

struct reading {
	struct work work;
	/* SQL thread; may use the request's arena. */
	enum err_code (*read)(
	    struct reading *r, struct db *db, struct arena *a, struct err *reterr);
	/* Loop; the client is there. */
	void (*answer)(struct request *req, struct reading *r);
	/* Loop; NULL: request_fail. */
	void (*refuse)(struct request *req, struct reading *r, const struct err *err);
};

/* Answers the request in every case. */
void reading_start(struct request *req, struct reading *r);

#endif
