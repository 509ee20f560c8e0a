#include "storage/sql/store_usage.h"

#define COLS                                                                                       \
	"request_id, ts_ms, user_id, key_id, workspace_id, endpoint, provider, model, status,"     \
	" status_code, prompt_tokens, completion_tokens, cache_read_tokens, cache_write_tokens,"   \
	" reasoning_tokens, cost_microusd, latency_ms, end_user, tools, error"
#define VALUES "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

static const char SQL_INSERT_SQLITE[] =
    "INSERT INTO usage_logs (" COLS ") " VALUES " ON CONFLICT (request_id) DO NOTHING";
static const char SQL_INSERT_MYSQL[] = "INSERT IGNORE INTO usage_logs (" COLS ") " VALUES;
/* One user's rows, or all of them: the two forms use different indexes. */
#define TOTALS                                                                                     \
	"SELECT COUNT(*), COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0),"   \
	" COALESCE(SUM(cost_microusd), 0) FROM usage_logs WHERE ts_ms >= ? AND ts_ms < ?"
static const char SQL_TOTAL_ALL[] = TOTALS;
static const char SQL_TOTAL_USER[] = TOTALS " AND user_id = ?";

struct insert_arg {
	const struct usage *rows;
	size_t n, added;
};

/* A record that lacks what must not be NULL is stored empty, not refused: it was settled. */
static struct db_val
text(struct str s)
{
	return DB_TEXT(s.ptr != NULL ? s : STR(""));
}

static enum err_code
insert_unit(struct db *db, void *arg, struct err *reterr)
{
	struct insert_arg *p = arg;
	p->added = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct usage *u = &p->rows[i];
		enum err_code rc = db_exec(db, db_pick(db, SQL_INSERT_SQLITE, SQL_INSERT_MYSQL),
		    DB_ARGS(text(u->request_id), DB_I64(u->ts_ms), text(u->user_id),
			DB_TEXT(u->key_id), text(u->workspace_id), text(u->endpoint),
			text(u->provider), text(u->model), text(u->status), DB_I64(u->status_code),
			DB_I64(u->prompt_tokens), DB_I64(u->completion_tokens),
			DB_I64(u->cache_read_tokens), DB_I64(u->cache_write_tokens),
			DB_I64(u->reasoning_tokens), DB_I64(u->cost_microusd),
			DB_I64(u->latency_ms), DB_TEXT(u->end_user), DB_TEXT(u->tools_json),
			DB_TEXT(u->error)),
		    reterr);
		if (rc != ERR_OK)
			return rc;
		p->added += db_affected(db) > 0;
	}
	return ERR_OK;
}

enum err_code
store_usage_insert(
    struct db *db, const struct usage *rows, size_t n, size_t *ret_new, struct err *reterr)
{
	struct insert_arg p = {.rows = rows, .n = n};
	enum err_code rc = db_unit(db, DB_WRITE_REPEATABLE, insert_unit, &p, reterr);
	if (rc == ERR_OK && ret_new != NULL)
		*ret_new = p.added;
	return rc;
}

struct total_arg {
	struct str user_id;
	int64_t from_ms, to_ms;
	struct store_usage_total total;
};

static enum err_code
total_unit(struct db *db, void *arg, struct err *reterr)
{
	struct total_arg *t = arg;
	struct db_rows *rows;
	enum err_code rc =
	    t->user_id.ptr == NULL
		? db_query(db, SQL_TOTAL_ALL, DB_ARGS(DB_I64(t->from_ms), DB_I64(t->to_ms)), &rows,
		      reterr)
		: db_query(db, SQL_TOTAL_USER,
		      DB_ARGS(DB_I64(t->from_ms), DB_I64(t->to_ms), DB_TEXT(t->user_id)), &rows,
		      reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row = false;
	rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && has_row)
		t->total = (struct store_usage_total){
		    .requests = db_col_i64(rows, 0),
		    .prompt_tokens = db_col_i64(rows, 1),
		    .completion_tokens = db_col_i64(rows, 2),
		    .cost_microusd = db_col_i64(rows, 3),
		};
	db_rows_end(&rows);
	return rc;
}

enum err_code
store_usage_total(struct db *db, struct str user_id, int64_t from_ms, int64_t to_ms,
    struct store_usage_total *ret, struct err *reterr)
{
	struct total_arg t = {.user_id = user_id, .from_ms = from_ms, .to_ms = to_ms};
	enum err_code rc = db_unit(db, DB_READ, total_unit, &t, reterr);
	if (rc == ERR_OK)
		*ret = t.total;
	return rc;
}
