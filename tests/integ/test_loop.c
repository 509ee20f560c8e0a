/* The loop in every dialect, from the client's end: one test for each behaviour of the acceptance
 * list (tests/BEHAVIOUR.md), by its number. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(loop, .timeout = 240);

#define CLIENTS_TOOL_M                                                                             \
	",{\"name\":\"get_weather\",\"input_schema\":{\"type\":\"object\",\"properties\":{"        \
	"\"zone\":{\"type\":\"string\"}}}}"
#define CLIENTS_TOOL_R                                                                             \
	",{\"type\":\"function\",\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\"}}"
#define CLIENTS_TOOL_C                                                                             \
	",{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{"          \
	"\"type\":\"object\"}}}"

/* The dialects, each with its own declaration and with a plain one. */
static const struct {
	const char *path, *tool, *clients, *list;
	bool native;
} ways[] = {
    {CHAT, OURS, CLIENTS_TOOL_C, "choices", false},
    {MESSAGES, DATED, CLIENTS_TOOL_M, "content", true},
    {MESSAGES, OURS, CLIENTS_TOOL_M, "content", false},
    {ANSWERS, INTERP, CLIENTS_TOOL_R, "output", true},
    {ANSWERS, OURS, CLIENTS_TOOL_R, "output", false},
};
static const char *const models[] = {"fake", "claude", "answers"};
#define WAYS (ARRAY_LEN(ways) * ARRAY_LEN(models) * 2)

/* The i-th way, provider and form. */
static void
ask_way(struct server *s, size_t i, const char *scenario, bool with_client, const char *talk,
    struct reply *r)
{
	char model[64], tools[512];
	size_t w = i / 6;
	static const char *const header[] = {"Otari-Code-Execution: otari", NULL};

	(void)snprintf(model, sizeof(model), "%s:%s", models[i / 2 % 3], scenario);
	(void)snprintf(
	    tools, sizeof(tools), "%s%s", ways[w].tool, with_client ? ways[w].clients : "");
	char *body = talk_body(ways[w].path, model, tools, i % 2 == 1, talk, "");
	server_ask(s, "POST", ways[w].path, str_c(body), &(struct ask_opts){.headers = header}, r);
	cr_assert_eq(r->status, 200, "%s %s: %ld %s", ways[w].path, model, r->status, r->body.ptr);
	mem_free(body);
}

Test(loop, n39_56_plain_text_returns_at_once)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i++) {
		json_int_t before = provider_count(s);
		ask_way(s, i, "text", false, SAYS("hello"), &r);
		HAS(r, "You said: ");
		LACKS(r, "otari_srvtoolu_");
		LACKS(r, "code_interpreter_call");
		cr_expect_eq(provider_count(s), before + 1);
		reply_done(&r);
	}
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0);
	server_stop(&s);
}

Test(loop, n40_48_56_an_owned_call_runs_and_the_model_goes_on)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i++) {
		json_int_t before = provider_count(s);
		ask_way(s, i, "tool", false, SAYS("run: print(6 * 7)"), &r);
		HAS(r, "Result: ");
		HAS(r, "42");
		LACKS(r, "\"tool_use\"");
		LACKS(r, "\"function_call\"");
		LACKS(r, "\"tool_calls\"");
		cr_expect_eq(provider_count(s), before + 2);
		reply_done(&r);
		char *saw = provider_saw(s, 0);
		cr_expect(strstr(saw, "stdout:\\n42\\n") != NULL, "%s", saw);
		mem_free(saw);
	}
	server_stop(&s);
}

/* Whoever is asked streams or not: the model reads the same. */
Test(loop, e6_the_model_reads_what_the_code_printed_in_a_stream_too)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i += 2) {
		char *saw[2];
		for (int stream = 0; stream < 2; stream++) {
			ask_way(s, i + (size_t)stream, "rounds-2", false, SAYS("go"), &r);
			reply_done(&r);
			saw[stream] = provider_saw(s, 0);
			cr_expect(strstr(saw[stream], "stdout:\\n1\\n") != NULL, "%s", saw[stream]);
			cr_expect(strstr(saw[stream], "stdout:\\n2\\n") != NULL, "%s", saw[stream]);
			cr_expect(strstr(saw[stream], "Round 1. ") != NULL, "%s", saw[stream]);
		}
		/* but for the ids that the provider made up, and the flags of the stream */
		cr_expect_eq(occurrences(saw[0], "\"role\""), occurrences(saw[1], "\"role\""),
		    "%s\n%s", saw[0], saw[1]);
		mem_free(saw[0]);
		mem_free(saw[1]);
	}
	server_stop(&s);
}

/* --- usage ------------------------------------------------------------------------------------ */

#define CHAT_ROUND(message, finish, in, out)                                                       \
	"{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":[{\"index\":0,"  \
	"\"message\":{\"role\":\"assistant\"," message "},\"finish_reason\":\"" finish             \
	"\"}],\"usage\":{\"prompt_tokens\":" in ",\"completion_tokens\":" out                      \
	",\"total_tokens\":999,\"prompt_tokens_details\":{\"cached_tokens\":4}}}"
#define CALLS_CODE                                                                                 \
	"\"content\":null,\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{" \
	"\"name\":\"code_execution\",\"arguments\":\"{\\\"code\\\":\\\"print(1)\\\"}\"}}]"

/* differs: row 15, a stream's sums are those of a whole answer. */
Test(loop, n41_56_usage_of_all_rounds_is_summed)
{
	static const struct {
		const char *in, *out, *cached, *total;
	} names[] = {
	    {"\"prompt_tokens\":30", "\"completion_tokens\":8", "\"cached_tokens\":8",
		"\"total_tokens\":38"},
	    {"\"input_tokens\":22", "\"output_tokens\":8", "\"cache_read_input_tokens\":8", ""},
	    {"\"input_tokens\":22", "\"output_tokens\":8", "\"cache_read_input_tokens\":8", ""},
	    {"\"input_tokens\":30", "\"output_tokens\":8", "\"cached_tokens\":8",
		"\"total_tokens\":38"},
	    {"\"input_tokens\":30", "\"output_tokens\":8", "\"cached_tokens\":8",
		"\"total_tokens\":38"},
	};
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(ways) * 2; i++) {
		provider_answers(s, CHAT_ROUND(CALLS_CODE, "tool_calls", "10", "3"), false);
		provider_answers(s, CHAT_ROUND("\"content\":\"done\"", "stop", "20", "5"), false);
		talk_ask(s, ways[i / 2].path, "fake:x", ways[i / 2].tool, i % 2, SAYS("go"),
		    i < 2 ? ",\"stream_options\":{\"include_usage\":true}" : "", &r);
		HAS(r, "done");
		HAS(r, names[i / 2].in);
		HAS(r, names[i / 2].out);
		HAS(r, names[i / 2].cached);
		HAS(r, names[i / 2].total);
		reply_done(&r);
	}
	cr_expect(server_wait_sql(s,
	    "SELECT count(*) FROM usage_logs WHERE prompt_tokens = 30 AND completion_tokens = 8",
	    (int64_t)ARRAY_LEN(ways) * 2));
	server_stop(&s);
}

/* --- calls of the client ---------------------------------------------------------------------- */

Test(loop, n43_56_a_clients_call_is_returned_and_not_run)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i++) {
		json_int_t before = provider_count(s);
		ask_way(s, i, "client", true, SAYS("go"), &r);
		HAS(r, "get_weather");
		HAS(r, i / 6 == 0  ? "\"finish_reason\":\"tool_calls\""
		       : i / 6 < 3 ? "\"stop_reason\":\"tool_use\""
				   : "\"status\":\"completed\"");
		LACKS(r, "otari_srvtoolu_");
		cr_expect_eq(provider_count(s), before + 1);
		reply_done(&r);
	}
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0);
	server_stop(&s);
}

Test(loop, n44_58_59_of_a_mixed_turn_the_client_gets_its_own_calls)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i++) {
		json_int_t before = provider_count(s);
		ask_way(s, i, "mixed", true, SAYS("run: print(6 * 7)"), &r);
		HAS(r, "get_weather");
		if (ways[i / 6].native) {
			HAS(r, i / 6 == 1 ? "\"stdout\":\"42\\n\"" : "\"logs\":\"42\\n\"");
		} else {
			HAS(r, "\"otari_code_executions\":[{");
			HAS(r, "\"stdout\":\"42\\n\"");
		}
		LACKS(r, "\"name\":\"code_execution\",\"arguments\"");
		cr_expect_eq(provider_count(s), before + 1, "it goes on with the client's result");
		reply_done(&r);
	}
	cr_expect_eq((json_int_t)server_metric(s, "otari_sandbox_leases_total"), (json_int_t)WAYS);
	/* 58: types, and the id of the client's call. differs: row 3, the order is the model's. */
	json_t *root = talk_json(s, ANSWERS, "fake:mixed", INTERP CLIENTS_TOOL_R,
	    SAYS("run: print(6 * 7)"), ",\"store\":false");
	const json_t *output = at_json(root, "output");
	cr_expect_eq(json_array_size(output), 2, "%s", types_of(output).s);
	cr_expect(of_type(output, "code_interpreter_call") != NULL);
	cr_expect(strncmp(at(of_type(output, "function_call"), "call_id"), "call_", 5) == 0);
	cr_expect_str_eq(at(of_type(output, "function_call"), "name"), "get_weather");
	json_decref(root);
	/* 59: the item is done before the response is. differs: row 3, it has its full life. */
	talk_ask(s, ANSWERS, "fake:mixed", INTERP CLIENTS_TOOL_R, true, SAYS("run: print(6 * 7)"),
	    "", &r);
	const char *done = strstr(r.body.ptr, "event: response.completed");
	const char *item = strstr(r.body.ptr, "event: response.code_interpreter_call.completed");
	cr_expect(done != NULL && item != NULL && item < done, "%s", r.body.ptr);
	cr_expect(done != NULL && strstr(done, "\"code_interpreter_call\"") != NULL &&
		      strstr(done, "\"function_call\"") != NULL,
	    "%s", r.body.ptr);
	reply_done(&r);
	server_stop(&s);
}

/* --- failures --------------------------------------------------------------------------------- */

Test(loop, n45_51_60_a_failed_program_is_a_result_like_any_other)
{
	struct server *s = start_with_sandbox();
	const json_t *item;

	json_t *root = talk_json(s, MESSAGES, "fake:tool", DATED, SAYS("run: 1 / 0"), "");
	item = of_type(at_json(root, "content"), "code_execution_tool_result");
	cr_assert_not_null(item);
	cr_expect_str_eq(at(item, "content.type"), "code_execution_result");
	cr_expect_eq(at_int(item, "content.return_code"), 1);
	cr_expect(strstr(at(item, "content.stderr"), "ZeroDivisionError") != NULL);
	cr_expect(strstr(at(of_type(at_json(root, "content"), "text"), "text"),
		      "[tool error] stderr:\n") != NULL,
	    "the model is told");
	json_decref(root);
	root = talk_json(s, ANSWERS, "fake:tool", INTERP, SAYS("run: 1 / 0"), "");
	item = of_type(at_json(root, "output"), "code_interpreter_call");
	cr_expect_str_eq(at(item, "status"), "failed");
	cr_expect(strstr(at(item, "outputs.0.logs"), "ZeroDivisionError") != NULL);
	json_decref(root);
	/* counted, not charged */
	cr_expect(server_wait_sql(s,
	    "SELECT count(*) FROM usage_logs WHERE tools LIKE '%\"errors\":1%' AND tools NOT LIKE "
	    "'%\"billed\":1%'",
	    2));
	server_stop(&s);
}

/* The answer is longer than the limit, so the call is perhaps half a program. differs: row 6. */
Test(loop, n46_what_did_not_stop_for_a_tool_runs_none)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < WAYS; i++) {
		json_int_t before = provider_count(s);
		ask_way(s, i, "length", false, SAYS("run: print(6 * 7)"), &r);
		LACKS(r, "42\\n");
		HAS(r, i / 6 == 0  ? "\"finish_reason\":\"length\""
		       : i / 6 < 3 ? "\"stop_reason\":\"max_tokens\""
				   : "\"status\":\"incomplete\"");
		cr_expect_eq(provider_count(s), before + 1);
		reply_done(&r);
	}
	cr_expect_eq(server_metric(s, "otari_sandbox_leases_total"), 0);
	server_stop(&s);
}

Test(loop, n47_56_an_answer_begins_once_and_only_when_the_provider_has)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 1; i < WAYS; i += 2) {
		ask_way(s, i, "rounds-2", false, SAYS("go"), &r);
		cr_expect_eq(occurrences(r.body.ptr, "event: message_start\n"),
		    i / 6 == 1 || i / 6 == 2, "%s", r.body.ptr);
		cr_expect_eq(occurrences(r.body.ptr, "event: response.created\n"), i / 6 >= 3, "%s",
		    r.body.ptr);
		cr_expect_eq(occurrences(r.body.ptr, "\"role\":\"assistant\",\"content\":\"\""),
		    i / 6 == 0, "%s", r.body.ptr);
		reply_done(&r);
	}
	for (size_t i = 0; i < ARRAY_LEN(ways) * 2; i++) {
		talk_ask(s, ways[i / 2].path, "fake:err-429", ways[i / 2].tool, i % 2, SAYS("go"),
		    "", &r);
		cr_expect_eq(r.status, 429, "%s", r.body.ptr);
		LACKS(r, "event:");
		reply_done(&r);
	}
	server_stop(&s);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* The numbers behind `key` must be 0, 1, 2, … in the order of their first use. */
static void
expect_gapless(const char *stream, const char *starts, const char *key)
{
	long next = 0;

	for (const char *p = stream; (p = strstr(p, starts)) != NULL; p++, next++) {
		const char *line = strstr(p, "\ndata: ");
		const char *number = line != NULL ? strstr(line, key) : NULL;
		cr_assert(number != NULL, "%s", p);
		cr_expect_eq(strtol(number + strlen(key), NULL, 10), next, "%.300s", p);
	}
	cr_expect(next > 1, "%s", stream);
}

Test(loop, n48_56_blocks_of_all_rounds_are_numbered_without_a_gap)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t m = 0; m < ARRAY_LEN(models); m++) {
		static const char *const scenarios[] = {"rounds-3", "mixed", "parallel"};
		for (size_t k = 0; k < ARRAY_LEN(scenarios); k++) {
			size_t messages = 6 + m * 2 + 1, answers = 18 + m * 2 + 1;
			ask_way(s, messages, scenarios[k], true,
			    SAYS("run: print(1)\\n---\\nprint(2)"), &r);
			expect_gapless(r.body.ptr, "event: content_block_start", "\"index\":");
			cr_expect_eq(occurrences(r.body.ptr, "event: content_block_start"),
			    occurrences(r.body.ptr, "event: content_block_stop"));
			cr_expect_eq(occurrences(r.body.ptr, "event: message_stop"), 1);
			reply_done(&r);
			ask_way(s, answers, scenarios[k], true,
			    SAYS("run: print(1)\\n---\\nprint(2)"), &r);
			expect_gapless(
			    r.body.ptr, "event: response.output_item.added", "\"output_index\":");
			expect_gapless(r.body.ptr, "event: ", "\"sequence_number\":");
			cr_expect_eq(occurrences(r.body.ptr, "event: response.output_item.added"),
			    occurrences(r.body.ptr, "event: response.output_item.done"));
			reply_done(&r);
		}
	}
	server_stop(&s);
}

/* differs: row 3, the input comes as deltas before the result; the blocks and their order are the
 * same. */
Test(loop, n54_62_a_stream_shows_call_result_and_text)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	const char *p;

	talk_ask(s, MESSAGES, "fake:tool", DATED, true, SAYS("run: print(6 * 7)"), "", &r);
	static const char *const blocks[] = {"\"type\":\"server_tool_use\"", "\"input_json_delta\"",
	    "\"type\":\"code_execution_tool_result\"", "\"type\":\"text\"", "\"text_delta\"",
	    "\"stop_reason\":\"end_turn\"", "event: message_stop"};
	p = r.body.ptr;
	for (size_t i = 0; i < ARRAY_LEN(blocks) && p != NULL; i++) {
		p = strstr(p, blocks[i]);
		cr_expect(p != NULL, "%s\n%s", blocks[i], r.body.ptr);
	}
	reply_done(&r);
	talk_ask(s, ANSWERS, "fake:tool", INTERP, true, SAYS("run: print(6 * 7)"), "", &r);
	static const char *const items[] = {"event: response.output_item.added",
	    "\"code_interpreter_call\"", "event: response.code_interpreter_call_code.done",
	    "event: response.code_interpreter_call.interpreting",
	    "event: response.code_interpreter_call.completed", "event: response.output_item.done",
	    "event: response.output_text.done", "event: response.completed"};
	p = r.body.ptr;
	for (size_t i = 0; i < ARRAY_LEN(items) && p != NULL; i++) {
		p = strstr(p, items[i]);
		cr_expect(p != NULL, "%s\n%s", items[i], r.body.ptr);
	}
	HAS(r, "\"status\":\"completed\"");
	reply_done(&r);
	server_stop(&s);
}

/* --- what a provider said and must read again ------------------------------------------------- */

#define M_ROUND(content, reason)                                                                   \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","           \
	"\"content\":[" content "],\"stop_reason\":\"" reason                                      \
	"\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}"
#define R_ROUND(output)                                                                            \
	"{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"m\","     \
	"\"output\":[" output "],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,"               \
	"\"total_tokens\":2}}"
#define COMPACTION "{\"type\":\"compaction\",\"content\":\"what was said so far\"}"

Test(loop, n49_56_blocks_that_we_do_not_know_are_replayed)
{
	static const char compacted[] =
	    "{\"type\":\"compaction\",\"id\":\"cmp_1\",\"encrypted_content\":\"zzz\"}";
	static const char *const header[] = {"Otari-Code-Execution: otari", NULL};
	struct server *s = start_with_sandbox();
	struct reply r;

	provider_answers(s,
	    M_ROUND(COMPACTION ",{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":"
			       "\"code_execution\",\"input\":{\"code\":\"print(1)\"}}",
		"tool_use"),
	    false);
	char *body = talk_body(MESSAGES, "claude:text", DATED, false, SAYS("go"), "");
	server_ask(s, "POST", MESSAGES, str_c(body), &(struct ask_opts){.headers = header}, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, COMPACTION);
	reply_done(&r);
	mem_free(body);
	char *saw = provider_saw(s, 0);
	cr_expect(strstr(saw, COMPACTION) != NULL, "%s", saw);
	mem_free(saw);

	char output[512];
	(void)snprintf(output, sizeof(output),
	    R_ROUND("%s,{\"type\":\"function_call\",\"id\":\"fc_1\","
		    "\"call_id\":\"call_1\",\"name\":\"code_execution\",\"arguments\":"
		    "\"{\\\"code\\\":\\\"print(1)\\\"}\",\"status\":\"completed\"}"),
	    compacted);
	provider_answers(s, output, false);
	body = talk_body(ANSWERS, "answers:text", INTERP, false, SAYS("go"), "");
	server_ask(s, "POST", ANSWERS, str_c(body), &(struct ask_opts){.headers = header}, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	mem_free(body);
	saw = provider_saw(s, 0);
	cr_expect(strstr(saw, compacted) != NULL, "%s", saw);
	const char *item = strstr(saw, "compaction"), *call = strstr(saw, "function_call");
	cr_expect(item != NULL && call != NULL && item < call, "in their order: %s", saw);
	mem_free(saw);
	server_stop(&s);
}
