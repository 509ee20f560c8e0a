#include "storage/sql/store_tool_result.h"

#include "base/digest.h"
#include "storage/sql/store_util.h"

#define BATCH 16u /* ids in one statement; a shorter list repeats its first */

#define INSERT                                                                                     \
	"INSERT INTO tool_results (user_id, workspace_id, call_id, result, expires_at_s)"          \
	" VALUES (?, ?, ?, ?, ?)"

static const char SQL_PUT_SQLITE[] =
    INSERT " ON CONFLICT (user_id, workspace_id, call_id) DO UPDATE SET result ="
	   " CASE WHEN tool_results.expires_at_s <= ? THEN excluded.result"
	   " WHEN tool_results.result = excluded.result THEN excluded.result ELSE '' END,"
	   " expires_at_s = excluded.expires_at_s";
/* Assignments go from left to right: the first still sees the old time. */
static const char SQL_PUT_MYSQL[] =
    INSERT " ON DUPLICATE KEY UPDATE result ="
	   " CASE WHEN expires_at_s <= ? THEN VALUES(result)"
	   " WHEN result = VALUES(result) THEN VALUES(result) ELSE '' END,"
	   " expires_at_s = VALUES(expires_at_s)";
static const char SQL_GET[] =
    "SELECT call_id, result FROM tool_results WHERE user_id = ? AND workspace_id = ?"
    " AND expires_at_s > ? AND call_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char SQL_SWEEP_SQLITE[] =
    "DELETE FROM tool_results WHERE (user_id, workspace_id, call_id) IN (SELECT user_id,"
    " workspace_id, call_id FROM tool_results WHERE expires_at_s <= ? ORDER BY expires_at_s"
    " LIMIT ?)";
static const char SQL_SWEEP_MYSQL[] =
    "DELETE FROM tool_results WHERE expires_at_s <= ? ORDER BY expires_at_s LIMIT ?";

struct key {
	char hex[SHA256_HEX + 1];
};

static struct str
key_of(struct str call_id, struct key *k)
{
	unsigned char digest[SHA256_BYTES];
	sha256_of(call_id, digest);
	hex_encode(digest, sizeof(digest), k->hex);
	return str_n(k->hex, SHA256_HEX);
}

/* --- put -----------------------------------------------------------------------------------------
 */
struct put_arg {
	const struct store_tool_result *r;
	int64_t now_s;
};

static enum err_code
put_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct put_arg *p = arg;
	const struct store_tool_result *r = p->r;
	struct key k;
	return db_exec(db, db_pick(db, SQL_PUT_SQLITE, SQL_PUT_MYSQL),
	    DB_ARGS(DB_TEXT(r->scope.user_id), DB_TEXT(r->scope.workspace_id),
		DB_TEXT(key_of(r->call_id, &k)), DB_TEXT(r->text), DB_I64(r->expires_at_s),
		DB_I64(p->now_s)),
	    reterr);
}

enum err_code
store_tool_result_put(
    struct db *db, const struct store_tool_result *r, int64_t now_s, struct err *reterr)
{
	struct put_arg p = {r, now_s};
	if (r->text.len > STORE_TOOL_RESULT_MAX_BYTES)
		return err_set(reterr, ERR_TOOLARGE, "the tool result is too large to be kept");
	enum err_code rc = STORE_CHECK(reterr, {"user_id", r->scope.user_id, STORE_NAME_MAX_BYTES},
	    {"workspace_id", r->scope.workspace_id, STORE_ID_MAX_BYTES},
	    {"tool result", r->text, STORE_TOOL_RESULT_MAX_BYTES});
	return rc == ERR_OK ? db_unit(db, DB_WRITE_REPEATABLE, put_unit, &p, reterr) : rc;
}

/* --- get -----------------------------------------------------------------------------------------
 */
struct get_arg {
	struct arena *arena;
	const struct store_response_scope *scope;
	const struct str *ids;
	size_t n, max_bytes, bytes;
	int64_t now_s;
	struct str *texts;
};

/* Of the ids from..from + n - 1. */
static enum err_code
take_rows(struct get_arg *g, struct db_rows *rows, const struct key *keys, size_t from, size_t n,
    struct err *reterr)
{
	bool has_row = true;
	for (;;) {
		enum err_code rc = db_next(rows, &has_row, reterr);
		if (rc != ERR_OK || !has_row)
			return rc;
		struct str key = db_col_text(rows, 0);
		for (size_t i = 0; i < n && db_col_text(rows, 1).len > 0; i++)
			if (str_eq(key, str_n(keys[i].hex, SHA256_HEX)))
				g->texts[from + i] = store_copy(g->arena, rows, 1);
	}
}

/* Counts from the end; what is too much is not given. */
static void
count_batch(struct get_arg *g, size_t from, size_t n)
{
	for (size_t i = from + n; i-- > from;) {
		g->bytes += g->texts[i].len;
		if (g->bytes > g->max_bytes)
			g->texts[i] = STR_NULL;
	}
}

static enum err_code
get_batch(struct db *db, struct get_arg *g, size_t from, size_t n, struct err *reterr)
{
	struct key keys[BATCH];
	struct db_val args[3 + BATCH] = {
	    DB_TEXT(g->scope->user_id), DB_TEXT(g->scope->workspace_id), DB_I64(g->now_s)};
	struct db_rows *rows = NULL;
	for (size_t i = 0; i < BATCH; i++)
		args[3 + i] = DB_TEXT(key_of(g->ids[from + (i < n ? i : 0)], &keys[i]));
	enum err_code rc = db_query(db, SQL_GET, args, ARRAY_LEN(args), &rows, reterr);
	if (rc == ERR_OK)
		rc = take_rows(g, rows, keys, from, n, reterr);
	db_rows_end(&rows);
	count_batch(g, from, n);
	return rc;
}

static enum err_code
get_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	enum err_code rc = ERR_OK;
	g->bytes = 0;
	for (size_t i = 0; i < g->n; i++)
		g->texts[i] = STR_NULL;
	for (size_t end = g->n; rc == ERR_OK && end > 0 && g->bytes <= g->max_bytes;) {
		size_t n = end < BATCH ? end : BATCH;
		end -= n;
		rc = get_batch(db, g, end, n, reterr);
	}
	return rc == ERR_OK ? store_check_arena(g->arena, reterr) : rc;
}

enum err_code
store_tool_result_get(struct db *db, struct arena *a, const struct store_response_scope *scope,
    const struct str *call_ids, size_t n, size_t max_bytes, int64_t now_s, struct str *texts,
    struct err *reterr)
{
	struct get_arg g = {.arena = a,
	    .scope = scope,
	    .ids = call_ids,
	    .n = n,
	    .max_bytes = max_bytes,
	    .now_s = now_s,
	    .texts = texts};
	if (n > STORE_TOOL_RESULT_IDS_MAX)
		return err_set(reterr, ERR_TOOLARGE, "too many call ids");
	return db_unit(db, DB_READ, get_unit, &g, reterr);
}

/* --- sweep ---------------------------------------------------------------------------------------
 */
enum err_code
store_tool_result_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr)
{
	return store_sweep(db, SQL_SWEEP_SQLITE, SQL_SWEEP_MYSQL, now_s, limit, ret_n, reterr);
}
