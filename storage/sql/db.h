/* db.h - one SQL connection, SQLite or MySQL/MariaDB behind one small blocking interface
 *
 * Process: worker (its job threads), builder, sweeper. Never an event loop: every call may block.
 *          One connection per thread; opened after fork, checked at every transaction.
 * Owns:    the connection and its prepared statements, which live as long as the connection and
 *          are made again after a reconnect. SQL texts are static: their address is the cache key.
 * Limits:  DB_VALUE_MAX_BYTES a value, DB_ARGS_MAX arguments, DB_STMTS_MAX statements.
 * Errors:  ERR_CONFLICT unique violation; ERR_BUSY unreachable or locked past all retries;
 *          ERR_UNCERTAIN the connection broke while COMMIT was under way; ERR_TOOLARGE a value over
 *          the limit; ERR_INPUT a value that its column refuses; ERR_UNSUPPORTED postgresql://;
 *          ERR_INTERNAL anything else the database says. Texts never hold values or passwords.
 */
#ifndef OTARI_STORAGE_SQL_DB_H
#define OTARI_STORAGE_SQL_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define DB_VALUE_MAX_BYTES (1024u * 1024u)
#define DB_ARGS_MAX        32u
#define DB_STMTS_MAX       96u

struct db;
struct db_rows;

enum db_kind { DB_SQLITE, DB_MYSQL };
/* DB_LAZY: do not connect yet; the first unit does (a daemon that goes on without a database). */
enum db_open_flags { DB_OPEN_NOW = 0, DB_OPEN_LAZY = 1 };

/* url: sqlite:///PATH (sqlite:////abs/path, sqlite:///relative) or
 * mysql://user:password@host:3306/database[?socket=PATH][&ssl=1][&ssl_ca=PATH]. */
MUST_CHECK enum err_code db_open(
    struct str url, enum db_open_flags flags, struct db **ret, struct err *reterr);
void db_close(struct db **db); /* NULL allowed; an open transaction is rolled back */
enum db_kind db_kind(const struct db *db);
/* The statement in this database's dialect. */
const char *db_pick(const struct db *db, const char *sqlite, const char *mysql);

struct db_val {
	enum { DB_V_NULL, DB_V_I64, DB_V_TEXT, DB_V_BLOB } type;
	int64_t num;
	struct str str;
};
#define DB_NULL    ((struct db_val){DB_V_NULL, 0, {NULL, 0}})
#define DB_I64(n)  ((struct db_val){DB_V_I64, (int64_t)(n), {NULL, 0}})
#define DB_TEXT(s) ((struct db_val){DB_V_TEXT, 0, (s)}) /* STR_NULL binds NULL */
#define DB_BLOB(s) ((struct db_val){DB_V_BLOB, 0, (s)}) /* STR_NULL binds NULL */
/* 0 or less binds NULL: "no such time". */
#define DB_TIME(t) ((t) > 0 ? DB_I64(t) : DB_NULL)
#define DB_ARGS(...)                                                                               \
	(const struct db_val[]){__VA_ARGS__},                                                      \
	    sizeof((const struct db_val[]){__VA_ARGS__}) / sizeof(struct db_val)
#define DB_NO_ARGS NULL, 0

/* Statements; inside a unit only. Arguments are borrowed for the call. */
MUST_CHECK enum err_code db_exec(
    struct db *db, const char *sql, const struct db_val *args, size_t n, struct err *reterr);
/* Rows matched by the last db_exec: on both databases an UPDATE that changes nothing counts. */
int64_t db_affected(const struct db *db);
/* Returns owned; end with db_rows_end before the unit ends. One open result per SQL text. */
MUST_CHECK enum err_code db_query(struct db *db, const char *sql, const struct db_val *args,
    size_t n, struct db_rows **ret, struct err *reterr);
/* *ret_row is false after the last row. Columns are valid until the next call. */
MUST_CHECK enum err_code db_next(struct db_rows *rows, bool *ret_row, struct err *reterr);
void db_rows_end(struct db_rows **rows);
struct str db_col_text(struct db_rows *rows, unsigned col); /* STR_NULL for NULL; blobs too */
int64_t db_col_i64(struct db_rows *rows, unsigned col);     /* 0 for NULL */
bool db_col_is_null(struct db_rows *rows, unsigned col);
/* First column of the first row; ERR_NOTFOUND without one, 0 for NULL. */
MUST_CHECK enum err_code db_query_i64(struct db *db, const char *sql, const struct db_val *args,
    size_t n, int64_t *ret, struct err *reterr);
/* Several statements without arguments, each ending in ";\n": schema steps. */
MUST_CHECK enum err_code db_script(struct db *db, struct str sql, struct err *reterr);

/* A unit is one transaction that is run again from its start when the database asks for it
 * (deadlock, lock wait, SQLITE_BUSY) or the connection turns out to be gone; the caller never sees
 * those. fn may run several times: it sets its outputs afresh each time and does nothing but SQL.
 * A unit inside a unit joins the outer one. */
enum db_unit_kind {
	DB_READ,             /* one consistent view of all tables */
	DB_WRITE,            /* SQLite: BEGIN IMMEDIATE */
	DB_WRITE_REPEATABLE, /* running it twice does no harm: also retried when COMMIT's end is
				unknown */
};
typedef enum err_code db_unit_fn(struct db *db, void *arg, struct err *reterr);
MUST_CHECK enum err_code db_unit(
    struct db *db, enum db_unit_kind kind, db_unit_fn *fn, void *arg, struct err *reterr);
/* The bare transaction, for schema steps and tests; everything else uses db_unit. */
MUST_CHECK enum err_code db_begin(struct db *db, enum db_unit_kind kind, struct err *reterr);
MUST_CHECK enum err_code db_commit(struct db *db, struct err *reterr);
void db_rollback(struct db *db);
/* Outside a unit, without a transaction: is it reachable? Connects when needed. */
MUST_CHECK enum err_code db_ping(struct db *db, struct err *reterr);

#endif
