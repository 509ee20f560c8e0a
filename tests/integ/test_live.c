/* Calls of our tools while the model writes them, and what a client gets when it does not end well.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/integ/streams.h"

TestSuite(live, .timeout = 180);

#define DATED       "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define INTERPRETER "{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}"
#define CLIENTS     "{\"name\":\"get_time\",\"input_schema\":{\"type\":\"object\"}}"

static char *
body_of(bool is_messages, const char *model, const char *prompt, const char *tools, bool stream)
{
	json_t *body = json_pack("{s:s, s:b, s:s, s:[{s:s, s:s}], s:o}", "model", model, "stream",
	    stream, "user", "u", is_messages ? "messages" : "input", "role", "user", "content",
	    prompt, "tools", json_loads(tools, 0, NULL));
	if (is_messages) {
		json_object_del(body, "user");
		json_object_set_new(body, "max_tokens", json_integer(1000));
	}
	char *text = json_dumps(body, 0);
	json_decref(body);
	return text;
}

static void
ask_model(struct server *s, bool is_messages, const char *model, const char *prompt,
    const char *tools, bool stream, struct reply *r)
{
	char *text = body_of(is_messages, model, prompt, tools, stream);
	server_ask(s, "POST", is_messages ? "/v1/messages" : "/v1/responses", str_c(text), NULL, r);
	free(text);
}

/* "A>B>C": the types of an answer's blocks, from its stream or its whole. */
static void
block_types(const struct reply *r, bool stream, char *out, size_t max)
{
	static const char start[] = "\"content_block\":{\"type\":\"";
	size_t used = 0, i;
	json_t *block;

	out[0] = '\0';
	if (stream) {
		for (const char *p = r->body.ptr; (p = strstr(p, start)) != NULL;) {
			p += sizeof(start) - 1;
			used += (size_t)snprintf(out + used, max - used, "%s%.*s",
			    used > 0 ? ">" : "", (int)strcspn(p, "\""), p);
		}
		return;
	}
	json_t *root = reply_json(r);
	json_array_foreach(json_object_get(root, "content"), i, block)
		used += (size_t)snprintf(
		    out + used, max - used, "%s%s", i > 0 ? ">" : "", at(block, "type"));
	json_decref(root);
}

static int
times(const struct reply *r, const char *text)
{
	int n = 0;
	for (const char *p = r->body.ptr; (p = strstr(p, text)) != NULL; p += strlen(text))
		n++;
	return n;
}

static const char *
after(const char *p, const char *text)
{
	p = p != NULL ? strstr(p, text) : NULL;
	return p != NULL ? p + strlen(text) : NULL;
}

#define LONG_PROGRAM                                                                               \
	"run: x = 40 # a comment that is long enough for a good many pieces of this program\n"     \
	"y = 2 # and another one that takes as many pieces again, so that there are two halves\n"  \
	"print(x + y)"

/* The model stops half-way through its call; the client has the first half then. */
static void
expect_early(bool is_messages, const char *tools, const char *delta, const char *end)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char *text = body_of(is_messages, "fake:gated", LONG_PROGRAM, tools, true);
	int fd = stream_open(s, is_messages ? "/v1/messages" : "/v1/responses", text);

	cr_assert(stream_wait(fd, delta), "nothing of the code came before all of it was written");
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0, "it cannot run yet");
	fake_ask(s, "POST", "/_go", STR_NULL, &r);
	reply_done(&r);
	cr_expect(stream_wait(fd, end));
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 1);
	(void)close(fd);
	free(text);
	server_stop(&s);
}

Test(live, a_messages_client_sees_the_code_while_it_is_written)
{
	expect_early(true, "[" DATED "]", "x = 40", "event: message_stop");
}

Test(live, a_responses_client_sees_the_code_while_it_is_written)
{
	expect_early(false, "[" INTERPRETER "]", "event: response.code_interpreter_call_code.delta",
	    "event: response.completed");
}

Test(live, the_code_comes_in_pieces_and_runs_when_it_is_whole)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	ask_model(s, true, "fake:tool", LONG_PROGRAM, "[" DATED "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect_gt(times(&r, "\"input_json_delta\""), 3, "%s", r.body.ptr);
	cr_expect_eq(times(&r, "\"type\":\"server_tool_use\""), 1);
	const char *p = after(r.body.ptr, "\"type\":\"server_tool_use\"");
	p = after(
	    p, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}");
	p = after(p, "\"index\":1,\"content_block\":{\"type\":\"code_execution_tool_result\"");
	cr_expect(after(p, "\"stdout\":\"42\\n\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	ask_model(s, false, "fake:tool", LONG_PROGRAM, "[" INTERPRETER "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect_gt(times(&r, "event: response.code_interpreter_call_code.delta"), 3);
	p = r.body.ptr;
	static const char *const order[] = {"\"type\":\"code_interpreter_call\",\"status\":\"in_"
					    "progress\",\"code\":\"\"",
	    "event: response.code_interpreter_call.in_progress", "_code.delta", "_code.done",
	    "event: response.code_interpreter_call.interpreting",
	    "event: response.code_interpreter_call.completed", "event: response.output_item.done",
	    "{\"type\":\"logs\",\"logs\":\"42\\n\"}"};
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		p = after(p, order[i]);
		cr_assert(p != NULL, "no %s in its place: %s", order[i], r.body.ptr);
	}
	reply_done(&r);
	server_stop(&s);
}

/* Every call has its result behind it, streamed and whole; {model, prompt, tools, blocks}. */
Test(live, blocks_have_one_order_streamed_and_whole)
{
	static const struct {
		const char *model, *prompt, *tools, *want;
	} rows[] = {
	    {"fake:parallel", "run: print(1)\n---\nprint(2)\n---\nprint(3)", "[" DATED "]",
		"server_tool_use>code_execution_tool_result>server_tool_use>code_execution_tool_"
		"result>server_tool_use>code_execution_tool_result>text"},
	    {"fake:mixed", "run: print(1)", "[" DATED "," CLIENTS "]",
		"server_tool_use>code_execution_tool_result>tool_use"},
	    {"claude:mixed", "run: print(1)", "[" DATED "," CLIENTS "]",
		"server_tool_use>code_execution_tool_result>tool_use"},
	    {"fake:badjson", "run: print('ran')", "[" DATED "]",
		"server_tool_use>code_execution_tool_result>text"},
	    {"fake:length", "run: print('ran')", "[" DATED "]",
		"server_tool_use>code_execution_tool_result"},
	};
	struct server *s = start_with_sandbox();
	char got[512];

	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		struct reply r;
		bool stream = i % 2;
		const char *model = rows[i / 2].model;

		/* the code runs here, also where the provider has a tool of its own */
		const struct ask_opts here = {
		    .headers = (const char *const[]){"Otari-Code-Execution: otari", NULL}};
		char *text = body_of(true, model, rows[i / 2].prompt, rows[i / 2].tools, stream);
		server_ask(s, "POST", "/v1/messages", str_c(text), &here, &r);
		free(text);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		block_types(&r, stream, got, sizeof(got));
		cr_expect_str_eq(got, rows[i / 2].want, "%s %d: %s", model, stream, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "ran\\n") == NULL, "%s", r.body.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}

/* {model, how often each is there} */
Test(live, what_is_not_run_has_one_error)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (int stream = 0; stream < 2; stream++) {
		ask_model(s, true, "fake:length", "run: print('ran')", "[" DATED "]", stream, &r);
		cr_expect(
		    strstr(r.body.ptr, "\"stop_reason\":\"max_tokens\"") != NULL, "%s", r.body.ptr);
		cr_expect_eq(
		    times(&r, "\"error_code\":\"invalid_tool_input\""), 1, "%s", r.body.ptr);
		reply_done(&r);
		ask_model(
		    s, false, "fake:length", "run: print('ran')", "[" INTERPRETER "]", stream, &r);
		json_t *root = stream ? NULL : reply_json(&r);
		if (root != NULL) {
			cr_expect_str_eq(at(root, "status"), "incomplete");
			cr_expect_str_eq(at(root, "output.0.status"), "failed");
			cr_expect_str_eq(at(root, "output.0.code"), "print('ran')");
		} else {
			cr_expect(after(after(r.body.ptr, "_code.done"),
				      "\"status\":\"failed\",\"code\":\"print('ran')\"") != NULL,
			    "%s", r.body.ptr);
		}
		json_decref(root);
		reply_done(&r);
		ask_model(s, true, "fake:badjson", "run: print('ran')", "[" DATED "]", stream, &r);
		cr_expect_eq(
		    times(&r, "\"error_code\":\"invalid_tool_input\""), 1, "%s", r.body.ptr);
		reply_done(&r);
	}
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0, "nothing ran");
	server_stop(&s);
}

Test(live, e1_what_ran_is_listed_where_no_block_shows_it)
{
	static const char *const paths[] = {
	    "/v1/chat/completions", "/v1/messages", "/v1/responses"};
	static const char own[] = "[{\"type\":\"otari_code_execution\"}]";
	struct server *s = start_with_sandbox();

	for (int i = 0; i < 6; i++) {
		struct reply r;
		bool is_responses = i / 2 == 2;
		char *text = body_of(!is_responses, "fake:tool",
		    "run: open('made.txt', 'w').write('x')\nprint(6 * 7)", own, i % 2);
		server_ask(s, "POST", paths[i / 2], str_c(text), NULL, &r);
		free(text);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		const char *p = after(r.body.ptr, "\"otari_code_executions\":[{\"id\":\"otari_");
		p = after(p, "\"tool\":\"code_execution\",\"input\":{\"code\":\"open(");
		p = after(p, "\"stdout\":\"42\\n\",\"stderr\":\"\",\"return_code\":0,\"files\":[{");
		p = after(p, "\"filename\":\"made.txt\"}],\"error_code\":null}]");
		cr_expect(p != NULL, "%s: %s", paths[i / 2], r.body.ptr);
		cr_expect_eq(times(&r, "otari_code_executions"), 1);
		cr_expect_eq(times(&r, "server_tool_use") + times(&r, "code_interpreter_call"), 0);
		reply_done(&r);
	}
	server_stop(&s);
}

/* The provider goes away in the middle of the call: the block is closed, its result says why, and
 * the error ends the stream. */
Test(live, a_call_that_breaks_off_is_closed_before_the_error)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	ask_model(s, true, "fake:tool-cut", LONG_PROGRAM, "[" DATED "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	const char *p = after(r.body.ptr, "\"type\":\"server_tool_use\"");
	p = after(p, "\"partial_json\":\"\\\"}\"");
	p = after(p, "event: content_block_stop");
	p = after(p, "\"error_code\":\"invalid_tool_input\"");
	p = after(p, "event: content_block_stop");
	cr_expect(after(p, "event: error") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	ask_model(s, false, "fake:tool-cut", LONG_PROGRAM, "[" INTERPRETER "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	p = after(r.body.ptr, "_code.done");
	p = after(p, "event: response.output_item.done");
	p = after(p, "\"status\":\"failed\"");
	cr_expect(after(p, "event: error") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	ask_model(s, true, "fake:tool-cut", LONG_PROGRAM, "[" DATED "]", false, &r);
	cr_expect_eq(r.status, 502, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

/* --- text behind our call ------------------------------------------------------------------------
 */
#define CALL(id, code)                                                                             \
	"{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"code_execution\",\"input\":{"         \
	"\"code\":\"" code "\"}}"
#define USAGE "\"usage\":{\"input_tokens\":1,\"output_tokens\":1}"
#define HEAD                                                                                       \
	"\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","            \
	"\"stop_sequence\":null," USAGE

static const char whole_answer[] =
    "{" HEAD
    ",\"stop_reason\":\"tool_use\",\"content\":[{\"type\":\"text\",\"text\":\"First.\"}," CALL(
	"toolu_1", "print(1)") ",{\"type\":\"text\",\"text\":\"Second.\"}," CALL("toolu_2",
	"print(2)") ",{\"type\":\"text\",\"text\":\"Third.\"}]}";
static const char last_answer[] =
    "{" HEAD ",\"stop_reason\":\"end_turn\",\"content\":[{\"type\":\"text\",\"text\":\"Done.\"}]}";

static void
add_event(json_t *pieces, json_t *event)
{
	char *text = json_dumps(event, JSON_COMPACT);
	struct buf b = BUF_INIT(65536);
	buf_printf(&b, "event: %s\ndata: %s\n\n", at(event, "type"), text);
	json_array_append_new(pieces, json_string(b.ptr));
	buf_done(&b);
	free(text);
	json_decref(event);
}

/* A whole Messages answer in the events of a stream: texts in single characters. */
static json_t *
pieces_of(const char *answer)
{
	json_t *root = json_loads(answer, 0, NULL), *pieces = json_array(), *block;
	size_t i;
	json_t *head = json_deep_copy(root);
	json_object_set_new(head, "content", json_array());
	json_object_set_new(head, "stop_reason", json_null());
	add_event(pieces, json_pack("{s:s, s:o}", "type", "message_start", "message", head));
	json_array_foreach(json_object_get(root, "content"), i, block) {
		bool is_text = strcmp(at(block, "type"), "text") == 0;
		json_t *start = json_deep_copy(block);
		char *input = json_dumps(json_object_get(block, "input"), 0);
		const char *say = is_text ? at(block, "text") : input;
		json_object_set_new(
		    start, is_text ? "text" : "input", is_text ? json_string("") : json_object());
		add_event(pieces, json_pack("{s:s, s:i, s:o}", "type", "content_block_start",
				      "index", (int)i, "content_block", start));
		for (const char *p = say; *p != '\0'; p++)
			add_event(pieces, json_pack("{s:s, s:i, s:{s:s, s:s#}}", "type",
					      "content_block_delta", "index", (int)i, "delta",
					      "type", is_text ? "text_delta" : "input_json_delta",
					      is_text ? "text" : "partial_json", p, 1));
		add_event(
		    pieces, json_pack("{s:s, s:i}", "type", "content_block_stop", "index", (int)i));
		free(input);
	}
	add_event(pieces, json_pack("{s:s, s:{s:s, s:n}, s:{s:i}}", "type", "message_delta",
			      "delta", "stop_reason", at(root, "stop_reason"), "stop_sequence",
			      "usage", "output_tokens", 1));
	add_event(pieces, json_pack("{s:s}", "type", "message_stop"));
	json_decref(root);
	return pieces;
}

static void
next_answer(struct server *s, const char *answer, bool stream)
{
	json_t *pieces = stream ? pieces_of(answer) : json_pack("[s]", answer);
	json_t *next = json_pack("{s:s, s:o}", "content_type",
	    stream ? "text/event-stream" : "application/json", "pieces", pieces);
	char *text = json_dumps(next, 0);
	struct reply r;

	fake_ask(s, "POST", "/_next", str_c(text), &r);
	cr_assert_eq(r.status, 200);
	reply_done(&r);
	free(text);
	json_decref(next);
}

Test(live, what_the_model_says_behind_a_call_stays_behind_its_result)
{
	static const char *const order[] = {"First.", "print(1)", "\"stdout\":\"1\\n\"", "Second.",
	    "print(2)", "\"stdout\":\"2\\n\"", "Third.", "Done."};
	struct server *s = start_with_sandbox();

	for (int stream = 0; stream < 2; stream++) {
		struct reply r;
		char got[512];
		const struct ask_opts here = {
		    .headers = (const char *const[]){"Otari-Code-Execution: otari", NULL}};
		next_answer(s, whole_answer, stream);
		next_answer(s, last_answer, stream);
		char *text = body_of(true, "claude:m", "go", "[" DATED "]", stream);
		server_ask(s, "POST", "/v1/messages", str_c(text), &here, &r);
		free(text);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		block_types(&r, stream, got, sizeof(got));
		cr_expect_str_eq(got,
		    "text>server_tool_use>code_execution_tool_result>text>server_tool_use>"
		    "code_execution_tool_result>text>text",
		    "%s", r.body.ptr);
		const char *p = r.body.ptr;
		for (size_t i = 0; i < ARRAY_LEN(order) && !stream; i++) {
			p = after(p, order[i]);
			cr_assert(p != NULL, "no %s in its place: %s", order[i], r.body.ptr);
		}
		reply_done(&r);
	}
	server_stop(&s);
}
