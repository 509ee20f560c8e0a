/* board.h - the shared scoreboard: one cache-line-aligned slot per process, one writer each, C11
 * atomics
 *
 * Written by the owner of a slot with relaxed stores/adds; read by anyone (/metrics, the master's
 * watchdog). No locks. A slot keeps its counters when it is given to the next process, which goes
 * on from there, so that sums never fall; its gauges start at zero again.
 */
#ifndef OTARI_IPC_BOARD_H
#define OTARI_IPC_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "ipc/lease.h"

#define BOARD_SLOTS (LIMIT_WORKERS + 8u)

enum board_state { BOARD_FREE, BOARD_STARTING, BOARD_READY, BOARD_DRAINING, BOARD_DEAD };

/* Counters only grow; gauges are the owner's current number. The order is the order in /metrics
 * (board_info). */
enum board_counter {
	BC_REQUESTS,
	BC_RESPONSES_2XX,
	BC_RESPONSES_4XX,
	BC_RESPONSES_5XX,
	BC_CLIENT_ABORTS,
	BC_BYTES_IN,
	BC_BYTES_OUT,
	BC_UPSTREAM_CALLS,
	BC_UPSTREAM_ERRORS,
	BC_FAST_PATH,
	BC_TURN_PATH,
	BC_CODE_RUNS,
	BC_CODE_ERRORS,
	BC_LEASES,
	BC_LEASE_REFUSALS,
	BC_LEASE_WAIT_US,
	BC_KILLS_TIMEOUT, /* the four are one family in /metrics */
	BC_KILLS_FLOOD,
	BC_KILLS_MEMORY,
	BC_KILLS_DIED,
	BC_DOCUMENTS_READ, /* the two are one family */
	BC_DOCUMENTS_LEFT,
	BC_FILES_STORED,
	BC_FILE_BYTES_STORED,
	BC_USAGE_RECORDS,
	BC_USAGE_LOST,
	BC_USAGE_DRAINED,
	BC_SWEPT,
	BC_JOBS_REFUSED,
	BC_POLICY_LOADS,
	BC_COUNTER_MAX
};
enum board_gauge {
	BG_CONNECTIONS,
	BG_REQUESTS_ACTIVE,
	BG_STREAMS_ACTIVE,
	BG_SESSIONS_LEASED,
	BG_POOL_READY,
	BG_SNAPSHOTS_ALIVE,
	BG_SPOOL_BYTES,
	BG_JOBS_QUEUED,
	BG_OPEN_FDS,
	BG_GAUGE_MAX
};

struct board_slot {
	_Alignas(64) _Atomic uint32_t state; /* enum board_state */
	_Atomic uint32_t role, number, pid;
	_Atomic uint64_t
	    heartbeat_ms; /* monotonic, of the owner's loop; the watchdog kills a stale worker */
	_Atomic uint64_t policy_generation, keys_generation;
	_Atomic uint64_t counters[BC_COUNTER_MAX];
	_Atomic uint64_t gauges[BG_GAUGE_MAX];
};

/* Written by the master from what the spawner tells. */
#define BOARD_LAYERS 32u
struct board_sandbox {
	_Atomic uint32_t layer[BOARD_LAYERS]; /* enum sandbox_layer_state, by enum sandbox_layer */
	_Atomic uint32_t zygote;              /* enum lease_zygote */
	_Atomic uint32_t ready, leased, starting, waiting, max;
	_Atomic uint64_t made, failed, made_us, times[LEASE_TIMES], zygotes_failed, memory_kills;
};

struct board {
	uint32_t magic, version, slots, pad;
	_Atomic uint64_t started_s;
	_Atomic uint32_t sandbox_state; /* 0 off, 1 testing, 2 ready, 3 refused */
	/* Monotonic; when what is in force was last compared with the database (sweeper), or built
	 * from it (master). */
	_Atomic uint64_t database_seen_ms;
	struct board_sandbox sandbox;
	struct board_slot slot[BOARD_SLOTS];
};

MUST_CHECK enum err_code board_create(
    int *ret_fd, struct board **ret, struct err *reterr);                           /* master */
MUST_CHECK enum err_code board_map(int fd, struct board **ret, struct err *reterr); /* children */
void board_unmap(struct board **b);
/* Master: a slot for a new process (state STARTING, heartbeat now), or NULL when all are taken. */
struct board_slot *board_take(struct board *b, uint32_t role, uint32_t number, uint64_t now_ms);
void board_release(struct board_slot *s); /* its process is gone: gauges 0, free */
const char *board_state_name(uint32_t state);
void board_count(struct board_slot *s, enum board_counter c, uint64_t n);
void board_gauge(struct board_slot *s, enum board_gauge g, uint64_t v);
/* Master. What an earlier spawner counted stays, so that sums never fall; NULL: none runs. */
void board_sandbox_layers(struct board *b, const struct lease_selftest *r);
void board_sandbox_stats(
    struct board *b, const struct lease_stats *now, const struct lease_stats *before);
void board_database_seen(struct board *b, uint64_t now_ms);
/* Not seen for longer than max_s; 0: no limit. */
bool board_is_stale(const struct board *b, uint64_t now_ms, uint32_t max_s);
uint64_t board_sum(const struct board *b, enum board_counter c);
uint64_t board_sum_gauge(const struct board *b, enum board_gauge g);
const char *board_counter_name(enum board_counter c); /* "requests_total" */
const char *board_gauge_name(enum board_gauge g);

#endif
