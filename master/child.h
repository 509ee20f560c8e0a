/* child.h - the table of processes that the master started, and how their lives go
 *
 * Process: master.
 * Owns:    struct child until child_forget: its channel, its slot on the board.
 * Rule:    the state changes in child_set_state alone, which logs it.
 */
#ifndef OTARI_MASTER_CHILD_H
#define OTARI_MASTER_CHILD_H

#include <sys/queue.h>
#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "ipc/fds.h"
#include "master/child_state.h"

struct board_slot;
struct chan;
struct link;
struct master;
struct seat;

struct child {
	TAILQ_ENTRY(child) link;
	struct master *m;
	uint64_t key; /* names it for publish.c; never used again */
	enum role role;
	uint32_t number;
	pid_t pid;
	struct seat *seat; /* that it fills; NULL: builder */
	struct board_slot *slot;
	struct chan *chan;         /* NULL: spawner, or closed */
	struct link *spawner_link; /* spawner: our end; owned by link.c */
	enum child_state state;
	bool has_said_hello;
	bool wants_successor; /* a setting changed that it cannot take over */
	int64_t started_ms, ready_ms;
	int64_t deadline_ms; /* of the state it is in; past it: SIGKILL. 0: none */
};
TAILQ_HEAD(child_list, child);

/* Time for READY, for a drain beyond what the role itself allows, and for an end after its channel
 * closed. */
#define CHILD_READY_MS 30000
#define CHILD_GRACE_MS 3000
/* After SIGKILL, or when a drained child has closed its channel: only the kernel works on it then.
 */
#define CHILD_END_MS 10000

const char *child_label(const struct child *c); /* "worker 1"; static, until the next call */
void child_set_state(struct child *c, enum child_state to, int64_t deadline_ms);
/* Tells it to finish; past deadline_ms it is killed. */
void child_drain(struct child *c, int64_t deadline_ms);
void child_kill(struct child *c, const char *why);
struct child *child_by_pid(struct master *m, pid_t pid);
/* Those of a role that a master that stops waits for: all but those that not even SIGKILL ended in
 * time, which hang in the kernel. ROLE_MASTER: of any role. */
size_t child_awaited(const struct master *m, enum role role);
void child_channel_closed(struct child *c); /* it is about to end, or must be made to */
void child_forget(struct child **c);        /* after it was reaped */
/* Deadlines and heartbeats; once a second. */
void child_watch(struct master *m, int64_t now_ms);

#endif
