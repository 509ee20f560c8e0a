/* Who sees which file, and which keys still open the door. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"

TestSuite(sight, .timeout = 120);

#define SECOND "11111111-2222-4333-8444-555555555555"

struct text {
	char s[160];
};

static json_t *
ask(struct server *s, const char *method, const char *path, struct str body, const char *key,
    long status)
{
	const struct ask_opts o = {.key = key};
	struct reply r;
	server_ask(s, method, path, body, &o, &r);
	cr_assert_eq(r.status, status, "%s %s: %ld %s", method, path, r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

static void
expect(struct server *s, const char *method, const char *path, const char *key, long status)
{
	json_decref(ask(s, method, path, STR_NULL, key, status));
}

static struct text
make_key(struct server *s, const char *body)
{
	struct text t;
	json_t *root = ask(s, "POST", "/v1/keys", str_c(body), s->master_key, 200);
	cr_assert(str_copy(t.s, sizeof(t.s), str_c(at(root, "key"))));
	json_decref(root);
	return t;
}

static struct text
file_path(struct server *s, const char *key)
{
	const struct ask_opts o = {.key = key};
	struct text t;
	struct reply r;
	server_upload(s, "/v1/files", "a.txt", "text/plain", STR("mine"), NULL, &o, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	json_t *root = reply_json(&r);
	(void)snprintf(t.s, sizeof(t.s), "/v1/files/%s", at(root, "id"));
	json_decref(root);
	reply_done(&r);
	return t;
}

static size_t
count_files(struct server *s, const char *path, const char *key)
{
	json_t *root = ask(s, "GET", path, STR_NULL, key, 200);
	size_t n = json_array_size(json_object_get(root, "data"));
	json_decref(root);
	return n;
}

Test(sight, a_workspace_hides_its_files_from_the_same_users_other_keys)
{
	const struct server_opts opts = {.conf = "workspaces:\n  second:\n    id: " SECOND "\n"};
	struct server *s = server_start(&opts);
	struct text here = make_key(s, "{\"user_id\":\"ann\"}");
	struct text also_here = make_key(s, "{\"user_id\":\"ann\"}");
	struct text there = make_key(s, "{\"user_id\":\"ann\",\"workspace_id\":\"" SECOND "\"}");
	struct text path = file_path(s, here.s), content;
	(void)snprintf(content.s, sizeof(content.s), "%.120s/content", path.s);

	expect(s, "GET", path.s, also_here.s, 200);
	expect(s, "GET", path.s, there.s, 404);
	expect(s, "GET", content.s, there.s, 404);
	expect(s, "DELETE", path.s, there.s, 404);
	cr_expect_eq(count_files(s, "/v1/files", there.s), 0);
	/* The parameter is for the master key; another's is not listened to. */
	cr_expect_eq(count_files(s, "/v1/files?workspace_id=" SECOND, here.s), 1);
	(void)file_path(s, there.s);
	cr_expect_eq(count_files(s, "/v1/files?user=ann", s->master_key), 2);
	cr_expect_eq(count_files(s, "/v1/files?user=ann&workspace_id=" SECOND, s->master_key), 1);
	json_decref(ask(s, "POST", "/v1/keys",
	    STR("{\"workspace_id\":\"11111111-2222-4333-8444-000000000000\"}"), s->master_key,
	    404));
	server_stop(&s);
}

Test(sight, an_expired_file_is_gone_at_once_but_marks_its_place)
{
	struct server *s = server_start(NULL);
	struct text old = file_path(s, NULL), path, sql;
	pause_short();
	struct text young = file_path(s, NULL);
	(void)young;
	(void)snprintf(sql.s, sizeof(sql.s),
	    "UPDATE files SET expires_at_ms = 1000 WHERE id = '%.40s'",
	    old.s + strlen("/v1/files/"));
	(void)server_sql(s, sql.s);
	expect(s, "GET", old.s, NULL, 404);
	(void)snprintf(path.s, sizeof(path.s), "%.100s/content", old.s);
	expect(s, "GET", path.s, NULL, 404);
	expect(s, "DELETE", old.s, NULL, 404);
	cr_expect_eq(count_files(s, "/v1/files", NULL), 1);
	(void)snprintf(path.s, sizeof(path.s), "/v1/files?order=asc&after=%.60s",
	    old.s + strlen("/v1/files/"));
	cr_expect_eq(count_files(s, path.s, NULL), 1);
	server_stop(&s);
}

Test(sight, a_named_user_that_is_not_the_keys_is_refused_where_that_is_asked)
{
	const struct server_opts opts = {.conf = "reject_user_mismatch: true\n"};
	struct server *s = server_start(&opts);
	expect(s, "GET", "/v1/files?user=default", NULL, 200);
	json_t *root = ask(s, "GET", "/v1/files?user=bob", STR_NULL, NULL, 403);
	cr_expect(strstr(at(root, "detail"), "does not match") != NULL, "%s", at(root, "detail"));
	json_decref(root);
	server_stop(&s);
}

Test(sight, keys_that_ended_and_users_that_are_blocked_stay_outside)
{
	struct server *s = server_start(NULL);
	struct text past = make_key(s, "{\"expires_at\":\"2020-01-01T00:00:00Z\"}");
	struct text future = make_key(s, "{\"expires_at\":\"2099-01-01T00:00:00Z\"}");
	json_decref(ask(s, "POST", "/v1/users", STR("{\"user_id\":\"eve\",\"blocked\":true}"),
	    s->master_key, 200));
	json_decref(ask(s, "POST", "/v1/users", STR("{\"user_id\":\"eve\"}"), s->master_key, 409));
	struct text blocked = make_key(s, "{\"user_id\":\"eve\"}");
	for (int i = 0; i < 4; i++) { /* whichever worker answers */
		expect(s, "GET", "/v1/models", past.s, 401);
		expect(s, "GET", "/v1/models", future.s, 200);
		expect(s, "GET", "/v1/models", blocked.s, 401);
	}
	server_stop(&s);
}

Test(sight, administration_is_the_master_keys_alone_and_reads_its_bodies_strictly)
{
	static const struct {
		const char *body;
		long status;
	} rows[] = {
	    {"{", 400},
	    {"[]", 422},
	    {"{\"key_name\":\"a\",\"key_name\":\"b\"}", 400},
	    {"{\"key_name\":7}", 422},
	    {"{\"expires_at\":\"tomorrow\"}", 422},
	    {"{\"allowed_models\":\"all\"}", 422},
	    {"{\"workspace_id\":\"x\"}", 422},
	    {"{\"metadata\":[]}", 422},
	    {"{\"exclude_from_budget\":true}", 400},
	};
	static const char *const paths[] = {"/v1/keys", "/v1/users", "/v1/workspaces"};
	struct server *s = server_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		json_decref(
		    ask(s, "POST", "/v1/keys", str_c(rows[i].body), s->master_key, rows[i].status));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		expect(s, "GET", paths[i], NULL, 403);
		expect(s, "GET", paths[i], "gw-nobody", 401);
		expect(s, "GET", paths[i], s->master_key, 200);
	}
	expect(s, "GET", "/v1/keys/key_unknown", s->master_key, 404);
	expect(s, "DELETE", "/v1/keys/key_unknown", s->master_key, 404);
	expect(s, "GET", "/v1/keys?limit=0", s->master_key, 422);
	server_stop(&s);
}

/* SHA-256 of "gw-declared". */
#define DECLARED_HASH "edb6ea22d4a81dd343e21f59e5b84aec732dc6e6700f856d58e3b8b412fb0479"

Test(sight, a_declared_key_works_and_is_read_only_here)
{
	const struct server_opts opts = {
	    .conf = "keys:\n  - hash: " DECLARED_HASH "\n    name: from-the-file\n"};
	struct server *s = server_start(&opts);
	char path[160] = "";
	expect(s, "GET", "/v1/models", "gw-declared", 200);
	json_t *root = ask(s, "GET", "/v1/keys", STR_NULL, s->master_key, 200), *item;
	size_t i;
	json_array_foreach(root, i, item) {
		if (strcmp(at(item, "key_name"), "from-the-file") == 0)
			(void)snprintf(path, sizeof(path), "/v1/keys/%s", at(item, "id"));
	}
	json_decref(root);
	cr_assert(path[0] != '\0');
	expect(s, "DELETE", path, s->master_key, 409);
	expect(s, "GET", "/v1/models", "gw-declared", 200);
	json_decref(ask(s, "POST", "/v1/keys", STR("{\"metadata\":{\"declared\":\"otari.conf\"}}"),
	    s->master_key, 422));
	server_stop(&s);
}

Test(sight, a_change_that_cannot_be_published_is_said_to_be_saved_and_not_in_force)
{
	const struct server_opts opts = {.conf = "publish_timeout_ms: 1500\n"};
	struct server *s = server_start(&opts);
	server_expect(s, "change saved but not in force");
	cr_assert(kill(s->pid, SIGSTOP) == 0); /* the master does not answer */
	json_t *root =
	    ask(s, "POST", "/v1/keys", STR("{\"key_name\":\"limbo\"}"), s->master_key, 503);
	cr_expect(strstr(at(root, "detail"), "saved") != NULL, "%s", at(root, "detail"));
	json_decref(root);
	expect(s, "GET", "/v1/models", NULL, 200); /* the workers need no master for the rest */
	cr_assert(kill(s->pid, SIGCONT) == 0);
	struct text next = make_key(s, "{\"key_name\":\"next\"}");
	expect(s, "GET", "/v1/models", next.s, 200);
	root = ask(s, "GET", "/v1/keys", STR_NULL, s->master_key, 200);
	cr_expect_str_eq(at(root, "0.key_name"), "next");
	/* The one before it may be of the same second as the test's own. */
	cr_expect(strcmp(at(root, "1.key_name"), "limbo") == 0 ||
		  strcmp(at(root, "2.key_name"), "limbo") == 0);
	json_decref(root);
	server_stop(&s);
}
