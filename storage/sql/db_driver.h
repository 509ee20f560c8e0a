/* db_driver.h - what db.c asks of a database's driver. Private to storage/sql. */
#ifndef OTARI_STORAGE_SQL_DB_DRIVER_H
#define OTARI_STORAGE_SQL_DB_DRIVER_H

#include <sys/types.h>

#include "storage/sql/db.h"
#include "storage/sql/db_url.h"

#define DB_COLS_MAX 32u

/* What went wrong in the transaction, beyond the code that its caller got. Once set, every further
 * statement of the transaction is refused: the server may have rolled back half of it. */
enum db_fault {
	DB_FAULT_NONE,
	DB_FAULT_RETRY, /* deadlock, lock wait, busy: run the unit again */
	DB_FAULT_GONE,  /* connection lost: connect, then run the unit again */
};

struct db_rows { /* a prepared statement, and its result while it is open */
	struct db *db;
	const char *sql;
	void *impl; /* driver's */
	bool is_open;
};

struct db_driver {
	enum err_code (*connect)(struct db *db, struct err *reterr);
	void (*disconnect)(struct db *db); /* statements are finished already */
	enum err_code (*prepare)(struct db_rows *st, struct err *reterr);
	void (*finish)(struct db_rows *st);
	/* Sets db->affected. is_query: rows follow. */
	enum err_code (*execute)(struct db_rows *st, const struct db_val *args, size_t n,
	    bool is_query, struct err *reterr);
	enum err_code (*next)(struct db_rows *st, bool *ret_row, struct err *reterr);
	void (*reset)(struct db_rows *st);
	struct str (*col_text)(struct db_rows *st, unsigned col);
	int64_t (*col_i64)(struct db_rows *st, unsigned col);
	bool (*col_is_null)(struct db_rows *st, unsigned col);
	/* One statement as text, without result. */
	enum err_code (*run)(struct db *db, const char *sql, size_t len, struct err *reterr);
	const char *const *begin[DB_WRITE_REPEATABLE + 1]; /* statements, NULL-ended */
};

extern const struct db_driver db_sqlite_driver, db_mysql_driver;

struct db {
	uint32_t magic;
	const struct db_driver *drv;
	struct db_url url;
	void *conn; /* sqlite3 * or MYSQL *; NULL: not connected */
	pid_t pid;
	bool in_unit;
	enum db_unit_kind kind; /* of that unit */
	enum db_fault fault;
	int64_t affected;
	int64_t no_connect_before_ms; /* monotonic; after a failure */
	struct db_rows *stmts[DB_STMTS_MAX];
	size_t n_stmts;
};

#endif
