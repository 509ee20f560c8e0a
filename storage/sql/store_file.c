#include "storage/sql/store_file.h"

#include "base/check.h"
#include "storage/sql/store_file_row.h"
#include "storage/sql/store_util.h"

#define COLS STORE_FILE_COLS

static const char SQL_INSERT[] = "INSERT INTO files (" COLS ", reap_at_ms)"
				 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
#define VISIBLE " AND deleted_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?)"
static const char SQL_GET[] =
    "SELECT " COLS " FROM files WHERE id = ? AND user_id = ? AND workspace_id = ?" VISIBLE;
static const char SQL_GET_ANY[] = "SELECT " COLS " FROM files WHERE id = ? AND user_id = ?" VISIBLE;
/* The sweep takes it from now on; an earlier expiry stays where it was. */
static const char SQL_DELETE[] = "UPDATE files SET deleted_at_ms = ?,"
				 " reap_at_ms = CASE WHEN reap_at_ms < ? THEN reap_at_ms ELSE ? END"
				 " WHERE id = ? AND deleted_at_ms IS NULL";

void
store_file_copy_row(struct arena *a, struct db_rows *rows, struct store_file *f)
{
	*f = (struct store_file){
	    .id = store_copy(a, rows, 0),
	    .user_id = store_copy(a, rows, 1),
	    .workspace_id = store_copy(a, rows, 2),
	    .filename = store_copy(a, rows, 3),
	    .mime_type = store_copy(a, rows, 4),
	    .purpose = store_copy(a, rows, 5),
	    .sha256_hex = store_copy(a, rows, 6),
	    .storage_ref = store_copy(a, rows, 7),
	    .provider = store_copy(a, rows, 8),
	    .provider_instance = store_copy(a, rows, 9),
	    .provider_container_id = store_copy(a, rows, 10),
	    .metadata_json = store_copy(a, rows, 11),
	    .bytes = db_col_i64(rows, 12),
	    .created_at_ms = db_col_i64(rows, 13),
	    .expires_at_ms = db_col_i64(rows, 14),
	    .deleted_at_ms = db_col_i64(rows, 15),
	};
}

struct insert_arg {
	const struct store_file *file;
};

static enum err_code
insert_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct store_file *f = ((struct insert_arg *)arg)->file;
	return db_exec(db, SQL_INSERT,
	    DB_ARGS(DB_TEXT(f->id), DB_TEXT(f->user_id), DB_TEXT(f->workspace_id),
		DB_TEXT(f->filename), DB_TEXT(f->mime_type), DB_TEXT(f->purpose),
		DB_TEXT(f->sha256_hex), DB_TEXT(f->storage_ref), DB_TEXT(f->provider),
		DB_TEXT(f->provider_instance), DB_TEXT(f->provider_container_id),
		DB_TEXT(f->metadata_json), DB_I64(f->bytes), DB_I64(f->created_at_ms),
		DB_TIME(f->expires_at_ms), DB_TIME(f->deleted_at_ms), DB_TIME(f->expires_at_ms)),
	    reterr);
}

enum err_code
store_file_insert(struct db *db, const struct store_file *file, struct err *reterr)
{
	struct insert_arg i = {file};
	enum err_code rc = STORE_CHECK(reterr, {"id", file->id, STORE_FILE_ID_MAX_BYTES},
	    {"user_id", file->user_id, STORE_NAME_MAX_BYTES},
	    {"workspace_id", file->workspace_id, STORE_ID_MAX_BYTES},
	    {"filename", file->filename, STORE_FILENAME_MAX_BYTES},
	    {"mime type", file->mime_type, STORE_NAME_MAX_BYTES},
	    {"purpose", file->purpose, STORE_NAME_MAX_BYTES},
	    {"sha256", file->sha256_hex, STORE_ID_MAX_BYTES},
	    {"storage_ref", file->storage_ref, STORE_NAME_MAX_BYTES},
	    {"provider", file->provider, STORE_FILE_ID_MAX_BYTES},
	    {"provider_instance", file->provider_instance, STORE_FILE_ID_MAX_BYTES},
	    {"provider_container_id", file->provider_container_id, STORE_NAME_MAX_BYTES},
	    {"metadata", file->metadata_json, STORE_JSON_MAX_BYTES});
	return rc != ERR_OK ? rc : db_unit(db, DB_WRITE, insert_unit, &i, reterr);
}

struct get_arg {
	struct arena *arena;
	const struct store_file_scope *scope;
	struct str id;
	int64_t now_ms;
	struct store_file file;
};

static enum err_code
get_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	struct db_rows *rows;
	enum err_code rc =
	    g->scope->workspace_id.ptr != NULL
		? db_query(db, SQL_GET,
		      DB_ARGS(DB_TEXT(g->id), DB_TEXT(g->scope->user_id),
			  DB_TEXT(g->scope->workspace_id), DB_I64(g->now_ms)),
		      &rows, reterr)
		: db_query(db, SQL_GET_ANY,
		      DB_ARGS(DB_TEXT(g->id), DB_TEXT(g->scope->user_id), DB_I64(g->now_ms)), &rows,
		      reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row = false;
	rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "no such file");
	if (rc == ERR_OK)
		store_file_copy_row(g->arena, rows, &g->file);
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(g->arena, reterr);
}

enum err_code
store_file_get(struct db *db, struct arena *a, const struct store_file_scope *scope, struct str id,
    int64_t now_ms, struct store_file *ret, struct err *reterr)
{
	CHECK(scope->user_id.ptr != NULL);
	struct get_arg g = {.arena = a, .scope = scope, .id = id, .now_ms = now_ms};
	enum err_code rc = db_unit(db, DB_READ, get_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret = g.file;
	return rc;
}

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	enum err_code rc = get_unit(db, g, reterr);
	if (rc != ERR_OK)
		return rc;
	rc = db_exec(db, SQL_DELETE,
	    DB_ARGS(DB_I64(g->now_ms), DB_I64(g->now_ms), DB_I64(g->now_ms), DB_TEXT(g->id)),
	    reterr);
	/* Another request was faster. */
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such file");
	return rc;
}

enum err_code
store_file_delete(struct db *db, struct arena *a, const struct store_file_scope *scope,
    struct str id, int64_t now_ms, struct store_file *ret, struct err *reterr)
{
	CHECK(scope->user_id.ptr != NULL);
	struct get_arg g = {.arena = a, .scope = scope, .id = id, .now_ms = now_ms};
	enum err_code rc = db_unit(db, DB_WRITE, delete_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret = g.file;
	return rc;
}

struct ids_arg {
	struct get_arg get;
	const struct str *ids;
	size_t n_ids;
	struct store_file *items;
	size_t n;
};

static bool
is_before(const struct store_file *x, const struct store_file *y)
{
	return x->created_at_ms != y->created_at_ms ? x->created_at_ms > y->created_at_ms
						    : str_cmp(x->id, y->id) > 0;
}

/* Newest first; drops an id that was named twice. */
static void
insert_sorted(struct ids_arg *p, const struct store_file *f)
{
	size_t at = 0;
	while (at < p->n && is_before(&p->items[at], f))
		at++;
	if (at < p->n && str_eq(p->items[at].id, f->id))
		return;
	for (size_t i = p->n; i > at; i--)
		p->items[i] = p->items[i - 1];
	p->items[at] = *f;
	p->n++;
}

static enum err_code
ids_unit(struct db *db, void *arg, struct err *reterr)
{
	struct ids_arg *p = arg;
	p->n = 0;
	for (size_t i = 0; i < p->n_ids; i++) {
		p->get.id = p->ids[i];
		enum err_code rc = get_unit(db, &p->get, reterr);
		if (rc == ERR_OK)
			insert_sorted(p, &p->get.file);
		else if (rc != ERR_NOTFOUND)
			return rc;
	}
	return ERR_OK;
}

enum err_code
store_file_list_ids(struct db *db, struct arena *a, const struct store_file_scope *scope,
    const struct str *ids, size_t n_ids, int64_t now_ms, struct store_file **ret, size_t *ret_n,
    struct err *reterr)
{
	CHECK(scope->user_id.ptr != NULL && n_ids <= STORE_FILE_IDS_MAX);
	struct ids_arg p = {
	    .get = {.arena = a, .scope = scope, .now_ms = now_ms},
	    .ids = ids,
	    .n_ids = n_ids,
	    .items = ARENA_NEW_ARRAY(a, struct store_file, n_ids),
	};
	enum err_code rc = store_check_arena(a, reterr);
	if (rc == ERR_OK)
		rc = db_unit(db, DB_READ, ids_unit, &p, reterr);
	if (rc == ERR_OK) {
		*ret = p.items;
		*ret_n = p.n;
	}
	return rc;
}
