/* A sandbox on another host, as a client of the gateway meets it: tests/fake/sandbox.c plays it. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/talks.h"

TestSuite(remote, .timeout = 180);

#define NEW "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"

static struct server *
start(const char *scenario, const char *conf)
{
	return server_start(&(struct server_opts){.sandbox = scenario, .conf = conf, .workers = 1});
}

static json_t *
seen(struct server *s)
{
	struct reply r;

	fake_ask(s, "GET", "/sandbox/_seen", STR_NULL, &r);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

/* Waits until every session was given back. */
static void
expect_deleted(struct server *s, int n)
{
	bool all = false;

	for (int i = 0; i < 400 && !all; i++) {
		json_t *root = seen(s);
		all = at_int(root, "deletes") == n && at_int(root, "creates") == n;
		json_decref(root);
		if (!all)
			pause_short();
	}
	cr_expect(all, "%d sessions were to be deleted", n);
}

static void
expect_seen(struct server *s, const char *what, int n)
{
	json_t *root = seen(s);

	cr_expect_eq(at_int(root, what), n, "%s: %d", what, (int)at_int(root, what));
	json_decref(root);
}

static void
ask(struct server *s, const char *tools, const char *talk, bool stream, struct reply *r)
{
	talk_ask(s, MESSAGES, "fake:tool", tools, stream, talk, "", r);
}

/* What the model was told of the run: the last message of the provider's last request. */
static char *
told(struct server *s)
{
	char *body = provider_saw(s, 0);
	json_t *root = json_loads(body, 0, NULL), *messages = json_object_get(root, "messages");
	const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
	char *text = mem_strdup(at(last, "content"));

	json_decref(root);
	mem_free(body);
	return text;
}

Test(remote, n76_a_produced_file_is_fetched_stored_and_named_with_its_id)
{
	struct server *s = start("fake:ok", NULL);
	struct reply r;

	ask(s, DATED, SAYS("run: 1"), false, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"stdout\":\"ran\\n\"");
	json_t *root = reply_json(&r);
	const json_t *result = of_type(at_json(root, "content"), "code_execution_tool_result");
	char *text = told(s), path[256], named[256];
	const char *id = at(result, "content.content.0.file_id");
	(void)snprintf(named, sizeof(named), "out.csv (file_id: %s)", id);
	cr_expect(strstr(text, named) != NULL, "%s", text);
	mem_free(text);
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", id);
	reply_done(&r);
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect(r.status == 200 && strcmp(r.body.ptr, "a,b") == 0, "%ld", r.status);
	reply_done(&r);
	json_decref(root);
	expect_deleted(s, 1);
	server_stop(&s);
}

Test(remote, n77_a_file_that_cannot_be_fetched_is_named_and_the_run_stands)
{
	struct server *s = start("fake:unfetchable", NULL);
	struct reply r;

	ask(s, DATED, SAYS("run: 1"), true, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"return_code\":0");
	reply_done(&r);
	char *text = told(s);
	cr_expect(
	    strstr(text, "files: out.csv") != NULL && strstr(text, "file_id") == NULL, "%s", text);
	mem_free(text);
	expect_deleted(s, 1);
	server_stop(&s);
}

Test(remote, n78_without_files_none_is_asked_for)
{
	struct server *s = start("fake:ok", "files_enabled: false\n");
	struct reply r;

	ask(s, DATED, SAYS("run: 1"), false, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	char *text = told(s);
	cr_expect(
	    strstr(text, "files: out.csv") != NULL && strstr(text, "file_id") == NULL, "%s", text);
	mem_free(text);
	expect_seen(s, "gets", 0);
	server_stop(&s);
}

Test(remote, n75_a_refused_file_fails_the_request_and_is_named)
{
	struct server *s = start("fake:refuses", NULL);
	struct reply r;
	char talk[512];

	server_upload(s, "/v1/files", "in.csv", "text/csv", STR("1"), "user_data", NULL, &r);
	json_t *root = reply_json(&r);
	const char *id = at(root, "id");
	reply_done(&r);
	(void)snprintf(talk, sizeof(talk),
	    "{\"role\":\"user\",\"content\":[{\"type\":\"container_upload\",\"file_id\":\"%s\"}]}",
	    id);
	json_int_t before = provider_count(s);
	for (int stream = 0; stream < 2; stream++) {
		ask(s, DATED, talk, stream == 1, &r);
		cr_expect_eq(r.status, 502, "%ld %s", r.status, r.body.ptr);
		HAS(r, id);
		reply_done(&r);
	}
	cr_expect_eq(provider_count(s), before, "no model was asked");
	json_decref(root);
	expect_deleted(s, 2);
	server_stop(&s);
}

Test(remote, n90_a_full_sandbox_says_when_to_come_back)
{
	static const struct {
		const char *scenario, *after;
	} rows[] = {{"fake:full-17", "17"}, {"fake:full-soon", "5"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct server *s = start(rows[i].scenario, NULL);
		struct reply r;

		server_expect(s, "no code session");
		ask(s, DATED, SAYS("run: 1"), true, &r);
		cr_expect_eq(r.status, 503, "%s", r.body.ptr);
		cr_expect(str_eq(reply_header(&r, "retry-after"), str_c(rows[i].after)), "%s",
		    r.head.ptr);
		reply_done(&r);
		server_stop(&s);
	}
}

Test(remote, e9_a_renamed_field_is_an_error_and_no_run_without_files)
{
	struct server *s = start("fake:renamed", NULL);
	struct reply r;

	server_expect(s, "no code session");
	ask(s, DATED, SAYS("run: 1"), false, &r);
	cr_expect_eq(r.status, 502, "%s", r.body.ptr);
	HAS(r, "session_id: missing");
	reply_done(&r);
	expect_seen(s, "execs", 0);
	server_stop(&s);
}

Test(remote, a_tool_that_it_does_not_know_is_told_to_the_model)
{
	struct server *s = start("fake:python", NULL);
	struct reply r;

	server_expect(s, "code execution failed");
	ask(s, NEW, SAYS("run: bash: ls"), false, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "bash_code_execution_tool_result_error");
	reply_done(&r);
	char *text = told(s);
	cr_expect(strstr(text, "does not run this kind of tool") != NULL, "%s", text);
	mem_free(text);
	/* From now on the model is not shown it; the editor was not asked for yet. */
	ask(s, NEW, SAYS("run: print(1)"), false, &r);
	HAS(r, "\"stdout\":\"ran");
	reply_done(&r);
	text = provider_saw(s, 0);
	cr_expect(strstr(text, "\"name\":\"code_execution\"") != NULL, "%s", text);
	cr_expect(strstr(text, "\"name\":\"text_editor_code_execution\"") != NULL, "%s", text);
	cr_expect(strstr(text, "\"name\":\"bash_code_execution\"") == NULL, "%s", text);
	mem_free(text);
	server_ask(s, "GET", "/v1/tools", STR_NULL, NULL, &r);
	HAS(r, "\"name\":\"text_editor_code_execution\"");
	LACKS(r, "\"name\":\"bash_code_execution\"");
	reply_done(&r);
	put_policy(s, "{\"enabled\":true,\"tools\":[\"bash_code_execution\"]}");
	ask(s, NEW, SAYS("run: bash: ls"), false, &r);
	cr_expect_eq(r.status, 503, "%ld %s", r.status, r.body.ptr);
	HAS(r, "none of the tools");
	reply_done(&r);
	server_stop(&s);
}

Test(remote, the_image_is_the_workspaces_else_the_deployments)
{
	struct server *s =
	    start("fake:ok", "sandbox_session_image: base:1\nsandbox_allowed_session_images: "
			     "[\"py:3\", \"base:1\"]\n");
	struct reply r;

	for (int i = 0; i < 2; i++) {
		if (i == 1)
			put_policy(s, "{\"enabled\":true,\"image\":\"py:3\"}");
		ask(s, DATED, SAYS("run: 1"), false, &r);
		cr_assert_eq(r.status, 200, "%s", r.body.ptr);
		reply_done(&r);
		json_t *root = seen(s);
		cr_expect_str_eq(at(root, "last_create.image"), i == 0 ? "base:1" : "py:3");
		json_decref(root);
	}
	server_stop(&s);
}
