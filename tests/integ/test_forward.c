/* Requests that go through as they are: the fast path, and errors of the provider. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"
#include "tests/integ/talks.h"

TestSuite(forward, .timeout = 120);

/* What the fake provider got last. */
static json_t *
last_request(struct server *s)
{
	struct reply r;
	json_t *root;

	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	cr_assert_eq(r.status, 200, "nothing reached the provider");
	root = reply_json(&r);
	reply_done(&r);
	return root;
}

Test(forward, chat_reaches_the_provider_as_it_was_sent)
{
	struct server *s = server_start(NULL);
	struct reply r;
	json_t *last;

	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\": \"fake:text\", \"x_big\": 18446744073709551615, \"temperature\": "
		"0.70,\n"
		" \"messages\":[{\"role\":\"user\",\"content\":\"caf\\u00e9\"}], "
		"\"x\":{\"b\":1,\"a\":2}}"),
	    NULL, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(strstr(r.body.ptr, "You said: caf") != NULL, "%s", r.body.ptr);
	reply_done(&r);

	last = last_request(s);
	cr_expect_str_eq(at(last, "body"),
	    "{\"model\": \"text\", \"x_big\": 18446744073709551615, \"temperature\": 0.70,\n"
	    " \"messages\":[{\"role\":\"user\",\"content\":\"caf\\u00e9\"}], "
	    "\"x\":{\"b\":1,\"a\":2}}");
	cr_expect_str_eq(at(last, "headers.authorization"), "Bearer fake-chat-key");
	cr_expect_str_eq(at(last, "headers.otari-key"), "");
	json_decref(last);
	cr_expect(server_wait_sql(s,
	    "SELECT count(*) FROM usage_logs WHERE provider = 'fake' AND model = 'text' AND status "
	    "= "
	    "'success' AND prompt_tokens > 0 AND completion_tokens > 0",
	    1));
	server_stop(&s);
}

Test(forward, a_chat_stream_counts_its_usage_and_hides_the_chunk_nobody_asked_for)
{
	struct server *s = server_start(NULL);
	struct reply r;
	json_t *last;

	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\":\"fake:text\",\"stream\":true,\"messages\":[{\"role\":\"user\","
		"\"content\":"
		"\"hello out there\"}]}"),
	    NULL, &r);
	cr_assert_eq(r.status, 200);
	cr_expect(str_starts(reply_header(&r, "content-type"), STR("text/event-stream")));
	cr_expect(str_ends(buf_str(&r.body), STR("data: [DONE]\n\n")), "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"prompt_tokens\"") == NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"choices\":[]") == NULL);
	reply_done(&r);
	last = last_request(s);
	cr_expect(
	    strstr(at(last, "body"), "\"include_usage\":true") != NULL, "%s", at(last, "body"));
	json_decref(last);

	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\":\"fake:text\",\"stream\":true,\"stream_options\":{\"include_usage\":"
		"true},"
		"\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"),
	    NULL, &r);
	cr_expect(strstr(r.body.ptr, "\"prompt_tokens\"") != NULL);
	reply_done(&r);
	cr_expect(
	    server_wait_sql(s, "SELECT count(*) FROM usage_logs WHERE completion_tokens > 0", 2));
	server_stop(&s);
}

Test(forward, messages_to_a_messages_provider_go_through)
{
	struct server *s = server_start(NULL);
	static const char *const headers[] = {
	    "anthropic-version: 2023-06-01", "anthropic-beta: one-2025, two-2025", NULL};
	const struct ask_opts o = {.headers = headers};
	struct reply r;
	json_t *last;

	for (int stream = 0; stream < 2; stream++) {
		char body[512];

		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"claude:reasoning\",\"max_tokens\":64,\"stream\":%s,\"messages\":["
		    "{"
		    "\"role\":\"user\",\"content\":\"hi there\"}]}",
		    stream ? "true" : "false");
		server_ask(s, "POST", "/v1/messages", str_c(body), &o, &r);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "thinking") != NULL);
		cr_expect(strstr(r.body.ptr, "[DONE]") == NULL);
		if (stream)
			cr_expect(strstr(r.body.ptr, "event: message_stop\n") != NULL);
		reply_done(&r);
		last = last_request(s);
		cr_expect_str_eq(at(last, "headers.x-api-key"), "fake-messages-key");
		cr_expect_str_eq(at(last, "headers.anthropic-beta"), "one-2025, two-2025");
		cr_expect_str_eq(at(last, "headers.anthropic-version"), "2023-06-01");
		json_decref(last);
	}
	cr_expect(server_wait_sql(s,
	    "SELECT count(*) FROM usage_logs WHERE provider = 'claude' AND prompt_tokens > 0", 2));
	server_stop(&s);
}

Test(forward, errors_of_the_provider_are_mapped)
{
	static const struct {
		const char *model;
		long status;
	} rows[] = {
	    {"err-400", 400},
	    {"err-401", 502}, /* the provider's key, not the caller's */
	    {"err-403", 502},
	    {"err-404", 404},
	    {"err-429", 429},
	};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows) * 2; i++) {
		bool messages = i >= ARRAY_LEN(rows);
		char body[256];
		struct reply r;
		json_t *root;

		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"%s:%s\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
		    "\"content\":"
		    "\"a\"}]}",
		    messages ? "claude" : "fake", rows[i % ARRAY_LEN(rows)].model);
		server_ask(s, "POST", messages ? "/v1/messages" : "/v1/chat/completions",
		    str_c(body), NULL, &r);
		cr_expect_eq(r.status, rows[i % ARRAY_LEN(rows)].status, "row %zu: %ld %s", i,
		    r.status, r.body.ptr);
		root = reply_json(&r);
		cr_expect(at(root, "error.message")[0] != '\0', "%s", r.body.ptr);
		if (!messages) /* what OpenAI's clients act on; never of the gateway's own key */
			cr_expect_str_eq(at(root, "error.code"),
			    r.status == 400 ? "context_length_exceeded" : "", "%s", r.body.ptr);
		if (r.status == 429)
			cr_expect(str_eq(reply_header(&r, "retry-after"), STR("7")));
		json_decref(root);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(forward, a_client_that_hangs_up_ends_the_providers_stream)
{
	struct server *s = server_start(NULL);
	const struct ask_opts o = {.stop_after = 200000};
	struct reply r;

	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\":\"fake:endless\",\"stream\":true,\"messages\":[{\"role\":\"user\","
		"\"content\":\"hi\"}]}"),
	    &o, &r);
	cr_expect(r.body.len >= 200000);
	reply_done(&r);
	cr_expect(server_wait_sql(s, "SELECT count(*) FROM usage_logs", 1),
	    "no settlement of the stream that was left");
	server_stop(&s);
}

Test(forward, a_whole_answer_without_an_end_is_refused)
{
	static const char *const paths[] = {"/v1/chat/completions", "/v1/messages"};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct reply r;
		server_ask(s, "POST", paths[i],
		    STR("{\"model\":\"fake:flood\",\"max_tokens\":9,\"messages\":[{\"role\":"
			"\"user\",\"content\":\"hi\"}]}"),
		    NULL, &r);
		cr_expect_eq(r.status, 502, "%ld %s", r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "too large") != NULL, "%s", r.body.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(forward, a_provider_that_breaks_off_is_seen_by_the_client)
{
	struct server *s = server_start(NULL);
	struct reply r;

	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\":\"fake:cut\",\"stream\":true,\"messages\":[{\"role\":\"user\","
		"\"content\":"
		"\"hi\"}]}"),
	    NULL, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(r.curl_code != 0 || strstr(r.body.ptr, "\"error\"") != NULL,
	    "a cut stream looks whole: %s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "[DONE]") > strstr(r.body.ptr, "\"error\""),
	    "the mark of the end comes after the error: %s", r.body.ptr);
	reply_done(&r);
	server_ask(s, "POST", "/v1/chat/completions",
	    STR("{\"model\":\"fake:cut\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"),
	    NULL, &r);
	cr_expect(r.status == 502 || r.curl_code != 0, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

/* A client of the newer generation asks for a thread and goes on without when it is told so. */
Test(forward, a_thread_is_refused_in_the_words_that_clients_act_on)
{
	static const char *const models[] = {"fake:text", "claude:text", "answers:text"};
	static const char *const headers[] = {"anthropic-version: 2026-10-21", NULL};
	struct server *s = server_start(NULL);
	struct reply r;
	char body[256];

	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		(void)snprintf(body, sizeof(body),
		    "{\"model\":\"%s\",\"max_tokens\":9,\"thread\":{\"type\":\"create\"},"
		    "\"messages\":[{"
		    "\"role\":\"user\",\"content\":\"hi\"}]}",
		    models[i]);
		server_ask(s, "POST", "/v1/messages", str_c(body),
		    &(struct ask_opts){.headers = headers}, &r);
		json_t *root = reply_json(&r);
		cr_expect_eq(r.status, 400, "%s: %ld", models[i], r.status);
		cr_expect_str_eq(at(root, "error.type"), "invalid_request_error");
		cr_expect_str_eq(
		    at(root, "error.details.error_code"), "thread_unsupported_request");
		cr_expect_str_eq(at(root, "error.details.unsupported.0"), "thread");
		json_decref(root);
		reply_done(&r);
	}
	server_stop(&s);
}

/* As some do where they are gateways themselves. Streamed it is the provider's event, masked. */
Test(forward, an_error_in_a_200_is_an_error_and_names_no_key)
{
	static const char *const bodies[] = {
	    "{\"error\":{\"message\":\"key fake-chat-key has no credit\",\"code\":"
	    "\"insufficient_quota\"}}",
	    "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"ha\"},"
	    "\"finish_reason\":\"stop\"}],\"error\":{\"message\":\"key fake-chat-key\"}}",
	};
	static const long statuses[] = {502, 200};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct reply r;

		provider_answers(s, bodies[i], false);
		server_ask(s, "POST", "/v1/chat/completions",
		    STR("{\"model\":\"fake:text\",\"messages\":[{\"role\":\"user\",\"content\":"
			"\"a\"}]}"),
		    NULL, &r);
		cr_expect_eq(r.status, statuses[i], "%zu: %ld %s", i, r.status, r.body.ptr);
		HAS(r, "key *************");
		LACKS(r, "fake-chat-key");
		if (i == 0)
			HAS(r, "\"code\":\"insufficient_quota\"");
		reply_done(&r);
	}
	cr_expect(server_wait_sql(s, "SELECT count(*) FROM usage_logs WHERE status_code = 502", 2),
	    "neither counts as a success");
	server_stop(&s);
}
