#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/board.h"
#include "storage/spool.h"
#include "storage/sql/store_setting.h"
#include "storage/sql/store_usage.h"
#include "sweeper/sweep_thread.h"
#include "tests/unit/dbfix.h"

static struct board_slot slot;

/* Waits for the thread's sign; false after ms. */
static bool
wait_sign(int fd, int ms)
{
	struct pollfd p = {fd, POLLIN, 0};
	char bytes[64];
	return poll(&p, 1, ms) == 1 && read(fd, bytes, sizeof(bytes)) > 0;
}

static void
append(struct spool *s, const char *id)
{
	struct usage u = {.request_id = str_c(id), .user_id = STR("u"), .ts_ms = 5};
	cr_assert_eq(spool_append(s, &u, NULL), ERR_OK);
}

static int64_t
rows_of(struct dbfix *f)
{
	struct store_usage_total t = {0};
	cr_assert_eq(store_usage_total(f->db, STR("u"), 0, 10, &t, NULL), ERR_OK);
	return t.requests;
}

static void
life(struct dbfix *f)
{
	struct err err = {0};
	int wake[2];
	char dir[SPOOL_DIR_SIZE];
	struct sweep_thread *t = NULL;
	struct store_generation g = {0, 0};
	bool has_ended = false;
	cr_assert(fd_pipe(wake, true));
	cr_assert_eq(sweep_thread_start(NULL, &slot, wake[1], &t, &err), ERR_OK, "%s", err.msg);
	cr_assert_not(wait_sign(wake[0], 50), "idle without settings");
	struct sweep_settings s = {
	    .database_url = str_c(f->url),
	    .state_dir = str_c(f->dir),
	    .files_backend = STR("local"),
	    .files_local_dir = str_c(f->dir),
	};
	sweep_thread_set(t, &s);
	cr_assert(wait_sign(wake[0], 5000) && sweep_thread_take(t, &g, &has_ended));
	cr_assert(g.policy == 1 && g.keys == 1 && !has_ended);
	/* Another host changes something. */
	struct store_setting change = {STR("k"), STR("v")};
	cr_assert_eq(store_setting_apply(f->db, &change, 1, NULL, &err), ERR_OK);
	cr_assert(wait_sign(wake[0], 5000) && sweep_thread_take(t, &g, &has_ended));
	cr_assert(g.policy == 2 && !sweep_thread_take(t, &g, &has_ended));

	struct spool *spool = NULL;
	cr_assert_eq(spool_dir(str_c(f->dir), dir, &err), ERR_OK);
	cr_assert_eq(spool_open(dir, "1", &spool, &err), ERR_OK);
	append(spool, "r1");
	cr_assert_eq(spool_rotate(spool, &err), ERR_OK);
	int64_t deadline_ms = clock_mono_ms() + 5000;
	while (rows_of(f) < 1 && clock_mono_ms() < deadline_ms)
		(void)poll(NULL, 0, 20);
	cr_assert_eq(rows_of(f), 1, "%s: in the database within seconds", f->name);
	append(spool, "r2");
	spool_close(&spool);
	sweep_thread_finish(t);
	while (!has_ended && wait_sign(wake[0], 5000))
		(void)sweep_thread_take(t, &g, &has_ended);
	cr_assert(has_ended);
	sweep_thread_stop(&t);
	cr_assert_null(t);
	cr_assert_eq(rows_of(f), 2, "the last drain");
	cr_assert_eq(slot.counters[BC_USAGE_DRAINED], f->kind == DB_SQLITE ? 2 : 4);
	fd_close(&wake[0]);
	fd_close(&wake[1]);
}

Test(sweep_thread, drains_polls_and_ends_after_a_last_drain, .timeout = 60)
{
	dbfix_each(life);
}

Test(sweep_thread, ends_at_once_when_it_never_had_settings, .timeout = 20)
{
	int wake[2];
	struct sweep_thread *t = NULL;
	struct store_generation g;
	bool has_ended = false;
	cr_assert(fd_pipe(wake, true));
	cr_assert_eq(sweep_thread_start(NULL, &slot, wake[1], &t, NULL), ERR_OK);
	sweep_thread_finish(t);
	cr_assert(wait_sign(wake[0], 5000));
	cr_assert(!sweep_thread_take(t, &g, &has_ended) && has_ended);
	sweep_thread_stop(&t);
	cr_assert_eq(sweep_thread_start(NULL, &slot, wake[1], &t, NULL), ERR_OK);
	sweep_thread_stop(&t);
}
