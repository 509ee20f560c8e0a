#include "sweeper/sweep_thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "sweeper/schedule.h"
#include "sweeper/sweep.h"

#define PATH_SIZE      1024
#define FINAL_PASSES   20
#define FINAL_PAUSE_MS 100

struct settings {
	char database_url[PATH_SIZE], state_dir[PATH_SIZE], files_local_dir[PATH_SIZE];
	bool blobs_are_local;
	uint32_t files_sweep_interval_s;
};

struct sweep_thread {
	struct board *board;
	struct board_slot *slot;
	int wake_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	struct settings next;
	bool has_next, must_finish, must_stop;
	struct store_generation found;
	bool has_found, has_ended;
	/* The thread's own. */
	struct settings now;
	bool is_set;
	char spool[SPOOL_DIR_SIZE];
	struct db *db;
	struct blob_store *blobs;
	struct schedule schedule;
	struct store_generation known;
	bool is_away; /* the database; logged once */
};

static void
poke(struct sweep_thread *w)
{
	while (write(w->wake_fd, "", 1) < 0 && errno == EINTR)
		; /* a full pipe wakes as well */
}

/* --- on the thread -------------------------------------------------------------------------------
 */

/* Says once that the database is away, and once that it is back. */
static void
note_database(struct sweep_thread *w, enum err_code rc, const struct err *err)
{
	if (rc != ERR_OK && !w->is_away)
		log_warn("the database is away; usage waits in the spool", LOG_ERR(err));
	else if (rc == ERR_OK && w->is_away)
		log_notice("the database is back");
	w->is_away = rc != ERR_OK;
}

static enum err_code
open_database(struct sweep_thread *w, struct err *reterr)
{
	if (w->db != NULL)
		return ERR_OK;
	return db_open(str_c(w->now.database_url), DB_OPEN_LAZY, &w->db, reterr);
}

static bool
drain(struct sweep_thread *w, uint64_t *ret_left)
{
	struct sweep_usage sum = {.refused = 0};
	struct err err = {0};
	enum err_code rc = open_database(w, &err);
	if (rc == ERR_OK)
		rc = sweep_usage(w->db, w->spool, &sum, &err);
	if (rc != ERR_OK || sum.spool.records > 0) /* an empty spool asks no database */
		note_database(w, rc, &err);
	board_gauge(w->slot, BG_SPOOL_BYTES, sum.spool.left_bytes);
	if (sum.added > 0)
		board_count(w->slot, BC_USAGE_DRAINED, sum.added);
	if (sum.refused > 0)
		board_count(w->slot, BC_USAGE_LOST, sum.refused);
	if (sum.spool.damaged > 0)
		log_warn(
		    "damaged usage records were skipped", LOG_INT("records", sum.spool.damaged));
	if (sum.spool.newer > 0)
		log_warn("usage records of a newer program were set aside (.bad)",
		    LOG_INT("records", sum.spool.newer));
	*ret_left = sum.spool.left;
	return rc == ERR_OK;
}

static bool
poll_generation(struct sweep_thread *w)
{
	struct store_generation g;
	struct err err = {0};
	enum err_code rc = open_database(w, &err);
	if (rc == ERR_OK)
		rc = store_generation_read(w->db, &g, &err);
	note_database(w, rc, &err);
	if (rc != ERR_OK)
		return false;
	if (w->board != NULL)
		board_database_seen(w->board, (uint64_t)clock_mono_ms());
	if (g.policy == w->known.policy && g.keys == w->known.keys)
		return true;
	w->known = g;
	(void)pthread_mutex_lock(&w->lock);
	w->found = g;
	w->has_found = true;
	(void)pthread_mutex_unlock(&w->lock);
	poke(w);
	return true;
}

static bool
open_blobs(struct sweep_thread *w)
{
	struct err err = {0};
	if (w->blobs != NULL || !w->now.blobs_are_local)
		return w->blobs != NULL;
	if (blob_open_local(w->now.files_local_dir, &w->blobs, &err) == ERR_OK)
		return true;
	log_warn("files cannot be swept; the next sweep tries again", LOG_ERR(&err));
	return false;
}

static bool
sweep_dead_files(struct sweep_thread *w)
{
	struct sweep_sum sum = {0};
	struct err err = {0};
	if (!open_blobs(w))
		return false;
	int64_t grace_ms = (int64_t)w->now.files_sweep_interval_s * 1000;
	if (grace_ms > SWEEP_GRACE_MS)
		grace_ms = SWEEP_GRACE_MS;
	enum err_code rc = open_database(w, &err);
	if (rc == ERR_OK)
		rc = sweep_files(w->db, w->blobs, clock_wall_ms() - grace_ms, &sum, &err);
	if (rc != ERR_OK)
		log_warn("the sweep of files ended early; the next one goes on", LOG_ERR(&err));
	if (sum.reclaimed > 0)
		board_count(w->slot, BC_SWEPT, sum.reclaimed);
	if (sum.seen > 0)
		log_notice("swept files", LOG_INT("seen", sum.seen),
		    LOG_INT("reclaimed", sum.reclaimed), LOG_INT("kept", sum.kept));
	return rc == ERR_OK;
}

static bool
sweep_temps(struct sweep_thread *w)
{
	uint64_t n = 0;
	struct err err = {0};
	if (!open_blobs(w))
		return false;
	enum err_code rc = blob_clean(w->blobs, SWEEP_TEMPS_OLD_S, &n, &err);
	if (rc != ERR_OK)
		log_warn("dead uploads cannot be swept; tried again later", LOG_ERR(&err));
	else if (n > 0)
		log_notice("swept dead uploads", LOG_INT("files", n));
	return rc == ERR_OK;
}

static bool
sweep_expired(struct sweep_thread *w)
{
	uint64_t responses = 0, results = 0, copies = 0;
	int64_t now_s = clock_wall_s();
	struct err err = {0};
	enum err_code rc = open_database(w, &err);
	if (rc == ERR_OK)
		rc = sweep_responses(w->db, now_s, &responses, &err);
	if (rc == ERR_OK)
		rc = sweep_tool_results(w->db, now_s, &results, &err);
	if (rc == ERR_OK)
		rc = sweep_file_copies(w->db, now_s, &copies, &err);
	if (rc != ERR_OK)
		log_warn(
		    "the sweep of responses and tool results ended early; the next one goes on",
		    LOG_ERR(&err));
	if (responses > 0)
		log_notice("swept responses", LOG_INT("responses", responses));
	if (results > 0)
		log_notice("swept tool results", LOG_INT("results", results));
	return rc == ERR_OK;
}

static void
apply(struct sweep_thread *w, const struct settings *s)
{
	struct err err = {0};
	if (strcmp(s->database_url, w->now.database_url) != 0) {
		db_close(&w->db);
		w->known = (struct store_generation){0, 0};
	}
	if (strcmp(s->files_local_dir, w->now.files_local_dir) != 0)
		blob_close(&w->blobs);
	mem_wipe(&w->now, sizeof(w->now));
	w->now = *s;
	w->is_set = true;
	schedule_set_files_every_s(
	    &w->schedule, s->blobs_are_local ? s->files_sweep_interval_s : 0, clock_mono_ms());
	if (spool_dir(str_c(s->state_dir), w->spool, &err) != ERR_OK)
		log_error("no folder for usage records", LOG_ERR(&err));
}

static bool
is_told_to_end(struct sweep_thread *w)
{
	(void)pthread_mutex_lock(&w->lock);
	bool ends = w->must_stop || w->must_finish;
	(void)pthread_mutex_unlock(&w->lock);
	return ends;
}

/* With a database that is locked or away each task waits for it: whoever stops us waits for one. */
static void
run_due(struct sweep_thread *w)
{
	uint64_t left;
	for (int t = 0; t < SWEEP_TASK_MAX && !is_told_to_end(w); t++) {
		if (!schedule_is_due(&w->schedule, (enum sweep_task)t, clock_mono_ms()))
			continue;
		bool ok = true;
		switch ((enum sweep_task)t) {
		case SWEEP_DRAIN:
			ok = drain(w, &left);
			break;
		case SWEEP_POLL:
			ok = poll_generation(w);
			break;
		case SWEEP_FILES:
			ok = sweep_dead_files(w);
			break;
		case SWEEP_TEMPS:
			ok = !w->now.blobs_are_local || sweep_temps(w);
			break;
		case SWEEP_EXPIRED:
			ok = sweep_expired(w);
			break;
		case SWEEP_TASK_MAX:
			UNREACHABLE("not a task");
		}
		schedule_ran(&w->schedule, (enum sweep_task)t, ok, clock_mono_ms());
	}
}

static void
deadline_in(int64_t ms, struct timespec *ret)
{
	(void)clock_gettime(CLOCK_MONOTONIC, ret);
	int64_t ns = ret->tv_nsec + ms % 1000 * 1000000;
	ret->tv_sec += ms / 1000 + ns / 1000000000;
	ret->tv_nsec = ns % 1000000000;
}

/* The workers are gone by now; without a database the spool stays for the next start. */
static void
drain_all(struct sweep_thread *w)
{
	uint64_t left = 1;
	for (int i = 0; w->is_set && i < FINAL_PASSES && drain(w, &left) && left > 0; i++) {
		struct timespec ts = {0, FINAL_PAUSE_MS * 1000000L};
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	}
	if (w->is_set && left > 0)
		log_notice(
		    "usage records wait in the spool for the next start", LOG_INT("files", left));
}

/* Waits for something to do; false: end. */
static bool
wait_for_work(struct sweep_thread *w, bool *ret_finish)
{
	struct settings s;
	struct timespec until;
	deadline_in(schedule_wait_ms(&w->schedule, clock_mono_ms()), &until);
	(void)pthread_mutex_lock(&w->lock);
	while (!w->must_stop && !w->must_finish && !w->has_next)
		if (!w->is_set)
			(void)pthread_cond_wait(&w->wake, &w->lock);
		else if (pthread_cond_timedwait(&w->wake, &w->lock, &until) == ETIMEDOUT)
			break;
	bool has_next = w->has_next;
	if (has_next)
		s = w->next;
	w->has_next = false;
	*ret_finish = w->must_finish;
	bool go_on = !w->must_stop && !w->must_finish;
	(void)pthread_mutex_unlock(&w->lock);
	if (has_next) {
		apply(w, &s);
		mem_wipe(&s, sizeof(s));
	}
	return go_on;
}

static void *
run(void *arg)
{
	struct sweep_thread *w = arg;
	bool finish = false;
	while (wait_for_work(w, &finish))
		run_due(w);
	if (finish)
		drain_all(w);
	db_close(&w->db);
	blob_close(&w->blobs);
	(void)pthread_mutex_lock(&w->lock);
	w->has_ended = true;
	(void)pthread_mutex_unlock(&w->lock);
	poke(w);
	return NULL;
}

/* --- on the loop's thread ------------------------------------------------------------------------
 */

enum err_code
sweep_thread_start(struct board *board, struct board_slot *slot, int wake_fd,
    struct sweep_thread **ret, struct err *reterr)
{
	struct sweep_thread *w = MEM_NEW(struct sweep_thread);
	w->board = board;
	w->slot = slot;
	w->wake_fd = wake_fd;
	schedule_init(&w->schedule, clock_mono_ms());
	pthread_condattr_t attr;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_cond_init(&w->wake, &attr);
	(void)pthread_condattr_destroy(&attr);
	int rc = pthread_create(&w->thread, NULL, run, w);
	if (rc != 0) {
		mem_free(w);
		errno = rc;
		return err_set(reterr, ERR_IO, "sweeper: cannot start a thread");
	}
	*ret = w;
	return ERR_OK;
}

void
sweep_thread_set(struct sweep_thread *w, const struct sweep_settings *s)
{
	struct settings n = {.files_sweep_interval_s = s->files_sweep_interval_s};
	n.blobs_are_local =
	    s->files_backend.len == 0 || str_eq_nocase(s->files_backend, STR("local"));
	if (!str_copy(n.database_url, sizeof(n.database_url), s->database_url) ||
	    !str_copy(n.state_dir, sizeof(n.state_dir), s->state_dir) ||
	    !str_copy(n.files_local_dir, sizeof(n.files_local_dir), s->files_local_dir)) {
		log_error("a path or URL of the configuration is too long; the old ones stay");
		return;
	}
	(void)pthread_mutex_lock(&w->lock);
	w->next = n;
	w->has_next = true;
	(void)pthread_cond_signal(&w->wake);
	(void)pthread_mutex_unlock(&w->lock);
	mem_wipe(&n, sizeof(n));
}

void
sweep_thread_finish(struct sweep_thread *w)
{
	(void)pthread_mutex_lock(&w->lock);
	w->must_finish = true;
	(void)pthread_cond_signal(&w->wake);
	(void)pthread_mutex_unlock(&w->lock);
}

bool
sweep_thread_take(struct sweep_thread *w, struct store_generation *ret, bool *ret_ended)
{
	(void)pthread_mutex_lock(&w->lock);
	bool has_found = w->has_found;
	if (has_found)
		*ret = w->found;
	w->has_found = false;
	*ret_ended = w->has_ended;
	(void)pthread_mutex_unlock(&w->lock);
	return has_found;
}

void
sweep_thread_stop(struct sweep_thread **wp)
{
	struct sweep_thread *w = *wp;
	if (w == NULL)
		return;
	*wp = NULL;
	(void)pthread_mutex_lock(&w->lock);
	w->must_stop = true;
	(void)pthread_cond_signal(&w->wake);
	(void)pthread_mutex_unlock(&w->lock);
	(void)pthread_join(w->thread, NULL);
	(void)pthread_cond_destroy(&w->wake);
	(void)pthread_mutex_destroy(&w->lock);
	mem_wipe(w, sizeof(*w));
	mem_free(w);
}
