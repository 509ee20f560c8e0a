#include "storage/sql/db.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "storage/sql/db_driver.h"

#define DB_MAGIC         0x64622d31u
#define UNIT_ATTEMPTS    8
#define UNIT_GONE_MAX    3
#define UNIT_DEADLINE_MS 15000
#define CONNECT_PAUSE_MS 1000

static void
disconnect(struct db *db)
{
	for (size_t i = 0; i < db->n_stmts; i++) {
		db->drv->finish(db->stmts[i]);
		mem_free(db->stmts[i]);
	}
	db->n_stmts = 0;
	if (db->conn != NULL)
		db->drv->disconnect(db);
	db->conn = NULL;
	db->in_unit = false;
}

static enum err_code
connect_now(struct db *db, struct err *reterr)
{
	if (db->conn != NULL)
		return ERR_OK;
	if (clock_mono_ms() < db->no_connect_before_ms)
		return err_set(reterr, ERR_BUSY, "database: it could not be reached a moment ago");
	db->fault = DB_FAULT_NONE;
	enum err_code rc = db->drv->connect(db, reterr);
	if (rc != ERR_OK)
		disconnect(db);
	if (rc == ERR_BUSY)
		db->fault = DB_FAULT_GONE; /* a unit tries again */
	return rc;
}

enum err_code
db_open(struct str url, enum db_open_flags flags, struct db **ret, struct err *reterr)
{
	struct db *db = MEM_NEW(struct db);
	db->magic = DB_MAGIC;
	db->pid = getpid();
	enum err_code rc = db_url_parse(url, &db->url, reterr);
	if (rc == ERR_OK) {
		db->drv = db->url.kind == DB_SQLITE ? &db_sqlite_driver : &db_mysql_driver;
		if (flags != DB_OPEN_LAZY)
			rc = connect_now(db, reterr);
	}
	if (rc == ERR_OK)
		*ret = db;
	else
		db_close(&db);
	return rc;
}

void
db_close(struct db **dbp)
{
	struct db *db = *dbp;
	if (db == NULL)
		return;
	CHECK_MAGIC(db, DB_MAGIC);
	*dbp = NULL;
	if (db->in_unit)
		db_rollback(db);
	if (db->drv != NULL)
		disconnect(db);
	db_url_done(&db->url);
	db->magic = 0;
	mem_free(db);
}

enum db_kind
db_kind(const struct db *db)
{
	return db->url.kind;
}

const char *
db_pick(const struct db *db, const char *sqlite, const char *mysql)
{
	return db->url.kind == DB_SQLITE ? sqlite : mysql;
}

/* --- statements ----------------------------------------------------------------------------------
 */

static enum err_code
find_stmt(struct db *db, const char *sql, struct db_rows **ret, struct err *reterr)
{
	for (size_t i = 0; i < db->n_stmts; i++)
		if (db->stmts[i]->sql == sql) {
			*ret = db->stmts[i];
			return ERR_OK;
		}
	CHECK(db->n_stmts < DB_STMTS_MAX);
	struct db_rows *st = MEM_NEW(struct db_rows);
	st->db = db;
	st->sql = sql;
	enum err_code rc = db->drv->prepare(st, reterr);
	if (rc != ERR_OK) {
		mem_free(st);
		return rc;
	}
	db->stmts[db->n_stmts++] = st;
	*ret = st;
	return ERR_OK;
}

static enum err_code
start(struct db *db, const char *sql, const struct db_val *args, size_t n, bool is_query,
    struct db_rows **ret, struct err *reterr)
{
	CHECK_MAGIC(db, DB_MAGIC);
	CHECK(db->in_unit && n <= DB_ARGS_MAX);
	if (db->fault != DB_FAULT_NONE)
		return err_set(reterr, ERR_BUSY, "database: the transaction was rolled back");
	for (size_t i = 0; i < n; i++)
		if (args[i].str.len > DB_VALUE_MAX_BYTES)
			return err_set(reterr, ERR_TOOLARGE,
			    "database: a value of %zu bytes is over the limit of %u",
			    args[i].str.len, DB_VALUE_MAX_BYTES);
	struct db_rows *st;
	enum err_code rc = find_stmt(db, sql, &st, reterr);
	if (rc != ERR_OK)
		return rc;
	CHECK(!st->is_open);
	rc = db->drv->execute(st, args, n, is_query, reterr);
	if (rc != ERR_OK) {
		db->drv->reset(st);
		return rc;
	}
	st->is_open = true;
	*ret = st;
	return ERR_OK;
}

enum err_code
db_exec(struct db *db, const char *sql, const struct db_val *args, size_t n, struct err *reterr)
{
	struct db_rows *st;
	enum err_code rc = start(db, sql, args, n, false, &st, reterr);
	if (rc == ERR_OK)
		db_rows_end(&st);
	return rc;
}

int64_t
db_affected(const struct db *db)
{
	return db->affected;
}

enum err_code
db_query(struct db *db, const char *sql, const struct db_val *args, size_t n, struct db_rows **ret,
    struct err *reterr)
{
	return start(db, sql, args, n, true, ret, reterr);
}

enum err_code
db_next(struct db_rows *rows, bool *ret_row, struct err *reterr)
{
	CHECK(rows->is_open);
	return rows->db->drv->next(rows, ret_row, reterr);
}

void
db_rows_end(struct db_rows **rowsp)
{
	struct db_rows *rows = *rowsp;
	if (rows == NULL)
		return;
	*rowsp = NULL;
	rows->db->drv->reset(rows);
	rows->is_open = false;
}

struct str
db_col_text(struct db_rows *rows, unsigned col)
{
	return rows->db->drv->col_text(rows, col);
}

int64_t
db_col_i64(struct db_rows *rows, unsigned col)
{
	return rows->db->drv->col_i64(rows, col);
}

bool
db_col_is_null(struct db_rows *rows, unsigned col)
{
	return rows->db->drv->col_is_null(rows, col);
}

enum err_code
db_query_i64(struct db *db, const char *sql, const struct db_val *args, size_t n, int64_t *ret,
    struct err *reterr)
{
	struct db_rows *rows;
	enum err_code rc = db_query(db, sql, args, n, &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row = false;
	rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "database: no such row");
	if (rc == ERR_OK)
		*ret = db_col_i64(rows, 0);
	db_rows_end(&rows);
	return rc;
}

enum err_code
db_script(struct db *db, struct str sql, struct err *reterr)
{
	CHECK_MAGIC(db, DB_MAGIC);
	while (sql.len > 0) {
		size_t end = str_find(sql, STR(";\n"));
		struct str one = str_trim(str_sub(sql, 0, end));
		sql = end == SIZE_MAX ? STR("") : str_from(sql, end + 2);
		if (one.len == 0)
			continue;
		enum err_code rc = db->drv->run(db, one.ptr, one.len, reterr);
		if (rc != ERR_OK)
			return rc;
	}
	return ERR_OK;
}

/* --- transactions --------------------------------------------------------------------------------
 */

static enum err_code
run_text(struct db *db, const char *sql, struct err *reterr)
{
	return db->drv->run(db, sql, strlen(sql), reterr);
}

enum err_code
db_begin(struct db *db, enum db_unit_kind kind, struct err *reterr)
{
	CHECK_MAGIC(db, DB_MAGIC);
	CHECK(!db->in_unit);
	CHECK(db->pid == getpid()); /* a handle must not be carried over fork */
	if (db->fault == DB_FAULT_GONE)
		disconnect(db);
	db->fault = DB_FAULT_NONE;
	enum err_code rc = connect_now(db, reterr);
	if (rc != ERR_OK)
		return rc;
	for (const char *const *sql = db->drv->begin[kind]; *sql != NULL; sql++)
		if ((rc = run_text(db, *sql, reterr)) != ERR_OK)
			return rc;
	db->in_unit = true;
	db->kind = kind;
	return ERR_OK;
}

enum err_code
db_commit(struct db *db, struct err *reterr)
{
	CHECK_MAGIC(db, DB_MAGIC);
	CHECK(db->in_unit);
	if (db->fault != DB_FAULT_NONE) {
		db_rollback(db);
		return err_set(reterr, ERR_BUSY, "database: the transaction was rolled back");
	}
	enum err_code rc = run_text(db, "COMMIT", reterr);
	if (rc == ERR_OK) {
		db->in_unit = false;
		return ERR_OK;
	}
	if (db->fault == DB_FAULT_GONE) {
		db->in_unit = false;
		return err_set(reterr, ERR_UNCERTAIN,
		    "database: the connection broke during COMMIT; the change may be in force");
	}
	db_rollback(db);
	return rc;
}

void
db_rollback(struct db *db)
{
	CHECK_MAGIC(db, DB_MAGIC);
	db->in_unit = false;
	/* A transaction that cannot be rolled back ends with its connection. */
	if (db->fault == DB_FAULT_GONE || db->conn == NULL)
		return;
	enum db_fault before = db->fault;
	if (run_text(db, "ROLLBACK", NULL) != ERR_OK)
		db->fault = DB_FAULT_GONE;
	else
		db->fault = before;
}

static enum err_code
run_once(struct db *db, enum db_unit_kind kind, db_unit_fn *fn, void *arg, struct err *reterr)
{
	enum err_code rc = db_begin(db, kind, reterr);
	if (rc != ERR_OK)
		return rc;
	rc = fn(db, arg, reterr);
	if (rc != ERR_OK) {
		db_rollback(db);
		return rc;
	}
	return db_commit(db, reterr);
}

/* Grows with the attempt and differs between contenders, so that they do not meet again. */
static void
pause_before(int attempt)
{
	uint16_t noise;
	id_random(&noise, sizeof(noise));
	long ms =
	    (5L << (attempt < 6 ? attempt : 6)) + noise % (10L << (attempt < 4 ? attempt : 4));
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) != 0)
		;
}

enum err_code
db_unit(struct db *db, enum db_unit_kind kind, db_unit_fn *fn, void *arg, struct err *reterr)
{
	CHECK_MAGIC(db, DB_MAGIC);
	if (db->in_unit) {
		CHECK(kind == DB_READ || db->kind != DB_READ);
		return fn(db, arg, reterr);
	}
	int64_t start_ms = clock_mono_ms();
	int gone = 0;
	for (int attempt = 0;; attempt++) {
		enum err_code rc = run_once(db, kind, fn, arg, reterr);
		if (rc == ERR_OK)
			return ERR_OK;
		if (db->fault == DB_FAULT_NONE)
			return rc;
		if (rc == ERR_UNCERTAIN && kind == DB_WRITE)
			return rc;
		gone += db->fault == DB_FAULT_GONE;
		if (attempt + 1 >= UNIT_ATTEMPTS || gone >= UNIT_GONE_MAX ||
		    clock_mono_ms() - start_ms > UNIT_DEADLINE_MS) {
			/* Do not let every waiting job spend the connect timeout. */
			if (db->conn == NULL)
				db->no_connect_before_ms = clock_mono_ms() + CONNECT_PAUSE_MS;
			return rc == ERR_UNCERTAIN && kind == DB_READ ? ERR_BUSY : rc;
		}
		/* The first loss is mostly an idle connection that the server closed. */
		if (gone != 1 || db->fault == DB_FAULT_RETRY)
			pause_before(attempt);
	}
}

static enum err_code
select_one(struct db *db, void *arg, struct err *reterr)
{
	(void)arg;
	int64_t one;
	return db_query_i64(db, "SELECT 1", DB_NO_ARGS, &one, reterr);
}

enum err_code
db_ping(struct db *db, struct err *reterr)
{
	return db_unit(db, DB_READ, select_one, NULL, reterr);
}
