#include "sweeper/sweep.h"

#include "base/arena.h"
#include "base/log.h"
#include "storage/sql/store_file.h"
#include "storage/sql/store_file_copy.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_response.h"
#include "storage/sql/store_tool_result.h"
#include "storage/sql/store_usage.h"

#define ARENA_BYTES (1024u * 1024u)
#define ID_MAX      256u

/* One batch, from *cursor on; *ret_n: rows seen. cursor_id holds the cursor's text. */
static enum err_code
sweep_batch(struct db *db, struct blob_store *blobs, int64_t before_ms, struct arena *a,
    struct store_file_cursor *cursor, char cursor_id[ID_MAX], size_t *ret_n, struct sweep_sum *sum,
    struct err *reterr)
{
	struct store_file_dead *dead = NULL;
	size_t n = 0, n_ids = 0, purged = 0;
	enum err_code rc =
	    store_file_dead_batch(db, a, before_ms, cursor, SWEEP_BATCH, &dead, &n, reterr);
	if (rc != ERR_OK)
		return rc;
	*ret_n = n;
	struct str ids[SWEEP_BATCH];
	for (size_t i = 0; i < n; i++) {
		enum err_code gone = ERR_OK;
		if (dead[i].storage_ref.ptr != NULL && blobs != NULL)
			gone = blob_delete(blobs, dead[i].storage_ref, NULL);
		/* What is no key of ours never had a blob. */
		if (gone == ERR_OK || gone == ERR_INPUT)
			ids[n_ids++] = dead[i].at.id;
		else
			sum->kept++;
	}
	sum->seen += n;
	rc = store_file_purge(db, ids, n_ids, before_ms, &purged, reterr);
	if (rc != ERR_OK || n == 0)
		return rc;
	sum->reclaimed += purged;
	if (!str_copy(cursor_id, ID_MAX, dead[n - 1].at.id))
		return err_set(reterr, ERR_INTERNAL, "sweep: a file's id is too long");
	*cursor = (struct store_file_cursor){dead[n - 1].at.reap_at_ms, str_c(cursor_id)};
	return ERR_OK;
}

enum err_code
sweep_files(struct db *db, struct blob_store *blobs, int64_t before_ms, struct sweep_sum *ret,
    struct err *reterr)
{
	struct store_file_cursor cursor = {0, STR("")};
	char cursor_id[ID_MAX] = "";
	for (unsigned pass = 0; pass < SWEEP_PASSES; pass++) {
		struct arena *a = arena_new(ARENA_BYTES);
		size_t n = 0;
		enum err_code rc =
		    sweep_batch(db, blobs, before_ms, a, &cursor, cursor_id, &n, ret, reterr);
		arena_free(&a);
		if (rc != ERR_OK)
			return rc;
		if (n < SWEEP_BATCH)
			break;
	}
	return ERR_OK;
}

/* One batch of rows that expired; *ret_n counts them. */
typedef enum err_code expire_batch(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr);

static enum err_code
sweep_expired(struct db *db, expire_batch *batch, int64_t now_s, uint64_t *ret, struct err *reterr)
{
	for (unsigned pass = 0; pass < SWEEP_PASSES; pass++) {
		size_t n = 0;
		enum err_code rc = batch(db, now_s, SWEEP_BATCH, &n, reterr);
		if (rc != ERR_OK)
			return rc;
		*ret += n;
		if (n < SWEEP_BATCH)
			break;
	}
	return ERR_OK;
}

enum err_code
sweep_responses(struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr)
{
	return sweep_expired(db, store_response_sweep, now_s, ret, reterr);
}

enum err_code
sweep_tool_results(struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr)
{
	return sweep_expired(db, store_tool_result_sweep, now_s, ret, reterr);
}

enum err_code
sweep_file_copies(struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr)
{
	return sweep_expired(db, store_file_copy_sweep, now_s, ret, reterr);
}

struct drain {
	struct db *db;
	uint64_t added, refused;
};

/* A record that its columns refuse must not hold up the others for ever. */
static enum err_code
insert_singly(struct drain *d, const struct usage *rows, size_t n, struct err *reterr)
{
	for (size_t i = 0; i < n; i++) {
		struct err err = {0};
		size_t added = 0;
		enum err_code rc = store_usage_insert(d->db, &rows[i], 1, &added, &err);
		d->added += added;
		if (rc == ERR_INPUT || rc == ERR_TOOLARGE) {
			d->refused++;
			log_error("the database refuses a usage record; it is dropped",
			    LOG_STR("request", rows[i].request_id), LOG_ERR(&err));
		} else if (rc != ERR_OK) {
			if (reterr != NULL)
				*reterr = err;
			return rc;
		}
	}
	return ERR_OK;
}

struct touch {
	const struct usage *rows;
	size_t n;
};

static enum err_code
touch_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct touch *t = arg;
	enum err_code rc = ERR_OK;
	for (size_t i = t->n; rc == ERR_OK && i-- > 0;) { /* the newest are at the end */
		struct str key_id = t->rows[i].key_id;
		bool is_last = key_id.len > 0;
		for (size_t k = i + 1; is_last && k < t->n; k++)
			is_last = !str_eq(t->rows[k].key_id, key_id);
		if (is_last)
			rc = store_key_touch(db, key_id, t->rows[i].ts_ms / 1000, reterr);
	}
	return rc;
}

static enum err_code
insert_batch(const struct usage *rows, size_t n, void *arg, struct err *reterr)
{
	struct drain *d = arg;
	size_t added = 0;
	enum err_code rc = store_usage_insert(d->db, rows, n, &added, reterr);
	d->added += added;
	if (rc == ERR_INPUT || rc == ERR_TOOLARGE)
		rc = insert_singly(d, rows, n, reterr);
	if (rc != ERR_OK)
		return rc;
	/* When each key was last used, for people to read: nothing to fail for. */
	struct touch t = {rows, n};
	(void)!db_unit(d->db, DB_WRITE_REPEATABLE, touch_unit, &t, NULL);
	return ERR_OK;
}

enum err_code
sweep_usage(struct db *db, const char *dir, struct sweep_usage *ret, struct err *reterr)
{
	struct drain d = {.db = db};
	enum err_code rc = spool_drain(dir, insert_batch, &d, &ret->spool, reterr);
	ret->added += d.added;
	ret->refused += d.refused;
	return rc;
}
