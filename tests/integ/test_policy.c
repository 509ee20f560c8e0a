/* Workspaces, their code-execution policies and the tool settings: through the API, and in what
 * happens to the next request. Numbers are those of the acceptance list.
 */
#include <sys/wait.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "tests/integ/harness.h"

TestSuite(policy, .timeout = 180);

#define DEFAULT  "00000000-0000-4000-8000-000000000001"
#define DECLARED "11111111-2222-4333-8444-555555555555"
#define NOWHERE  "99999999-9999-4999-8999-999999999999"
#define DATED    "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define OURS     "{\"type\":\"otari_code_execution\"}"
#define ROUNDS   8 /* enough that every worker answers */

struct text {
	char s[200];
};

/* As the master; the answer's body, {} when it has none. */
static json_t *
admin(struct server *s, const char *method, const char *path, const char *body, long status)
{
	const struct ask_opts o = {.key = s->master_key};
	struct reply r;

	server_ask(s, method, path, str_c(body), &o, &r);
	cr_assert_eq(r.status, status, "%s %s %s: %ld %s", method, path, body != NULL ? body : "",
	    r.status, r.body.ptr);
	json_t *root = r.body.len > 0 ? reply_json(&r) : json_object();
	reply_done(&r);
	return root;
}

static void
must(struct server *s, const char *method, const char *path, const char *body, long status)
{
	json_decref(admin(s, method, path, body, status));
}

/* A refusal whose text holds all of these. */
static void
refused(struct server *s, const char *method, const char *path, const char *body, long status,
    const char *says, const char *too)
{
	json_t *root = admin(s, method, path, body, status);

	cr_expect(strstr(at(root, "detail"), says) != NULL &&
		      (too == NULL || strstr(at(root, "detail"), too) != NULL),
	    "%s %s: %s", method, path, at(root, "detail"));
	json_decref(root);
}

static struct text
kept(json_t *root, const char *member)
{
	struct text t;

	cr_assert(str_copy(t.s, sizeof(t.s), str_c(at(root, member))) && t.s[0] != '\0');
	json_decref(root);
	return t;
}

static struct text
policy_path(const char *workspace)
{
	struct text t;

	(void)snprintf(t.s, sizeof(t.s), "/v1/workspaces/%s/code-execution-policy", workspace);
	return t;
}

static void
put_policy(struct server *s, const char *body)
{
	must(s, "PUT", policy_path(DEFAULT).s, body, 200);
}

static void
expect_key(struct server *s, const char *key, long status)
{
	const struct ask_opts o = {.key = key};

	for (int i = 0; i < ROUNDS; i++) {
		struct reply r;

		server_ask(s, "GET", "/v1/models", STR_NULL, &o, &r);
		cr_expect_eq(r.status, status, "%ld", r.status);
		reply_done(&r);
	}
}

/* --- the routes ------------------------------------------------------------------------------ */

Test(policy, workspaces_are_made_renamed_and_deleted)
{
	struct server *s = server_start(NULL);
	struct text id, path, forced, policy, key, body;
	json_t *root = admin(s, "POST", "/api/v1/workspaces", "{\"name\":\"Research\"}", 200);

	cr_expect_str_eq(at(root, "name"), "Research");
	cr_expect(json_is_false(at_json(root, "is_default")));
	cr_expect(strlen(at(root, "created_at")) > 0);
	id = kept(root, "id");
	cr_expect_eq(strlen(id.s), 36);
	(void)snprintf(path.s, sizeof(path.s), "/v1/workspaces/%.40s", id.s);
	(void)snprintf(forced.s, sizeof(forced.s), "%.120s?force=true", path.s);
	policy = policy_path(id.s);

	refused(s, "POST", "/v1/workspaces", "{\"name\":\"Research\"}", 409, "name", NULL);
	refused(s, "POST", "/v1/workspaces", "{}", 422, "name: is required", NULL);
	refused(s, "POST", "/v1/workspaces", "{\"name\":\" x\"}", 422, "name: ", NULL);
	refused(s, "POST", "/v1/workspaces", "{\"name\":5}", 422, "name: ", NULL);
	must(s, "POST", "/v1/workspaces", "{\"name\":\"a\",\"name\":\"b\"}", 400);

	root = admin(s, "GET", "/v1/workspaces", NULL, 200);
	cr_expect_eq(json_array_size(json_object_get(root, "data")), 2);
	cr_expect_str_eq(at(root, "data.0.id"), DEFAULT);
	cr_expect_str_eq(at(root, "data.1.id"), id.s);
	json_decref(root);
	cr_expect_str_eq(
	    kept(admin(s, "PATCH", path.s, "{\"name\":\"Analysis\"}", 200), "name").s, "Analysis");
	cr_expect_str_eq(kept(admin(s, "GET", path.s, NULL, 200), "name").s, "Analysis");
	refused(s, "PATCH", path.s, "{\"name\":\"Default\"}", 409, "name", NULL);
	must(s, "PATCH", "/v1/workspaces/" NOWHERE, "{\"name\":\"x\"}", 404);
	must(s, "GET", "/v1/workspaces/" NOWHERE, NULL, 404);
	must(s, "GET", "/v1/workspaces/nonsense", NULL, 404);
	must(s, "DELETE", "/v1/workspaces/" NOWHERE, NULL, 404);
	refused(s, "DELETE", "/v1/workspaces/" DEFAULT "?force=true", NULL, 409, "default", NULL);

	/* keys belong to a workspace that is there */
	must(s, "POST", "/v1/keys", "{\"workspace_id\":\"" NOWHERE "\"}", 404);
	must(s, "POST", "/v1/keys", "{\"workspace_id\":\"x\"}", 422);
	(void)snprintf(body.s, sizeof(body.s), "{\"workspace_id\":\"%.40s\"}", id.s);
	key = kept(admin(s, "POST", "/v1/keys", body.s, 200), "key");
	expect_key(s, key.s, 200);

	/* 122: the deletion takes the policy with it, and the keys */
	must(s, "PUT", policy.s, "{\"enabled\":false}", 200);
	refused(s, "DELETE", path.s, NULL, 409, "1 active API key", NULL);
	must(s, "DELETE", "/v1/workspaces/" DEFAULT "?force=perhaps", NULL, 422);
	expect_key(s, key.s, 200);
	must(s, "DELETE", forced.s, NULL, 204);
	expect_key(s, key.s, 401);
	must(s, "GET", path.s, NULL, 404);
	must(s, "GET", policy.s, NULL, 404);
	must(s, "DELETE", path.s, NULL, 404);
	must(s, "POST", "/v1/keys", body.s, 404);
	cr_expect_eq(server_sql(s, "SELECT count(*) FROM code_execution_policies"), 0);
	server_stop(&s);
}

Test(policy, only_the_master_key_administers)
{
	static const char *const routes[][2] = {{"POST", "/v1/workspaces"},
	    {"GET", "/v1/workspaces"}, {"GET", "/v1/workspaces/" DEFAULT},
	    {"PATCH", "/v1/workspaces/" DEFAULT}, {"DELETE", "/v1/workspaces/" DEFAULT},
	    {"GET", "/v1/workspaces/" DEFAULT "/code-execution-policy"},
	    {"PUT", "/v1/workspaces/" DEFAULT "/code-execution-policy"},
	    {"DELETE", "/v1/workspaces/" DEFAULT "/code-execution-policy"},
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
Test(policy, is_set_read_replaced_and_cleared)
{
	struct server *s = server_start(NULL);
	struct text path = policy_path(DEFAULT), made;
	json_t *root = admin(s, "GET", path.s, NULL, 200);

	cr_expect_str_eq(at(root, "workspace_id"), DEFAULT);
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
	made = kept(root, "created_at");
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

	refused(s, "PUT", path.s, "{\"enabled\":true,\"executor\":\"anthropic\"}", 422,
	    "executor: ", NULL); /* 18 */
	refused(s, "PUT", path.s, "{\"enabled\":true,\"max_iterations\":26}", 422,
	    "max_iterations: ", NULL);
	refused(s, "PUT", path.s, "{\"enabled\":true,\"exec_timeout_s\":61}", 422,
	    "exec_timeout_s: ", NULL);
	refused(s, "PUT", path.s, "{\"enabled\":true,\"image\":\"x\"}", 422, "image: ", NULL);
	refused(s, "PUT", path.s, "{\"enabled\":true,\"tools\":[]}", 422, "tools: ", NULL);
	refused(s, "PUT", path.s, "{\"max_iterations\":1}", 422, "enabled: ", NULL);
	must(s, "PUT", path.s, "{\"enabled\":", 400);
	must(s, "PUT", path.s, "[true]", 422);
	must(s, "PUT", policy_path(NOWHERE).s, "{\"enabled\":true}", 404);
	must(s, "PUT", policy_path("x").s, "{\"enabled\":true}", 404);
	must(s, "GET", policy_path(NOWHERE).s, NULL, 404);
	must(s, "DELETE", policy_path(NOWHERE).s, NULL, 404);
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
Test(policy, writers_race_without_a_conflict)
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
			server_ask(s, "PUT", policy_path(DEFAULT).s, str_c(body.s), &o, &r);
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
	json_t *root = admin(s, "GET", policy_path(DEFAULT).s, NULL, 200);
	cr_expect(at_int(root, "max_iterations") >= 1 && at_int(root, "max_iterations") <= 4);
	json_decref(root);
	server_stop(&s);
}

/* differs: row 19 */
Test(policy, what_the_file_declares_is_read_only)
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
	struct text where = kept(root, "declared_in");
	cr_expect(str_starts(str_c(where.s), str_c(s->conf_path)), "%s", where.s);
	cr_expect(strchr(where.s, ':') != NULL);
	refused(s, "PUT", path.s, "{\"enabled\":false}", 409, "policy", where.s);
	refused(s, "DELETE", path.s, NULL, 409, "policy", where.s);
	refused(
	    s, "PATCH", "/v1/workspaces/" DECLARED, "{\"name\":\"x\"}", 409, "workspace", where.s);
	refused(
	    s, "DELETE", "/v1/workspaces/" DECLARED "?force=true", NULL, 409, "workspace", where.s);
	refused(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"auto\"}", 409,
	    "code_execution_executor", s->conf_path);
	/* all of a change or none */
	refused(s, "PATCH", "/v1/tool-settings",
	    "{\"sandbox_purpose_hint\":\"x\",\"code_execution_executor\":null}", 409,
	    "code_execution_executor", NULL);
	cr_expect_eq(server_sql(s, "SELECT count(*) FROM runtime_settings"), 0);
	/* what it does not declare is the API's */
	put_policy(s, "{\"enabled\":false}");
	must(s, "PATCH", "/v1/workspaces/" DEFAULT, "{\"name\":\"Everybody\"}", 200);
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
	json_decref(root);
	reply_done(&r);
	return n;
}

/* 34, 36 */
Test(policy, tool_settings_are_shown_changed_and_cleared)
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
	for (int i = 0; i < ROUNDS; i++)
		cr_expect_eq(accepted_types(s), 1);
	root = admin(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"\"}", 200);
	cr_expect(json_is_null(at_json(field(root, "code_execution_executor"), "value")));
	cr_expect_str_eq(
	    at(field(root, "sandbox_purpose_hint"), "value"), "for sums", "what is not sent stays");
	json_decref(root);
	for (int i = 0; i < ROUNDS; i++)
		cr_expect_eq(accepted_types(s), 4);
	must(s, "PATCH", "/v1/tool-settings", "{}", 200);
	refused(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"anthropic\"}", 422,
	    "code_execution_executor: must be one of", NULL);
	refused(s, "PATCH", "/v1/tool-settings", "{\"sandbox_purpose\":\"x\"}", 422,
	    "sandbox_purpose: ", NULL);
	refused(s, "PATCH", "/v1/tool-settings", "{\"sandbox_url\":\"local:\"}", 409, "sandbox_url",
	    "otari.conf");
	server_stop(&s);
}

/* --- what a policy does ---------------------------------------------------------------------- */

static void
ask_model(struct server *s, const char *model, const char *prompt, const char *tools,
    const char *more, const struct ask_opts *o, struct reply *r)
{
	struct buf body = BUF_INIT(1u << 16);

	buf_printf(&body,
	    "{\"model\":\"%s\",\"max_tokens\":1000,\"messages\":[{\"role\":\"user\","
	    "\"content\":\"%s\"}],\"tools\":[%s]%s}",
	    model, prompt, tools, more);
	server_ask(s, "POST", "/v1/messages", buf_str(&body), o, r);
	buf_done(&body);
}

static int
provider_calls(struct server *s)
{
	struct reply r;

	fake_ask(s, "GET", "/_count", STR_NULL, &r);
	json_t *root = reply_json(&r);
	int n = (int)at_int(root, "count");
	json_decref(root);
	reply_done(&r);
	return n;
}

enum outcome { RAN_HERE, FORWARDED };

/* What became of a code tool: it ran here, or the provider read the declaration. */
static void
expect_turn(struct server *s, const char *model, const char *tools, const char *header,
    enum outcome want, const char *what)
{
	const char *const headers[] = {header, NULL};
	const struct ask_opts o = {.headers = header != NULL ? headers : NULL};
	struct reply r, last;

	ask_model(s, model, "run: print(6 * 7)", tools, "", &o, &r);
	cr_assert_eq(r.status, 200, "%s: %ld %s", what, r.status, r.body.ptr);
	fake_ask(s, "GET", "/_last", STR_NULL, &last);
	cr_expect((strstr(last.body.ptr, "code_execution_20250825") != NULL) == (want == FORWARDED),
	    "%s: %s", what, last.body.ptr);
	if (want == RAN_HERE)
		cr_expect(strstr(last.body.ptr, "42") != NULL, "%s: %s", what, last.body.ptr);
	reply_done(&last);
	reply_done(&r);
}

static void
expect_refusal(struct server *s, const char *model, const char *tools, const char *header,
    long status, const char *type, const char *says)
{
	const char *const headers[] = {header, NULL};
	const struct ask_opts o = {.headers = header != NULL ? headers : NULL};
	int calls = provider_calls(s);
	struct reply r;

	ask_model(s, model, "run: print(6 * 7)", tools, "", &o, &r);
	cr_expect_eq(r.status, status, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_expect_str_eq(at(root, "error.type"), type);
	cr_expect_str_eq(at(root, "detail.error.type"), type);
	cr_expect(strstr(at(root, "error.message"), says) != NULL, "%s", r.body.ptr);
	json_decref(root);
	reply_done(&r);
	cr_expect_eq(provider_calls(s), calls, "the provider was called");
}

Test(policy, a_pin_decides_before_header_and_deployment)
{
	struct server *s = start_with_sandbox();

	must(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"provider\"}", 200);
	expect_turn(s, "fake:tool", OURS, NULL, RAN_HERE, "10: deployment provider, explicit");
	put_policy(s, "{\"enabled\":true,\"executor\":\"otari\"}");
	expect_turn(s, "fake:tool", DATED, NULL, RAN_HERE, "12: pin otari, deployment provider");
	expect_turn(s, "claude:tool", DATED, NULL, RAN_HERE, "12: on the provider's own wire");
	expect_turn(
	    s, "fake:tool", DATED, "Otari-Code-Execution: Otari", RAN_HERE, "an agreeing header");
	expect_refusal(s, "fake:tool", DATED, "Otari-Code-Execution: provider", 403,
	    "permission_error", "pins"); /* 13 */
	expect_refusal(s, "fake:tool", DATED, "X-Otari-Code-Execution: auto", 403,
	    "permission_error", "decides");
	put_policy(s, "{\"enabled\":true,\"executor\":\"auto\"}");
	expect_refusal(
	    s, "fake:tool", DATED, "Otari-Code-Execution: otari", 403, "permission_error", "pins");
	put_policy(s, "{\"enabled\":true,\"executor\":\"provider\"}");
	expect_turn(s, "fake:tool", OURS, "Otari-Code-Execution: otari", RAN_HERE,
	    "14: nothing to pin in an explicit declaration");
	expect_turn(s, "claude:text", DATED, "Otari-Code-Execution: provider", FORWARDED,
	    "15: agreeing on the provider");
	put_policy(s, "{\"enabled\":false,\"executor\":\"provider\"}");
	expect_turn(s, "claude:text", DATED, NULL, FORWARDED, "16: disabled here, not there");
	server_stop(&s);
}

/* 123 */
Test(policy, a_disabled_workspace_is_refused_before_the_provider_is_called)
{
	struct server *s = start_with_sandbox();
	const struct ask_opts master = {.key = s->master_key};
	struct reply r;

	put_policy(s, "{\"enabled\":false}");
	for (int i = 0; i < ROUNDS; i++) /* whichever worker answers */
		expect_refusal(s, "fake:tool", DATED, NULL, 403, "permission_error", "not enabled");
	expect_refusal(s, "fake:tool", OURS, NULL, 403, "permission_error", "not enabled");
	ask_model(s, "fake:tool", "run: print(1)", DATED, ",\"stream\":true", NULL, &r);
	cr_expect_eq(r.status, 403, "streamed: %ld", r.status);
	reply_done(&r);
	ask_model(s, "fake:tool", "run: print(1)", DATED, ",\"metadata\":{\"user_id\":\"ann\"}",
	    &master, &r);
	cr_expect_eq(r.status, 403, "the master key has the default workspace's: %ld", r.status);
	reply_done(&r);
	ask_model(s, "fake:text", "hi", "", "", NULL, &r);
	cr_expect_eq(r.status, 200, "other requests are served: %ld %s", r.status, r.body.ptr);
	reply_done(&r);
	must(s, "DELETE", policy_path(DEFAULT).s, NULL, 200);
	for (int i = 0; i < ROUNDS; i++)
		expect_turn(s, "fake:tool", DATED, NULL, RAN_HERE, "cleared");
	put_policy(s, "{\"enabled\":true,\"tools\":[\"text_editor_code_execution\"]}");
	expect_refusal(
	    s, "fake:tool", "{\"type\":\"code_execution\"}", NULL, 403, "permission_error", "tool");
	server_stop(&s);
}

/* Calls that the provider got for a model that never stops calling. */
static int
rounds_of(struct server *s, const char *more)
{
	int before = provider_calls(s);
	struct reply r;

	ask_model(s, "fake:forever", "go", DATED, more, NULL, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "pause_turn") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	return provider_calls(s) - before;
}

/* 123 */
Test(policy, ceilings_lower_the_loop_and_the_time)
{
	struct server *s = start_with_sandbox();
	int request_two = rounds_of(s, ",\"max_tool_iterations\":2");
	int request_four = rounds_of(s, ",\"max_tool_iterations\":4");
	struct reply r;

	cr_expect_eq(request_four, request_two + 2);
	put_policy(s, "{\"enabled\":true,\"max_iterations\":2,\"exec_timeout_s\":1}");
	cr_expect_eq(rounds_of(s, ""), request_two);
	cr_expect_eq(rounds_of(s, ",\"stream\":true"), request_two);
	cr_expect_eq(rounds_of(s, ",\"max_tool_iterations\":20"), request_two);
	cr_expect_eq(rounds_of(s, ",\"max_tool_iterations\":1"), request_two - 1, "a smaller one");

	int64_t started = clock_mono_ms();
	ask_model(s, "fake:tool", "run: import time; time.sleep(50)", DATED, "", NULL, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "time limit of 1 s was exceeded") != NULL, "%s", r.body.ptr);
	cr_expect(clock_mono_ms() - started < 40000);
	reply_done(&r);
	server_stop(&s);
}

static void
expect_hint(
    struct server *s, const char *tools, const char *more, const char *hint, const char *header)
{
	struct reply r, last;

	ask_model(s, "fake:text", "hi", tools, more, NULL, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	fake_ask(s, "GET", "/_last", STR_NULL, &last);
	cr_expect(strstr(last.body.ptr, hint) != NULL, "%s: %s", hint, last.body.ptr);
	cr_expect(strstr(last.body.ptr, header) != NULL, "%s: %s", header, last.body.ptr);
	reply_done(&last);
}

/* 123: the entry's, the workspace's, the deployment's, the built-in one */
Test(policy, hints_reach_the_provider_in_their_order)
{
	struct server *s = start_with_sandbox();

	expect_hint(s, DATED, "", "exact computation", "You have these tools:");
	must(s, "PATCH", "/v1/tool-settings",
	    "{\"sandbox_purpose_hint\":\"the deployment's hint\",\"tools_header\":\"Tools here:\"}",
	    200);
	expect_hint(s, DATED, "", "code_execution: the deployment's hint", "Tools here:");
	put_policy(s, "{\"enabled\":true,\"default_purpose_hint\":\"the workspace's hint\"}");
	expect_hint(s, DATED, "", "code_execution: the workspace's hint", "Tools here:");
	expect_hint(s,
	    "{\"type\":\"otari_code_execution\",\"purpose_hint\":\"the request's hint\"}",
	    ",\"tools_header\":\"Mine:\"", "code_execution: the request's hint", "Mine:");
	put_policy(s, "{\"enabled\":true}");
	expect_hint(s, DATED, "", "code_execution: the deployment's hint", "Tools here:");
	must(s, "PATCH", "/v1/tool-settings",
	    "{\"sandbox_purpose_hint\":null,\"tools_header\":\" \"}", 200);
	expect_hint(s, DATED, "", "exact computation", "You have these tools:");
	server_stop(&s);
}
