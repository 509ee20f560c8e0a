#include "sandbox/spawner/queue.h"

#include <string.h>

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"

struct queue_entry {
	TAILQ_ENTRY(queue_entry) link;
	struct queue_workspace *workspace;
	void *owner;
	uint64_t id;
	int64_t deadline_ms;
	size_t at; /* in the heap */
};
TAILQ_HEAD(queue_entries, queue_entry);

struct queue_workspace {
	TAILQ_ENTRY(queue_workspace) link;
	struct queue_entries entries;
	uint32_t waiting, sessions, servable;
	char *name;
	size_t name_len;
};

void
queue_init(
    struct queue *q, uint32_t max_waiting, uint32_t max_waiting_each, uint32_t max_sessions_each)
{
	*q = (struct queue){.workspaces = map_new(),
	    .heap = MEM_NEW_ARRAY(struct queue_entry *, max_waiting),
	    .max_waiting = max_waiting,
	    .max_waiting_each = max_waiting_each,
	    .max_sessions_each = max_sessions_each};
	TAILQ_INIT(&q->ring);
}

/* --- the heap: first deadline first ------------------------------------------------------------
 */
static void
heap_put(struct queue *q, size_t at, struct queue_entry *e)
{
	q->heap[at] = e;
	e->at = at;
}

static void
heap_up(struct queue *q, size_t at, struct queue_entry *e)
{
	for (; at > 0 && q->heap[(at - 1) / 2]->deadline_ms > e->deadline_ms; at = (at - 1) / 2)
		heap_put(q, at, q->heap[(at - 1) / 2]);
	heap_put(q, at, e);
}

static void
heap_down(struct queue *q, size_t at, struct queue_entry *e)
{
	for (size_t child; (child = 2 * at + 1) < q->waiting; at = child) {
		if (child + 1 < q->waiting &&
		    q->heap[child + 1]->deadline_ms < q->heap[child]->deadline_ms)
			child++;
		if (q->heap[child]->deadline_ms >= e->deadline_ms)
			break;
		heap_put(q, at, q->heap[child]);
	}
	heap_put(q, at, e);
}

/* q->waiting is one less already. */
static void
heap_remove(struct queue *q, size_t at)
{
	struct queue_entry *last = q->heap[q->waiting];
	if (at == q->waiting)
		return;
	if (at > 0 && q->heap[(at - 1) / 2]->deadline_ms > last->deadline_ms)
		heap_up(q, at, last);
	else
		heap_down(q, at, last);
}

/* --- workspaces --------------------------------------------------------------------------------
 */
static struct queue_workspace *
workspace_of(struct queue *q, struct str name)
{
	struct queue_workspace *w = map_get(q->workspaces, name);
	if (w != NULL)
		return w;
	w = MEM_NEW(struct queue_workspace);
	w->name = mem_strndup(name.ptr, name.len);
	w->name_len = name.len;
	TAILQ_INIT(&w->entries);
	map_put(q->workspaces, name, w);
	return w;
}

/* After its numbers changed: is it in the ring, or of no interest any more? */
static void
settle(struct queue *q, struct queue_workspace *w)
{
	uint32_t room = q->max_sessions_each == 0 ? UINT32_MAX : q->max_sessions_each - w->sessions;
	uint32_t servable = w->waiting < room ? w->waiting : room;
	if (w->servable == 0 && servable > 0)
		TAILQ_INSERT_TAIL(&q->ring, w, link);
	else if (w->servable > 0 && servable == 0)
		TAILQ_REMOVE(&q->ring, w, link);
	q->servable += servable;
	q->servable -= w->servable;
	w->servable = servable;
	if (w->waiting > 0 || w->sessions > 0)
		return;
	(void)map_del(q->workspaces, str_n(w->name, w->name_len));
	mem_free(w->name);
	mem_free(w);
}

static void
take_out(struct queue *q, struct queue_entry *e, struct queue_request *ret)
{
	struct queue_workspace *w = e->workspace;
	if (ret != NULL)
		*ret = (struct queue_request){e->owner, e->id, NULL};
	TAILQ_REMOVE(&w->entries, e, link);
	w->waiting--;
	q->waiting--;
	heap_remove(q, e->at);
	mem_free(e);
}

enum queue_added
queue_add(struct queue *q, void *owner, uint64_t id, struct str workspace, int64_t deadline_ms)
{
	if (q->waiting >= q->max_waiting)
		return QUEUE_FULL;
	struct queue_workspace *w = workspace_of(q, workspace);
	if (w->waiting >= q->max_waiting_each)
		return QUEUE_WORKSPACE_FULL;
	struct queue_entry *e = MEM_NEW(struct queue_entry);
	e->workspace = w;
	e->owner = owner;
	e->id = id;
	e->deadline_ms = deadline_ms;
	TAILQ_INSERT_TAIL(&w->entries, e, link);
	w->waiting++;
	heap_up(q, q->waiting++, e);
	settle(q, w);
	return QUEUE_ADDED;
}

bool
queue_next(struct queue *q, struct queue_request *ret)
{
	struct queue_workspace *w = TAILQ_FIRST(&q->ring);
	if (w == NULL)
		return false;
	TAILQ_REMOVE(&q->ring, w, link);
	TAILQ_INSERT_TAIL(&q->ring, w, link);
	take_out(q, TAILQ_FIRST(&w->entries), ret);
	ret->workspace = w;
	w->sessions++;
	settle(q, w);
	return true;
}

void
queue_session_ended(struct queue *q, struct queue_workspace *w)
{
	CHECK(w->sessions > 0);
	w->sessions--;
	settle(q, w);
}

static void
remove_entry(struct queue *q, struct queue_entry *e, struct queue_request *ret)
{
	struct queue_workspace *w = e->workspace;
	take_out(q, e, ret);
	settle(q, w);
}

bool
queue_expired(struct queue *q, int64_t now_ms, struct queue_request *ret)
{
	if (q->waiting == 0 || q->heap[0]->deadline_ms > now_ms)
		return false;
	remove_entry(q, q->heap[0], ret);
	return true;
}

int64_t
queue_deadline(const struct queue *q)
{
	return q->waiting == 0 ? INT64_MAX : q->heap[0]->deadline_ms;
}

bool
queue_cancel(struct queue *q, const void *owner, uint64_t id)
{
	for (size_t i = 0; i < q->waiting; i++)
		if (q->heap[i]->owner == owner && q->heap[i]->id == id) {
			remove_entry(q, q->heap[i], NULL);
			return true;
		}
	return false;
}

void
queue_drop_owner(struct queue *q, const void *owner)
{
	for (size_t i = q->waiting; i > 0; i--)
		while (i <= q->waiting && q->heap[i - 1]->owner == owner)
			remove_entry(q, q->heap[i - 1], NULL);
}

void
queue_done(struct queue *q)
{
	while (q->waiting > 0)
		remove_entry(q, q->heap[0], NULL);
	map_free(&q->workspaces);
	mem_free(q->heap);
}
