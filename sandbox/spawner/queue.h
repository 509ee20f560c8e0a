/* queue.h - who waits for a session, and whose turn it is. Pure.
 *
 * Process: spawner. Workspaces take turns: one request each, so that a flood from one costs another
 *          no more than the one before it in the ring. Those of a workspace are served in order.
 * Limits:  waiting in all and of one workspace; sessions that a workspace may have at a time (a
 *          workspace that has them all loses its turn, not its place in time).
 */
#ifndef OTARI_SANDBOX_SPAWNER_QUEUE_H
#define OTARI_SANDBOX_SPAWNER_QUEUE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct map;
struct queue_entry;
struct queue_workspace;
TAILQ_HEAD(queue_ring, queue_workspace);

struct queue {
	struct map *workspaces;    /* with a request or a session */
	struct queue_ring ring;    /* with a request that may be served, next one first */
	struct queue_entry **heap; /* by deadline; room for max_waiting */
	size_t waiting, servable;
	uint32_t max_waiting, max_waiting_each;
	uint32_t max_sessions_each; /* 0: no limit */
};

struct queue_request {
	void *owner;
	uint64_t id;
	/* of queue_next(): to be given back to queue_session_ended() */
	struct queue_workspace *workspace;
};

void queue_init(
    struct queue *q, uint32_t max_waiting, uint32_t max_waiting_each, uint32_t max_sessions_each);
void queue_done(struct queue *q); /* no session is counted any more */
enum queue_added { QUEUE_ADDED, QUEUE_FULL, QUEUE_WORKSPACE_FULL };
enum queue_added queue_add(
    struct queue *q, void *owner, uint64_t id, struct str workspace, int64_t deadline_ms);
/* Takes out the one whose turn it is and counts a session for its workspace; false: none. */
bool queue_next(struct queue *q, struct queue_request *ret);
void queue_session_ended(struct queue *q, struct queue_workspace *w);
/* Takes out one whose deadline has come; false: none. */
bool queue_expired(struct queue *q, int64_t now_ms, struct queue_request *ret);
int64_t queue_deadline(const struct queue *q); /* the first; INT64_MAX: nobody waits */
bool queue_cancel(struct queue *q, const void *owner, uint64_t id); /* false: does not wait */
void queue_drop_owner(struct queue *q, const void *owner);

#endif
