/* stress_storage.c - threads with a connection each, one blob store, a spool and the sweeper's
 * thread at once, on SQLite: nothing is lost, nothing is counted twice, no race */
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "ipc/board.h"
#include "storage/blob/blob.h"
#include "storage/spool.h"
#include "storage/sql/migrate.h"
#include "storage/sql/store_file.h"
#include "storage/sql/store_usage.h"
#include "sweeper/sweep_thread.h"

#define THREADS 3
#define ROUNDS  60

static char dir[] = "/tmp/otari-stress-XXXXXX", url[96];
static struct blob_store *blobs;
static struct board_slot slot;

static void
must(enum err_code rc, const struct err *err)
{
	if (rc != ERR_OK)
		(void)fprintf(stderr, "%s\n", err->msg);
	CHECK(rc == ERR_OK);
}

/* What an upload, a list and a delete do. */
static void
one_file(struct db *db, const struct store_file_scope *scope)
{
	struct err err = {0};
	struct arena *a = arena_new(1u << 20);
	char id[ID_SIZE], key[BLOB_KEY_SIZE];
	id_make("file-", id);
	blob_key(str_c(id), key);
	struct blob_put *p = NULL;
	must(blob_put_begin(blobs, str_c(key), &p, &err), &err);
	must(blob_put_write(p, STR("bytes"), &err), &err);
	must(blob_put_commit(&p, &err), &err);
	struct store_file f = {
	    .id = str_c(id),
	    .user_id = scope->user_id,
	    .workspace_id = scope->workspace_id,
	    .filename = STR("a.csv"),
	    .mime_type = STR("text/csv"),
	    .purpose = STR("user_data"),
	    .storage_ref = str_c(key),
	    .bytes = 5,
	    .created_at_ms = clock_wall_ms(),
	};
	must(store_file_insert(db, &f, &err), &err);
	struct store_file_query q = {.scope = *scope, .limit = 5, .now_ms = clock_wall_ms()};
	struct store_file *items = NULL;
	size_t n = 0;
	bool more;
	must(store_file_list(db, a, &q, &items, &n, &more, &err), &err);
	CHECK(n == 1 && str_eq(items[0].id, f.id));
	must(store_file_delete(db, a, scope, f.id, clock_wall_ms(), &f, &err), &err);
	must(blob_delete(blobs, f.storage_ref, &err), &err);
	arena_free(&a);
}

static void *
client(void *arg)
{
	struct err err = {0};
	struct db *db = NULL;
	struct spool *spool = NULL;
	char user[8], spools[SPOOL_DIR_SIZE];
	(void)snprintf(user, sizeof(user), "u%d", *(int *)arg);
	struct store_file_scope scope = {str_c(user), STR("w")};
	must(db_open(str_c(url), DB_OPEN_LAZY, &db, &err), &err);
	must(spool_dir(str_c(dir), spools, &err), &err);
	must(spool_open(spools, user, &spool, &err), &err);
	for (int i = 0; i < ROUNDS; i++) {
		char id[ID_SIZE];
		one_file(db, &scope);
		id_make("req-", id);
		struct usage u = {
		    .request_id = str_c(id), .user_id = scope.user_id, .prompt_tokens = 1};
		must(spool_append(spool, &u, &err), &err);
		if (i % 10 == 0)
			must(spool_rotate(spool, &err), &err);
	}
	spool_close(&spool);
	db_close(&db);
	return NULL;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int
main(void)
{
	struct err err = {0};
	struct db *db = NULL;
	struct sweep_thread *sweeper = NULL;
	int wake[2], numbers[THREADS];
	pthread_t threads[THREADS];
	CHECK(mkdtemp(dir) != NULL && fd_pipe(wake, true));
	(void)snprintf(url, sizeof(url), "sqlite:///%s/s.db", dir);
	must(db_open(str_c(url), DB_OPEN_NOW, &db, &err), &err);
	must(migrate_run(db, NULL, &err), &err);
	must(blob_open_local(dir, &blobs, &err), &err);
	must(sweep_thread_start(NULL, &slot, wake[1], &sweeper, &err), &err);
	struct sweep_settings s = {
	    .database_url = str_c(url),
	    .state_dir = str_c(dir),
	    .files_backend = STR("local"),
	    .files_local_dir = str_c(dir),
	    .files_sweep_interval_s = 1,
	};
	sweep_thread_set(sweeper, &s);
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(pthread_create(&threads[i], NULL, client, &numbers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	sweep_thread_finish(sweeper);
	struct store_generation g;
	for (bool ended = false; !ended; (void)sweep_thread_take(sweeper, &g, &ended))
		(void)poll(NULL, 0, 10);
	sweep_thread_stop(&sweeper);
	struct store_usage_total t = {0};
	must(store_usage_total(db, STR_NULL, 0, INT64_MAX, &t, &err), &err);
	CHECK(t.requests == THREADS * ROUNDS && t.prompt_tokens == THREADS * ROUNDS);
	CHECK(slot.counters[BC_USAGE_DRAINED] == THREADS * ROUNDS);
	blob_close(&blobs);
	db_close(&db);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)printf("storage: %d files and requests\n", THREADS * ROUNDS);
	return 0;
}
