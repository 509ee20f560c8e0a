/* The embedded database. WAL, so that readers and the one writer do not wait for each other; FULL,
 * so that what was answered is on disk (usage as well: its spool file is deleted after COMMIT). */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "storage/sql/db_driver.h"

#define BUSY_TIMEOUT_MS 5000
#define SETUP_TRIES     250 /* 20 ms apart */

static enum err_code
fail(struct db *db, struct err *reterr)
{
	sqlite3 *h = db->conn;
	int ext = sqlite3_extended_errcode(h);
	const char *text = sqlite3_errmsg(h);
	switch (ext & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_SCHEMA:
		db->fault = DB_FAULT_RETRY;
		return err_set(reterr, ERR_BUSY, "sqlite: %s", text);
	case SQLITE_CONSTRAINT:
		if (ext == SQLITE_CONSTRAINT_UNIQUE || ext == SQLITE_CONSTRAINT_PRIMARYKEY)
			return err_set(reterr, ERR_CONFLICT, "sqlite: it exists already");
		return err_set(reterr, ERR_INPUT, "sqlite: %s", text);
	case SQLITE_TOOBIG:
		return err_set(reterr, ERR_TOOLARGE, "sqlite: %s", text);
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		errno = sqlite3_system_errno(h);
		return err_set(reterr, ERR_IO, "sqlite: %s", text);
	default:
		return err_set(reterr, ERR_INTERNAL, "sqlite: %s", text);
	}
}

/* The first switch to WAL fails with "locked" beside another process, whatever the timeout. */
static enum err_code
set_up(struct db *db, struct err *reterr)
{
	static const char SQL[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
				  "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
				  "PRAGMA wal_autocheckpoint=1000; PRAGMA trusted_schema=OFF;";
	for (int i = 0;; i++) {
		int rc = sqlite3_exec(db->conn, SQL, NULL, NULL, NULL);
		if (rc == SQLITE_OK)
			return ERR_OK;
		if ((rc & 0xff) != SQLITE_BUSY || i + 1 == SETUP_TRIES)
			return fail(db, reterr);
		struct timespec ts = {0, 20 * 1000 * 1000};
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	}
}

/* SQLite would make it readable to all. mknod and not open, where it is allowed: closing a second
 * descriptor of the file would drop the locks that another thread holds. */
static bool
make_private(const char *path)
{
	if (mknod(path, S_IFREG | 0600, 0) == 0 || errno == EEXIST)
		return true;
	int fd = fd_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	bool ok = fd >= 0 || errno == EEXIST;
	fd_close(&fd);
	return ok;
}

static enum err_code
lite_connect(struct db *db, struct err *reterr)
{
	const char *path = db->url.path;
	if (!make_private(path))
		return err_set(reterr, ERR_IO, "sqlite: cannot make %s", path);
	sqlite3 *h = NULL;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(path, &h, flags, NULL);
	db->conn = h;
	if (h == NULL)
		return err_set(reterr, ERR_NOMEM, "sqlite: no memory");
	if (rc != SQLITE_OK) {
		enum err_code code = fail(db, reterr);
		err_prefix(reterr, "%s: ", path);
		return code;
	}
	(void)sqlite3_busy_timeout(h, BUSY_TIMEOUT_MS);
	enum err_code code = set_up(db, reterr);
	if (code != ERR_OK)
		err_prefix(reterr, "%s: ", path);
	return code;
}

static void
lite_disconnect(struct db *db)
{
	(void)sqlite3_close(db->conn);
}

static enum err_code
lite_prepare(struct db_rows *st, struct err *reterr)
{
	sqlite3_stmt *h = NULL;
	int rc = sqlite3_prepare_v3(st->db->conn, st->sql, -1, SQLITE_PREPARE_PERSISTENT, &h, NULL);
	if (rc != SQLITE_OK)
		return fail(st->db, reterr);
	st->impl = h;
	return ERR_OK;
}

static void
lite_finish(struct db_rows *st)
{
	(void)sqlite3_finalize(st->impl);
}

static int
bind(sqlite3_stmt *h, int i, const struct db_val *v)
{
	if (v->type == DB_V_I64)
		return sqlite3_bind_int64(h, i, v->num);
	if (v->type == DB_V_NULL || v->str.ptr == NULL)
		return sqlite3_bind_null(h, i);
	if (v->type == DB_V_TEXT)
		return sqlite3_bind_text64(
		    h, i, v->str.ptr, v->str.len, SQLITE_TRANSIENT, SQLITE_UTF8);
	return sqlite3_bind_blob64(h, i, v->str.ptr, v->str.len, SQLITE_TRANSIENT);
}

static enum err_code
lite_execute(
    struct db_rows *st, const struct db_val *args, size_t n, bool is_query, struct err *reterr)
{
	sqlite3_stmt *h = st->impl;
	for (size_t i = 0; i < n; i++)
		if (bind(h, (int)i + 1, &args[i]) != SQLITE_OK)
			return fail(st->db, reterr);
	if (is_query)
		return ERR_OK;
	if (sqlite3_step(h) != SQLITE_DONE)
		return fail(st->db, reterr);
	st->db->affected = sqlite3_changes64(st->db->conn);
	return ERR_OK;
}

static enum err_code
lite_next(struct db_rows *st, bool *ret_row, struct err *reterr)
{
	int rc = sqlite3_step(st->impl);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return fail(st->db, reterr);
	*ret_row = rc == SQLITE_ROW;
	return ERR_OK;
}

static void
lite_reset(struct db_rows *st)
{
	(void)sqlite3_reset(st->impl);
	(void)sqlite3_clear_bindings(st->impl);
}

static struct str
lite_col_text(struct db_rows *st, unsigned col)
{
	sqlite3_stmt *h = st->impl;
	int type = sqlite3_column_type(h, (int)col);
	if (type == SQLITE_NULL)
		return STR_NULL;
	const void *p = type == SQLITE_BLOB ? sqlite3_column_blob(h, (int)col)
					    : (const void *)sqlite3_column_text(h, (int)col);
	int n = sqlite3_column_bytes(h, (int)col);
	return p == NULL ? STR("") : str_n(p, (size_t)n);
}

static int64_t
lite_col_i64(struct db_rows *st, unsigned col)
{
	return sqlite3_column_int64(st->impl, (int)col);
}

static bool
lite_col_is_null(struct db_rows *st, unsigned col)
{
	return sqlite3_column_type(st->impl, (int)col) == SQLITE_NULL;
}

static enum err_code
lite_run(struct db *db, const char *sql, size_t len, struct err *reterr)
{
	sqlite3_stmt *h = NULL;
	int rc = sqlite3_prepare_v2(db->conn, sql, (int)len, &h, NULL);
	if (rc == SQLITE_OK && h != NULL)
		do
			rc = sqlite3_step(h);
		while (rc == SQLITE_ROW);
	enum err_code code = rc == SQLITE_OK || rc == SQLITE_DONE ? ERR_OK : fail(db, reterr);
	(void)sqlite3_finalize(h);
	return code;
}

static const char *const BEGIN_READ[] = {"BEGIN", NULL};
static const char *const BEGIN_WRITE[] = {"BEGIN IMMEDIATE", NULL};

const struct db_driver db_sqlite_driver = {
    .connect = lite_connect,
    .disconnect = lite_disconnect,
    .prepare = lite_prepare,
    .finish = lite_finish,
    .execute = lite_execute,
    .next = lite_next,
    .reset = lite_reset,
    .col_text = lite_col_text,
    .col_i64 = lite_col_i64,
    .col_is_null = lite_col_is_null,
    .run = lite_run,
    .begin =
	{[DB_READ] = BEGIN_READ, [DB_WRITE] = BEGIN_WRITE, [DB_WRITE_REPEATABLE] = BEGIN_WRITE},
};
