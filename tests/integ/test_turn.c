/* The loop: a claimed code tool runs in the sandbox, and every client sees its own wire's shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "tests/integ/harness.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(turn, .timeout = 180);

#define ALL_KINDS "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"

static void
ask_model(struct server *s, const char *path, const char *model, const char *prompt,
    const char *tools, bool stream, struct reply *r)
{
	json_t *body = json_pack("{s:s, s:i, s:b, s:[{s:s, s:s}], s:o}", "model", model,
	    "max_tokens", 1000, "stream", stream, "messages", "role", "user", "content", prompt,
	    "tools", json_loads(tools, 0, NULL));
	char *text = json_dumps(body, 0);

	server_ask(s, "POST", path, str_c(text), NULL, r);
	free(text);
	json_decref(body);
}

static const json_t *
find_block(const json_t *message, const char *type)
{
	size_t i;
	const json_t *block;

	json_array_foreach(json_object_get(message, "content"), i, block)
		if (strcmp(at(block, "type"), type) == 0)
			return block;
	return NULL;
}

Test(turn, messages_on_a_chat_model_show_the_native_blocks)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	json_t *root;
	const json_t *use, *result;

	ask_model(s, "/v1/messages", "fake:tool",
	    "run: print(6 * 7)\nopen('made.txt', 'w').write('hello')", "[" ALL_KINDS "]", false,
	    &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	root = reply_json(&r);
	use = find_block(root, "server_tool_use");
	result = find_block(root, "code_execution_tool_result");
	cr_assert(use != NULL && result != NULL, "%s", r.body.ptr);
	cr_expect(strstr(at(use, "input.code"), "print(6 * 7)") != NULL);
	cr_expect_str_eq(at(result, "tool_use_id"), at(use, "id"));
	/* The value of the last expression is shown, as a REPL does. */
	cr_expect_str_eq(at(result, "content.stdout"), "42\n5\n");
	cr_expect_eq(at_int(result, "content.return_code"), 0);
	cr_expect(at(result, "content.content.0.file_id")[0] != '\0', "%s", r.body.ptr);
	cr_expect_str_eq(at(root, "stop_reason"), "end_turn");
	cr_expect(strstr(r.body.ptr, "\"tool_use\"") == NULL, "the model's own call is shown");

	struct reply file;
	char path[256];
	(void)snprintf(
	    path, sizeof(path), "/v1/files/%s/content", at(result, "content.content.0.file_id"));
	server_ask(s, "GET", path, STR_NULL, NULL, &file);
	cr_expect_eq(file.status, 200);
	cr_expect_str_eq(file.body.ptr, "hello");
	reply_done(&file);
	json_decref(root);
	reply_done(&r);
	cr_expect(server_wait_sql(
	    s, "SELECT count(*) FROM usage_logs WHERE tools LIKE '%code_execution%'", 1));
	server_stop(&s);
}

Test(turn, runs_of_code_are_bounded_for_a_request)
{
	struct server *s = start_with_sandbox();
	struct buf prompt = BUF_INIT(65536);
	struct reply r;
	int n = 0;

	buf_add(&prompt, STR("run: 1"));
	for (int i = 1; i < 258; i++)
		buf_add(&prompt, STR("\n---\n1"));
	ask_model(s, "/v1/messages", "fake:parallel", prompt.ptr, "[" ALL_KINDS "]", false, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	for (const char *p = r.body.ptr; (p = strstr(p, "too_many_requests")) != NULL; p++)
		n++;
	cr_expect_eq(n, 2, "%d calls were refused", n);
	reply_done(&r);
	buf_done(&prompt);
	server_stop(&s);
}

#define HELD_RUNS 60

/* Its answer would be in memory: 15 MB here, a hundred times that if it asked for it. */
Test(turn, a_client_that_does_not_read_holds_the_runs_back)
{
	struct server *s = start_with_sandbox();
	struct buf prompt = BUF_INIT(65536), got = BUF_INIT(64u << 20), head = BUF_INIT(4096);
	int fd = server_connect(s);
	int64_t runs = 0, before = -1;

	buf_add(&prompt, STR("run: print('x' * 250000)"));
	for (int i = 1; i < HELD_RUNS; i++)
		buf_add(&prompt, STR("\n---\nprint('x' * 250000)"));
	json_t *body = json_pack("{s:s, s:i, s:b, s:[{s:s, s:s}], s:[{s:s, s:s}]}", "model",
	    "fake:parallel", "max_tokens", 1000, "stream", 1, "messages", "role", "user", "content",
	    prompt.ptr, "tools", "type", "code_execution_20250825", "name", "code_execution");
	char *text = json_dumps(body, 0);
	buf_printf(&head,
	    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
	    "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    s->key, strlen(text), text);
	cr_assert_eq(fd_write_all(fd, buf_str(&head), NULL), ERR_OK);
	/* Until it stands still. */
	for (int same = 0; same < 50; before = runs) {
		runs = (int64_t)server_metric(s, "otari_code_runs_total");
		same = runs > 0 && runs == before ? same + 1 : 0;
		pause_short();
	}
	cr_expect_lt(runs, HELD_RUNS, "all %lld ran", (long long)runs);
	/* All results, until the model has read them and goes on. */
	const char *piece = "";
	for (ssize_t n = 1; n > 0 && strstr(piece, "text_delta") == NULL;) {
		char *room = buf_reserve(&got, 65536);
		cr_assert_not_null(room);
		n = read(fd, room, 65536);
		buf_commit(&got, n > 0 ? (size_t)n : 0);
		piece = room;
	}
	cr_expect_eq(occurrences(got.ptr, "\"return_code\":0"), (size_t)HELD_RUNS);
	fd_close(&fd);
	free(text);
	json_decref(body);
	buf_done(&prompt);
	buf_done(&got);
	buf_done(&head);
	server_stop(&s);
}

Test(turn, what_cannot_be_said_is_refused_where_that_is_asked_for)
{
	struct server *s =
	    server_start(&(struct server_opts){.conf = "strict_translation: true\n"});
	struct reply r;

	server_ask(s, "POST", "/v1/messages",
	    STR("{\"model\":\"fake:text\",\"max_tokens\":9,\"top_k\":5,\"messages\":[{\"role\":"
		"\"user\",\"content\":\"hi\"}]}"),
	    NULL, &r);
	cr_expect_eq(r.status, 400, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "top_k") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(turn, a_messages_stream_holds_the_same_blocks)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	const char *use, *result, *stop;

	ask_model(s, "/v1/messages", "fake:tool", "run: print(6 * 7)", "[" ALL_KINDS "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	use = strstr(r.body.ptr, "\"server_tool_use\"");
	result = strstr(r.body.ptr, "\"code_execution_tool_result\"");
	stop = strstr(r.body.ptr, "event: message_stop\n");
	cr_assert(use != NULL && result != NULL && stop != NULL, "%s", r.body.ptr);
	cr_expect(use < result && result < stop);
	cr_expect(strstr(r.body.ptr, "\"stdout\":\"42\\n\"") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"tool_use\"") == NULL);
	cr_expect(strstr(r.body.ptr, "event: done") == NULL);
	reply_done(&r);
	server_stop(&s);
}

Test(turn, chat_hides_the_execution)
{
	struct server *s = start_with_sandbox();

	for (int stream = 0; stream < 2; stream++) {
		struct reply r;

		ask_model(s, "/v1/chat/completions", "fake:tool", "run: print(6 * 7)",
		    "[{\"type\":\"code_execution\"}]", stream, &r);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "tool_calls") == NULL, "%s", r.body.ptr);
		cr_expect(strstr(r.body.ptr, "42") != NULL, "%s", r.body.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(turn, calls_of_one_turn_share_a_session_and_run_in_order)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	ask_model(s, "/v1/messages", "fake:parallel", "run: x = 20\n---\nprint(x + 22)",
	    "[" ALL_KINDS "]", false, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"stdout\":\"42\\n\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(turn, a_round_cap_is_told_in_the_dialects_way)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	json_t *root;

	ask_model(s, "/v1/messages", "fake:forever", "go", "[" ALL_KINDS "]", false, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	root = reply_json(&r);
	cr_expect_str_eq(at(root, "stop_reason"), "pause_turn", "%s", r.body.ptr);
	json_decref(root);
	reply_done(&r);
	ask_model(s, "/v1/chat/completions", "fake:forever", "go",
	    "[{\"type\":\"code_execution\"}]", false, &r);
	cr_expect_eq(r.status, 422, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(turn, half_a_program_is_never_run)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	ask_model(
	    s, "/v1/messages", "fake:badjson", "run: print('ran')", "[" ALL_KINDS "]", false, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "ran\\n") == NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(turn, a_declared_tool_that_is_not_called_leases_nothing)
{
	struct server *s = start_with_sandbox();
	const struct ask_opts admin = {.key = "", .admin = true};
	struct reply r;

	for (int i = 0; i < 5; i++) {
		ask_model(s, "/v1/messages", "fake:text", "hi", "[" ALL_KINDS "]", i % 2, &r);
		cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		reply_done(&r);
	}
	server_ask(s, "GET", "/metrics", STR_NULL, &admin, &r);
	cr_expect(strstr(r.body.ptr, "otari_sandbox_leases_total 0") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

/* Parsed and encoded on threads; what comes out is the same. */
Test(turn, a_large_conversation_arrives_whole)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	struct buf prompt = BUF_INIT(2u << 20);

	for (int i = 0; i < 20000; i++)
		buf_printf(&prompt, "line %d of a long text with \"quotes\" and \\ signs; ", i);
	buf_add(&prompt, STR("run: print(40 + 2)"));
	for (int stream = 0; stream < 2; stream++) {
		ask_model(
		    s, "/v1/messages", "fake:tool", prompt.ptr, "[" ALL_KINDS "]", stream, &r);
		cr_expect_eq(r.status, 200, "%ld %.300s", r.status, r.body.ptr);
		cr_expect(
		    strstr(r.body.ptr, "code_execution_tool_result") != NULL, "%.300s", r.body.ptr);
		reply_done(&r);
	}
	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	cr_expect(strstr(r.body.ptr, "line 19999 of a long text") != NULL);
	reply_done(&r);
	buf_done(&prompt);
	server_stop(&s);
}

/* As with an answer of that status: the client's key is good, and the provider's text names ours.
 */
Test(turn, an_error_about_our_credential_within_a_200_is_not_the_clients)
{
	static const struct {
		const char *error;
		long status;
		const char *type, *says;
	} rows[] = {
	    {"{\"error\":{\"message\":\"bad key fake...\",\"type\":\"authentication_error\"}}", 502,
		"api_error", "the provider did not accept the gateway's credential"},
	    {"{\"error\":{\"message\":\"not for acme\",\"code\":403}}", 502, "api_error",
		"the provider did not accept the gateway's credential"},
	    {"{\"error\":{\"message\":\"slow down\",\"code\":429}}", 429, "rate_limit_error",
		"slow down"},
	};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		char event[512];
		struct reply r;
		bool is_stream = i % 2 == 1;

		(void)snprintf(event, sizeof(event), "data: %s\n\n", rows[i / 2].error);
		provider_answers(s, is_stream ? event : rows[i / 2].error, is_stream);
		ask_model(s, "/v1/messages", "fake:text", "hi", "[]", is_stream, &r);
		json_t *root = reply_json(&r);
		cr_expect_eq(r.status, rows[i / 2].status, "%zu: %ld %s", i, r.status, r.body.ptr);
		cr_expect_str_eq(at(root, "error.type"), rows[i / 2].type);
		cr_expect_str_eq(at(root, "error.message"), rows[i / 2].says);
		json_decref(root);
		reply_done(&r);
	}
	server_stop(&s);
}
