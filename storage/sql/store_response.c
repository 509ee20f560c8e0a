#include "storage/sql/store_response.h"

#include <string.h>

#include "storage/sql/store_util.h"

enum part { PART_INPUT, PART_RESPONSE };

static const char SQL_INSERT[] =
    "INSERT INTO responses (id, user_id, workspace_id, provider, created_at_s, expires_at_s,"
    " input_bytes, response_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
static const char SQL_INSERT_CHUNK[] =
    "INSERT INTO response_chunks (response_id, part, seq, bytes) VALUES (?, ?, ?, ?)";
static const char SQL_INSERT_ITEM_SQLITE[] =
    "INSERT OR IGNORE INTO response_items (item_id, response_id, user_id, workspace_id)"
    " VALUES (?, ?, ?, ?)";
static const char SQL_INSERT_ITEM_MYSQL[] =
    "INSERT IGNORE INTO response_items (item_id, response_id, user_id, workspace_id)"
    " VALUES (?, ?, ?, ?)";
static const char SQL_GET[] =
    "SELECT created_at_s, expires_at_s, input_bytes, response_bytes, provider FROM responses"
    " WHERE id = ? AND user_id = ? AND workspace_id = ?"
    " AND (expires_at_s IS NULL OR expires_at_s > ?)";
static const char SQL_CHUNKS[] =
    "SELECT bytes FROM response_chunks WHERE response_id = ? AND part = ? ORDER BY seq";
static const char SQL_OF_ITEM[] =
    "SELECT r.id FROM response_items i JOIN responses r ON r.id = i.response_id"
    " WHERE i.item_id = ? AND i.user_id = ? AND i.workspace_id = ?"
    " AND (r.expires_at_s IS NULL OR r.expires_at_s > ?)"
    " ORDER BY r.created_at_s DESC, r.id DESC LIMIT 1";
static const char SQL_DELETE[] =
    "DELETE FROM responses WHERE id = ? AND user_id = ? AND workspace_id = ?";
static const char SQL_DELETE_CHUNKS[] = "DELETE FROM response_chunks WHERE response_id = ?";
static const char SQL_DELETE_ITEMS[] = "DELETE FROM response_items WHERE response_id = ?";
static const char SQL_EXPIRED[] =
    "SELECT id, user_id, workspace_id FROM responses WHERE expires_at_s IS NOT NULL"
    " AND expires_at_s <= ? ORDER BY expires_at_s LIMIT ?";

/* --- insert --------------------------------------------------------------------------------------
 */
static enum err_code
insert_text(struct db *db, struct str id, enum part part, struct str text, struct err *reterr)
{
	enum err_code rc = ERR_OK;
	for (int64_t seq = 0; rc == ERR_OK && text.len > 0; seq++) {
		struct str chunk = str_sub(text, 0, STORE_RESPONSE_CHUNK_BYTES);
		rc = db_exec(db, SQL_INSERT_CHUNK,
		    DB_ARGS(DB_TEXT(id), DB_I64(part), DB_I64(seq), DB_BLOB(chunk)), reterr);
		text = str_from(text, chunk.len);
	}
	return rc;
}

static enum err_code
insert_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct store_response *r = arg;
	enum err_code rc = db_exec(db, SQL_INSERT,
	    DB_ARGS(DB_TEXT(r->id), DB_TEXT(r->scope.user_id), DB_TEXT(r->scope.workspace_id),
		DB_TEXT(r->provider), DB_I64(r->created_at_s), DB_TIME(r->expires_at_s),
		DB_I64(r->input_json.len), DB_I64(r->response_json.len)),
	    reterr);
	if (rc == ERR_OK)
		rc = insert_text(db, r->id, PART_INPUT, r->input_json, reterr);
	if (rc == ERR_OK)
		rc = insert_text(db, r->id, PART_RESPONSE, r->response_json, reterr);
	const char *sql = db_pick(db, SQL_INSERT_ITEM_SQLITE, SQL_INSERT_ITEM_MYSQL);
	for (size_t i = 0; rc == ERR_OK && i < r->item_count; i++)
		rc = db_exec(db, sql,
		    DB_ARGS(DB_TEXT(r->item_ids[i]), DB_TEXT(r->id), DB_TEXT(r->scope.user_id),
			DB_TEXT(r->scope.workspace_id)),
		    reterr);
	return rc;
}

enum err_code
store_response_insert(struct db *db, const struct store_response *r, struct err *reterr)
{
	struct store_response copy = *r;
	if (r->input_json.len > STORE_RESPONSE_MAX_BYTES ||
	    r->response_json.len > STORE_RESPONSE_MAX_BYTES ||
	    r->item_count > STORE_RESPONSE_ITEMS_MAX)
		return err_set(reterr, ERR_TOOLARGE, "the response is too large to be kept");
	enum err_code rc = STORE_CHECK(reterr, {"id", r->id, STORE_FILE_ID_MAX_BYTES},
	    {"user_id", r->scope.user_id, STORE_NAME_MAX_BYTES},
	    {"workspace_id", r->scope.workspace_id, STORE_ID_MAX_BYTES},
	    {"provider", r->provider, STORE_NAME_MAX_BYTES});
	for (size_t i = 0; rc == ERR_OK && i < r->item_count; i++)
		rc = STORE_CHECK(reterr, {"item id", r->item_ids[i], STORE_FILE_ID_MAX_BYTES});
	return rc == ERR_OK ? db_unit(db, DB_WRITE, insert_unit, &copy, reterr) : rc;
}

/* --- get -----------------------------------------------------------------------------------------
 */
struct get_arg {
	struct arena *arena;
	const struct store_response_scope *scope;
	struct str id;
	int64_t now_s;
	struct store_response found;
	struct str response_id;
};

static enum err_code
read_text(struct db *db, struct get_arg *g, enum part part, size_t bytes, struct str *ret,
    struct err *reterr)
{
	struct db_rows *rows = NULL;
	char *dst = bytes <= STORE_RESPONSE_MAX_BYTES ? arena_alloc(g->arena, bytes + 1) : NULL;
	size_t at = 0;
	bool has_row = true;
	if (dst == NULL)
		return err_set(reterr, ERR_NOMEM, "the kept response is too large");
	enum err_code rc =
	    db_query(db, SQL_CHUNKS, DB_ARGS(DB_TEXT(g->id), DB_I64(part)), &rows, reterr);
	while (rc == ERR_OK) {
		rc = db_next(rows, &has_row, reterr);
		if (rc != ERR_OK || !has_row)
			break;
		struct str chunk = db_col_text(rows, 0);
		if (chunk.len > bytes - at)
			rc = err_set(reterr, ERR_INTERNAL, "a kept response is damaged");
		else
			memcpy(dst + at, chunk.ptr, chunk.len);
		at += rc == ERR_OK ? chunk.len : 0;
	}
	db_rows_end(&rows);
	if (rc == ERR_OK && at != bytes)
		rc = err_set(reterr, ERR_INTERNAL, "a kept response is damaged");
	*ret = str_n(dst, at);
	return rc;
}

static enum err_code
get_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	struct db_rows *rows = NULL;
	bool has_row = false;
	size_t input_bytes = 0, response_bytes = 0;
	enum err_code rc = db_query(db, SQL_GET,
	    DB_ARGS(DB_TEXT(g->id), DB_TEXT(g->scope->user_id), DB_TEXT(g->scope->workspace_id),
		DB_I64(g->now_s)),
	    &rows, reterr);
	if (rc == ERR_OK)
		rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && has_row) {
		g->found = (struct store_response){.id = g->id,
		    .scope = *g->scope,
		    .created_at_s = db_col_i64(rows, 0),
		    .expires_at_s = db_col_i64(rows, 1),
		    .provider = store_copy(g->arena, rows, 4)};
		input_bytes = (size_t)db_col_i64(rows, 2);
		response_bytes = (size_t)db_col_i64(rows, 3);
	}
	db_rows_end(&rows);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "no such response");
	if (rc == ERR_OK)
		rc = read_text(db, g, PART_INPUT, input_bytes, &g->found.input_json, reterr);
	if (rc == ERR_OK)
		rc = read_text(
		    db, g, PART_RESPONSE, response_bytes, &g->found.response_json, reterr);
	return rc;
}

enum err_code
store_response_get(struct db *db, struct arena *a, const struct store_response_scope *scope,
    struct str id, int64_t now_s, struct store_response *ret, struct err *reterr)
{
	struct get_arg g = {.arena = a, .scope = scope, .id = id, .now_s = now_s};
	enum err_code rc = db_unit(db, DB_READ, get_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret = g.found;
	return rc;
}

static enum err_code
of_item_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	struct db_rows *rows = NULL;
	bool has_row = false;
	enum err_code rc = db_query(db, SQL_OF_ITEM,
	    DB_ARGS(DB_TEXT(g->id), DB_TEXT(g->scope->user_id), DB_TEXT(g->scope->workspace_id),
		DB_I64(g->now_s)),
	    &rows, reterr);
	if (rc == ERR_OK)
		rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && has_row)
		g->response_id = store_copy(g->arena, rows, 0);
	db_rows_end(&rows);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "no such item");
	return rc;
}

enum err_code
store_response_of_item(struct db *db, struct arena *a, const struct store_response_scope *scope,
    struct str item_id, int64_t now_s, struct str *ret_id, struct err *reterr)
{
	struct get_arg g = {.arena = a, .scope = scope, .id = item_id, .now_s = now_s};
	enum err_code rc = db_unit(db, DB_READ, of_item_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret_id = g.response_id;
	return rc;
}

/* --- delete, sweep -------------------------------------------------------------------------------
 */
static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	enum err_code rc = db_exec(db, SQL_DELETE,
	    DB_ARGS(DB_TEXT(g->id), DB_TEXT(g->scope->user_id), DB_TEXT(g->scope->workspace_id)),
	    reterr);
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such response");
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE_CHUNKS, DB_ARGS(DB_TEXT(g->id)), reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE_ITEMS, DB_ARGS(DB_TEXT(g->id)), reterr);
	return rc;
}

enum err_code
store_response_delete(
    struct db *db, const struct store_response_scope *scope, struct str id, struct err *reterr)
{
	struct get_arg g = {.scope = scope, .id = id};
	return db_unit(db, DB_WRITE, delete_unit, &g, reterr);
}

struct sweep_arg {
	struct arena *arena;
	int64_t now_s;
	uint32_t limit;
	struct store_response *dead;
	size_t n;
};

static enum err_code
expired_unit(struct db *db, void *arg, struct err *reterr)
{
	struct sweep_arg *s = arg;
	struct db_rows *rows = NULL;
	bool has_row = true;
	s->n = 0;
	enum err_code rc =
	    db_query(db, SQL_EXPIRED, DB_ARGS(DB_I64(s->now_s), DB_I64(s->limit)), &rows, reterr);
	while (rc == ERR_OK && s->n < s->limit) {
		rc = db_next(rows, &has_row, reterr);
		if (rc != ERR_OK || !has_row)
			break;
		s->dead[s->n++] = (struct store_response){.id = store_copy(s->arena, rows, 0),
		    .scope = {store_copy(s->arena, rows, 1), store_copy(s->arena, rows, 2)}};
	}
	db_rows_end(&rows);
	return rc == ERR_OK ? store_check_arena(s->arena, reterr) : rc;
}

enum err_code
store_response_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr)
{
	struct sweep_arg s = {.arena = arena_new(16u << 20), .now_s = now_s, .limit = limit};
	size_t n = 0;
	s.dead = ARENA_NEW_ARRAY(s.arena, struct store_response, limit);
	enum err_code rc = s.dead != NULL
			       ? db_unit(db, DB_READ, expired_unit, &s, reterr)
			       : err_set(reterr, ERR_NOMEM, "sweep of %u responses", limit);
	for (size_t i = 0; rc == ERR_OK && i < s.n; i++) {
		rc = store_response_delete(db, &s.dead[i].scope, s.dead[i].id, reterr);
		if (rc == ERR_NOTFOUND) /* another host was first */
			rc = ERR_OK;
		else
			n += rc == ERR_OK;
	}
	arena_free(&s.arena);
	if (rc == ERR_OK)
		*ret_n = n;
	return rc;
}
