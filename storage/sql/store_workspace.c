#include "storage/sql/store_workspace.h"

#include "base/clock.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_util.h"

#define COLS "id, name, created_at_s"

static const char SQL_INSERT[] = "INSERT INTO workspaces (" COLS ") VALUES (?, ?, ?)";
static const char SQL_GET[] = "SELECT " COLS " FROM workspaces WHERE id = ?";
static const char SQL_LIST[] = "SELECT " COLS " FROM workspaces ORDER BY created_at_s, id";
static const char SQL_NAMESAKES[] = "SELECT COUNT(*) FROM workspaces WHERE name = ? AND id <> ?";
static const char SQL_THERE[] = "SELECT COUNT(*) FROM workspaces WHERE id = ?";
static const char SQL_RENAME[] = "UPDATE workspaces SET name = ? WHERE id = ?";
static const char SQL_DECLARED_KEYS[] =
    "SELECT COUNT(*) FROM api_keys WHERE workspace_id = ? AND metadata = ?";
static const char SQL_LIVE_KEYS[] = "SELECT COUNT(*) FROM api_keys WHERE workspace_id = ?"
				    " AND is_active = 1"
				    " AND (expires_at_s IS NULL OR expires_at_s > ?)";
static const char SQL_STOP_KEYS[] = "UPDATE api_keys SET is_active = 0, changed_gen = ?"
				    " WHERE workspace_id = ? AND is_active = 1";
static const char SQL_DELETE[] = "DELETE FROM workspaces WHERE id = ?";
static const char SQL_DELETE_POLICY[] =
    "DELETE FROM code_execution_policies WHERE workspace_id = ?";

struct change_arg {
	const struct store_workspace *ws;
	struct str id, name;
	bool even_in_use;
	struct store_generation gen;
};

static enum err_code
create_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_POLICY, &c->gen, reterr);
	if (rc != ERR_OK)
		return rc;
	return db_exec(db, SQL_INSERT,
	    DB_ARGS(DB_TEXT(c->ws->id), DB_TEXT(c->ws->name), DB_I64(c->ws->created_at_s)), reterr);
}

/* The generation's row is taken: no other change comes between. */
static enum err_code
check_name_free(struct db *db, struct str name, struct str id, struct err *reterr)
{
	int64_t namesakes = 0;
	enum err_code rc = db_query_i64(
	    db, SQL_NAMESAKES, DB_ARGS(DB_TEXT(name), DB_TEXT(id)), &namesakes, reterr);
	if (rc == ERR_OK && namesakes > 0)
		rc = err_set(reterr, ERR_CONFLICT, "another workspace has this name");
	return rc;
}

static enum err_code
add_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct change_arg *c = arg;
	enum err_code rc = create_unit(db, arg, reterr);
	return rc == ERR_OK ? check_name_free(db, c->ws->name, c->ws->id, reterr) : rc;
}

static enum err_code
rename_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	int64_t is_there = 0;
	enum err_code rc = store_generation_bump(db, STORE_SEG_POLICY, &c->gen, reterr);
	if (rc == ERR_OK)
		rc = db_query_i64(db, SQL_THERE, DB_ARGS(DB_TEXT(c->id)), &is_there, reterr);
	if (rc == ERR_OK && is_there == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc == ERR_OK)
		rc = check_name_free(db, c->name, c->id, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_RENAME, DB_ARGS(DB_TEXT(c->name), DB_TEXT(c->id)), reterr);
	return rc;
}

static enum err_code
create(struct db *db, const struct store_workspace *ws, db_unit_fn *unit,
    struct store_generation *ret_gen, struct err *reterr)
{
	struct change_arg c = {.ws = ws};
	enum err_code rc = STORE_CHECK(
	    reterr, {"id", ws->id, STORE_ID_MAX_BYTES}, {"name", ws->name, STORE_NAME_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

enum err_code
store_workspace_create(struct db *db, const struct store_workspace *ws,
    struct store_generation *ret_gen, struct err *reterr)
{
	return create(db, ws, create_unit, ret_gen, reterr);
}

enum err_code
store_workspace_add(struct db *db, const struct store_workspace *ws,
    struct store_generation *ret_gen, struct err *reterr)
{
	return create(db, ws, add_unit, ret_gen, reterr);
}

enum err_code
store_workspace_rename(struct db *db, struct str id, struct str name,
    struct store_generation *ret_gen, struct err *reterr)
{
	struct change_arg c = {.id = id, .name = name};
	enum err_code rc = STORE_CHECK(reterr, {"name", name, STORE_NAME_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, rename_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

/* Keys that the file declares would be missed by its next reload. */
static enum err_code
check_keys(struct db *db, const struct change_arg *c, struct err *reterr)
{
	int64_t declared = 0, live = 0;
	enum err_code rc = db_query_i64(db, SQL_DECLARED_KEYS,
	    DB_ARGS(DB_TEXT(c->id), DB_TEXT(STR(STORE_KEY_DECLARED))), &declared, reterr);
	if (rc == ERR_OK && declared > 0)
		rc = err_set(reterr, ERR_CONFLICT,
		    "API keys that otari.conf declares belong to this workspace: %lld",
		    (long long)declared);
	if (rc != ERR_OK || c->even_in_use)
		return rc;
	rc = db_query_i64(
	    db, SQL_LIVE_KEYS, DB_ARGS(DB_TEXT(c->id), DB_I64(clock_wall_s())), &live, reterr);
	if (rc == ERR_OK && live > 0)
		rc = err_set(reterr, ERR_CONFLICT, "active API keys belong to this workspace: %lld",
		    (long long)live);
	return rc;
}

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_BOTH, &c->gen, reterr);
	if (rc == ERR_OK)
		rc = check_keys(db, c, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE, DB_ARGS(DB_TEXT(c->id)), reterr);
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE_POLICY, DB_ARGS(DB_TEXT(c->id)), reterr);
	if (rc == ERR_OK)
		rc = db_exec(
		    db, SQL_STOP_KEYS, DB_ARGS(DB_I64(c->gen.keys), DB_TEXT(c->id)), reterr);
	return rc;
}

enum err_code
store_workspace_delete(struct db *db, struct str id, bool even_in_use,
    struct store_generation *ret_gen, struct err *reterr)
{
	if (str_eq(id, STR(STORE_WORKSPACE_DEFAULT)))
		return err_set(reterr, ERR_CONFLICT, "the default workspace stays");
	struct change_arg c = {.id = id, .even_in_use = even_in_use};
	enum err_code rc = db_unit(db, DB_WRITE, delete_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

struct read_arg {
	struct arena *arena;
	struct str id; /* STR_NULL: all */
	struct store_workspace *items;
	size_t n;
};

static enum err_code
read_unit(struct db *db, void *arg, struct err *reterr)
{
	struct read_arg *r = arg;
	struct db_rows *rows;
	enum err_code rc = r->id.ptr != NULL
			       ? db_query(db, SQL_GET, DB_ARGS(DB_TEXT(r->id)), &rows, reterr)
			       : db_query(db, SQL_LIST, DB_NO_ARGS, &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	r->items = NULL;
	r->n = 0;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		r->items = store_grow(r->arena, r->items, r->n, sizeof(*r->items));
		if (r->items == NULL)
			break;
		r->items[r->n++] = (struct store_workspace){
		    .id = store_copy(r->arena, rows, 0),
		    .name = store_copy(r->arena, rows, 1),
		    .created_at_s = db_col_i64(rows, 2),
		};
	}
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(r->arena, reterr);
}

enum err_code
store_workspace_get(
    struct db *db, struct arena *a, struct str id, struct store_workspace *ret, struct err *reterr)
{
	struct read_arg r = {.arena = a, .id = id.ptr != NULL ? id : STR("")};
	enum err_code rc = db_unit(db, DB_READ, read_unit, &r, reterr);
	if (rc == ERR_OK && r.n == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc == ERR_OK)
		*ret = r.items[0];
	return rc;
}

enum err_code
store_workspace_list(
    struct db *db, struct arena *a, struct store_workspace **ret, size_t *ret_n, struct err *reterr)
{
	struct read_arg r = {.arena = a};
	enum err_code rc = db_unit(db, DB_READ, read_unit, &r, reterr);
	if (rc == ERR_OK) {
		*ret = r.items;
		*ret_n = r.n;
	}
	return rc;
}
