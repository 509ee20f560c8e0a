/* lease.h - messages between the spawner and the master, and the spawner and the workers
 *
 * One SEQPACKET datagram a message: fixed structs of one build (both ends are the same binary);
 * lease_decode() checks type, size and every text before anything is used. Pure, but for send and
 * receive.
 * master to spawner (FD_CTL): SETTINGS once, first; ADD_WORKER with the spawner's end of a new
 *   SEQPACKET pair made for that worker; REMOVE_WORKER; LOG with the new log file; DRAIN (lends
 * nothing more, forgets who waits, ends with its last lease); ELSEWHERE (so many of its sessions
 * are lent by spawners before it); STOP. EOF ends it. spawner to master: SELFTEST after the
 * self-test (its READY), also when everything is refused; STATS when something changed, once a
 * second at most, and at once when told to drain. spawner to worker (FD_SPAWNER): STATE when known
 * and on change; ANSWER with LEASE_FDS descriptors. worker to spawner: LEASE, RELEASE (also cancels
 * a waiting LEASE). EOF ends its leases.
 */
#ifndef OTARI_IPC_LEASE_H
#define OTARI_IPC_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define LEASE_TEXT_MAX      240
#define LEASE_WORKSPACE_MAX 64
#define LEASE_PATH_MAX      256
#define LEASE_NO_ZYGOTE     "-"
/* Host user ids of one spawner, and how many such ranges from sandbox_uid_base on the master gives
 * to one spawner at a time. */
#define LEASE_UIDS       16384u
#define LEASE_UID_RANGES 4u

enum lease_msg_type {
	LEASE_MSG_SETTINGS = 0x4f530001,
	LEASE_MSG_ADD_WORKER,
	LEASE_MSG_REMOVE_WORKER,
	LEASE_MSG_STOP,
	LEASE_MSG_DRAIN,
	LEASE_MSG_LOG,
	LEASE_MSG_ELSEWHERE,
	LEASE_MSG_SELFTEST,
	LEASE_MSG_STATE,
	LEASE_MSG_LEASE,
	LEASE_MSG_ANSWER,
	LEASE_MSG_RELEASE,
	LEASE_MSG_STATS,
	LEASE_MSG_END_,
};

struct sandbox_settings {
	char python[LEASE_PATH_MAX]; /* absolute, as seen inside the sandbox */
	char rootfs[LEASE_PATH_MAX]; /* "" = the host's /usr; else a directory that replaces it */
	/* Comma-separated modules that the zygote loads beside the standard library, where they are
	 * installed; LEASE_NO_ZYGOTE (no module's name): there is none. */
	char preload[LEASE_PATH_MAX];
	uint64_t memory_bytes;                      /* address space of one process */
	uint64_t workspace_bytes, workspace_inodes; /* /work, /tmp and /dev/shm together */
	uint64_t file_bytes;                        /* one file */
	uint64_t output_bytes;     /* kept of each output stream, for the record; workers enforce */
	uint64_t output_max_bytes; /* produced files of one call */
	uint32_t output_max_files;
	uint32_t pids;        /* processes and threads of one session */
	uint32_t cpu_seconds; /* of one process */
	uint32_t open_files;
	uint32_t max_sessions;               /* leased and warm together */
	uint32_t max_sessions_per_workspace; /* 0 = no limit */
	uint32_t pool_size;                  /* warm sessions kept ready */
	uint32_t zygote_forks, zygote_age_s; /* after so many, or so long, another one follows */
	uint32_t cpu_percent;                /* of one processor, for one session; 0 = no bound */
	uint32_t require_cgroup;             /* 1: without a memory cgroup every lease is refused */
	uint32_t no_cgroup;                  /* 1: none is tried (tests) */
	uint32_t
	    uid_base; /* 0 = one id; else the first of LEASE_UIDS that are this spawner's alone */
	uint32_t log_level; /* enum log_level */
	uint32_t log_json;  /* 0 or 1 */
};
/* The defaults of the key table, for tests and tools. */
void sandbox_settings_default(struct sandbox_settings *s);

/* Walls of a session. Names: lease_layer_name(). */
enum sandbox_layer {
	SB_USER_NS,
	SB_UID_RANGE,
	SB_MOUNT_NS,
	SB_PID_NS,
	SB_PROC,
	SB_NET_NS,
	SB_IPC_UTS_NS,
	SB_NO_NEW_PRIVS,
	SB_CAPABILITIES,
	SB_SECCOMP,
	SB_DESCRIPTORS,
	SB_LIMITS,
	SB_WORKSPACE,
	SB_MEMORY_CGROUP,
	SB_PIDS_CGROUP,
	SB_CPU_CGROUP,
	SB_LANDLOCK,
	SB_INTERPRETER,
	SB_LAYERS_,
};

enum sandbox_layer_state {
	SB_UNKNOWN,  /* not reached */
	SB_ACTIVE,   /* there and tested */
	SB_DEGRADED, /* absent; we go on and say so */
	SB_MISSING,  /* absent: every lease is refused */
};

struct sandbox_layer_report {
	uint32_t state; /* enum sandbox_layer_state */
	int32_t sys_errno;
	char text[96]; /* what was seen, or how to get it */
};

struct lease_settings {
	uint32_t type;
	struct sandbox_settings settings;
};
struct lease_worker { /* ADD_WORKER and LOG (one fd each), REMOVE_WORKER, DRAIN, STOP */
	uint32_t type;
	uint32_t worker; /* the master's number for it; 0 where none is meant */
};
struct lease_elsewhere {
	uint32_t type;
	uint32_t sessions;
};
struct lease_selftest {
	uint32_t type;
	uint32_t refused;          /* 1: no lease will be given */
	char text[LEASE_TEXT_MAX]; /* the refusal: layer, errno, fix; "" when not refused */
	struct sandbox_layer_report layer[SB_LAYERS_];
};
struct lease_state {
	uint32_t type;
	uint32_t refused;
	uint32_t memory_mib; /* of one session, for texts */
	uint32_t reserved;
	char text[LEASE_TEXT_MAX];
};
struct lease_request {
	uint32_t type;
	uint32_t queue_ms; /* answer BUSY when none became free until then */
	uint64_t id;       /* the worker's; names the lease from now on */
	char workspace[LEASE_WORKSPACE_MAX + 1];
};
enum lease_status { LEASE_OK, LEASE_BUSY, LEASE_REFUSED, LEASE_FAILED, LEASE_STATUS_END_ };
enum { LEASE_FD_CTL, LEASE_FD_OUT, LEASE_FD_ERR, LEASE_FDS };
struct lease_answer { /* with LEASE_FDS descriptors when status is LEASE_OK */
	uint32_t type;
	uint32_t status; /* enum lease_status */
	uint64_t id;
	char text[LEASE_TEXT_MAX]; /* why not */
};
struct lease_release {
	uint32_t type;
	uint32_t reserved; /* 0 */
	uint64_t id;
};
enum lease_zygote {
	LEASE_ZYGOTE_NONE,    /* not wanted */
	LEASE_ZYGOTE_OFF,     /* a wall was open in its child: never again under this spawner */
	LEASE_ZYGOTE_RESTING, /* failed, until the next try */
	LEASE_ZYGOTE_LOADING, /* or being tested */
	LEASE_ZYGOTE_READY,
	LEASE_ZYGOTE_STATES_,
};
#define LEASE_TIMES 7 /* a session's making took up to lease_time_ms(i); the last: longer */
struct lease_stats {
	uint32_t type;
	uint32_t zygote;                           /* enum lease_zygote */
	uint32_t ready, leased, starting, waiting; /* sessions, and requests for one */
	uint32_t max;
	uint32_t zygote_forks; /* of the one that runs */
	uint32_t is_draining;  /* 0 or 1: nothing is lent any more */
	uint32_t reserved;
	uint64_t made, failed; /* sessions since this spawner's start */
	uint64_t zygotes_failed, memory_kills;
	uint64_t made_us;            /* all of them together */
	uint64_t times[LEASE_TIMES]; /* how many took how long */
	char zygote_text[96];        /* why there is none; "" when it is ready */
};

union lease_msg {
	uint32_t type;
	struct lease_settings settings;
	struct lease_worker worker;
	struct lease_elsewhere elsewhere;
	struct lease_selftest selftest;
	struct lease_state state;
	struct lease_request request;
	struct lease_answer answer;
	struct lease_release release;
	struct lease_stats stats;
};

/* Bytes of a message of that type; 0 for an unknown one. */
size_t lease_size(uint32_t type);
/* bytes: one datagram. ERR_PROTO when it is not exactly one well-formed message. */
MUST_CHECK enum err_code lease_decode(struct str bytes, union lease_msg *ret, struct err *reterr);
/* One datagram with nfds descriptors (borrowed). ERR_BUSY when the socket is full, ERR_IO. */
MUST_CHECK enum err_code lease_send(
    int sock, const void *msg, const int *fds, size_t nfds, struct err *reterr);
/* One datagram. ERR_BUSY when there is none yet, ERR_NOTFOUND at the end, ERR_PROTO when garbled
 * (descriptors are closed). fds: room for LEASE_FDS, owned by the caller on success. */
MUST_CHECK enum err_code lease_recv(
    int sock, union lease_msg *ret, int fds[LEASE_FDS], size_t *ret_nfds, struct err *reterr);
const char *lease_layer_name(enum sandbox_layer l); /* "user_namespace", … */
const char *lease_layer_state_name(uint32_t state);
const char *lease_zygote_name(uint32_t state); /* "ready", … */
unsigned lease_time_ms(size_t i); /* the upper bound of times[i]; i < LEASE_TIMES - 1 */
/* What an operator can do about a missing layer. */
const char *lease_layer_hint(enum sandbox_layer l, int sys_errno);

#endif
