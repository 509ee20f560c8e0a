/* seat.h - a place that is to be filled by one process: worker 1…N, the sweeper, the spawner
 *
 * Process: master. A seat whose child ended is filled again after the delay of backoff.c; exit code
 * 2 leaves it empty. A worker's seat owns its listening socket, so that no connection is lost.
 */
#ifndef OTARI_MASTER_SEAT_H
#define OTARI_MASTER_SEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/fds.h"
#include "master/backoff.h"

struct child;
struct event;
struct master;

struct seat {
	struct master *m;
	enum role role;
	uint32_t number;
	bool is_wanted;
	int listen_fd;         /* worker; -1: none */
	struct child *child;   /* starting or ready; NULL: empty */
	struct child *next;    /* starting; takes the place of child when it is ready */
	struct event *respawn; /* pending while the delay runs */
	struct backoff backoff;
	uint64_t starts;
};

void seat_init(struct seat *s, struct master *m, enum role role, uint32_t number);
void seat_done(struct seat *s);
void seat_fill(struct seat *s); /* now; errors are logged and tried again */
/* c, in its seat, serves until a successor is ready; when none becomes ready it goes on. */
void seat_recycle(struct child *c);
/* All workers and the sweeper: for what a child is told on its command line. */
void seat_recycle_all(struct master *m);
/* c said READY. */
void seat_child_ready(struct seat *s, struct child *c);
/* Its child (any state but GONE until now) was reaped. */
void seat_child_ended(struct seat *s, struct child *c, int wait_status);
/* Its child is no longer to be counted on: the seat is free for the next one at once. */
void seat_leave(struct seat *s);
/* As many workers as the configuration says: makes sockets, fills seats, drains those too many. */
void seat_set_workers(struct master *m, uint32_t n);
/* All wanted seats have a READY child. */
bool seat_all_ready(const struct master *m);

#endif
