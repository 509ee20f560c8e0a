#include "storage/sql/store_policy.h"

#include "storage/sql/store_util.h"

#define COLS                                                                                       \
	"workspace_id, enabled, executor, default_purpose_hint, max_iterations, exec_timeout_s,"   \
	" image, tools, created_at_s, updated_at_s"
#define VALUES "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

static const char SQL_WORKSPACE[] = "SELECT COUNT(*) FROM workspaces WHERE id = ?";
/* created_at_s stays what it was. */
static const char SQL_PUT_SQLITE[] =
    "INSERT INTO code_execution_policies (" COLS ") " VALUES
    " ON CONFLICT (workspace_id) DO UPDATE SET enabled = excluded.enabled,"
    " executor = excluded.executor, default_purpose_hint = excluded.default_purpose_hint,"
    " max_iterations = excluded.max_iterations, exec_timeout_s = excluded.exec_timeout_s,"
    " image = excluded.image, tools = excluded.tools, updated_at_s = excluded.updated_at_s";
static const char SQL_PUT_MYSQL[] =
    "INSERT INTO code_execution_policies (" COLS ") " VALUES
    " ON DUPLICATE KEY UPDATE enabled = VALUES(enabled),"
    " executor = VALUES(executor), default_purpose_hint = VALUES(default_purpose_hint),"
    " max_iterations = VALUES(max_iterations), exec_timeout_s = VALUES(exec_timeout_s),"
    " image = VALUES(image), tools = VALUES(tools), updated_at_s = VALUES(updated_at_s)";
static const char SQL_GET[] = "SELECT " COLS " FROM code_execution_policies WHERE workspace_id = ?";
static const char SQL_LIST[] = "SELECT " COLS " FROM code_execution_policies ORDER BY workspace_id";
static const char SQL_DELETE[] = "DELETE FROM code_execution_policies WHERE workspace_id = ?";

struct change_arg {
	const struct store_policy *policy;
	struct str workspace_id;
	struct store_generation gen;
};

static enum err_code
put_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	const struct store_policy *p = c->policy;
	enum err_code rc = store_generation_bump(db, STORE_SEG_POLICY, &c->gen, reterr);
	int64_t has_workspace = 0;
	if (rc == ERR_OK)
		rc = db_query_i64(
		    db, SQL_WORKSPACE, DB_ARGS(DB_TEXT(p->workspace_id)), &has_workspace, reterr);
	if (rc == ERR_OK && has_workspace == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc != ERR_OK)
		return rc;
	return db_exec(db, db_pick(db, SQL_PUT_SQLITE, SQL_PUT_MYSQL),
	    DB_ARGS(DB_TEXT(p->workspace_id), DB_I64(p->enabled), DB_TEXT(p->executor),
		DB_TEXT(p->default_purpose_hint), DB_TIME(p->max_iterations),
		DB_TIME(p->exec_timeout_s), DB_TEXT(p->image), DB_TEXT(p->tools_json),
		DB_I64(p->created_at_s), DB_I64(p->updated_at_s)),
	    reterr);
}

enum err_code
store_policy_put(struct db *db, const struct store_policy *policy, struct store_generation *ret_gen,
    struct err *reterr)
{
	struct change_arg c = {.policy = policy};
	enum err_code rc =
	    STORE_CHECK(reterr, {"workspace_id", policy->workspace_id, STORE_ID_MAX_BYTES},
		{"executor", policy->executor, 16},
		{"default_purpose_hint", policy->default_purpose_hint, STORE_TEXT_MAX_BYTES},
		{"image", policy->image, STORE_FILENAME_MAX_BYTES},
		{"tools", policy->tools_json, STORE_TEXT_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, put_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct change_arg *c = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_POLICY, &c->gen, reterr);
	if (rc != ERR_OK)
		return rc;
	return db_exec(db, SQL_DELETE, DB_ARGS(DB_TEXT(c->workspace_id)), reterr);
}

enum err_code
store_policy_delete(
    struct db *db, struct str workspace_id, struct store_generation *ret_gen, struct err *reterr)
{
	struct change_arg c = {.workspace_id = workspace_id};
	enum err_code rc = db_unit(db, DB_WRITE, delete_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

struct read_arg {
	struct arena *arena;
	struct str workspace_id; /* STR_NULL: all */
	struct store_policy *items;
	size_t n;
};

static void
copy_row(struct arena *a, struct db_rows *rows, struct store_policy *p)
{
	*p = (struct store_policy){
	    .workspace_id = store_copy(a, rows, 0),
	    .enabled = db_col_i64(rows, 1) != 0,
	    .executor = store_copy(a, rows, 2),
	    .default_purpose_hint = store_copy(a, rows, 3),
	    .max_iterations = db_col_i64(rows, 4),
	    .exec_timeout_s = db_col_i64(rows, 5),
	    .image = store_copy(a, rows, 6),
	    .tools_json = store_copy(a, rows, 7),
	    .created_at_s = db_col_i64(rows, 8),
	    .updated_at_s = db_col_i64(rows, 9),
	};
}

static enum err_code
read_unit(struct db *db, void *arg, struct err *reterr)
{
	struct read_arg *r = arg;
	struct db_rows *rows;
	enum err_code rc =
	    r->workspace_id.ptr != NULL
		? db_query(db, SQL_GET, DB_ARGS(DB_TEXT(r->workspace_id)), &rows, reterr)
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
		copy_row(r->arena, rows, &r->items[r->n++]);
	}
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(r->arena, reterr);
}

enum err_code
store_policy_get(struct db *db, struct arena *a, struct str workspace_id, struct store_policy *ret,
    struct err *reterr)
{
	struct read_arg r = {
	    .arena = a,
	    .workspace_id = workspace_id.ptr != NULL ? workspace_id : STR(""),
	};
	enum err_code rc = db_unit(db, DB_READ, read_unit, &r, reterr);
	if (rc == ERR_OK && r.n == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "the workspace has no policy");
	if (rc == ERR_OK)
		*ret = r.items[0];
	return rc;
}

enum err_code
store_policy_list(
    struct db *db, struct arena *a, struct store_policy **ret, size_t *ret_n, struct err *reterr)
{
	struct read_arg r = {.arena = a};
	enum err_code rc = db_unit(db, DB_READ, read_unit, &r, reterr);
	if (rc == ERR_OK) {
		*ret = r.items;
		*ret_n = r.n;
	}
	return rc;
}
