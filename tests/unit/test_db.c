#include <sys/stat.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "storage/sql/store_generation.h"
#include "storage/sql/store_setting.h"
#include "tests/unit/dbfix.h"

static void
must_script(struct db *db, const char *sql)
{
	struct err err = {0};
	cr_assert_eq(db_begin(db, DB_WRITE, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(db_script(db, str_c(sql), &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(db_commit(db, &err), ERR_OK, "%s", err.msg);
}

/* --- values --------------------------------------------------------------------------------------
 */

static enum err_code
round_trip(struct db *db, void *arg, struct err *reterr)
{
	static const char INSERT[] = "INSERT INTO v (id, t, b, n) VALUES (?, ?, ?, ?)";
	static const char SELECT[] = "SELECT t, b, n, id FROM v ORDER BY id";
	static const unsigned char blob[] = {0, 1, 0xff, 0};
	const char *name = arg;
	struct str emoji = STR("\xf0\x9f\x8d\x8e it's \"q\" 販");
	struct str big = str_n(mem_alloc(300000), 300000);
	enum err_code rc = db_exec(db, INSERT,
	    DB_ARGS(
		DB_I64(1), DB_TEXT(emoji), DB_BLOB(str_n(blob, sizeof(blob))), DB_I64(INT64_MIN)),
	    reterr);
	cr_assert_eq(rc, ERR_OK, "%s: %s", name, reterr->msg);
	cr_assert_eq(db_affected(db), 1);
	rc =
	    db_exec(db, INSERT, DB_ARGS(DB_I64(2), DB_TEXT(STR_NULL), DB_NULL, DB_TIME(0)), reterr);
	cr_assert_eq(rc, ERR_OK, "%s: %s", name, reterr->msg);
	rc = db_exec(db, INSERT,
	    DB_ARGS(DB_I64(3), DB_TEXT(STR("")), DB_BLOB(big), DB_I64(INT64_MAX)), reterr);
	cr_assert_eq(rc, ERR_OK, "%s: %s", name, reterr->msg);
	struct db_rows *rows;
	cr_assert_eq(db_query(db, SELECT, DB_NO_ARGS, &rows, reterr), ERR_OK);
	bool has_row;
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	cr_assert(str_eq(db_col_text(rows, 0), emoji), "%s", name);
	cr_assert(str_eq(db_col_text(rows, 1), str_n(blob, sizeof(blob))), "%s", name);
	cr_assert_eq(db_col_i64(rows, 2), INT64_MIN);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	cr_assert_null(db_col_text(rows, 0).ptr);
	cr_assert(db_col_is_null(rows, 1) && db_col_is_null(rows, 2) && db_col_i64(rows, 2) == 0);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	cr_assert(db_col_text(rows, 0).ptr != NULL && db_col_text(rows, 0).len == 0);
	cr_assert(str_eq(db_col_text(rows, 1), big), "%s", name);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && !has_row);
	db_rows_end(&rows);
	/* The next row's text must not be the last one's. */
	cr_assert_eq(db_query(db, SELECT, DB_NO_ARGS, &rows, reterr), ERR_OK);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	cr_assert(str_eq(db_col_text(rows, 0), emoji), "%s", name);
	db_rows_end(&rows);
	char *huge = mem_alloc(DB_VALUE_MAX_BYTES + 1);
	rc = db_exec(db, INSERT,
	    DB_ARGS(DB_I64(4), DB_BLOB(str_n(huge, DB_VALUE_MAX_BYTES + 1)), DB_NULL, DB_NULL),
	    NULL);
	cr_assert_eq(rc, ERR_TOOLARGE);
	mem_free(huge);
	char *mut;
	memcpy(&mut, &big.ptr, sizeof(mut));
	mem_free(mut);
	rc = db_exec(db, INSERT, DB_ARGS(DB_I64(1), DB_NULL, DB_NULL, DB_NULL), reterr);
	cr_assert_eq(rc, ERR_CONFLICT, "%s: %s", name, reterr->msg);
	return ERR_OK;
}

static void
values(struct dbfix *f)
{
	struct err err = {0};
	char name[16];
	(void)snprintf(name, sizeof(name), "%s", f->name);
	must_script(f->db,
	    db_pick(f->db, "CREATE TABLE v (id INTEGER PRIMARY KEY, t TEXT, b BLOB, n INTEGER);\n",
		"CREATE TABLE v (id BIGINT PRIMARY KEY, t TEXT CHARACTER SET utf8mb4,"
		" b LONGBLOB, n BIGINT) ENGINE=InnoDB;\n"));
	cr_assert_eq(db_unit(f->db, DB_WRITE, round_trip, name, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(db_ping(f->db, &err), ERR_OK);
}

Test(db, carries_values_unchanged, .timeout = 60)
{
	dbfix_each(values);
}

/* --- units ---------------------------------------------------------------------------------------
 */

struct attempt {
	int runs, fail_first;
	int64_t id;
	struct dbfix *f;
	const char *trouble;
};

static const char SQL_ADD[] = "INSERT INTO w (id, n) VALUES (?, ?)";
static const char SQL_COUNT[] = "SELECT COUNT(*) FROM w";

static int64_t connection_id; /* of the connection under test */

static enum err_code
add_then_fail(struct db *db, void *arg, struct err *reterr)
{
	struct attempt *a = arg;
	a->runs++;
	enum err_code rc = db_exec(db, SQL_ADD, DB_ARGS(DB_I64(a->id), DB_I64(a->runs)), reterr);
	if (rc == ERR_OK && a->fail_first)
		rc = err_set(reterr, ERR_DENIED, "no");
	return rc;
}

static enum err_code
count(struct db *db, void *arg, struct err *reterr)
{
	return db_query_i64(db, SQL_COUNT, DB_NO_ARGS, arg, reterr);
}

static enum err_code
outer(struct db *db, void *arg, struct err *reterr)
{
	enum err_code rc = db_unit(db, DB_WRITE, add_then_fail, arg, reterr);
	cr_assert_eq(rc, ERR_OK);
	return err_set(reterr, ERR_LIMIT, "the outer one fails");
}

static void
make_w(struct dbfix *f)
{
	must_script(
	    f->db, db_pick(f->db, "CREATE TABLE w (id INTEGER PRIMARY KEY, n INTEGER);\n",
		       "CREATE TABLE w (id BIGINT PRIMARY KEY, n BIGINT) ENGINE=InnoDB;\n"));
}

static void
rollback(struct dbfix *f)
{
	struct err err = {0};
	int64_t n = -1;
	make_w(f);
	struct attempt a = {.fail_first = 1, .id = 1};
	cr_assert_eq(db_unit(f->db, DB_WRITE, add_then_fail, &a, &err), ERR_DENIED);
	cr_assert_eq(a.runs, 1, "its own decision is not tried again");
	a = (struct attempt){.id = 2};
	cr_assert_eq(db_unit(f->db, DB_WRITE, outer, &a, &err), ERR_LIMIT);
	cr_assert_eq(db_unit(f->db, DB_READ, count, &n, &err), ERR_OK);
	cr_assert_eq(n, 0, "%s: both are rolled back", f->name);
	a = (struct attempt){.id = 3};
	cr_assert_eq(db_unit(f->db, DB_WRITE, add_then_fail, &a, &err), ERR_OK);
	cr_assert_eq(db_unit(f->db, DB_WRITE, add_then_fail, &a, &err), ERR_CONFLICT);
	cr_assert_eq(a.runs, 2);
}

Test(db, rolls_a_failed_unit_back, .timeout = 60)
{
	dbfix_each(rollback);
}

/* Kills the connection in the middle of the unit the first time. */
static enum err_code
killed_unit(struct db *db, void *arg, struct err *reterr)
{
	struct attempt *a = arg;
	enum err_code rc =
	    db_query_i64(db, "SELECT CONNECTION_ID()", DB_NO_ARGS, &connection_id, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_ADD, DB_ARGS(DB_I64(a->id), DB_I64(1)), reterr);
	if (rc != ERR_OK)
		return rc;
	if (a->runs++ < a->fail_first) {
		struct db *other = dbfix_connect(a->f);
		char sql[64];
		(void)snprintf(sql, sizeof(sql), "KILL %lld;\n", (long long)connection_id);
		must_script(other, sql);
		db_close(&other);
	}
	return db_exec(db, SQL_ADD, DB_ARGS(DB_I64(a->id + 1), DB_I64(2)), reterr);
}

Test(db, runs_a_unit_again_when_its_connection_is_killed, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct err err = {0};
	int64_t n = 0;
	dbfix_open(&f, DB_MYSQL);
	make_w(&f);
	struct attempt a = {.fail_first = 1, .id = 10, .f = &f};
	cr_assert_eq(db_unit(f.db, DB_WRITE, killed_unit, &a, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(a.runs, 2);
	cr_assert_eq(db_unit(f.db, DB_READ, count, &n, &err), ERR_OK);
	cr_assert_eq(n, 2, "once each");
	a = (struct attempt){.fail_first = 99, .id = 20, .f = &f};
	cr_assert_eq(db_unit(f.db, DB_WRITE, killed_unit, &a, &err), ERR_BUSY);
	cr_assert_leq(a.runs, 4, "bounded");
	/* Idle over wait_timeout: the server closes; the next request does not notice. */
	must_script(f.db, "SET SESSION wait_timeout=1;\n");
	struct timespec ts = {2, 200 * 1000 * 1000};
	(void)nanosleep(&ts, NULL);
	a = (struct attempt){.id = 30};
	cr_assert_eq(db_unit(f.db, DB_WRITE, add_then_fail, &a, &err), ERR_OK, "%s", err.msg);
	dbfix_close(&f);
}

struct locker {
	struct db *db;
	int64_t first, second;
	pthread_barrier_t *barrier;
	int runs;
	enum err_code rc;
	struct err err;
};

static enum err_code
cross_update(struct db *db, void *arg, struct err *reterr)
{
	static const char UPDATE[] = "UPDATE w SET n = n + 1 WHERE id = ?";
	struct locker *l = arg;
	enum err_code rc = db_exec(db, UPDATE, DB_ARGS(DB_I64(l->first)), reterr);
	if (rc != ERR_OK)
		return rc;
	if (l->runs++ == 0)
		(void)pthread_barrier_wait(l->barrier);
	return db_exec(db, UPDATE, DB_ARGS(DB_I64(l->second)), reterr);
}

static void *
lock_thread(void *arg)
{
	struct locker *l = arg;
	l->rc = db_unit(l->db, DB_WRITE, cross_update, l, &l->err);
	return NULL;
}

static enum err_code
sum_n(struct db *db, void *arg, struct err *reterr)
{
	return db_query_i64(db, "SELECT SUM(n) FROM w", DB_NO_ARGS, arg, reterr);
}

Test(db, runs_the_victim_of_a_deadlock_again, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct err err = {0};
	dbfix_open(&f, DB_MYSQL);
	make_w(&f);
	must_script(f.db, "INSERT INTO w (id, n) VALUES (1, 0), (2, 0);\n");
	pthread_barrier_t barrier;
	(void)pthread_barrier_init(&barrier, NULL, 2);
	struct locker l[2] = {{dbfix_connect(&f), 1, 2, &barrier, 0, ERR_OK, {0}},
	    {dbfix_connect(&f), 2, 1, &barrier, 0, ERR_OK, {0}}};
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, lock_thread, &l[i]), 0);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(l[i].rc, ERR_OK, "%s", l[i].err.msg);
	cr_assert_eq(l[0].runs + l[1].runs, 3, "one of them ran twice");
	int64_t n = 0;
	cr_assert_eq(db_unit(f.db, DB_READ, sum_n, &n, &err), ERR_OK);
	cr_assert_eq(n, 4);
	for (int i = 0; i < 2; i++)
		db_close(&l[i].db);
	dbfix_close(&f);
}

struct waiter {
	struct db *holder;
	int runs;
};

/* The second of three statements meets a row that another transaction holds: MySQL rolls only that
 * statement back (1205), so the whole unit has to be. */
static enum err_code
three_statements(struct db *db, void *arg, struct err *reterr)
{
	struct waiter *w = arg;
	struct err err = {0};
	if (w->runs++ == 1)
		cr_assert_eq(db_commit(w->holder, &err), ERR_OK, "%s", err.msg);
	enum err_code rc = db_exec(db, SQL_ADD, DB_ARGS(DB_I64(50), DB_I64(0)), reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, "UPDATE w SET n = n + 1 WHERE id = 1", DB_NO_ARGS, reterr);
	enum err_code third = db_exec(db, SQL_ADD, DB_ARGS(DB_I64(51), DB_I64(0)), &err);
	if (rc != ERR_OK) /* also for who goes on regardless */
		cr_assert_eq(third, ERR_BUSY, "no statement after the transaction is lost");
	return ERR_OK;
}

Test(db, rolls_the_whole_unit_back_after_a_lock_wait, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct err err = {0};
	int64_t n = 0;
	dbfix_open(&f, DB_MYSQL);
	make_w(&f);
	must_script(f.db,
	    "INSERT INTO w (id, n) VALUES (1, 0);\nSET SESSION innodb_lock_wait_timeout=1;\n");
	struct waiter w = {.holder = dbfix_connect(&f)};
	cr_assert_eq(db_begin(w.holder, DB_WRITE, &err), ERR_OK);
	cr_assert_eq(
	    db_exec(w.holder, "UPDATE w SET n = 5 WHERE id = 1", DB_NO_ARGS, &err), ERR_OK);
	cr_assert_eq(db_unit(f.db, DB_WRITE, three_statements, &w, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(w.runs, 2);
	cr_assert_eq(db_unit(f.db, DB_READ, sum_n, &n, &err), ERR_OK);
	cr_assert_eq(n, 6);
	cr_assert_eq(db_unit(f.db, DB_READ, count, &n, &err), ERR_OK);
	cr_assert_eq(n, 3);
	db_close(&w.holder);
	dbfix_close(&f);
}

/* --- the connection ------------------------------------------------------------------------------
 */

static enum err_code
session(struct db *db, void *arg, struct err *reterr)
{
	struct str want = STR("+00:00 utf8mb4 1 REPEATABLE-READ");
	(void)arg;
	struct db_rows *rows;
	bool has_row;
	cr_assert_eq(db_query(db,
			 "SELECT CONCAT_WS(' ', @@time_zone, @@character_set_client,"
			 " @@sql_mode LIKE '%STRICT_ALL_TABLES%', @@tx_isolation)",
			 DB_NO_ARGS, &rows, reterr),
	    ERR_OK, "%s", reterr->msg);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	cr_assert(str_eq(db_col_text(rows, 0), want), "%.*s", STR_FMT(db_col_text(rows, 0)));
	db_rows_end(&rows);
	return ERR_OK;
}

Test(db, sets_the_session_up_whatever_the_server_says, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct err err = {0};
	dbfix_open(&f, DB_MYSQL);
	cr_assert_eq(db_unit(f.db, DB_READ, session, NULL, &err), ERR_OK);
	/* Unreachable: a clear error, at once, and not for every waiting job again. */
	struct db *db = NULL;
	cr_assert_eq(
	    db_open(STR("mysql://u:s3cr3t@127.0.0.1:1/d"), DB_OPEN_NOW, &db, &err), ERR_BUSY);
	cr_assert_null(strstr(err.msg, "s3cr3t"));
	cr_assert_not_null(strstr(err.msg, "cannot connect to 127.0.0.1:1"), "%s", err.msg);
	cr_assert_eq(db_open(STR("mysql://u@127.0.0.1:1/d"), DB_OPEN_LAZY, &db, &err), ERR_OK);
	cr_assert_eq(db_ping(db, &err), ERR_BUSY);
	cr_assert_eq(db_ping(db, &err), ERR_BUSY);
	cr_assert_not_null(strstr(err.msg, "a moment ago"), "%s", err.msg);
	db_close(&db);
	/* A wrong password is the operator's business, not the client's. */
	char url[128];
	(void)snprintf(url, sizeof(url), "mysql://otari:bad@127.0.0.1:%d/otari", f.port);
	cr_assert_eq(db_open(str_c(url), DB_OPEN_NOW, &db, &err), ERR_BUSY);
	cr_assert_not_null(strstr(err.msg, "Access denied"), "%s", err.msg);
	/* By the socket that the URL names. */
	(void)snprintf(
	    url, sizeof(url), "mysql://root@localhost/otari?socket=%s/my%d/s", f.dir, f.port);
	cr_assert_eq(db_open(str_c(url), DB_OPEN_NOW, &db, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(db_unit(db, DB_READ, session, NULL, &err), ERR_OK);
	db_close(&db);
	dbfix_close(&f);
}

static enum err_code
cipher(struct db *db, void *arg, struct err *reterr)
{
	struct db_rows *rows;
	bool has_row;
	cr_assert_eq(
	    db_query(db, "SHOW STATUS LIKE 'Ssl_cipher'", DB_NO_ARGS, &rows, reterr), ERR_OK);
	cr_assert(db_next(rows, &has_row, reterr) == ERR_OK && has_row);
	*(size_t *)arg = db_col_text(rows, 1).len;
	db_rows_end(&rows);
	return ERR_OK;
}

Test(db, speaks_tls_and_checks_the_server_when_told, .timeout = 60)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	dbfix_open(&f, DB_MYSQL);
	char ca[128], other[128];
	(void)snprintf(ca, sizeof(ca), "?ssl_ca=%s/my%d/server.pem", f.dir, f.port);
	(void)snprintf(other, sizeof(other), "?ssl_ca=%s/my%d/other.pem", f.dir, f.port);
	const struct {
		const char *options;
		bool works, is_encrypted;
	} rows[] = {
	    {"", true, false},
	    {"?ssl=0", true, false},
	    {"?ssl=1", true, true},
	    {ca, true, true},
	    {other, false, false},
	    {"?ssl=1&ssl_verify=1", false, false}, /* the system does not know that issuer */
	    {"?ssl_ca=/nonexistent.pem", false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct db *db = NULL;
		struct err err = {0};
		char url[320];
		size_t len = 0;
		(void)snprintf(url, sizeof(url), "%s%s", f.url, rows[i].options);
		enum err_code rc = db_open(str_c(url), DB_OPEN_NOW, &db, &err);
		cr_assert_eq(
		    rc, rows[i].works ? ERR_OK : ERR_BUSY, "%s: %s", rows[i].options, err.msg);
		if (rc != ERR_OK)
			continue;
		cr_assert_eq(db_unit(db, DB_READ, cipher, &len, &err), ERR_OK);
		cr_assert_eq(len > 0, rows[i].is_encrypted, "%s", rows[i].options);
		db_close(&db);
	}
	dbfix_close(&f);
}

Test(db, makes_a_private_sqlite_file, .timeout = 20)
{
	struct dbfix f;
	struct err err = {0};
	dbfix_open(&f, DB_SQLITE);
	struct stat st;
	cr_assert_eq(stat(f.url + strlen("sqlite:///"), &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	struct db *db = NULL;
	cr_assert_eq(db_open(STR("sqlite:////nonexistent/x.db"), DB_OPEN_NOW, &db, &err), ERR_IO);
	cr_assert_not_null(strstr(err.msg, "/nonexistent/x.db"));
	char junk[128];
	(void)snprintf(junk, sizeof(junk), "%s/junk", f.dir);
	FILE *file = fopen(junk, "w");
	for (int i = 0; i < 100; i++)
		cr_assert_gt(fprintf(file, "this is not a database\n"), 0);
	(void)fclose(file);
	(void)snprintf(junk, sizeof(junk), "sqlite:///%s/junk", f.dir);
	cr_assert_eq(db_open(str_c(junk), DB_OPEN_NOW, &db, &err), ERR_IO);
	cr_assert_not_null(strstr(err.msg, "not a database"), "%s", err.msg);
	dbfix_close(&f);
}

/* --- several writers -----------------------------------------------------------------------------
 */

static void *
bump_thread(void *arg)
{
	struct dbfix *f = arg;
	struct db *db = dbfix_connect(f);
	for (int i = 0; i < 25; i++) {
		struct store_setting s = {STR("k"), STR("v")};
		struct err err = {0};
		cr_assert_eq(store_setting_apply(db, &s, 1, NULL, &err), ERR_OK, "%s", err.msg);
	}
	db_close(&db);
	return NULL;
}

static void
writers(struct dbfix *f)
{
	struct err err = {0};
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, bump_thread, f), 0);
	for (int i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	struct store_generation g;
	cr_assert_eq(store_generation_read(f->db, &g, &err), ERR_OK);
	cr_assert(g.policy == 101 && g.keys == 1, "%s: %lld", f->name, (long long)g.policy);
}

Test(db, counts_every_change_of_four_writers, .timeout = 60)
{
	dbfix_each(writers);
}
