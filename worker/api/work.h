/* work.h - one blocking step of a request, on a pool thread
 *
 * Process: worker. Started and finished on the loop's thread.
 * Owns:    a reference to its request while it is queued or running; usually lies in its arena.
 *          `done` runs whether or not the client is still there (request_closed tells).
 */
#ifndef OTARI_WORKER_API_WORK_H
#define OTARI_WORKER_API_WORK_H

#include "worker/jobs.h"
#include "worker/request.h"

struct db;
struct work;

/* On the pool's thread. context: of the thread (the SQL pool: struct db *, or NULL). */
typedef enum err_code work_run(struct work *w, void *context, struct err *reterr);
/* On the loop. err NULL: run said ERR_OK. */
typedef void work_done(struct work *w, const struct err *err);

struct work {
	struct job job;
	struct request *req;
	work_run *run;
	work_done *done;
	void *arg; /* the starter's */
	bool is_busy;
	enum err_code code;
	struct err err;
};

/* ERR_BUSY: the queue is full; done is not called. One step at a time for each struct work, which
 * may be started again inside done. */
MUST_CHECK enum err_code work_start(struct work *w, struct request *req, struct jobs *pool,
    work_run *run, work_done *done, struct err *reterr);
/* The same for taking away what an earlier step left: a full queue does not refuse it. */
MUST_CHECK enum err_code work_start_cleanup(struct work *w, struct request *req, struct jobs *pool,
    work_run *run, work_done *done, struct err *reterr);
/* The thread's database, or ERR_BUSY when it has none. */
MUST_CHECK enum err_code work_db(void *context, struct db **ret, struct err *reterr);

#endif
