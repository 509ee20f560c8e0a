/* Trying the gateway's tools from the administration. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/admin.h"
#include "tests/integ/streams.h"

TestSuite(tool_settings, .timeout = 120);

#define TEST_PATH "/v1/tool-settings/sandbox/test"

static void
expect_trial(struct server *s, const char *body, bool ok, const char *says)
{
	json_t *root = admin(s, "POST", TEST_PATH, body, 200);

	cr_expect_eq(json_is_true(at_json(root, "ok")), ok, "%s: %s", body, at(root, "reason"));
	cr_expect(strstr(at(root, "reason"), says) != NULL, "%s: %s", body, at(root, "reason"));
	json_decref(root);
}

Test(tool_settings, a_sandbox_is_tried_with_code)
{
	struct server *s = start_with_sandbox();
	char body[128];

	expect_trial(s, NULL, true, "code ran in ");
	expect_trial(s, "{\"url\":\"local:\"}", true, "code ran in ");
	expect_trial(s, "{\"url\":null}", true, "code ran in ");
	/* somebody's server answers, whatever it says; a closed port does not */
	(void)snprintf(body, sizeof(body), "{\"url\":\"http://127.0.0.1:%d/x\"}", s->fake_port);
	expect_trial(s, body, true, "HTTP 4");
	expect_trial(s, "{\"url\":\"http://127.0.0.1:1/\"}", false, "127.0.0.1");
	admin_refused(s, "POST", TEST_PATH, "{\"url\":\"file:///etc/passwd\"}", 422, "url", NULL);
	admin_refused(s, "POST", TEST_PATH, "{\"url\":7}", 422, "url", NULL);
	admin_refused(s, "POST", "/v1/tool-settings/web_search/test", "{}", 404, "service", NULL);
	/* nobody waits for the operator's session afterwards */
	for (int i = 0; i < 400 && server_metric(s, "otari_sandbox_sessions_leased") > 0; i++)
		pause_short();
	cr_expect_eq(server_metric(s, "otari_sandbox_sessions_leased"), 0);
	server_stop(&s);
}

Test(tool_settings, without_a_sandbox_the_trial_says_so)
{
	struct server *s = server_start(NULL);
	struct reply r;

	expect_trial(s, "{}", false, "no sandbox is configured");
	expect_trial(s, "{\"url\":\"local:\"}", false, "not in force");
	for (int with_key = 0; with_key < 2; with_key++) {
		server_ask(s, "POST", TEST_PATH, STR("{}"),
		    &(struct ask_opts){.key = with_key ? NULL : ""}, &r);
		cr_expect_eq(r.status, with_key ? 403 : 401);
		reply_done(&r);
	}
	server_stop(&s);
}

/* The one who asks may leave at any time. */
Test(tool_settings, a_trial_that_nobody_waits_for_holds_no_session)
{
	struct server *s = start_sandboxed(&(struct server_opts){
	    .workers = 1, .conf = "sandbox_max_sessions: 1\nsandbox_queue_ms: 60000\n"});
	struct text key;

	(void)str_copy(key.s, sizeof(key.s), str_c(s->key));
	(void)str_copy(s->key, sizeof(s->key), str_c(s->master_key));
	for (int i = 0; i < 10; i++)
		(void)close(stream_open(s, TEST_PATH, "{}"));
	(void)str_copy(s->key, sizeof(s->key), str_c(key.s));
	expect_trial(s, "{}", true, "code ran in ");
	server_stop(&s);
}

static void
expect_types(struct server *s, const char *types)
{
	struct reply r;
	char *got;

	server_ask(s, "GET", "/v1/tools", STR_NULL, NULL, &r);
	json_t *root = reply_json(&r);
	got = json_dumps(at_json(root, "data.0.accepted_types"), JSON_COMPACT);
	cr_expect_str_eq(got, types);
	free(got);
	json_decref(root);
	reply_done(&r);
}

static struct text
executor_setting(struct server *s)
{
	json_t *root = admin(s, "GET", "/v1/tool-settings", NULL, 200), *f;
	struct text got = {""};
	size_t i;

	json_array_foreach(json_object_get(root, "fields"), i, f)
		if (strcmp(at(f, "key"), "code_execution_executor") == 0)
			(void)str_copy(got.s, sizeof(got.s), str_c(at(f, "value")));
	json_decref(root);
	return got;
}

#define ALL_TYPES                                                                                  \
	"[\"otari_code_execution\",\"code_execution\",\"code_interpreter\","                       \
	"\"code_execution_<date>\"]"

/* differs: row 19, what the environment or the file says is read-only. */
Test(tool_settings, n33_n36_the_executor_is_read_from_the_environment)
{
	struct server *s = server_start(NULL);

	cr_expect_str_eq(executor_setting(s).s, "", "unset");
	expect_types(s, ALL_TYPES);
	admin_must(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"OTARI\"}", 200);
	cr_expect_str_eq(executor_setting(s).s, "otari");
	admin_must(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":null}", 200);
	cr_expect_str_eq(executor_setting(s).s, "");
	server_stop(&s);

	cr_assert_eq(setenv("OTARI_CODE_EXECUTION_EXECUTOR", " Provider ", 1), 0);
	s = server_start(NULL);
	cr_expect_str_eq(executor_setting(s).s, "provider");
	expect_types(s, "[\"otari_code_execution\"]");
	admin_refused(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"auto\"}",
	    409, "code_execution_executor", NULL);
	server_stop(&s);
}
