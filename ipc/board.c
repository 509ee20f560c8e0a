#include "ipc/board.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"

#define BOARD_MAGIC   0x4f54424fu
#define BOARD_VERSION 4u

_Static_assert(sizeof(struct board_slot) % 64 == 0, "slots do not share cache lines");
_Static_assert(SB_LAYERS_ <= BOARD_LAYERS, "room for every layer");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the board needs lock-free 64-bit atomics");

static const char *const counter_names[BC_COUNTER_MAX] = {
    [BC_REQUESTS] = "requests_total",
    [BC_RESPONSES_2XX] = "responses_2xx_total",
    [BC_RESPONSES_4XX] = "responses_4xx_total",
    [BC_RESPONSES_5XX] = "responses_5xx_total",
    [BC_CLIENT_ABORTS] = "client_aborts_total",
    [BC_BYTES_IN] = "received_bytes_total",
    [BC_BYTES_OUT] = "sent_bytes_total",
    [BC_UPSTREAM_CALLS] = "upstream_calls_total",
    [BC_UPSTREAM_ERRORS] = "upstream_errors_total",
    [BC_FAST_PATH] = "fast_path_total",
    [BC_TURN_PATH] = "turn_path_total",
    [BC_CODE_RUNS] = "code_runs_total",
    [BC_CODE_ERRORS] = "code_errors_total",
    [BC_LEASES] = "sandbox_leases_total",
    [BC_LEASE_REFUSALS] = "sandbox_lease_refusals_total",
    [BC_LEASE_WAIT_US] = "sandbox_lease_wait_microseconds_total",
    [BC_KILLS_TIMEOUT] = "sandbox_kills_total{reason=\"timeout\"}",
    [BC_KILLS_FLOOD] = "sandbox_kills_total{reason=\"flood\"}",
    [BC_KILLS_MEMORY] = "sandbox_kills_total{reason=\"memory\"}",
    [BC_KILLS_DIED] = "sandbox_kills_total{reason=\"died\"}",
    [BC_DOCUMENTS_READ] = "documents_total{result=\"text\"}",
    [BC_DOCUMENTS_LEFT] = "documents_total{result=\"left\"}",
    [BC_FILES_STORED] = "files_stored_total",
    [BC_FILE_BYTES_STORED] = "file_stored_bytes_total",
    [BC_USAGE_RECORDS] = "usage_records_total",
    [BC_USAGE_LOST] = "usage_lost_total",
    [BC_USAGE_DRAINED] = "usage_drained_total",
    [BC_SWEPT] = "files_swept_total",
    [BC_JOBS_REFUSED] = "jobs_refused_total",
    [BC_POLICY_LOADS] = "policy_loads_total",
};

static const char *const gauge_names[BG_GAUGE_MAX] = {
    [BG_CONNECTIONS] = "connections",
    [BG_REQUESTS_ACTIVE] = "requests_active",
    [BG_STREAMS_ACTIVE] = "streams_active",
    [BG_SESSIONS_LEASED] = "sandbox_sessions_leased",
    [BG_POOL_READY] = "sandbox_pool_ready",
    [BG_SNAPSHOTS_ALIVE] = "snapshots_alive",
    [BG_SPOOL_BYTES] = "spool_bytes",
    [BG_JOBS_QUEUED] = "jobs_queued",
    [BG_OPEN_FDS] = "open_fds",
};

static enum err_code
map(int fd, struct board **ret, struct err *reterr)
{
	void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_set(reterr, ERR_IO, "mmap board");
	*ret = p;
	return ERR_OK;
}

enum err_code
board_create(int *ret_fd, struct board **ret, struct err *reterr)
{
	struct board *b = NULL;
	enum err_code rc = ERR_OK;
	int fd = fd_memfd("otari-board");
	if (fd < 0 || ftruncate(fd, sizeof(*b)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		rc = err_set(reterr, ERR_IO, "memfd of the board");
	if (rc == ERR_OK)
		rc = map(fd, &b, reterr);
	if (rc != ERR_OK) {
		fd_close(&fd);
		return rc;
	}
	b->magic = BOARD_MAGIC;
	b->version = BOARD_VERSION;
	b->slots = BOARD_SLOTS;
	b->started_s = (uint64_t)clock_wall_s();
	b->database_seen_ms = (uint64_t)clock_mono_ms();
	*ret_fd = fd;
	*ret = b;
	return ERR_OK;
}

enum err_code
board_map(int fd, struct board **ret, struct err *reterr)
{
	struct stat st;
	struct board *b = NULL;
	if (fstat(fd, &st) != 0)
		return err_set(reterr, ERR_IO, "board");
	if (st.st_size != (off_t)sizeof(struct board))
		return err_set(reterr, ERR_PROTO, "board has another size");
	enum err_code rc = map(fd, &b, reterr);
	if (rc != ERR_OK)
		return rc;
	if (b->magic != BOARD_MAGIC || b->version != BOARD_VERSION || b->slots != BOARD_SLOTS) {
		board_unmap(&b);
		return err_set(reterr, ERR_PROTO, "board of another version");
	}
	*ret = b;
	return ERR_OK;
}

void
board_unmap(struct board **b)
{
	if (*b != NULL)
		(void)munmap(*b, sizeof(struct board));
	*b = NULL;
}

struct board_slot *
board_take(struct board *b, uint32_t role, uint32_t number, uint64_t now_ms)
{
	for (size_t i = 0; i < BOARD_SLOTS; i++) {
		struct board_slot *s = &b->slot[i];
		if (s->state != BOARD_FREE)
			continue;
		s->role = role;
		s->number = number;
		s->pid = 0;
		s->heartbeat_ms = now_ms;
		s->state = BOARD_STARTING;
		return s;
	}
	return NULL;
}

void
board_release(struct board_slot *s)
{
	for (size_t i = 0; i < BG_GAUGE_MAX; i++)
		atomic_store_explicit(&s->gauges[i], 0, memory_order_relaxed);
	s->policy_generation = 0;
	s->keys_generation = 0;
	s->pid = 0;
	s->state = BOARD_FREE;
}

void
board_count(struct board_slot *s, enum board_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&s->counters[c], n, memory_order_relaxed);
}

void
board_gauge(struct board_slot *s, enum board_gauge g, uint64_t v)
{
	atomic_store_explicit(&s->gauges[g], v, memory_order_relaxed);
}

void
board_database_seen(struct board *b, uint64_t now_ms)
{
	atomic_store_explicit(&b->database_seen_ms, now_ms, memory_order_relaxed);
}

bool
board_is_stale(const struct board *b, uint64_t now_ms, uint32_t max_s)
{
	uint64_t seen = atomic_load_explicit(&b->database_seen_ms, memory_order_relaxed);
	return max_s != 0 && now_ms > seen && now_ms - seen > (uint64_t)max_s * 1000;
}

uint64_t
board_sum(const struct board *b, enum board_counter c)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < BOARD_SLOTS; i++)
		sum += atomic_load_explicit(&b->slot[i].counters[c], memory_order_relaxed);
	return sum;
}

uint64_t
board_sum_gauge(const struct board *b, enum board_gauge g)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < BOARD_SLOTS; i++)
		sum += atomic_load_explicit(&b->slot[i].gauges[g], memory_order_relaxed);
	return sum;
}

const char *
board_state_name(uint32_t state)
{
	static const char *const names[] = {
	    [BOARD_FREE] = "free",
	    [BOARD_STARTING] = "starting",
	    [BOARD_READY] = "ready",
	    [BOARD_DRAINING] = "draining",
	    [BOARD_DEAD] = "dead",
	};
	return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

const char *
board_counter_name(enum board_counter c)
{
	CHECK(c < BC_COUNTER_MAX);
	return counter_names[c];
}

const char *
board_gauge_name(enum board_gauge g)
{
	CHECK(g < BG_GAUGE_MAX);
	return gauge_names[g];
}

void
board_sandbox_layers(struct board *b, const struct lease_selftest *r)
{
	for (size_t i = 0; i < SB_LAYERS_; i++)
		b->sandbox.layer[i] = r != NULL ? r->layer[i].state : SB_UNKNOWN;
}

void
board_sandbox_stats(
    struct board *b, const struct lease_stats *now, const struct lease_stats *before)
{
	static const struct lease_stats none = {0};
	struct board_sandbox *s = &b->sandbox;
	const struct lease_stats *is = now != NULL ? now : &none;
	s->zygote = is->zygote;
	s->ready = is->ready;
	s->leased = is->leased;
	s->starting = is->starting;
	s->waiting = is->waiting;
	s->max = is->max;
	if (now == NULL)
		return;
	s->made += now->made - before->made;
	s->failed += now->failed - before->failed;
	s->made_us += now->made_us - before->made_us;
	s->zygotes_failed += now->zygotes_failed - before->zygotes_failed;
	s->memory_kills += now->memory_kills - before->memory_kills;
	for (size_t i = 0; i < LEASE_TIMES; i++)
		s->times[i] += now->times[i] - before->times[i];
}
