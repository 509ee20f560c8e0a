#include "storage/sql/store_file.h"
#include "storage/sql/store_util.h"

static const char SQL_DEAD[] =
    "SELECT id, storage_ref, reap_at_ms FROM files"
    " WHERE reap_at_ms >= ? AND reap_at_ms < ? AND (reap_at_ms > ? OR id > ?)"
    " ORDER BY reap_at_ms, id LIMIT ?";
static const char SQL_PURGE[] = "DELETE FROM files WHERE id = ? AND reap_at_ms < ?";

struct dead_arg {
	struct arena *arena;
	int64_t before_ms;
	const struct store_file_cursor *cursor;
	uint32_t limit;
	struct store_file_dead *items;
	size_t n;
};

static enum err_code
dead_unit(struct db *db, void *arg, struct err *reterr)
{
	struct dead_arg *d = arg;
	struct str id = d->cursor->id.ptr != NULL ? d->cursor->id : STR("");
	struct db_rows *rows;
	enum err_code rc = db_query(db, SQL_DEAD,
	    DB_ARGS(DB_I64(d->cursor->reap_at_ms), DB_I64(d->before_ms),
		DB_I64(d->cursor->reap_at_ms), DB_TEXT(id), DB_I64(d->limit)),
	    &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	d->items = NULL;
	d->n = 0;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		d->items = store_grow(d->arena, d->items, d->n, sizeof(*d->items));
		if (d->items == NULL)
			break;
		d->items[d->n++] = (struct store_file_dead){
		    .at = {.reap_at_ms = db_col_i64(rows, 2), .id = store_copy(d->arena, rows, 0)},
		    .storage_ref = store_copy(d->arena, rows, 1),
		};
	}
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(d->arena, reterr);
}

enum err_code
store_file_dead_batch(struct db *db, struct arena *a, int64_t before_ms,
    const struct store_file_cursor *cursor, uint32_t limit, struct store_file_dead **ret,
    size_t *ret_n, struct err *reterr)
{
	struct dead_arg d = {.arena = a, .before_ms = before_ms, .cursor = cursor, .limit = limit};
	enum err_code rc = db_unit(db, DB_READ, dead_unit, &d, reterr);
	if (rc == ERR_OK) {
		*ret = d.items;
		*ret_n = d.n;
	}
	return rc;
}

struct purge_arg {
	const struct str *ids;
	size_t n, purged;
	int64_t before_ms;
};

static enum err_code
purge_unit(struct db *db, void *arg, struct err *reterr)
{
	struct purge_arg *p = arg;
	p->purged = 0;
	for (size_t i = 0; i < p->n; i++) {
		enum err_code rc = db_exec(
		    db, SQL_PURGE, DB_ARGS(DB_TEXT(p->ids[i]), DB_I64(p->before_ms)), reterr);
		if (rc != ERR_OK)
			return rc;
		p->purged += db_affected(db) > 0;
	}
	return ERR_OK;
}

enum err_code
store_file_purge(struct db *db, const struct str *ids, size_t n, int64_t before_ms, size_t *ret_n,
    struct err *reterr)
{
	struct purge_arg p = {.ids = ids, .n = n, .before_ms = before_ms};
	enum err_code rc =
	    n == 0 ? ERR_OK : db_unit(db, DB_WRITE_REPEATABLE, purge_unit, &p, reterr);
	if (rc == ERR_OK && ret_n != NULL)
		*ret_n = p.purged;
	return rc;
}
