/* MySQL and MariaDB through MariaDB Connector/C, blocking, over TCP unless a socket is named. The
 * library never reconnects by itself: that would lose the transaction without a word. */
#include <errmsg.h>
#include <errno.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "storage/sql/db_driver.h"

#define CONNECT_TIMEOUT_S 3u
#define IO_TIMEOUT_S      40u /* over the longest wait of a statement: GET_LOCK's 30 s */

/* Numbers that the header of one of the two vendors lacks. */
#define E_CONNECTION_KILLED 1927u
#define E_CLIENT_TIMEOUT    4031u
#define E_WSREP_NOT_READY   1047u
#define E_LOCK_NOWAIT       3572u
#define E_STMT_LOST         1243u
#define E_NEED_REPREPARE    1615u
#define E_READ_ONLY         1290u
#define E_READ_ONLY_MODE    1836u
#define E_SERVER_LOST_EXT   2055u

/* What the session must be, whatever the server's defaults are. */
static const char ISOLATION_SQL[] = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
static const char INIT_SQL[] =
    "SET time_zone='+00:00', autocommit=1, lock_wait_timeout=10, innodb_lock_wait_timeout=5, "
    "sql_mode='STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION'";

struct my_col {
	unsigned long len;
	my_bool is_null, error;
	bool is_int;
	long long num;
	char *buf;
	size_t cap;
};

struct my_stmt {
	MYSQL_STMT *h;
	unsigned n_cols;
	struct my_col col[DB_COLS_MAX];
	MYSQL_BIND bind[DB_COLS_MAX];
};

static enum err_code
classify(struct db *db, unsigned no, const char *text, struct err *reterr)
{
	switch (no) {
	case CR_SERVER_GONE_ERROR:
	case CR_SERVER_LOST:
	case E_SERVER_LOST_EXT:
	case CR_CONNECTION_ERROR:
	case CR_CONN_HOST_ERROR:
	case CR_COMMANDS_OUT_OF_SYNC:
	case ER_SERVER_SHUTDOWN:
	case E_CONNECTION_KILLED:
	case E_CLIENT_TIMEOUT:
	case E_WSREP_NOT_READY:
	case E_STMT_LOST:
	case E_NEED_REPREPARE:
	case E_READ_ONLY: /* a failover made it a replica */
	case E_READ_ONLY_MODE:
	case ER_NET_READ_ERROR:
	case ER_NET_READ_INTERRUPTED:
	case ER_NET_ERROR_ON_WRITE:
	case ER_NET_WRITE_INTERRUPTED:
		db->fault = DB_FAULT_GONE;
		return err_set(reterr, ERR_BUSY, "mysql: connection lost (%u)", no);
	case ER_LOCK_DEADLOCK:
	case ER_LOCK_WAIT_TIMEOUT:
	case ER_QUERY_INTERRUPTED:
	case E_LOCK_NOWAIT:
	case ER_TABLE_DEF_CHANGED: /* newer than the view that the transaction has */
		db->fault = DB_FAULT_RETRY;
		return err_set(reterr, ERR_BUSY, "mysql: locked by another transaction (%u)", no);
	case ER_DUP_ENTRY:
	case ER_DUP_ENTRY_WITH_KEY_NAME:
		return err_set(reterr, ERR_CONFLICT, "mysql: it exists already"); /* no value */
	case ER_DATA_TOO_LONG:
	case ER_TRUNCATED_WRONG_VALUE_FOR_FIELD:
	case ER_WARN_DATA_OUT_OF_RANGE:
	case ER_BAD_NULL_ERROR:
		return err_set(reterr, ERR_INPUT, "mysql: a column refuses a value (%u)", no);
	case ER_NET_PACKET_TOO_LARGE:
	case CR_NET_PACKET_TOO_LARGE:
		return err_set(reterr, ERR_TOOLARGE, "mysql: over max_allowed_packet (%u)", no);
	default:
		return err_set(reterr, ERR_INTERNAL, "mysql: %s (%u)", text, no);
	}
}

static enum err_code
fail(struct db *db, struct err *reterr)
{
	return classify(db, mysql_errno(db->conn), mysql_error(db->conn), reterr);
}

static enum err_code
fail_stmt(struct db_rows *st, struct err *reterr)
{
	struct my_stmt *s = st->impl;
	return classify(st->db, mysql_stmt_errno(s->h), mysql_stmt_error(s->h), reterr);
}

static void
init_library(void)
{
	(void)mysql_library_init(0, NULL, NULL);
}

static bool
set_options(MYSQL *m, const struct db_url *u)
{
	unsigned connect_s = CONNECT_TIMEOUT_S, io_s = IO_TIMEOUT_S, off = 0;
	my_bool no = 0, yes = 1;
	unsigned protocol = u->socket[0] != '\0' ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
	bool ok = mysql_options(m, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s) == 0 &&
		  mysql_options(m, MYSQL_OPT_READ_TIMEOUT, &io_s) == 0 &&
		  mysql_options(m, MYSQL_OPT_WRITE_TIMEOUT, &io_s) == 0 &&
		  mysql_options(m, MYSQL_SET_CHARSET_NAME, "utf8mb4") == 0 &&
		  mysql_options(m, MYSQL_INIT_COMMAND, INIT_SQL) == 0 &&
		  mysql_options(m, MYSQL_INIT_COMMAND, ISOLATION_SQL) == 0 &&
		  mysql_options(m, MYSQL_OPT_PROTOCOL, &protocol) == 0 &&
		  mysql_options(m, MYSQL_OPT_LOCAL_INFILE, &off) == 0 &&
		  mysql_options(m, MYSQL_OPT_RECONNECT, &no) == 0;
	if (ok && u->tls)
		ok = mysql_options(m, MYSQL_OPT_SSL_ENFORCE, &yes) == 0 &&
		     mysql_options(
			 m, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, u->tls_verify ? &yes : &no) == 0 &&
		     (u->tls_ca[0] == '\0' || mysql_options(m, MYSQL_OPT_SSL_CA, u->tls_ca) == 0);
	return ok;
}

static enum err_code
my_connect(struct db *db, struct err *reterr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, init_library);
	MYSQL *m = mysql_init(NULL);
	if (m == NULL)
		return err_set(reterr, ERR_NOMEM, "mysql: no memory");
	db->conn = m;
	const struct db_url *u = &db->url;
	if (!set_options(m, u))
		return err_set(reterr, ERR_INTERNAL, "mysql: the client library refuses an option");
	/* The library takes the socket only when the host is "localhost". */
	bool by_socket = u->socket[0] != '\0';
	const char *host = by_socket ? "localhost" : u->host;
	const char *socket_path = by_socket ? u->socket : NULL;
	/* Found, not changed, rows: as SQLite counts. No multiple statements in one text. */
	if (mysql_real_connect(m, host, u->user, u->password, u->database, u->port, socket_path,
		CLIENT_FOUND_ROWS) == NULL)
		return err_set(reterr, ERR_BUSY, "mysql: cannot connect to %s:%u: %s (%u)",
		    by_socket ? u->socket : host, by_socket ? 0u : (unsigned)u->port,
		    mysql_error(m), mysql_errno(m));
	return ERR_OK;
}

static void
my_disconnect(struct db *db)
{
	mysql_close(db->conn);
}

static bool
is_int_type(enum enum_field_types t)
{
	return t == MYSQL_TYPE_TINY || t == MYSQL_TYPE_SHORT || t == MYSQL_TYPE_INT24 ||
	       t == MYSQL_TYPE_LONG || t == MYSQL_TYPE_LONGLONG;
}

/* Integers come as 64 bits; everything else is fetched column by column at its length. */
static bool
bind_result(struct my_stmt *s)
{
	MYSQL_RES *meta = mysql_stmt_result_metadata(s->h);
	if (meta == NULL)
		return true; /* no result */
	s->n_cols = mysql_num_fields(meta);
	bool ok = s->n_cols <= DB_COLS_MAX;
	for (unsigned i = 0; ok && i < s->n_cols; i++) {
		struct my_col *c = &s->col[i];
		MYSQL_BIND *b = &s->bind[i];
		c->is_int = is_int_type(mysql_fetch_field_direct(meta, i)->type);
		b->buffer_type = c->is_int ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_STRING;
		b->buffer = c->is_int ? (void *)&c->num : NULL;
		b->buffer_length = c->is_int ? sizeof(c->num) : 0;
		b->length = &c->len;
		b->is_null = &c->is_null;
		b->error = &c->error;
	}
	mysql_free_result(meta);
	return ok;
}

static void
my_finish(struct db_rows *st)
{
	struct my_stmt *s = st->impl;
	(void)mysql_stmt_close(s->h);
	for (unsigned i = 0; i < s->n_cols; i++)
		mem_free(s->col[i].buf);
	mem_free(s);
}

static enum err_code
my_prepare(struct db_rows *st, struct err *reterr)
{
	struct my_stmt *s = MEM_NEW(struct my_stmt);
	st->impl = s;
	s->h = mysql_stmt_init(st->db->conn);
	enum err_code rc = ERR_OK;
	if (s->h == NULL)
		rc = err_set(reterr, ERR_NOMEM, "mysql: no memory");
	else if (mysql_stmt_prepare(s->h, st->sql, strlen(st->sql)) != 0)
		rc = fail_stmt(st, reterr);
	else if (!bind_result(s))
		rc = err_set(reterr, ERR_INTERNAL, "mysql: too many columns");
	if (rc != ERR_OK) {
		s->n_cols = 0;
		if (s->h != NULL)
			my_finish(st);
		else
			mem_free(s);
		st->impl = NULL;
	}
	return rc;
}

static void
fill_bind(MYSQL_BIND *b, const struct db_val *v, long long *num, unsigned long *len)
{
	if (v->type == DB_V_I64) {
		*num = v->num;
		b->buffer_type = MYSQL_TYPE_LONGLONG;
		b->buffer = num;
	} else if (v->type == DB_V_NULL || v->str.ptr == NULL) {
		b->buffer_type = MYSQL_TYPE_NULL;
	} else {
		*len = v->str.len;
		b->buffer_type = v->type == DB_V_TEXT ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
		/* The library reads it only. */
		memcpy(&b->buffer, &v->str.ptr, sizeof(b->buffer));
		b->buffer_length = v->str.len;
		b->length = len;
	}
}

static enum err_code
my_execute(
    struct db_rows *st, const struct db_val *args, size_t n, bool is_query, struct err *reterr)
{
	struct my_stmt *s = st->impl;
	MYSQL_BIND in[DB_ARGS_MAX];
	long long nums[DB_ARGS_MAX];
	unsigned long lens[DB_ARGS_MAX];
	if (mysql_stmt_param_count(s->h) != n)
		return err_set(reterr, ERR_INTERNAL, "mysql: wrong number of arguments");
	memset(in, 0, sizeof(in));
	for (size_t i = 0; i < n; i++)
		fill_bind(&in[i], &args[i], &nums[i], &lens[i]);
	if ((n > 0 && mysql_stmt_bind_param(s->h, in)) || mysql_stmt_execute(s->h) != 0)
		return fail_stmt(st, reterr);
	if (!is_query) {
		st->db->affected = (int64_t)mysql_stmt_affected_rows(s->h);
		return ERR_OK;
	}
	if (mysql_stmt_bind_result(s->h, s->bind) || mysql_stmt_store_result(s->h) != 0)
		return fail_stmt(st, reterr);
	return ERR_OK;
}

static enum err_code
fetch_text(struct db_rows *st, unsigned i, struct err *reterr)
{
	struct my_stmt *s = st->impl;
	struct my_col *c = &s->col[i];
	if (c->is_int || c->is_null || c->len == 0)
		return ERR_OK;
	if (c->len > DB_VALUE_MAX_BYTES)
		return err_set(reterr, ERR_TOOLARGE, "mysql: a stored value is over the limit");
	if (c->len > c->cap) {
		c->buf = mem_grow(c->buf, c->len, 1);
		c->cap = c->len;
	}
	unsigned long got = 0;
	MYSQL_BIND b;
	memset(&b, 0, sizeof(b));
	b.buffer_type = MYSQL_TYPE_STRING;
	b.buffer = c->buf;
	b.buffer_length = c->len;
	b.length = &got;
	if (mysql_stmt_fetch_column(s->h, &b, i, 0) != 0)
		return fail_stmt(st, reterr);
	return ERR_OK;
}

static enum err_code
my_next(struct db_rows *st, bool *ret_row, struct err *reterr)
{
	struct my_stmt *s = st->impl;
	int rc = mysql_stmt_fetch(s->h);
	if (rc == MYSQL_NO_DATA) {
		*ret_row = false;
		return ERR_OK;
	}
	if (rc != 0 && rc != MYSQL_DATA_TRUNCATED)
		return fail_stmt(st, reterr);
	for (unsigned i = 0; i < s->n_cols; i++) {
		enum err_code code = fetch_text(st, i, reterr);
		if (code != ERR_OK)
			return code;
	}
	*ret_row = true;
	return ERR_OK;
}

static void
my_reset(struct db_rows *st)
{
	struct my_stmt *s = st->impl;
	(void)mysql_stmt_free_result(s->h);
}

static struct str
my_col_text(struct db_rows *st, unsigned col)
{
	struct my_stmt *s = st->impl;
	struct my_col *c = &s->col[col];
	if (c->is_null)
		return STR_NULL;
	return c->len == 0 || c->is_int ? STR("") : str_n(c->buf, c->len);
}

static int64_t
my_col_i64(struct db_rows *st, unsigned col)
{
	struct my_stmt *s = st->impl;
	struct my_col *c = &s->col[col];
	if (c->is_null)
		return 0;
	if (c->is_int)
		return c->num;
	int64_t n; /* SUM() is a decimal */
	return str_i64(my_col_text(st, col), &n) ? n : 0;
}

static bool
my_col_is_null(struct db_rows *st, unsigned col)
{
	struct my_stmt *s = st->impl;
	return s->col[col].is_null != 0;
}

static enum err_code
my_run(struct db *db, const char *sql, size_t len, struct err *reterr)
{
	if (mysql_real_query(db->conn, sql, len) != 0)
		return fail(db, reterr);
	MYSQL_RES *res = mysql_store_result(db->conn);
	if (res != NULL)
		mysql_free_result(res);
	return ERR_OK;
}

/* Without READ ONLY, which TiDB refuses; db_unit keeps writes out. */
static const char *const BEGIN_READ[] = {"START TRANSACTION WITH CONSISTENT SNAPSHOT", NULL};
static const char *const BEGIN_WRITE[] = {"START TRANSACTION", NULL};

const struct db_driver db_mysql_driver = {
    .connect = my_connect,
    .disconnect = my_disconnect,
    .prepare = my_prepare,
    .finish = my_finish,
    .execute = my_execute,
    .next = my_next,
    .reset = my_reset,
    .col_text = my_col_text,
    .col_i64 = my_col_i64,
    .col_is_null = my_col_is_null,
    .run = my_run,
    .begin =
	{[DB_READ] = BEGIN_READ, [DB_WRITE] = BEGIN_WRITE, [DB_WRITE_REPEATABLE] = BEGIN_WRITE},
};
