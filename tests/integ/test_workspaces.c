/* Workspaces, their code-execution policies and the tool settings through the API. Numbers are
 * those of the acceptance list.
 */
#include <sys/wait.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/admin.h"

TestSuite(workspaces, .timeout = 180);

#define DECLARED "11111111-2222-4333-8444-555555555555"
#define NOWHERE  "99999999-9999-4999-8999-999999999999"

static void
expect_key(struct server *s, const char *key, long status)
{
	const struct ask_opts o = {.key = key};

	for (int i = 0; i < EVERY_WORKER; i++) {
		struct reply r;

		server_ask(s, "GET", "/v1/models", STR_NULL, &o, &r);
		cr_expect_eq(r.status, status, "%ld", r.status);
		reply_done(&r);
	}
}

Test(workspaces, are_made_renamed_and_deleted)
{
	struct server *s = server_start(NULL);
	struct text id, path, forced, policy, key, body;
	json_t *root = admin(s, "POST", "/api/v1/workspaces", "{\"name\":\"Research\"}", 200);

	cr_expect_str_eq(at(root, "name"), "Research");
	cr_expect(json_is_false(at_json(root, "is_default")));
	cr_expect(strlen(at(root, "created_at")) > 0);
	id = admin_kept(root, "id");
	cr_expect_eq(strlen(id.s), 36);
	(void)snprintf(path.s, sizeof(path.s), "/v1/workspaces/%.40s", id.s);
	(void)snprintf(forced.s, sizeof(forced.s), "%.120s?force=true", path.s);
	policy = policy_path(id.s);

	admin_refused(s, "POST", "/v1/workspaces", "{\"name\":\"Research\"}", 409, "name", NULL);
	admin_refused(s, "POST", "/v1/workspaces", "{}", 422, "name: is required", NULL);
	admin_refused(s, "POST", "/v1/workspaces", "{\"name\":\" x\"}", 422, "name: ", NULL);
	admin_refused(s, "POST", "/v1/workspaces", "{\"name\":5}", 422, "name: ", NULL);
	admin_must(s, "POST", "/v1/workspaces", "{\"name\":\"a\",\"name\":\"b\"}", 400);

	root = admin(s, "GET", "/v1/workspaces", NULL, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 2);
	cr_expect_str_eq(at(root, "data.0.id"), DEFAULT_WORKSPACE);
	cr_expect_str_eq(at(root, "data.1.id"), id.s);
	json_decref(root);
	cr_expect_str_eq(
	    admin_kept(admin(s, "PATCH", path.s, "{\"name\":\"Analysis\"}", 200), "name").s,
	    "Analysis");
	cr_expect_str_eq(admin_kept(admin(s, "GET", path.s, NULL, 200), "name").s, "Analysis");
	admin_refused(s, "PATCH", path.s, "{\"name\":\"Default\"}", 409, "name", NULL);
	admin_must(s, "PATCH", "/v1/workspaces/" NOWHERE, "{\"name\":\"x\"}", 404);
	admin_must(s, "GET", "/v1/workspaces/" NOWHERE, NULL, 404);
	admin_must(s, "GET", "/v1/workspaces/nonsense", NULL, 404);
	admin_must(s, "DELETE", "/v1/workspaces/" NOWHERE, NULL, 404);
	admin_refused(s, "DELETE", "/v1/workspaces/" DEFAULT_WORKSPACE "?force=true", NULL, 409,
	    "default", NULL);

	/* keys belong to a workspace that is there */
	admin_must(s, "POST", "/v1/keys", "{\"workspace_id\":\"" NOWHERE "\"}", 404);
	admin_must(s, "POST", "/v1/keys", "{\"workspace_id\":\"x\"}", 422);
	(void)snprintf(body.s, sizeof(body.s), "{\"workspace_id\":\"%.40s\"}", id.s);
	key = admin_kept(admin(s, "POST", "/v1/keys", body.s, 200), "key");
	expect_key(s, key.s, 200);

	/* 122: the deletion takes the policy with it, and the keys */
	admin_must(s, "PUT", policy.s, "{\"enabled\":false}", 200);
	admin_refused(s, "DELETE", path.s, NULL, 409, "active API keys", NULL);
	admin_must(s, "DELETE", "/v1/workspaces/" DEFAULT_WORKSPACE "?force=perhaps", NULL, 422);
	expect_key(s, key.s, 200);
	admin_must(s, "DELETE", forced.s, NULL, 204);
	expect_key(s, key.s, 401);
	admin_must(s, "GET", path.s, NULL, 404);
	admin_must(s, "GET", policy.s, NULL, 404);
	admin_must(s, "DELETE", path.s, NULL, 404);
	admin_must(s, "POST", "/v1/keys", body.s, 404);
	cr_expect_eq(server_sql(s, "SELECT count(*) FROM code_execution_policies"), 0);
	server_stop(&s);
}

Test(workspaces, only_the_master_key_administers)
{
	static const char *const routes[][2] = {{"POST", "/v1/workspaces"},
	    {"GET", "/v1/workspaces"}, {"GET", "/v1/workspaces/" DEFAULT_WORKSPACE},
	    {"PATCH", "/v1/workspaces/" DEFAULT_WORKSPACE},
	    {"DELETE", "/v1/workspaces/" DEFAULT_WORKSPACE},
	    {"GET", "/v1/workspaces/" DEFAULT_WORKSPACE "/code-execution-policy"},
	    {"PUT", "/v1/workspaces/" DEFAULT_WORKSPACE "/code-execution-policy"},
	    {"DELETE", "/v1/workspaces/" DEFAULT_WORKSPACE "/code-execution-policy"},
	    {"GET", "/v1/tool-settings"}, {"PATCH", "/api/v1/tool-settings"}};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		for (int with_key = 0; with_key < 2; with_key++) {
			const struct ask_opts o = {.key = with_key ? NULL : ""};
			struct reply r;

			server_ask(
			    s, routes[i][0], routes[i][1], STR("{\"enabled\":true}"), &o, &r);
			cr_expect_eq(r.status, with_key ? 403 : 401, "%s %s: %ld", routes[i][0],
			    routes[i][1], r.status);
			reply_done(&r);
		}
	server_stop(&s);
}

/* 122, 17, 18 */
Test(workspaces, have_a_policy_that_is_set_read_replaced_and_cleared)
{
	struct server *s = server_start(NULL);
	struct text path = policy_path(DEFAULT_WORKSPACE), made;
	json_t *root = admin(s, "GET", path.s, NULL, 200);

	cr_expect_str_eq(at(root, "workspace_id"), DEFAULT_WORKSPACE);
	cr_expect(json_is_false(at_json(root, "configured")));
	cr_expect(json_is_false(at_json(root, "sandbox_configured")));
	cr_expect(json_is_true(at_json(root, "enabled")));
	cr_expect(json_is_null(at_json(root, "executor")));
	cr_expect(json_is_null(at_json(root, "created_at")));
	cr_expect_eq(json_array_size(at_json(root, "allowed_images")), 0);
	cr_expect_eq(json_array_size(at_json(root, "available_tools")), 3);
	json_decref(root);

	root = admin(s, "PUT", path.s,
	    "{\"enabled\":true,\"executor\":\" OTARI \",\"max_iterations\":3,\"exec_timeout_s\":9,"
	    "\"default_purpose_hint\":\"for sums\",\"tools\":[\"code_execution\"]}",
	    200); /* 17 */
	cr_expect(json_is_true(at_json(root, "configured")));
	cr_expect_str_eq(at(root, "executor"), "otari");
	made = admin_kept(root, "created_at");
	root = admin(s, "GET", path.s, NULL, 200);
	cr_expect_str_eq(at(root, "executor"), "otari");
	cr_expect_eq(at_int(root, "max_iterations"), 3);
	cr_expect_eq(at_int(root, "exec_timeout_s"), 9);
	cr_expect_str_eq(at(root, "default_purpose_hint"), "for sums");
	cr_expect_str_eq(at(root, "tools.0"), "code_execution");
	cr_expect_str_eq(at(root, "created_at"), made.s);
	json_decref(root);

	/* what a PUT leaves out is cleared; blank is null */
	root = admin(s, "PUT", path.s, "{\"enabled\":false,\"default_purpose_hint\":\"  \"}", 200);
	cr_expect(json_is_false(at_json(root, "enabled")));
	cr_expect(json_is_null(at_json(root, "executor")));
	cr_expect(json_is_null(at_json(root, "max_iterations")));
	cr_expect(json_is_null(at_json(root, "default_purpose_hint")));
	cr_expect(json_is_null(at_json(root, "tools")));
	cr_expect_str_eq(at(root, "created_at"), made.s);
	json_decref(root);

	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"executor\":\"anthropic\"}", 422,
	    "executor: ", NULL); /* 18 */
	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"max_iterations\":26}", 422,
	    "max_iterations: ", NULL);
	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"exec_timeout_s\":61}", 422,
	    "exec_timeout_s: ", NULL);
	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"image\":\"x\"}", 422, "image: ", NULL);
	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"tools\":[]}", 422, "tools: ", NULL);
	admin_refused(s, "PUT", path.s, "{\"max_iterations\":1}", 422, "enabled: ", NULL);
	admin_must(s, "PUT", path.s, "{\"enabled\":", 400);
	admin_must(s, "PUT", path.s, "[true]", 422);
	admin_must(s, "PUT", policy_path(NOWHERE).s, "{\"enabled\":true}", 404);
	admin_must(s, "PUT", policy_path("x").s, "{\"enabled\":true}", 404);
	admin_must(s, "GET", policy_path(NOWHERE).s, NULL, 404);
	admin_must(s, "DELETE", policy_path(NOWHERE).s, NULL, 404);
	root = admin(s, "GET", path.s, NULL, 200);
	cr_expect(json_is_false(at_json(root, "enabled")), "a refusal changes nothing");
	json_decref(root);

	for (int i = 0; i < 2; i++) {
		root = admin(s, "DELETE", path.s, NULL, 200);
		cr_expect(json_is_false(at_json(root, "configured")));
		cr_expect(json_is_true(at_json(root, "enabled")));
		json_decref(root);
	}
	server_stop(&s);
}

/* 122: the last one wins, and none is refused */
Test(workspaces, writers_race_without_a_conflict)
{
	struct server *s = server_start(NULL);
	pid_t writers[4];

	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		writers[i] = fork();
		if (writers[i] != 0)
			continue;
		for (int n = 0; n < 5; n++) {
			const struct ask_opts o = {.key = s->master_key};
			struct text body;
			struct reply r;

			(void)snprintf(body.s, sizeof(body.s),
			    "{\"enabled\":true,\"max_iterations\":%zu}", i + 1);
			server_ask(
			    s, "PUT", policy_path(DEFAULT_WORKSPACE).s, str_c(body.s), &o, &r);
			if (r.status != 200)
				_exit(1);
			reply_done(&r);
		}
		_exit(0);
	}
	for (size_t i = 0; i < ARRAY_LEN(writers); i++) {
		int status = -1;

		cr_assert_eq(waitpid(writers[i], &status, 0), writers[i]);
		cr_expect_eq(status, 0, "writer %zu was refused", i);
	}
	json_t *root = admin(s, "GET", policy_path(DEFAULT_WORKSPACE).s, NULL, 200);
	cr_expect(at_int(root, "max_iterations") >= 1 && at_int(root, "max_iterations") <= 4);
	json_decref(root);
	server_stop(&s);
}

Test(workspaces, are_told_of_a_policy_that_is_saved_and_not_in_force)
{
	const struct server_opts opts = {.conf = "publish_timeout_ms: 1000\n"};
	struct server *s = server_start(&opts);
	struct text path = policy_path(DEFAULT_WORKSPACE);

	server_expect(s, "change saved but not in force");
	cr_assert(kill(s->pid, SIGSTOP) == 0); /* the master does not answer */
	admin_refused(s, "PUT", path.s, "{\"enabled\":true,\"max_iterations\":5}", 503, "saved",
	    "not in force");
	json_t *root = admin(s, "GET", path.s, NULL, 200);
	cr_expect_eq(at_int(root, "max_iterations"), 5);
	json_decref(root);
	cr_assert(kill(s->pid, SIGCONT) == 0);
	put_policy(s, "{\"enabled\":true,\"max_iterations\":6}");
	server_stop(&s);
}

/* differs: row 19 */
Test(workspaces, what_the_file_declares_is_read_only)
{
	const struct server_opts opts = {.conf = "code_execution_executor: provider\n"
						 "workspaces:\n"
						 "  team:\n    id: " DECLARED "\n"
						 "    code_execution:\n      executor: otari\n"
						 "      max_iterations: 4\n"
						 "      tools: [code_execution]\n"};
	struct server *s = server_start(&opts);
	struct text path = policy_path(DECLARED);
	json_t *root = admin(s, "GET", path.s, NULL, 200);

	cr_expect(json_is_true(at_json(root, "configured")));
	cr_expect_str_eq(at(root, "executor"), "otari");
	cr_expect_eq(at_int(root, "max_iterations"), 4);
	cr_expect_str_eq(at(root, "tools.0"), "code_execution");
	cr_expect(json_is_null(at_json(root, "created_at")));
	struct text where = admin_kept(root, "declared_in");
	cr_expect(str_starts(str_c(where.s), str_c(s->conf_path)), "%s", where.s);
	cr_expect(strchr(where.s, ':') != NULL);
	admin_refused(s, "PUT", path.s, "{\"enabled\":false}", 409, "policy", where.s);
	admin_refused(s, "DELETE", path.s, NULL, 409, "policy", where.s);
	admin_refused(
	    s, "PATCH", "/v1/workspaces/" DECLARED, "{\"name\":\"x\"}", 409, "workspace", where.s);
	admin_refused(
	    s, "DELETE", "/v1/workspaces/" DECLARED "?force=true", NULL, 409, "workspace", where.s);
	admin_refused(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"auto\"}",
	    409, "code_execution_executor", s->conf_path);
	/* all of a change or none */
	admin_refused(s, "PATCH", "/v1/tool-settings",
	    "{\"sandbox_purpose_hint\":\"x\",\"code_execution_executor\":null}", 409,
	    "code_execution_executor", NULL);
	cr_expect_eq(server_sql(s, "SELECT count(*) FROM runtime_settings"), 0);
	/* what it does not declare is the API's */
	put_policy(s, "{\"enabled\":false}");
	admin_must(
	    s, "PATCH", "/v1/workspaces/" DEFAULT_WORKSPACE, "{\"name\":\"Everybody\"}", 200);
	server_stop(&s);
}

/* Asks until the answer has this status. */
static bool
becomes(struct server *s, const char *method, const char *path, const char *body, long status)
{
	const struct ask_opts o = {.key = s->master_key};

	for (int i = 0; i < 500; i++) {
		struct reply r;

		server_ask(s, method, path, str_c(body), &o, &r);
		bool is_there = r.status == status;
		reply_done(&r);
		if (is_there)
			return true;
		pause_short();
	}
	return false;
}

Test(workspaces, follow_what_a_reload_declares_and_gives_back)
{
	struct server *s = server_start(NULL);
	struct text path = policy_path(DEFAULT_WORKSPACE);

	put_policy(s, "{\"enabled\":true,\"max_iterations\":7}");
	server_write_conf(s, "workspaces: {default: {code_execution: {max_iterations: 4}}}\n");
	kill(s->pid, SIGHUP);
	cr_assert(becomes(s, "PUT", path.s, "{\"enabled\":true,\"max_iterations\":7}", 409));
	server_write_conf(s, NULL);
	kill(s->pid, SIGHUP);
	cr_assert(
	    becomes(s, "PATCH", "/v1/workspaces/" DEFAULT_WORKSPACE, "{\"name\":\"x\"}", 200));
	json_t *root = admin(s, "GET", path.s, NULL, 200);
	cr_expect_eq(at_int(root, "max_iterations"), 7, "what the API had set is there again");
	json_decref(root);
	server_stop(&s);
}

static const json_t *
field(const json_t *root, const char *key)
{
	size_t i;
	const json_t *f;

	json_array_foreach(json_object_get(root, "fields"), i, f)
		if (strcmp(at(f, "key"), key) == 0)
			return f;
	cr_assert_fail("no field %s", key);
	return NULL;
}

static size_t
accepted_types(struct server *s)
{
	struct reply r;

	server_ask(s, "GET", "/v1/tools", STR_NULL, NULL, &r);
	cr_assert_eq(r.status, 200);
	json_t *root = reply_json(&r);
	size_t n = json_array_size(at_json(root, "data.0.accepted_types"));
	cr_expect_str_eq(at(root, "data.0.kinds.1.name"), "bash_code_execution");
	cr_expect_str_eq(at(root, "data.0.kinds.2.input_schema.type"), "object");
	json_decref(root);
	reply_done(&r);
	return n;
}

/* 34, 36 */
Test(workspaces, tool_settings_are_shown_changed_and_cleared)
{
	struct server *s = server_start(NULL);
	json_t *root = admin(s, "GET", "/v1/tool-settings", NULL, 200);

	cr_expect(json_is_null(at_json(field(root, "code_execution_executor"), "value")));
	cr_expect_eq(
	    json_array_size(at_json(field(root, "code_execution_executor"), "options")), 3);
	cr_expect(json_is_null(at_json(field(root, "sandbox_url"), "options")));
	cr_expect(json_is_true(at_json(field(root, "sandbox_url"), "read_only")));
	json_decref(root);
	cr_expect_eq(accepted_types(s), 4);

	root = admin(s, "PATCH", "/v1/tool-settings",
	    "{\"code_execution_executor\":\" Provider \",\"sandbox_purpose_hint\":\"for sums\"}",
	    200);
	cr_expect_str_eq(at(field(root, "code_execution_executor"), "value"), "provider");
	json_decref(root);
	for (int i = 0; i < EVERY_WORKER; i++)
		cr_expect_eq(accepted_types(s), 1);
	root = admin(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"\"}", 200);
	cr_expect(json_is_null(at_json(field(root, "code_execution_executor"), "value")));
	cr_expect_str_eq(
	    at(field(root, "sandbox_purpose_hint"), "value"), "for sums", "what is not sent stays");
	json_decref(root);
	for (int i = 0; i < EVERY_WORKER; i++)
		cr_expect_eq(accepted_types(s), 4);
	admin_must(s, "PATCH", "/v1/tool-settings", "{}", 200);
	admin_refused(s, "PATCH", "/v1/tool-settings",
	    "{\"code_execution_executor\":\"anthropic\"}", 422,
	    "code_execution_executor: must be one of", NULL);
	admin_refused(s, "PATCH", "/v1/tool-settings", "{\"sandbox_purpose\":\"x\"}", 422,
	    "sandbox_purpose: ", NULL);
	admin_refused(s, "PATCH", "/v1/tool-settings", "{\"sandbox_url\":\"local:\"}", 409,
	    "sandbox_url", "otari.conf");
	server_stop(&s);
}
