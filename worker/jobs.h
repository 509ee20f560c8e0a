/* jobs.h - blocking work off the loop: a bounded queue and a few threads, one pool for SQL, one for
 * disk
 *
 * Process: worker. Submit and done run on the loop's thread; run runs on a pool thread, with that
 * thread's own context (the SQL pool: a struct db *, opened there after fork). Limits:  queue_max
 * waiting jobs; full means ERR_BUSY (the client reads 503). Cancel:  a job whose owner is gone
 * still runs to its end; its done is called with cancelled = true so that it can free what it
 * holds.
 */
#ifndef OTARI_WORKER_JOBS_H
#define OTARI_WORKER_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct event_base;
struct jobs;

struct job { /* embedded in, or allocated by, the caller; lives until done returned */
	void (*run)(struct job *j, void *thread_context);
	void (*done)(struct job *j, bool cancelled);
	void *arg;
	bool cancelled;   /* set by jobs_cancel, loop thread only */
	struct job *next; /* of the queue */
};

struct jobs_config {
	const char *name;
	uint32_t threads, queue_max;
	void *(*thread_open)(void *arg); /* on the new thread; NULL allowed */
	void (*thread_close)(void *context);
	void *arg;
};

MUST_CHECK enum err_code jobs_new(
    struct event_base *base, const struct jobs_config *cfg, struct jobs **ret, struct err *reterr);
MUST_CHECK enum err_code jobs_submit(struct jobs *p, struct job *j, struct err *reterr);
/* For what must not be left undone (taking away what an earlier job wrote): the bound on waiting
 * jobs does not hold; refused only once the pool is being freed. */
MUST_CHECK enum err_code jobs_submit_cleanup(struct jobs *p, struct job *j, struct err *reterr);
void jobs_cancel(struct job *j);
uint32_t jobs_queued(const struct jobs *p);
void jobs_free(struct jobs **p); /* waits for running jobs; queued ones get done(cancelled) */

#endif
