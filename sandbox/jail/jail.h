/* jail.h - the walls of a session, built from plain system calls
 *
 * Process: spawner and its filler; jail_clone() runs its child as what becomes a session's init.
 * Order:   every step needs the ones before it (each function says which); a wall that cannot be
 *          built is named in struct jail_fail, and the caller refuses - there is no fallback that
 *          runs without it.
 */
#ifndef OTARI_SANDBOX_JAIL_JAIL_H
#define OTARI_SANDBOX_JAIL_JAIL_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/lease.h"

struct sock_filter;

struct jail_fail {
	uint32_t layer; /* enum sandbox_layer */
	int32_t sys_errno;
	char step[48];
};
/* Fills f from errno; always false, so that `return jail_failed(...)` reads well. */
bool jail_failed(struct jail_fail *f, enum sandbox_layer layer, const char *step);

struct jail_filter {
	struct sock_filter *insns; /* owned */
	uint16_t count;
};

/* Walls that the probes leave out, to see that the others hold by themselves. Given by the
 * program's own code to spawner_main_without(), which no daemon calls; no message, key or variable
 * sets it. */
#define JAIL_WITHOUT_LANDLOCK 1u
#define JAIL_WITHOUT_SECCOMP  2u

struct jail {
	const struct sandbox_settings *settings;
	struct jail_filter filter;
	unsigned without; /* JAIL_WITHOUT_*; 0 but in the probes */
	bool has_range;   /* a uid per session; else all share the spawner's one */
	int init_fd;      /* /init of the new root */
};

/* uid (inside the spawner's user namespace) of session slot n. */
#define JAIL_SLOT_UID 1000u
#define JAIL_RANGE    LEASE_UIDS
#define JAIL_JOINS    3u

/* --- userns.c: step 1, in the single-threaded process that exec'd -------------------------------
 */
/* New user namespace in which this process is root; as real root with uid_base over that range
 * (*ret_has_range), else over one id - never real root's. */
bool jail_enter_userns(uint32_t uid_base, bool *ret_has_range, struct jail_fail *f);
/* Step 2: the other namespaces; the next fork is pid 1 of the new pid namespace. */
bool jail_unshare(struct jail_fail *f);

/* --- rootfs.c: step 3, as pid 1 of it ----------------------------------------------------------
 */
/* Builds the root that every session starts from, with a copy of otari-init as /init and the
 * zygote's library where sessions do not see it, and moves into it; the host's is gone after. */
bool jail_enter_rootfs(
    const struct sandbox_settings *s, int init_fd, struct str zygote_library, struct jail_fail *f);

/* --- seccomp.c: step 4 -------------------------------------------------------------------------
 */
MUST_CHECK enum err_code jail_filter_build(struct jail_filter *ret, struct err *reterr);
void jail_filter_done(struct jail_filter *f);

/* --- session.c: step 5, per session ------------------------------------------------------------
 */
struct jail_pipes { /* ends of the session's side; the clone owns its copies */
	int ctl, out, err;
	int request; /* of an interpreter that a zygote will fork into the session; -1: none */
	int status;  /* struct jail_fail comes here, or nothing and EOF once init runs */
	int memory;  /* events of its memory cgroup, to be read; -1: none */
	int join[JAIL_JOINS]; /* cgroup.procs of what it joins; -1 from the first that is none */
};
/* clone() into the session's own namespaces, as a child of the caller's parent. Returns when it has
 * exec'd or failed: the pid in the spawner's namespace, *ret_pidfd owned by the caller; -1 with
 * errno. One at a time; the caller has one thread and no child of its own to lose. */
pid_t jail_clone(const struct jail *j, uint32_t slot, const struct jail_pipes *p, int *ret_pidfd);

/* --- session_mounts.c, session_locks.c: its parts ----------------------------------------------
 */
bool jail_session_mounts(const struct jail *j, uid_t owner, struct jail_fail *f);
bool jail_session_ids(const struct jail *j, uid_t uid, struct jail_fail *f);
bool jail_session_locks(const struct jail *j, struct jail_fail *f);
/* landlock.c: nothing, and true, where the kernel cannot. */
bool jail_session_landlock(struct jail_fail *f);
bool jail_has_landlock(void);
bool jail_landlock_scopes(void); /* also keeps sessions from each other's abstract sockets */

#endif
