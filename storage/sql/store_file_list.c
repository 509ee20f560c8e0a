/* Pages of the list: keyset paging on (created_at_ms, id), so that pages stay disjoint while files
 * come and go, also when many share a millisecond. */
#include "base/check.h"
#include "storage/sql/store_file.h"
#include "storage/sql/store_file_row.h"
#include "storage/sql/store_util.h"

/* The redundant first comparison is what both databases use the index for. */
#define OLDER " AND created_at_ms <= ? AND (created_at_ms < ? OR id < ?)"
#define NEWER " AND created_at_ms >= ? AND (created_at_ms > ? OR id > ?)"
#define TAIL(past, direction)                                                                      \
	past " AND deleted_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?)"         \
	     " AND (? = '' OR purpose = ?)"                                                        \
	     " ORDER BY created_at_ms " direction ", id " direction " LIMIT ?"
#define IN_WORKSPACE "SELECT " STORE_FILE_COLS " FROM files WHERE user_id = ? AND workspace_id = ?"
#define OF_USER      "SELECT " STORE_FILE_COLS " FROM files WHERE user_id = ?"

static const char SQL_OLDER[] = IN_WORKSPACE TAIL(OLDER, "DESC");
static const char SQL_NEWER[] = IN_WORKSPACE TAIL(NEWER, "ASC");
static const char SQL_OLDER_ANY[] = OF_USER TAIL(OLDER, "DESC");
static const char SQL_NEWER_ANY[] = OF_USER TAIL(NEWER, "ASC");
static const char SQL_CURSOR[] =
    "SELECT created_at_ms FROM files WHERE id = ? AND user_id = ? AND workspace_id = ?";
static const char SQL_CURSOR_ANY[] = "SELECT created_at_ms FROM files WHERE id = ? AND user_id = ?";

struct page {
	struct arena *arena;
	const struct store_file_query *q;
	struct store_file *items;
	size_t n;
	bool has_more;
};

/* Where to start: past the cursor, or at the end of the order that nothing lies beyond. */
static enum err_code
find_start(struct db *db, const struct store_file_query *q, bool upwards, struct str *ret_id,
    int64_t *ret_ms, struct err *reterr)
{
	struct str cursor = q->before_id.ptr != NULL ? q->before_id : q->after_id;
	if (cursor.ptr == NULL) {
		*ret_id = STR("");
		*ret_ms = upwards ? -1 : INT64_MAX;
		return ERR_OK;
	}
	*ret_id = cursor;
	const struct store_file_scope *s = &q->scope;
	enum err_code rc =
	    s->workspace_id.ptr != NULL
		? db_query_i64(db, SQL_CURSOR,
		      DB_ARGS(DB_TEXT(cursor), DB_TEXT(s->user_id), DB_TEXT(s->workspace_id)),
		      ret_ms, reterr)
		: db_query_i64(db, SQL_CURSOR_ANY, DB_ARGS(DB_TEXT(cursor), DB_TEXT(s->user_id)),
		      ret_ms, reterr);
	return rc == ERR_NOTFOUND ? err_set(reterr, rc, "no such cursor") : rc;
}

static enum err_code
query_page(struct db *db, const struct store_file_query *q, bool upwards, struct db_rows **ret,
    struct err *reterr)
{
	struct str id;
	int64_t ms;
	enum err_code rc = find_start(db, q, upwards, &id, &ms, reterr);
	if (rc != ERR_OK)
		return rc;
	struct str purpose = q->purpose.ptr != NULL ? q->purpose : STR("");
	if (q->scope.workspace_id.ptr != NULL)
		return db_query(db, upwards ? SQL_NEWER : SQL_OLDER,
		    DB_ARGS(DB_TEXT(q->scope.user_id), DB_TEXT(q->scope.workspace_id), DB_I64(ms),
			DB_I64(ms), DB_TEXT(id), DB_I64(q->now_ms), DB_TEXT(purpose),
			DB_TEXT(purpose), DB_I64(q->limit + 1)),
		    ret, reterr);
	return db_query(db, upwards ? SQL_NEWER_ANY : SQL_OLDER_ANY,
	    DB_ARGS(DB_TEXT(q->scope.user_id), DB_I64(ms), DB_I64(ms), DB_TEXT(id),
		DB_I64(q->now_ms), DB_TEXT(purpose), DB_TEXT(purpose), DB_I64(q->limit + 1)),
	    ret, reterr);
}

static void
reverse(struct store_file *items, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct store_file tmp = items[i];
		items[i] = items[n - 1 - i];
		items[n - 1 - i] = tmp;
	}
}

static enum err_code
list_unit(struct db *db, void *arg, struct err *reterr)
{
	struct page *p = arg;
	const struct store_file_query *q = p->q;
	/* A page before a cursor is read backwards from it and turned round. */
	bool backwards = q->before_id.ptr != NULL;
	struct db_rows *rows;
	enum err_code rc = query_page(db, q, q->ascending != backwards, &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	p->items = NULL;
	p->n = 0;
	p->has_more = false;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		if (p->n == q->limit) {
			p->has_more = true;
			break;
		}
		p->items = store_grow(p->arena, p->items, p->n, sizeof(*p->items));
		if (p->items == NULL)
			break;
		store_file_copy_row(p->arena, rows, &p->items[p->n++]);
	}
	db_rows_end(&rows);
	if (rc == ERR_OK)
		rc = store_check_arena(p->arena, reterr);
	if (rc == ERR_OK && backwards)
		reverse(p->items, p->n);
	return rc;
}

enum err_code
store_file_list(struct db *db, struct arena *a, const struct store_file_query *q,
    struct store_file **ret, size_t *ret_n, bool *ret_more, struct err *reterr)
{
	CHECK(q->scope.user_id.ptr != NULL && q->limit >= 1 && q->limit <= STORE_FILE_PAGE_MAX);
	CHECK(q->after_id.ptr == NULL || q->before_id.ptr == NULL);
	struct page p = {.arena = a, .q = q};
	enum err_code rc = db_unit(db, DB_READ, list_unit, &p, reterr);
	if (rc == ERR_OK) {
		*ret = p.items;
		*ret_n = p.n;
		*ret_more = p.has_more;
	}
	return rc;
}
