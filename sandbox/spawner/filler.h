/* filler.h - makes sessions off the broker's loop: a process of its own, and the broker's side of
 * it
 *
 * Process: filler (filler_main.c), a fork of the spawner in the same namespaces, small and with one
 *          socket to the broker: one order, one answer. filler.c is the broker's side: starts it,
 *          gives it orders, restarts it with a growing delay; while there is none, orders wait.
 * Lives:   what it clones are the broker's own children (CLONE_PARENT), so a session outlives the
 *          filler that made it, is reaped and killed by the broker alone, and ends with it.
 */
#ifndef OTARI_SANDBOX_SPAWNER_FILLER_H
#define OTARI_SANDBOX_SPAWNER_FILLER_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/jail/jail.h"
#include "sandbox/spawner/session.h"

struct broker;
struct event;

/* With an order come the slot's cgroups, if it has any: events of the memory, then what to join by.
 */
#define FILLER_FDS (1 + JAIL_JOINS)

struct filler_order {
	uint64_t seq;
	uint32_t slot;
	uint32_t is_born; /* 0 or 1 */
};

struct filler_made { /* with SESSION_FDS_BORN, or SESSION_FDS, descriptors when sys_errno is 0 */
	uint64_t seq;
	uint32_t slot;
	int32_t sys_errno;
	int32_t pid; /* in the spawner's pid namespace */
	uint32_t reserved;
};

/* Serves orders from sock until its end. Never returns. */
_Noreturn void filler_main(const struct jail *j, int sock);

struct filler {
	pid_t pid; /* 0: none, or reaped */
	int fd;    /* -1: none */
	struct event *ev, *ev_timer;
	unsigned in_flight, failures;
	uint64_t seq;      /* of the last order */
	uint64_t good_seq; /* beyond it the failures before are forgotten */
};

/* False: no event loop. */
bool filler_init(struct broker *b);
/* s is in state ORDERED: it becomes STARTING, or its ops say failed. */
void filler_order(struct broker *b, struct session *s);
void filler_stop(struct broker *b); /* for good */
void filler_reaped(struct broker *b, pid_t pid);

#endif
