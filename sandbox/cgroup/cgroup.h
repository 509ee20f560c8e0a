/* cgroup.h - bounds memory, processes and processor time of a whole session, where the host lets us
 *
 * Process: spawner, before it gives its rights up: finds the place, makes one cgroup per session
 *          slot with its limits, opens their files. A session's first act is to write itself into
 *          its slot through the descriptors that it inherited (the right to do so is the opener's),
 *          so that all it ever holds is counted. The interpreter that a zygote forks does the same.
 *          Master: moves itself out of the way (v2) and removes what a spawner left.
 * Files:   place.c, read.c (pure) → make.c (the tree), slots.c (its use), sweep.c (its end).
 * v2:      BASE/otari.PID.N/slotK, where BASE is our own cgroup once no process is in it (so the
 *          master moves itself and its children into BASE/main), or the nearest one above it.
 *          CLONE_INTO_CGROUP would ask for the rights of the spawner as it is by then: none.
 * v1:      the same below our own cgroup of each controller. In both all slots together weigh less
 *          than the daemon beside them (CPU_WEIGHT).
 * Rule:    a tree is locked by its maker as long as it lives. What is not locked is left over, and
 *          whoever comes next removes it. Neither the file system nor a directory of it is ever
 *          within a session's reach; release_agent and notify_on_release are not touched.
 */
#ifndef OTARI_SANDBOX_CGROUP_CGROUP_H
#define OTARI_SANDBOX_CGROUP_CGROUP_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };
#define CGROUP_BIT(c) (1u << (c))

#define CGROUP_PATH_MAX  1024
#define CGROUP_NAME_MAX  64
#define CGROUP_OLD_BYTES (1u << 20) /* that a slot may still hold of its last session */

/* --- place.c: pure ------------------------------------------------------------------------------
 */
struct cgroup_place {
	char own[CGROUP_PATH_MAX]; /* our cgroup as a directory; "" none to be seen */
	size_t mount_len;          /* own's first bytes, where the hierarchy is mounted */
	bool is_read_only;
};
struct cgroup_places {
	struct cgroup_place v2;
	struct cgroup_place v1[CGROUP_CONTROLLERS];
};
/* The texts of /proc/self/mountinfo and /proc/self/cgroup. */
void cgroup_find_places(struct str mountinfo, struct str self, struct cgroup_places *ret);
void cgroup_read_places(struct cgroup_places *ret); /* of this process */

/* --- read.c: pure -------------------------------------------------------------------------------
 */
unsigned cgroup_controllers(struct str text); /* a cgroup.controllers: bits */
/* Value of the line "key N"; false: no such line. */
bool cgroup_value(struct str text, struct str key, uint64_t *ret);
/* A memory.stat of either version: what belongs to a session alone, not page cache of files. */
uint64_t cgroup_private_bytes(struct str memory_stat);
bool cgroup_is_our_name(struct str name); /* otari.N.N */

/* --- make.c -------------------------------------------------------------------------------------
 */
struct cgroup_wish {
	uint64_t memory_bytes;
	uint32_t pids;
	uint32_t cpu_percent; /* 100: one processor; 0: no bound */
	uint32_t slots;
	int create; /* 0; O_CREAT: over plain directories, for tests */
};

#define CGROUP_TREES CGROUP_CONTROLLERS

struct cgroup_slot {
	int join[CGROUP_TREES]; /* cgroup.procs of each tree, to be written to */
	int events;             /* that counts what was killed for memory */
	int usage, stat;        /* memory in use, and of what kind */
	uint64_t kills;         /* told already */
};

struct cgroup {
	unsigned version;     /* 0: none */
	unsigned controllers; /* bits of those in force */
	size_t trees;         /* 1 with v2 */
	int lock[CGROUP_TREES];
	struct cgroup_slot *slots; /* owned */
	uint32_t slot_count;
	char why[96]; /* there is no memory controller for us: what was tried last */
	int sys_errno;
};

/* False: no cgroup that bounds memory, and why. Nothing is left behind then. */
bool cgroup_make(struct cgroup *c, const struct cgroup_places *p, const struct cgroup_wish *w);

/* --- slots.c ------------------------------------------------------------------------------------
 */
/* All of it may be asked of an empty c as well. */
bool cgroup_bounds(const struct cgroup *c, enum cgroup_controller k);
/* Descriptors to which a process that joins the slot writes "0", borrowed; returns how many. */
size_t cgroup_join_fds(const struct cgroup *c, uint32_t slot, int ret[CGROUP_TREES]);
int cgroup_events_fd(const struct cgroup *c, uint32_t slot); /* borrowed; -1: none */
/* Nothing of its last session is in it any more. */
bool cgroup_slot_is_clean(const struct cgroup *c, uint32_t slot);
/* Somebody removed it. */
bool cgroup_slot_is_lost(const struct cgroup *c, uint32_t slot);
uint64_t cgroup_slot_usage(const struct cgroup *c, uint32_t slot); /* bytes, page cache too */
/* Processes that were killed for its memory since this was asked last. */
uint64_t cgroup_slot_kills(struct cgroup *c, uint32_t slot);
void cgroup_drop_locks(struct cgroup *c); /* in a process that does not stand for the tree */
void cgroup_free(struct cgroup *c);       /* the tree stays until cgroup_sweep() */

/* --- sweep.c ------------------------------------------------------------------------------------
 */
/* Every tree that we can see, of every maker. True: so were all calls. */
typedef bool cgroup_on_tree(void *arg, const char *path);
bool cgroup_each_tree(const struct cgroup_places *p, cgroup_on_tree *on_tree, void *arg);
/* Removes trees whose maker is gone. False: something is still in use or dying; ask again. */
bool cgroup_sweep(const struct cgroup_places *p);
/* One tree by its path, which nobody else holds; false: not all of it. */
bool cgroup_remove(const char *tree);
/* v2: moves the processes of ours out of their cgroup into a "main" below it, if it has a memory
 * controller and nobody else is in it. True: moved. */
bool cgroup_step_aside(const struct cgroup_places *p, const pid_t *ours, size_t count);
/* At the end, when no tree and no other process of ours is left: back into own, so that whoever
 * comes next can be started in it as this process was. */
void cgroup_step_back(const char *own);

#endif
