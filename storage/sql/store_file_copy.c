#include "storage/sql/store_file_copy.h"

#include "storage/sql/store_util.h"

#define INSERT                                                                                     \
	"INSERT INTO file_copies (file_id, account, copy_id, expires_at_s) VALUES (?, ?, ?, ?)"

static const char SQL_PUT_SQLITE[] =
    INSERT " ON CONFLICT (file_id, account) DO UPDATE SET copy_id = excluded.copy_id,"
	   " expires_at_s = excluded.expires_at_s";
static const char SQL_PUT_MYSQL[] = INSERT " ON DUPLICATE KEY UPDATE copy_id = VALUES(copy_id),"
					   " expires_at_s = VALUES(expires_at_s)";
static const char SQL_GET[] =
    "SELECT copy_id FROM file_copies WHERE file_id = ? AND account = ? AND expires_at_s > ?";
static const char SQL_SWEEP_SQLITE[] =
    "DELETE FROM file_copies WHERE (file_id, account) IN (SELECT file_id, account FROM file_copies"
    " WHERE expires_at_s <= ? ORDER BY expires_at_s LIMIT ?)";
static const char SQL_SWEEP_MYSQL[] =
    "DELETE FROM file_copies WHERE expires_at_s <= ? ORDER BY expires_at_s LIMIT ?";

static enum err_code
put_unit(struct db *db, void *arg, struct err *reterr)
{
	const struct store_file_copy *c = arg;
	return db_exec(db, db_pick(db, SQL_PUT_SQLITE, SQL_PUT_MYSQL),
	    DB_ARGS(DB_TEXT(c->file_id), DB_TEXT(c->account), DB_TEXT(c->copy_id),
		DB_I64(c->expires_at_s)),
	    reterr);
}

enum err_code
store_file_copy_put(struct db *db, const struct store_file_copy *c, struct err *reterr)
{
	struct store_file_copy copy = *c;
	enum err_code rc = STORE_CHECK(reterr, {"file id", c->file_id, STORE_FILE_ID_MAX_BYTES},
	    {"account", c->account, STORE_ID_MAX_BYTES},
	    {"copy's id", c->copy_id, STORE_NAME_MAX_BYTES});
	return rc == ERR_OK ? db_unit(db, DB_WRITE_REPEATABLE, put_unit, &copy, reterr) : rc;
}

struct get_arg {
	struct arena *arena;
	struct str file_id, account, copy_id;
	int64_t now_s;
};

static enum err_code
get_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	struct db_rows *rows = NULL;
	bool has_row = false;
	enum err_code rc = db_query(db, SQL_GET,
	    DB_ARGS(DB_TEXT(g->file_id), DB_TEXT(g->account), DB_I64(g->now_s)), &rows, reterr);
	if (rc == ERR_OK)
		rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && has_row)
		g->copy_id = store_copy(g->arena, rows, 0);
	db_rows_end(&rows);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "no copy of that file");
	return rc;
}

enum err_code
store_file_copy_get(struct db *db, struct arena *a, struct str file_id, struct str account,
    int64_t now_s, struct str *ret_copy_id, struct err *reterr)
{
	struct get_arg g = {.arena = a, .file_id = file_id, .account = account, .now_s = now_s};
	enum err_code rc = db_unit(db, DB_READ, get_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret_copy_id = g.copy_id;
	return rc;
}

enum err_code
store_file_copy_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr)
{
	return store_sweep(db, SQL_SWEEP_SQLITE, SQL_SWEEP_MYSQL, now_s, limit, ret_n, reterr);
}
