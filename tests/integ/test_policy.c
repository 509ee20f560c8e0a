/* What a workspace's policy and the tool settings do to the next request. Numbers are those of the
 * acceptance list.
 */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "tests/integ/admin.h"

TestSuite(policy, .timeout = 180);

#define DATED "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define OURS  "{\"type\":\"otari_code_execution\"}"

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

	admin_must(
	    s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"provider\"}", 200);
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
	for (int i = 0; i < EVERY_WORKER; i++) /* whichever worker answers */
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
	admin_must(s, "DELETE", policy_path(DEFAULT_WORKSPACE).s, NULL, 200);
	for (int i = 0; i < EVERY_WORKER; i++)
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
	admin_must(s, "PATCH", "/v1/tool-settings",
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
	admin_must(s, "PATCH", "/v1/tool-settings",
	    "{\"sandbox_purpose_hint\":null,\"tools_header\":\" \"}", 200);
	expect_hint(s, DATED, "", "exact computation", "You have these tools:");
	server_stop(&s);
}

/* A new workspace and a key of it. */
static struct text
make_workspace(struct server *s, const char *name, struct text *ret_key)
{
	struct text body, id;

	(void)snprintf(body.s, sizeof(body.s), "{\"name\":\"%s\"}", name);
	id = admin_kept(admin(s, "POST", "/v1/workspaces", body.s, 200), "id");
	(void)snprintf(body.s, sizeof(body.s), "{\"workspace_id\":\"%.40s\"}", id.s);
	*ret_key = admin_kept(admin(s, "POST", "/v1/keys", body.s, 200), "key");
	return id;
}

static void
expect_status(struct server *s, const char *key, const char *tools, long status)
{
	const struct ask_opts o = {.key = key};

	for (int i = 0; i < EVERY_WORKER; i++) {
		struct reply r;

		ask_model(s, "fake:tool", "run: print(6 * 7)", tools, "", &o, &r);
		cr_expect_eq(r.status, status, "%ld %s", r.status, r.body.ptr);
		reply_done(&r);
	}
}

Test(policy, offers_no_image_that_the_sandbox_does_not_have)
{
	static const char body[] = "{\"enabled\":true,\"image\":\"python:3.12\"}";
	static const char *const sandboxes[] = {"local:", NULL};

	for (size_t i = 0; i < ARRAY_LEN(sandboxes); i++) {
		const struct server_opts opts = {.sandbox = sandboxes[i],
		    .conf = "sandbox_allowed_session_images: [\"python:3.12\"]\n"};
		struct server *s = server_start(&opts);
		struct text path = policy_path(DEFAULT_WORKSPACE);
		json_t *root = admin(s, "GET", path.s, NULL, 200);

		server_expect(s, "sandbox");
		cr_expect_eq(json_array_size(at_json(root, "allowed_images")), i);
		cr_expect_eq(json_is_true(at_json(root, "sandbox_configured")), i == 0);
		json_decref(root);
		if (i == 0)
			admin_refused(s, "PUT", path.s, body, 422, "image: ", NULL);
		else
			admin_must(s, "PUT", path.s, body, 200);
		server_stop(&s);
	}
}

Test(policy, is_its_workspaces_own)
{
	struct server *s = start_with_sandbox();
	struct text key, id = make_workspace(s, "Research", &key);

	admin_must(s, "PUT", policy_path(id.s).s, "{\"enabled\":false}", 200);
	expect_status(s, key.s, DATED, 403);
	expect_status(s, s->key, DATED, 200);
	admin_must(s, "DELETE", policy_path(id.s).s, NULL, 200);
	put_policy(s, "{\"enabled\":false}");
	expect_status(s, key.s, DATED, 200);
	expect_status(s, s->key, DATED, 403);
	server_stop(&s);
}

/* 123: unresolvable */
Test(policy, a_workspace_that_is_not_there_runs_nothing)
{
	struct server *s = start_with_sandbox();
	struct text key;

	server_expect(s, "workspace is not in the policy");
	(void)make_workspace(s, "Research", &key);
	(void)server_sql(s, "DELETE FROM workspaces WHERE name = 'Research'");
	put_policy(s, "{\"enabled\":true}"); /* publishes */
	expect_status(s, key.s, DATED, 500);
	expect_status(s, key.s, OURS, 500);
	expect_status(s, key.s, "", 200);
	expect_status(s, s->key, DATED, 200);
	server_stop(&s);
}
