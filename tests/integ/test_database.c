/* The daemon and its database: MySQL as well, away and back; and what the sweeper takes away. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "storage/sql/store_usage.h"
#include "tests/integ/harness.h"
#include "tests/unit/dbfix.h"

#define HELLO STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}")
#define NAME  "Simple \xe2\x80\x93 G\xc3\xa9n\xc3\xa9rer \xf0\x9f\x93\x88.csv"

TestSuite(database, .timeout = 120);

static int64_t
usage_rows(struct dbfix *f)
{
	struct store_usage_total t = {0};
	struct err err = {0};

	cr_assert_eq(
	    store_usage_total(f->db, STR_NULL, 0, INT64_MAX, &t, &err), ERR_OK, "%s", err.msg);
	return t.requests;
}

static bool
wait_usage_rows(struct dbfix *f, int64_t n)
{
	for (int i = 0; i < 2000 && usage_rows(f) < n; i++)
		pause_short();
	return usage_rows(f) >= n;
}

static long
status_of(struct server *s, const char *method, const char *path, struct str body)
{
	struct reply r;

	server_ask(s, method, path, body, NULL, &r);
	long status = r.status;
	reply_done(&r);
	return status;
}

Test(database, mysql_holds_keys_files_and_usage)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	struct reply r;
	dbfix_open(&f, DB_MYSQL);
	struct server *s = server_start(&(struct server_opts){.database = f.url, .keep = f.server});

	server_upload(s, "/v1/files", NAME, "text/csv", STR("a,b\n1,2\n"), "user_data", NULL, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	json_t *root = reply_json(&r);
	char path[128];
	(void)snprintf(path, sizeof(path), "/v1/files/%s", at(root, "id"));
	cr_expect_str_eq(at(root, "filename"), NAME);
	json_decref(root);
	reply_done(&r);
	server_ask(s, "GET", "/v1/files?limit=1", STR_NULL, NULL, &r);
	root = reply_json(&r);
	cr_expect_str_eq(at(root, "data.0.filename"), NAME);
	json_decref(root);
	reply_done(&r);
	cr_expect_eq(status_of(s, "POST", "/v1/chat/completions", HELLO), 200);
	cr_expect_eq(status_of(s, "DELETE", path, STR_NULL), 200);
	cr_expect_eq(status_of(s, "GET", path, STR_NULL), 404);
	cr_expect(wait_usage_rows(&f, 1));
	server_stop(&s);
	dbfix_close(&f);
}

Test(database, answers_go_on_and_usage_waits_while_mysql_is_away)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	dbfix_open(&f, DB_MYSQL);
	struct server *s = server_start(&(struct server_opts){.database = f.url, .keep = f.server});
	long log = 0;

	server_expect(s, "database");
	server_expect(s, "request failed");
	cr_expect_eq(status_of(s, "POST", "/v1/chat/completions", HELLO), 200);
	cr_expect(wait_usage_rows(&f, 1));
	dbfix_stop(&f);
	cr_expect(server_wait_log(s, "the database is away", &log));
	for (int i = 0; i < 20; i++)
		cr_expect_eq(status_of(s, "POST", "/v1/chat/completions", HELLO), 200);
	cr_expect_eq(status_of(s, "GET", "/v1/files", STR_NULL), 503);
	dbfix_start_again(&f);
	s->opts.keep = f.server;
	cr_expect(wait_usage_rows(&f, 21), "%lld rows", (long long)usage_rows(&f));
	cr_expect(server_wait_log(s, "the database is back", &log));
	cr_expect_eq(status_of(s, "GET", "/v1/files", STR_NULL), 200);
	cr_expect_eq(usage_rows(&f), 21, "each of them once");
	server_stop(&s);
	dbfix_close(&f);
}

Test(database, what_is_settled_at_the_end_is_in_the_database_before_the_end)
{
	if (!dbfix_has_mysql())
		return;
	struct dbfix f;
	dbfix_open(&f, DB_MYSQL);
	struct server *s = server_start(&(struct server_opts){.database = f.url, .keep = f.server});

	for (int i = 0; i < 5; i++)
		cr_expect_eq(status_of(s, "POST", "/v1/chat/completions", HELLO), 200);
	server_stop(&s);
	cr_expect_eq(usage_rows(&f), 5);
	dbfix_close(&f);
}

Test(database, the_sweeper_takes_deleted_and_expired_files_away)
{
	struct server *s =
	    server_start(&(struct server_opts){.conf = "files_sweep_interval_sec: 1\n"});
	char files[320];
	struct reply r;

	(void)snprintf(files, sizeof(files), "%s/files", s->dir);
	int empty = count_entries(files);
	for (int i = 0; i < 3; i++) {
		server_upload(s, "/v1/files", "x.csv", "text/csv", STR("a"), "user_data", NULL, &r);
		cr_assert_eq(r.status, 200);
		json_t *root = reply_json(&r);
		char path[128];
		(void)snprintf(path, sizeof(path), "/v1/files/%s", at(root, "id"));
		if (i == 0)
			cr_expect_eq(status_of(s, "DELETE", path, STR_NULL), 200);
		json_decref(root);
		reply_done(&r);
	}
	(void)server_sql(s, "UPDATE files SET expires_at_ms = 1000, reap_at_ms = 1000 WHERE id ="
			    " (SELECT MAX(id) FROM files WHERE deleted_at_ms IS NULL)");
	cr_expect(server_wait_sql(s, "SELECT COUNT(*) = 1 FROM files", 1));
	cr_expect_eq(count_entries(files), empty + 1, "the shard of the one that lives");
	server_stop(&s);
}
