/* What went wrong in other gateways, tried on this one from a client's end: one test a report. The
 * names are those of a list of public bug reports; what concerns the readers and writers of the
 * wires alone is in tests/unit. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"

TestSuite(known_bugs, .timeout = 120);

#define WEATHER_M                                                                                  \
	"\"tools\":[{\"name\":\"get_weather\",\"input_schema\":{\"type\":\"object\","              \
	"\"properties\":{\"city\":{\"type\":\"string\"}}}}]"
#define USER "{\"role\":\"user\",\"content\":\"hi\"}"

static void
post(struct server *s, const char *path, const char *body, struct reply *r)
{
	server_ask(s, "POST", path, str_c(body), NULL, r);
}

/* The request that reached the provider, as text; free with reply_done. */
static void
last(struct server *s, struct reply *r)
{
	fake_ask(s, "GET", "/_last", STR_NULL, r);
	cr_assert_eq(r->status, 200);
}

static void
answer_next(struct server *s, const char *json)
{
	struct reply r;
	fake_ask(s, "POST", "/_next", str_c(json), &r);
	cr_assert(r.status == 200 || r.status == 204, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
}

Test(known_bugs, a8_a_whole_answer_to_a_stream_still_gives_the_input_as_deltas)
{
	struct server *s = server_start(NULL);
	struct reply r;

	answer_next(s,
	    "{\"content_type\":\"application/"
	    "json\",\"pieces\":[\"{\\\"id\\\":\\\"c\\\",\\\"object\\\":"
	    "\\\"chat.completion\\\",\\\"model\\\":\\\"m\\\",\\\"choices\\\":[{\\\"index\\\":0,"
	    "\\\"message\\\":{\\\"role\\\":\\\"assistant\\\",\\\"content\\\":null,\\\"tool_"
	    "calls\\\":[{"
	    "\\\"id\\\":\\\"call_1\\\",\\\"type\\\":\\\"function\\\",\\\"function\\\":{"
	    "\\\"name\\\":"
	    "\\\"get_weather\\\",\\\"arguments\\\":\\\"{\\\\\\\"city\\\\\\\":\\\\\\\"Oslo\\\\\\\"}"
	    "\\\"}}]},"
	    "\\\"finish_reason\\\":\\\"tool_calls\\\"}]}\"]}");
	post(s, "/v1/messages",
	    "{\"model\":\"fake:x\",\"max_tokens\":9,\"stream\":true,\"messages\":[" USER
	    "]," WEATHER_M "}",
	    &r);
	cr_expect_eq(r.status, 200);
	cr_expect(strstr(r.body.ptr, "\"input\":{}") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "input_json_delta") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "Oslo") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"stop_reason\":\"tool_use\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, a9_an_image_in_a_tool_result_reaches_the_model)
{
	struct server *s = server_start(NULL);
	struct reply r;

	post(s, "/v1/messages",
	    "{\"model\":\"fake:text\",\"max_tokens\":9,\"messages\":[" USER
	    ",{\"role\":\"assistant\","
	    "\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"get_weather\",\"input\":{}"
	    "}]},{"
	    "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\","
	    "\"content\":[{"
	    "\"type\":\"text\",\"text\":\"map\"},{\"type\":\"image\",\"source\":{\"type\":"
	    "\"base64\","
	    "\"media_type\":\"image/png\",\"data\":\"iVBORw0K\"}}]}]}]," WEATHER_M "}",
	    &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	last(s, &r);
	cr_expect(strstr(r.body.ptr, "iVBORw0K") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "image_url") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, a10_a11_results_stand_together_in_front_of_all_else)
{
	struct server *s = server_start(NULL);
	struct reply r;

	post(s, "/v1/chat/completions",
	    "{\"model\":\"claude:text\",\"messages\":[" USER
	    ",{\"role\":\"assistant\",\"tool_calls\":[{"
	    "\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
	    ",{"
	    "\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
	    "]},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"1\"},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"2\"},"
	    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}]}],"
	    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
	    "\"type\":"
	    "\"object\"}}}]}",
	    &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	last(s, &r);
	const char *a = strstr(r.body.ptr, "tool_result");
	const char *b = a != NULL ? strstr(a + 1, "tool_result") : NULL;
	const char *go = b != NULL ? strstr(b, "go") : NULL;
	cr_expect(go != NULL, "%s", r.body.ptr);
	/* one user turn: nobody speaks between the first result and the text */
	cr_expect(a != NULL && go != NULL &&
		      str_find(str_n(a, (size_t)(go - a)), STR("role")) == SIZE_MAX,
	    "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, c8_a_stream_that_fails_says_so_and_does_not_stop_as_if_whole)
{
	struct server *s = server_start(NULL);
	struct reply r;

	post(s, "/v1/messages",
	    "{\"model\":\"fake:error-event\",\"max_tokens\":9,\"stream\":true,\"messages\":[" USER
	    "]}",
	    &r);
	cr_expect_eq(r.status, 200);
	cr_expect(strstr(r.body.ptr, "event: error") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "message_stop") == NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "message_delta") == NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, c9_c11_a_refusal_is_a_status_in_a_stream_too)
{
	static const char *const paths[] = {"/v1/messages", "/v1/chat/completions"};
	static const char *const models[] = {"fake", "claude", "answers"};
	struct server *s = server_start(NULL);
	struct reply whole, stream;
	char body[256];

	for (size_t i = 0; i < ARRAY_LEN(paths) * ARRAY_LEN(models); i++) {
		const char *path = paths[i % 2], *model = models[i / 2];
		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"%s:err-400\",\"max_tokens\":9,\"messages\":[" USER "]}", model);
		post(s, path, body, &whole);
		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"%s:err-400\",\"max_tokens\":9,\"stream\":true,\"messages\":[" USER
		    "]}",
		    model);
		post(s, path, body, &stream);
		cr_expect_eq(whole.status, 400, "%s %s", path, model);
		cr_expect_eq(stream.status, 400, "%s %s", path, model);
		cr_expect(strstr(stream.body.ptr, "the scenario is an error") != NULL, "%s",
		    stream.body.ptr);
		cr_expect(strstr(stream.body.ptr, "data:") == NULL, "%s", stream.body.ptr);
		reply_done(&whole);
		reply_done(&stream);
		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"%s:err-429\",\"max_tokens\":9,\"stream\":true,\"messages\":[" USER
		    "]}",
		    model);
		post(s, path, body, &stream);
		cr_expect_eq(stream.status, 429, "%s %s", path, model);
		cr_expect(
		    str_eq(reply_header(&stream, "retry-after"), STR("7")), "%s", stream.head.ptr);
		reply_done(&stream);
	}
	server_stop(&s);
}

Test(known_bugs, c10_proxies_are_told_not_to_hold_a_stream_back)
{
	struct server *s = server_start(NULL);
	struct reply r;

	for (int turn = 0; turn < 2; turn++) { /* forwarded, and translated */
		post(s, turn == 0 ? "/v1/chat/completions" : "/v1/messages",
		    "{\"model\":\"fake:text\",\"max_tokens\":9,\"stream\":true,\"messages\":[" USER
		    "]}",
		    &r);
		cr_expect_eq(r.status, 200);
		cr_expect(
		    str_eq(reply_header(&r, "x-accel-buffering"), STR("no")), "%s", r.head.ptr);
		cr_expect(
		    strstr(r.body.ptr, turn == 0 ? "data: [DONE]\n\n" : "message_stop") != NULL);
		reply_done(&r);
	}
	server_stop(&s);
}

#define DATED "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"

Test(known_bugs, d3_malformed_arguments_are_told_as_such_and_not_run)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	post(s, "/v1/messages",
	    "{\"model\":\"fake:badjson\",\"max_tokens\":9,\"messages\":[" USER "],\"tools\":[" DATED
	    "]}",
	    &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "invalid_tool_input") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	last(s, &r);
	cr_expect(strstr(r.body.ptr, "are not a JSON object") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, d7_characters_cut_by_the_codes_own_writes_arrive_whole)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	size_t found = 0;

	post(s, "/v1/messages",
	    "{\"model\":\"fake:tool\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
	    "\"content\":"
	    "\"run: import os\\nb = chr(0x5317).encode() * 20000\\nfor i in range(0, len(b), "
	    "1000): "
	    "os.write(1, b[i:i+1000])\"}],\"tools\":[" DATED "]}",
	    &r);
	cr_expect_eq(r.status, 200, "%.300s", r.body.ptr);
	json_t *root = reply_json(&r); /* valid UTF-8, or it would not parse */
	json_t *block;
	size_t i;
	json_array_foreach(json_object_get(root, "content"), i, block) {
		struct str out = str_c(at(block, "content.stdout"));
		if (out.len == 0)
			continue;
		found++;
		cr_expect_eq(out.len, 60000);
		cr_expect_eq(str_find(out, STR("\xef\xbf\xbd")), SIZE_MAX, "a character was lost");
	}
	cr_expect_eq(found, 1);
	json_decref(root);
	reply_done(&r);
	server_stop(&s);
}

Test(known_bugs, d9_a_turn_with_our_tool_and_the_clients_keeps_both)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	post(s, "/v1/messages",
	    "{\"model\":\"fake:mixed\",\"max_tokens\":9,\"messages\":[" USER "],\"tools\":[" DATED
	    ",{\"name\":\"get_weather\",\"input_schema\":{\"type\":\"object\"}}]}",
	    &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "code_execution_tool_result") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"type\":\"tool_use\"") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"stop_reason\":\"tool_use\"") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}
