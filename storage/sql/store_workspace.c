#include "storage/sql/store_workspace.h"

#include "storage/sql/store_util.h"

#define COLS "id, name, created_at_s"

static const char SQL_INSERT[] = "INSERT INTO workspaces (" COLS ") VALUES (?, ?, ?)";
static const char SQL_GET[] = "SELECT " COLS " FROM workspaces WHERE id = ?";
static const char SQL_LIST[] = "SELECT " COLS " FROM workspaces ORDER BY created_at_s, id";
static const char SQL_IN_USE[] = "SELECT COUNT(*) FROM api_keys WHERE workspace_id = ?";
static const char SQL_DELETE[] = "DELETE FROM workspaces WHERE id = ?";
static const char SQL_DELETE_POLICY[] =
    "DELETE FROM code_execution_policies WHERE workspace_id = ?";

struct change_arg {
	const struct store_workspace *ws;
	struct str id;
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

enum err_code
store_workspace_create(struct db *db, const struct store_workspace *ws,
    struct store_generation *ret_gen, struct err *reterr)
{
	struct change_arg c = {.ws = ws};
	enum err_code rc = STORE_CHECK(
	    reterr, {"id", ws->id, STORE_ID_MAX_BYTES}, {"name", ws->name, STORE_NAME_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, create_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_BOTH, &c->gen, reterr);
	int64_t keys = 0;
	if (rc == ERR_OK)
		rc = db_query_i64(db, SQL_IN_USE, DB_ARGS(DB_TEXT(c->id)), &keys, reterr);
	if (rc == ERR_OK && keys > 0)
		rc = err_set(
		    reterr, ERR_CONFLICT, "the workspace still has %lld keys", (long long)keys);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE, DB_ARGS(DB_TEXT(c->id)), reterr);
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE_POLICY, DB_ARGS(DB_TEXT(c->id)), reterr);
	return rc;
}

enum err_code
store_workspace_delete(
    struct db *db, struct str id, struct store_generation *ret_gen, struct err *reterr)
{
	if (str_eq(id, STR(STORE_WORKSPACE_DEFAULT)))
		return err_set(reterr, ERR_CONFLICT, "the default workspace stays");
	struct change_arg c = {.id = id};
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
