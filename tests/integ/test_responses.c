/* The Responses API: answers that are kept, gone on from, listed and deleted; code run here. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/harness.h"

TestSuite(responses, .timeout = 180);

static void
ask_text(struct server *s, const char *method, const char *path, const char *body, const char *key,
    struct reply *r)
{
	server_ask(s, method, path, body != NULL ? str_c(body) : STR_NULL,
	    &(struct ask_opts){.key = key}, r);
}

/* Creates a response; its object, whole or out of the stream's last event. */
static json_t *
create(struct server *s, const char *key, json_t *body)
{
	struct reply r;
	char *text = json_dumps(body, 0);
	bool stream = json_is_true(json_object_get(body, "stream"));
	json_t *root;

	ask_text(s, "POST", "/v1/responses", text, key, &r);
	cr_assert_eq(r.status, 200, "%s: %ld %s", text, r.status, r.body.ptr);
	if (stream) {
		static const char mark[] = "event: response.completed\ndata: ";
		const char *last = strstr(r.body.ptr, mark);
		cr_assert(last != NULL, "%s", r.body.ptr);
		root = json_loads(last + sizeof(mark) - 1, JSON_DISABLE_EOF_CHECK, NULL);
		json_t *response = json_incref(json_object_get(root, "response"));
		json_decref(root);
		root = response;
	} else {
		root = reply_json(&r);
	}
	cr_assert(json_is_object(root), "%s", r.body.ptr);
	reply_done(&r);
	free(text);
	json_decref(body);
	return root;
}

static json_t *
get(struct server *s, const char *key, long status, const char *id, const char *rest)
{
	struct reply r;
	char path[512];

	(void)snprintf(path, sizeof(path), "/v1/responses/%s%s", id, rest);
	ask_text(s, "GET", path, NULL, key, &r);
	cr_expect_eq(r.status, status, "%s: %ld %s", path, r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

static const json_t *
find_item(const json_t *response, const char *type)
{
	size_t i;
	const json_t *item;

	json_array_foreach(json_object_get(response, "output"), i, item)
		if (strcmp(at(item, "type"), type) == 0)
			return item;
	return NULL;
}

/* What reached the provider last, as text. */
static json_t *
last_body(struct server *s)
{
	struct reply r;
	json_t *root;

	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	cr_assert_eq(r.status, 200);
	root = reply_json(&r);
	json_t *body = json_loads(at(root, "body"), JSON_DECODE_INT_AS_REAL, NULL);
	json_decref(root);
	reply_done(&r);
	return body;
}

static char *
other_key(struct server *s)
{
	struct reply r;

	server_ask(s, "POST", "/api/v1/keys",
	    STR("{\"key_name\":\"other\",\"user_id\":\"somebody-else\"}"),
	    &(struct ask_opts){.key = s->master_key}, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	json_t *root = reply_json(&r);
	char *key = mem_strdup(at(root, "key"));
	json_decref(root);
	reply_done(&r);
	return key;
}

static void
look_for(const json_t *body, const char *text, bool must)
{
	char *dump = json_dumps(body, JSON_ENCODE_ANY);
	cr_expect_eq(strstr(dump, text) != NULL, must, "%s in %s", text, dump);
	free(dump);
}
#define must_hold(body, text)     look_for(body, text, true)
#define must_not_hold(body, text) look_for(body, text, false)

/* The life of an answer, behind one kind of provider. */
static void
life(struct server *s, const char *model, bool stream, const char *other)
{
	json_t *first = create(s, NULL,
	    json_pack("{s:s, s:s, s:s, s:b}", "model", model, "input", "first words",
		"instructions", "be brief", "stream", stream));
	const char *id = at(first, "id");
	char path[256];
	struct reply r;

	json_t *got = get(s, NULL, 200, id, "");
	cr_expect(json_equal(first, got), "%s: what is kept is not what was sent", model);
	json_decref(got);
	got = get(s, other, 404, id, "");
	cr_expect_str_eq(at(got, "error.type"), "invalid_request_error");
	json_decref(got);
	json_decref(get(s, NULL, 400, id, "?stream=true"));

	json_t *second = create(s, NULL,
	    json_pack("{s:s, s:s, s:s, s:b}", "model", model, "input", "second words",
		"previous_response_id", id, "stream", stream));
	cr_expect_str_eq(at(second, "previous_response_id"), id);
	json_t *body = last_body(s);
	must_hold(body, "first words");
	must_hold(body, "You said: first words");
	must_hold(body, "second words");
	must_not_hold(body, "be brief");
	must_not_hold(body, "previous_response_id");
	must_not_hold(body, "otari_");
	json_decref(body);

	json_t *page = get(s, NULL, 200, at(second, "id"), "/input_items");
	cr_expect_eq(json_array_size(json_object_get(page, "data")), 3);
	cr_expect_str_eq(at(page, "data.0.content.0.text"), "second words");
	cr_expect_str_eq(at(page, "data.2.content.0.text"), "first words");
	cr_expect_str_eq(at(page, "first_id"), at(page, "data.0.id"));
	(void)snprintf(path, sizeof(path), "/input_items?limit=1&after=%s", at(page, "data.0.id"));
	json_t *next = get(s, NULL, 200, at(second, "id"), path);
	cr_expect_str_eq(at(next, "data.0.id"), at(page, "data.1.id"));
	cr_expect(json_is_true(json_object_get(next, "has_more")));
	json_decref(next);
	json_decref(get(s, NULL, 400, id, "/input_items?limit=101"));
	json_decref(get(s, NULL, 400, id, "/input_items?after=none"));
	json_decref(get(s, other, 404, id, "/input_items"));

	/* The user's own message, and the model's, by their ids (of which the fake provider has one
	 * for all its answers). */
	json_decref(create(s, NULL,
	    json_pack("{s:s, s:[{s:s, s:s}, {s:s}, {s:s, s:s}], s:b}", "model", model, "input",
		"type", "item_reference", "id", at(page, "data.2.id"), "id", at(page, "data.1.id"),
		"role", "user", "content", "third", "stream", stream)));
	body = last_body(s);
	must_hold(body, "first words");
	must_hold(body, "You said: ");
	must_not_hold(body, "\"second words");
	must_not_hold(body, "item_reference");
	json_decref(body);
	json_decref(page);

	(void)snprintf(path, sizeof(path), "/v1/responses/%s", id);
	ask_text(s, "DELETE", path, NULL, other, &r);
	cr_expect_eq(r.status, 404);
	reply_done(&r);
	ask_text(s, "DELETE", path, NULL, NULL, &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	got = reply_json(&r);
	cr_expect_str_eq(at(got, "object"), "response");
	cr_expect(json_is_true(json_object_get(got, "deleted")));
	json_decref(got);
	reply_done(&r);
	json_decref(get(s, NULL, 404, id, ""));
	/* What went on from it stands alone. */
	json_decref(get(s, NULL, 200, at(second, "id"), ""));
	json_decref(second);
	json_decref(first);
}

Test(responses, live_until_they_are_deleted_whatever_the_provider_speaks)
{
	static const char *const models[] = {"fake:text", "claude:text", "answers:text"};
	struct server *s = server_start(NULL);
	char *other = other_key(s);

	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		for (int stream = 0; stream < 2; stream++)
			life(s, models[i], stream != 0, other);
	mem_free(other);
	server_stop(&s);
}

Test(responses, what_is_unknown_or_anothers_is_said_in_their_own_words)
{
	static const struct {
		const char *body;
		long status;
		const char *code, *param;
	} rows[] = {
	    {"{\"model\":\"fake:text\",\"input\":\"a\",\"previous_response_id\":\"resp_none\"}",
		404, "previous_response_not_found", "previous_response_id"},
	    {"{\"model\":\"fake:text\",\"input\":[{\"type\":\"item_reference\",\"id\":\"msg_0\"}]}",
		404, "", "input"},
	    {"{\"model\":\"fake:text\",\"input\":\"a\",\"previous_response_id\":7}", 400, "", ""},
	    {"{\"model\":\"fake:text\",\"input\":\"a\",\"conversation\":\"conv_1\"}", 400, "", ""},
	    {"{\"model\":\"fake:text\",\"input\":\"a\",\"background\":true}", 400, "", ""},
	    {"{\"model\":\"fake:text\",\"input\":\"a\",\"input\":\"b\"}", 400, "", ""},
	};
	struct server *s = server_start(NULL);
	struct reply r;
	char *other = other_key(s);
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask_text(s, "POST", "/v1/responses", rows[i].body, NULL, &r);
		cr_expect_eq(
		    r.status, rows[i].status, "%s: %ld %s", rows[i].body, r.status, r.body.ptr);
		json_t *root = reply_json(&r);
		cr_expect_str_eq(at(root, "error.code"), rows[i].code, "%s", r.body.ptr);
		cr_expect_str_eq(at(root, "error.param"), rows[i].param, "%s", r.body.ptr);
		json_decref(root);
		reply_done(&r);
	}
	json_t *mine =
	    create(s, NULL, json_pack("{s:s, s:s}", "model", "fake:text", "input", "mine"));
	json_t *body = json_pack("{s:s, s:s, s:s}", "model", "fake:text", "input", "x",
	    "previous_response_id", at(mine, "id"));
	char *text = json_dumps(body, 0);
	ask_text(s, "POST", "/v1/responses", text, other, &r);
	cr_expect_eq(r.status, 404, "%s", r.body.ptr);
	reply_done(&r);
	free(text);
	json_decref(body);
	(void)snprintf(path, sizeof(path), "/v1/responses/%s/cancel", at(mine, "id"));
	ask_text(s, "POST", path, "{}", NULL, &r);
	cr_expect_eq(r.status, 400);
	reply_done(&r);
	ask_text(s, "POST", "/v1/responses/resp_none/cancel", "{}", NULL, &r);
	cr_expect_eq(r.status, 404);
	reply_done(&r);

	/* With the master key, whose? */
	json_decref(get(s, s->master_key, 400, at(mine, "id"), ""));
	json_decref(get(s, s->master_key, 404, at(mine, "id"), "?user=nobody"));

	/* Not to be kept: not there. */
	json_t *free_one = create(
	    s, NULL, json_pack("{s:s, s:s, s:b}", "model", "fake:text", "input", "x", "store", 0));
	cr_expect(json_is_false(json_object_get(free_one, "store")));
	json_decref(get(s, NULL, 404, at(free_one, "id"), ""));
	json_decref(free_one);
	json_decref(mine);
	mem_free(other);
	server_stop(&s);
}

Test(responses, what_is_incomplete_is_kept_and_what_failed_is_not)
{
	struct server *s = server_start(NULL);
	struct reply r;

	fake_ask(s, "POST", "/_next",
	    STR("{\"pieces\":[\"{\\\"id\\\":\\\"c1\\\",\\\"object\\\":\\\"chat.completion\\\","
		"\\\"created\\\":1,\\\"model\\\":\\\"m\\\",\\\"choices\\\":[{\\\"index\\\":0,"
		"\\\"message\\\":{\\\"role\\\":\\\"assistant\\\",\\\"content\\\":\\\"half\\\"},"
		"\\\"finish_reason\\\":\\\"length\\\"}]}\"]}"),
	    &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	json_t *half = create(s, NULL, json_pack("{s:s, s:s}", "model", "fake:text", "input", "a"));
	cr_expect_str_eq(at(half, "status"), "incomplete");
	json_t *kept = get(s, NULL, 200, at(half, "id"), "");
	cr_expect(json_equal(kept, half));
	json_decref(kept);
	json_decref(half);

	ask_text(s, "POST", "/v1/responses",
	    "{\"model\":\"fake:err-500\",\"input\":\"a\",\"stream\":true}", NULL, &r);
	cr_expect(r.status >= 500);
	reply_done(&r);
	ask_text(s, "POST", "/v1/responses",
	    "{\"model\":\"fake:error-event\",\"input\":\"a\",\"stream\":true}", NULL, &r);
	cr_expect(strstr(r.body.ptr, "event: error") != NULL);
	reply_done(&r);
	cr_expect_eq(server_sql(s, "SELECT count(*) FROM responses"), 1);
	server_stop(&s);
}

/* The output alone comes with the second request; the provider must see the call before it. */
Test(responses, a_call_that_is_remembered_stands_before_its_output)
{
	static const char *const models[] = {"fake:client", "claude:client", "answers:client"};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		const char *tools = "[{\"type\":\"function\",\"name\":\"get_time\",\"parameters\":{"
				    "\"type\":\"object\",\"properties\":{}}}]";
		json_t *first = create(s, NULL,
		    json_pack("{s:s, s:s, s:o}", "model", models[i], "input", "what time is it?",
			"tools", json_loads(tools, 0, NULL)));
		const json_t *call = find_item(first, "function_call");
		cr_assert(call != NULL, "%s", models[i]);
		json_decref(create(s, NULL,
		    json_pack("{s:s, s:s, s:[{s:s, s:s, s:s}], s:o}", "model", models[i],
			"previous_response_id", at(first, "id"), "input", "type",
			"function_call_output", "call_id", at(call, "call_id"), "output", "noon",
			"tools", json_loads(tools, 0, NULL))));
		json_t *body = last_body(s);
		char *text = json_dumps(body, 0);
		const char *asked = strstr(text, "what time"),
			   *named = strstr(text, at(call, "call_id")),
			   *answered = strstr(text, "\"noon\"");
		cr_expect(asked != NULL && named > asked && answered > named, "%s", text);
		free(text);
		json_decref(body);
		json_decref(first);
	}
	server_stop(&s);
}

/* Reasoning goes back to whom it came from, as it came, and to nobody else. */
Test(responses, reasoning_returns_to_its_maker_alone)
{
	static const struct {
		const char *first, *second, *has;
	} rows[] = {
	    {"claude:reasoning", "claude:reasoning", "\"signature\""},
	    {"answers:reasoning", "answers:reasoning", "\"reasoning\""},
	    {"claude:reasoning", "answers:text", NULL},
	    {"answers:reasoning", "claude:text", NULL},
	    {"fake:reasoning", "answers:text", NULL},
	};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *first = create(s, NULL,
		    json_pack("{s:s, s:s, s:{s:s, s:s}}", "model", rows[i].first, "input", "think",
			"reasoning", "effort", "low", "summary", "auto"));
		cr_expect(find_item(first, "reasoning") != NULL, "%s", rows[i].first);
		json_decref(create(s, NULL,
		    json_pack("{s:s, s:s, s:s, s:{s:s}}", "model", rows[i].second, "input", "on",
			"previous_response_id", at(first, "id"), "reasoning", "effort", "low")));
		json_t *body = last_body(s);
		const json_t *turns = json_object_get(body, "input");
		if (turns == NULL)
			turns = json_object_get(body, "messages");
		must_hold(turns, "You said: think");
		must_not_hold(turns, "otari_");
		if (rows[i].has != NULL) {
			must_hold(turns, rows[i].has);
		} else {
			must_not_hold(turns, "\"reasoning\"");
			must_not_hold(turns, "\"thinking\"");
		}
		json_decref(body);
		json_decref(first);
	}
	server_stop(&s);
}

Test(responses, are_delivered_also_when_they_cannot_be_kept)
{
	struct server *s = server_start(NULL);

	server_expect(s, "a response could not be kept");
	(void)server_sql(s, "DROP TABLE response_items");
	for (int stream = 0; stream < 2; stream++) {
		json_t *one = create(s, NULL,
		    json_pack(
			"{s:s, s:s, s:b}", "model", "fake:text", "input", "x", "stream", stream));
		cr_expect_str_eq(at(one, "status"), "completed");
		json_decref(get(s, NULL, 404, at(one, "id"), ""));
		json_decref(one);
	}
	cr_expect(server_wait_log(s, "a response could not be kept", NULL));
	server_stop(&s);
}

/* At whatever byte the client hangs up, nothing is left behind and nobody trips. */
Test(responses, clients_may_go_away_at_any_time)
{
	struct server *s = server_start(NULL);
	struct reply r;

	for (size_t stop = 1; stop < 6000; stop += 230) {
		server_ask(s, "POST", "/v1/responses",
		    STR("{\"model\":\"fake:text\",\"input\":\"a few words to "
			"say\",\"stream\":true}"),
		    &(struct ask_opts){.stop_after = stop}, &r);
		reply_done(&r);
	}
	json_decref(create(s, NULL, json_pack("{s:s, s:s}", "model", "fake:text", "input", "x")));
	server_stop(&s);
}

Test(responses, expire_and_are_swept)
{
	struct server *s =
	    server_start(&(struct server_opts){.conf = "responses_retention_hours: 1\n"});
	json_t *one = create(s, NULL, json_pack("{s:s, s:s}", "model", "fake:text", "input", "x"));

	cr_expect_eq(server_sql(s, "SELECT expires_at_s - created_at_s FROM responses"), 3600);
	cr_expect(server_sql(s, "SELECT count(*) FROM response_items") >= 2);
	json_decref(one);
	server_stop(&s);
}

static void
run_code(struct server *s, const char *model, bool stream)
{
	json_t *first = create(s, NULL,
	    json_pack("{s:s, s:s, s:[{s:s, s:{s:s}}], s:[s], s:b}", "model", model, "input",
		"run: print(6 * 7)", "tools", "type", "code_interpreter", "container", "type",
		"auto", "include", "code_interpreter_call.outputs", "stream", stream));
	const json_t *call = find_item(first, "code_interpreter_call");

	cr_assert(call != NULL, "%s: no call", model);
	cr_expect(str_starts(str_c(at(call, "id")), STR("otari_ci_")), "%s", at(call, "id"));
	cr_expect_str_eq(at(call, "status"), "completed");
	cr_expect(strstr(at(call, "code"), "print(6 * 7)") != NULL);
	cr_expect(strstr(at(call, "outputs.0.logs"), "42") != NULL);
	cr_expect(find_item(first, "function_call") == NULL, "the model's own call is shown");
	json_t *kept = get(s, NULL, 200, at(first, "id"), "");
	cr_expect(json_equal(first, kept));
	json_decref(kept);

	/* Gone on from, and sent back: the model reads what ran, and no id of ours. */
	json_decref(create(s, NULL,
	    json_pack("{s:s, s:s, s:s, s:b}", "model", model, "input", "thank you",
		"previous_response_id", at(first, "id"), "stream", stream)));
	json_t *body = last_body(s);
	must_hold(body, "print(6 * 7)");
	must_hold(body, "42");
	must_not_hold(body, "otari_");
	must_not_hold(body, "code_interpreter");
	json_decref(body);
	json_decref(create(s, NULL,
	    json_pack("{s:s, s:[O, {s:s, s:s}], s:b}", "model", model, "input", call, "role",
		"user", "content", "thank you", "store", 0)));
	body = last_body(s);
	must_hold(body, "print(6 * 7)");
	must_not_hold(body, "otari_");
	json_decref(body);
	json_decref(first);
}

Test(responses, code_runs_here_and_shows_as_the_provider_would_show_it)
{
	static const char *const models[] = {"fake:tool", "claude:tool"};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		for (int stream = 0; stream < 2; stream++)
			run_code(s, models[i], stream != 0);
	server_stop(&s);
}

/* A history that is too long for the loop, and one item of it that is too large for a chunk. */
Test(responses, long_histories_go_on)
{
	struct server *s = server_start(NULL);
	size_t n = 700u * 1024u;
	char *words = mem_alloc(n + 1);
	memset(words, 'w', n);
	words[n] = '\0';
	json_t *first =
	    create(s, NULL, json_pack("{s:s, s:s}", "model", "answers:text", "input", words));
	for (int stream = 0; stream < 2; stream++) {
		json_t *second = create(s, NULL,
		    json_pack("{s:s, s:s, s:s, s:b}", "model", "claude:text", "input", "and then?",
			"previous_response_id", at(first, "id"), "stream", stream));
		json_t *body = last_body(s);
		must_hold(body, words);
		must_hold(body, "and then?");
		json_decref(body);
		json_decref(second);
	}
	json_decref(first);
	mem_free(words);
	server_stop(&s);
}
