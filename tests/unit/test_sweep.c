#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "storage/sql/store_file.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_response.h"
#include "storage/sql/store_tool_result.h"
#include "storage/sql/store_usage.h"
#include "storage/sql/store_workspace.h"
#include "sweeper/schedule.h"
#include "sweeper/sweep.h"
#include "tests/unit/dbfix.h"

#define NOW 1000000

static void
add_file(struct dbfix *f, struct blob_store *b, const char *id, int64_t created, int64_t expires)
{
	struct err err = {0};
	char key[BLOB_KEY_SIZE];
	blob_key(str_c(id), key);
	struct store_file s = {
	    .id = str_c(id),
	    .user_id = STR("u"),
	    .workspace_id = STR("w"),
	    .filename = STR("x"),
	    .mime_type = STR("x/y"),
	    .purpose = STR("p"),
	    .storage_ref = b != NULL ? str_c(key) : STR_NULL,
	    .created_at_ms = created,
	    .expires_at_ms = expires,
	};
	cr_assert_eq(store_file_insert(f->db, &s, &err), ERR_OK, "%s", err.msg);
	struct blob_put *p = NULL;
	if (b != NULL)
		cr_assert(blob_put_begin(b, str_c(key), &p, &err) == ERR_OK &&
			  blob_put_commit(&p, &err) == ERR_OK);
}

static bool
has_blob(struct blob_store *b, const char *id)
{
	char key[BLOB_KEY_SIZE];
	struct blob_info info;
	blob_key(str_c(id), key);
	return blob_stat(b, str_c(key), &info, NULL) == ERR_OK;
}

static void
files(struct dbfix *f)
{
	struct err err = {0};
	struct arena *a = arena_new(1 << 20);
	struct blob_store *b = NULL;
	char dir[96];
	(void)snprintf(dir, sizeof(dir), "%s/blobs", f->dir);
	cr_assert_eq(blob_open_local(dir, &b, &err), ERR_OK);
	add_file(f, b, "file-aa01", 1, 0);          /* alive */
	add_file(f, b, "file-aa02", 2, NOW - 1);    /* expired */
	add_file(f, b, "file-aa03", 3, NOW + 100);  /* not yet */
	add_file(f, b, "file-aa04", 4, 0);          /* deleted below */
	add_file(f, NULL, "file_prov", 5, NOW - 1); /* the provider holds the bytes */
	const struct store_file_scope scope = {STR("u"), STR("w")};
	struct store_file out;
	cr_assert_eq(
	    store_file_delete(f->db, a, &scope, STR("file-aa04"), NOW - 1, &out, &err), ERR_OK);
	struct sweep_sum sum = {0};
	cr_assert_eq(sweep_files(f->db, b, NOW - 1, &sum, &err), ERR_OK);
	cr_assert_eq(sum.seen, 0, "they stay as cursors for a while");
	cr_assert_eq(sweep_files(f->db, b, NOW, &sum, &err), ERR_OK, "%s", err.msg);
	cr_assert(sum.seen == 3 && sum.reclaimed == 3 && sum.kept == 0, "%s", f->name);
	cr_assert(has_blob(b, "file-aa01") && has_blob(b, "file-aa03"));
	cr_assert_not(has_blob(b, "file-aa02") || has_blob(b, "file-aa04"));
	cr_assert_eq(store_file_get(f->db, a, &scope, STR("file-aa03"), NOW, &out, &err), ERR_OK);
	sum = (struct sweep_sum){0};
	cr_assert_eq(sweep_files(f->db, b, NOW, &sum, &err), ERR_OK);
	cr_assert_eq(sum.seen, 0);

	/* A blob that cannot be deleted keeps its row and holds up nobody; later it goes. */
	for (int i = 0; i < 450; i++) {
		char id[32];
		(void)snprintf(id, sizeof(id), "file-bb%04d", i);
		add_file(f, i == 0 || i == 300 ? b : NULL, id, 10 + i, NOW - 500 + i / 100);
	}
	char path[128], aside[128];
	(void)snprintf(path, sizeof(path), "%s/bb", dir);
	(void)snprintf(aside, sizeof(aside), "%s/.bb", dir);
	cr_assert_eq(rename(path, aside), 0);
	cr_assert_eq(symlink("/etc", path), 0);
	cr_assert_eq(sweep_files(f->db, b, NOW, &sum, &err), ERR_OK);
	cr_assert(sum.seen == 450 && sum.reclaimed == 448 && sum.kept == 2);
	cr_assert(unlink(path) == 0 && rename(aside, path) == 0);
	sum = (struct sweep_sum){0};
	cr_assert_eq(sweep_files(f->db, b, NOW, &sum, &err), ERR_OK);
	cr_assert(sum.seen == 2 && sum.reclaimed == 2 && !has_blob(b, "file-bb0300"));
	blob_close(&b);
	arena_free(&a);
}

Test(sweep, reclaims_dead_files_and_goes_on_past_stuck_ones, .timeout = 60)
{
	dbfix_each(files);
}

/* More than one batch; what never expires and what is still good stay. */
static void
responses(struct dbfix *f)
{
	struct err err = {0};
	uint64_t n = 0;
	char id[32];
	for (int i = 0; i < (int)SWEEP_BATCH + 12; i++) {
		(void)snprintf(id, sizeof(id), "resp_%d", i);
		struct store_response r = {
		    .id = str_c(id),
		    .scope = {STR("u"), STR("w")},
		    .provider = STR("p"),
		    .created_at_s = 1,
		    .expires_at_s = i == 0   ? 0
				    : i == 1 ? NOW + 1
					     : NOW,
		    .input_json = STR("[]"),
		    .response_json = STR("{}"),
		};
		cr_assert_eq(store_response_insert(f->db, &r, &err), ERR_OK, "%s", err.msg);
	}
	cr_assert_eq(sweep_responses(f->db, NOW, &n, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(n, SWEEP_BATCH + 10, "%s: %llu", f->name, (unsigned long long)n);
	cr_assert_eq(sweep_responses(f->db, NOW, &n, &err), ERR_OK);
	cr_assert_eq(n, SWEEP_BATCH + 10, "nothing twice");
	cr_assert_eq(sweep_responses(f->db, NOW + 1, &n, &err), ERR_OK);
	cr_assert_eq(n, SWEEP_BATCH + 11, "the one that never expires stays");
}

Test(sweep, removes_expired_responses, .timeout = 60)
{
	dbfix_each(responses);
}

static void
tool_results(struct dbfix *f)
{
	struct err err = {0};
	uint64_t n = 0;
	for (int i = 0; i < (int)SWEEP_BATCH + 12; i++) {
		char id[32];
		(void)snprintf(id, sizeof(id), "call_%d", i);
		struct store_tool_result r = {
		    .scope = {STR("u"), STR("w")},
		    .call_id = str_c(id),
		    .text = STR("42"),
		    .expires_at_s = i == 1 ? NOW + 1 : NOW,
		};
		cr_assert_eq(store_tool_result_put(f->db, &r, 1, &err), ERR_OK, "%s", err.msg);
	}
	cr_assert_eq(sweep_tool_results(f->db, NOW, &n, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(n, SWEEP_BATCH + 11, "%s: %llu", f->name, (unsigned long long)n);
	cr_assert_eq(sweep_tool_results(f->db, NOW + 1, &n, &err), ERR_OK);
	cr_assert_eq(n, SWEEP_BATCH + 12, "nothing twice, and the last one");
}

Test(sweep, removes_expired_tool_results, .timeout = 60)
{
	dbfix_each(tool_results);
}

static void
usage(struct dbfix *f)
{
	struct err err = {0};
	char dir[SPOOL_DIR_SIZE];
	cr_assert_eq(spool_dir(str_c(f->dir), dir, &err), ERR_OK);
	cr_assert_eq(spool_dir(str_c(f->dir), dir, &err), ERR_OK, "again");
	struct spool *s = NULL;
	cr_assert_eq(spool_open(dir, "1", &s, &err), ERR_OK);
	struct store_key key = {
	    .id = STR("k1"),
	    .hash_hex = STR("h"),
	    .prefix = STR("gw-"),
	    .user_id = STR("u"),
	    .workspace_id = STR(STORE_WORKSPACE_DEFAULT),
	};
	struct arena *a = arena_new(1 << 20);
	cr_assert_eq(store_key_create(f->db, &key, NULL, &err), ERR_OK);
	struct usage u = {.user_id = STR("u"), .prompt_tokens = 2, .ts_ms = 5};
	for (int i = 0; i < 700; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "r%d", i / 2);
		u.request_id = str_c(id);
		u.key_id = i % 3 == 0 ? STR("k1") : i % 3 == 1 ? STR("gone") : STR_NULL;
		u.ts_ms = 5000 + i;
		cr_assert_eq(spool_append(s, &u, &err), ERR_OK);
	}
	spool_close(&s);
	struct sweep_usage sum = {.refused = 0};
	cr_assert_eq(sweep_usage(f->db, dir, &sum, &err), ERR_OK, "%s", err.msg);
	cr_assert(sum.spool.records == 700 && sum.spool.left == 0 && sum.refused == 0);
	cr_assert_eq(sum.added, 350);
	struct store_usage_total t;
	cr_assert_eq(store_usage_total(f->db, STR("u"), 0, 9000, &t, &err), ERR_OK);
	cr_assert_eq(store_key_get(f->db, a, STR("k1"), &key, &err), ERR_OK);
	cr_assert_eq(key.last_used_at_s, 5);
	arena_free(&a);
	cr_assert(t.requests == 350 && t.prompt_tokens == 700, "%s: settled twice is one", f->name);
}

Test(sweep, drains_the_spool_into_the_database_once, .timeout = 60)
{
	dbfix_each(usage);
}

Test(sweep, keeps_usage_while_the_database_is_away, .timeout = 60)
{
	struct err err = {0};
	char state[] = "/tmp/otari-sweep-XXXXXX", dir[SPOOL_DIR_SIZE];
	cr_assert_not_null(mkdtemp(state));
	cr_assert_eq(spool_dir(str_c(state), dir, &err), ERR_OK);
	struct spool *s = NULL;
	cr_assert_eq(spool_open(dir, "1", &s, &err), ERR_OK);
	struct usage u = {.request_id = STR("r"), .user_id = STR("u")};
	cr_assert_eq(spool_append(s, &u, &err), ERR_OK);
	spool_close(&s);
	struct db *db = NULL;
	cr_assert_eq(db_open(STR("mysql://u@127.0.0.1:1/d"), DB_OPEN_LAZY, &db, &err), ERR_OK);
	struct sweep_usage sum = {.refused = 0};
	for (int i = 0; i < 3; i++)
		cr_assert_eq(sweep_usage(db, dir, &sum, &err), ERR_BUSY);
	cr_assert(sum.spool.records == 0 && sum.spool.left == 1);
	db_close(&db);
	struct dbfix f;
	dbfix_open(&f, DB_SQLITE);
	cr_assert_eq(sweep_usage(f.db, dir, &sum, &err), ERR_OK, "%s", err.msg);
	cr_assert(sum.spool.records == 1 && sum.spool.left == 0);
	dbfix_close(&f);
	dbfix_rmtree(state);
}

Test(schedule, first_sweep_after_one_interval_and_backoff_after_failures)
{
	struct schedule s;
	schedule_init(&s, 1000);
	cr_assert(schedule_is_due(&s, SWEEP_DRAIN, 1000) && schedule_is_due(&s, SWEEP_POLL, 1000));
	cr_assert_not(schedule_is_due(&s, SWEEP_FILES, 1 << 30), "off until configured");
	schedule_set_files_every_s(&s, 3600, 1000);
	cr_assert_not(schedule_is_due(&s, SWEEP_FILES, 1000 + 3599999));
	cr_assert(schedule_is_due(&s, SWEEP_FILES, 1000 + 3600000));
	schedule_set_files_every_s(&s, 3600, 5000);
	cr_assert(schedule_is_due(&s, SWEEP_FILES, 1000 + 3600000), "no change, no delay");
	schedule_ran(&s, SWEEP_FILES, false, 10000);
	cr_assert_eq(s.due_ms[SWEEP_FILES], 10000 + 3600000);
	schedule_set_files_every_s(&s, 0, 5000);
	cr_assert_not(schedule_is_due(&s, SWEEP_FILES, 1 << 30));

	static const int64_t waits[] = {1000, 2000, 4000, 8000, 15000, 15000};
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		schedule_ran(&s, SWEEP_DRAIN, false, 0);
		cr_assert_eq(s.due_ms[SWEEP_DRAIN], waits[i], "failure %zu", i + 1);
	}
	schedule_ran(&s, SWEEP_DRAIN, true, 0);
	cr_assert_eq(s.due_ms[SWEEP_DRAIN], 500);
	schedule_ran(&s, SWEEP_POLL, true, 0);
	schedule_ran(&s, SWEEP_TEMPS, true, 0);
	cr_assert_eq(schedule_wait_ms(&s, 100), 400);
	cr_assert_eq(schedule_wait_ms(&s, 9000), 0);
}
