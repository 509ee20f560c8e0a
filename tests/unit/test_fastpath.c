#include <criterion/criterion.h>

#include "worker/turn/fastpath.h"
#include "worker/turn/tap.h"

TestSuite(fastpath, .timeout = 20);

static bool
fits(struct arena *a, const char *body, enum wire wire, struct fastpath *f)
{
	struct jval root;
	return jdoc_parse(a, str_c(body), &root, NULL) == ERR_OK &&
	       fastpath_fits(root, str_c(body), wire, f);
}

#define M "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

Test(fastpath, what_is_unsure_leaves_it)
{
	static const struct {
		const char *body;
		enum wire wire;
		bool fits;
	} rows[] = {
	    {"{\"model\":\"m\"," M "}", WIRE_CHAT, true},
	    {"{\"model\":\"m\"," M
	     ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"code_execution\"}}]}",
		WIRE_CHAT, true},
	    {"{\"model\":\"m\"," M
	     ",\"tools\":[{\"name\":\"code_execution\",\"input_schema\":{}}]}",
		WIRE_MESSAGES, true},
	    {"{\"model\":\"m\"," M ",\"user\":\"u\",\"store\":true}", WIRE_CHAT, true},
	    {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"caf\\u00e9 "
	     "\\u4e2d\"}]}",
		WIRE_CHAT, true},
	    {"{\"model\":\"m\"," M ",\"tools\":[{\"type\":\"code_execution\"}]}", WIRE_CHAT, false},
	    {"{\"model\":\"m\"," M
	     ",\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}]}",
		WIRE_MESSAGES, false},
	    {"{\"model\":\"m\"," M ",\"tools\":[{\"type\":\"web\",\"purpose_hint\":\"x\"}]}",
		WIRE_MESSAGES, false},
	    {"{\"model\":\"m\"," M ",\"tools\":[{\"type\":\"code\\u005fexecution\"}]}", WIRE_CHAT,
		false},
	    {"{\"model\":\"m\"," M ",\"max_tool_iterations\":3}", WIRE_CHAT, false},
	    {"{\"model\":\"m\"," M ",\"session_label\":null}", WIRE_CHAT, false},
	    {"{\"model\":\"m\"," M ",\"thread\":{\"type\":\"create\"}}", WIRE_MESSAGES, false},
	    {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"container_"
	     "upload\",\"file_id\":\"f\"}]}]}",
		WIRE_MESSAGES, false},
	    {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"file\","
	     "\"file\":{\"file_id\":\"f\"}}]}]}",
		WIRE_CHAT, false},
	    {"{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":[{\"type\":"
	     "\"server_tool_use\",\"id\":\"otari_srvtoolu_1\"}]}]}",
		WIRE_MESSAGES, false},
	    {"{\"model\":\"m\",\"model\":\"n\"," M "}", WIRE_CHAT, false},
	    {"{\"model\":7," M "}", WIRE_CHAT, false},
	    {"{\"model\":\"m\"}", WIRE_CHAT, false},
	    {"{\"model\":\"m\"," M ",\"stream\":\"yes\"}", WIRE_CHAT, false},
	    {"[]", WIRE_CHAT, false},
	    {"{\"model\":\"m\",\"input\":\"hi\",\"store\":false}", WIRE_RESPONSES, true},
	    {"{\"model\":\"m\",\"input\":\"hi\"}", WIRE_RESPONSES, false},
	    {"{\"model\":\"m\",\"input\":\"hi\",\"store\":true}", WIRE_RESPONSES, false},
	    {"{\"model\":\"m\",\"input\":[],\"store\":false,\"previous_response_id\":\"r\"}",
		WIRE_RESPONSES, false},
	    {"{\"model\":\"m\",\"input\":[{\"type\":\"item_reference\",\"id\":\"x\"}],"
	     "\"store\":false}",
		WIRE_RESPONSES, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 20);
		struct fastpath f;
		cr_assert_eq(fits(a, rows[i].body, rows[i].wire, &f), rows[i].fits, "row %zu: %s",
		    i, rows[i].body);
		arena_free(&a);
	}
}

Test(fastpath, only_the_splices_change_the_bytes)
{
	static const struct {
		const char *in, *out;
		enum wire wire;
	} rows[] = {
	    {"{ \"model\" : \"a:b\", " M ", \"x\":18446744073709551615, \"y\":0.70 }",
		"{ \"model\" : \"b\\\"\", " M ", \"x\":18446744073709551615, \"y\":0.70 }",
		WIRE_CHAT},
	    {"{\"model\":\"m\"," M ",\"stream\":true}",
		"{\"stream_options\":{\"include_usage\":true},\"model\":\"b\\\"\"," M
		",\"stream\":true}",
		WIRE_CHAT},
	    {"{\"stream_options\":{\"z\":1},\"model\":\"m\"," M ",\"stream\":true}",
		"{\"stream_options\":{\"z\":1,\"include_usage\":true},\"model\":\"b\\\"\"," M
		",\"stream\":true}",
		WIRE_CHAT},
	    {"{\"model\":\"m\"," M ",\"stream\":true,\"stream_options\":{\"include_usage\":false}}",
		"{\"model\":\"b\\\"\"," M
		",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		WIRE_CHAT},
	    {"{\"model\":\"m\"," M ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		"{\"model\":\"b\\\"\"," M
		",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		WIRE_CHAT},
	    {"{\"model\":\"m\"," M ",\"stream\":true}",
		"{\"model\":\"b\\\"\"," M ",\"stream\":true}", WIRE_MESSAGES},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 20);
		struct buf out = BUF_INIT(4096);
		struct fastpath f;
		cr_assert(fits(a, rows[i].in, rows[i].wire, &f), "row %zu", i);
		fastpath_write(&f, STR("b\""), &out);
		cr_assert_str_eq(out.ptr, rows[i].out, "row %zu", i);
		buf_done(&out);
		arena_free(&a);
	}
}

#define CHUNK                                                                                      \
	"data: {\"id\":\"1\",\"model\":\"gpt\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
#define USAGE                                                                                      \
	"data: "                                                                                   \
	"{\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":"  \
	"4}}\n\n"
#define DONE "data: [DONE]\n\n"
#define ALIASED                                                                                    \
	"data: "                                                                                   \
	"{\"id\":\"1\",\"model\":\"fast\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"

/* At every split the client gets the same bytes. */
static void
pass(const char *in, const char *want, enum wire wire, const char *alias, bool drop, int64_t input,
    int64_t output)
{
	struct str all = str_c(in);
	for (size_t cut = 0; cut <= all.len; cut++) {
		struct tap t;
		struct buf out = BUF_INIT(65536);
		tap_init(&t, wire, str_c(alias), drop);
		cr_assert_eq(tap_stream(&t, str_sub(all, 0, cut), &out, NULL), ERR_OK);
		cr_assert_eq(tap_stream(&t, str_from(all, cut), &out, NULL), ERR_OK);
		tap_stream_end(&t, &out);
		cr_assert(str_eq(buf_str(&out), str_c(want)), "cut %zu: %s", cut, out.ptr);
		cr_assert_eq(t.usage.input, input, "cut %zu", cut);
		cr_assert_eq(t.usage.output, output);
		cr_assert(t.has_end);
		buf_done(&out);
		tap_done(&t);
	}
}

Test(fastpath, the_tap_reads_usage_and_drops_what_nobody_asked_for)
{
	pass(CHUNK USAGE DONE, CHUNK DONE, WIRE_CHAT, "", true, 3, 4);
	pass(CHUNK USAGE DONE, CHUNK USAGE DONE, WIRE_CHAT, "", false, 3, 4);
	pass(": note\r\n\r\n" CHUNK DONE, ": note\r\n\r\n" CHUNK DONE, WIRE_CHAT, "", true, -1, -1);
	pass(CHUNK DONE, ALIASED DONE, WIRE_CHAT, "fast", true, -1, -1);
	pass("event: message_start\ndata: "
	     "{\"type\":\"message_start\",\"message\":{\"model\":\"c\",\"usage\":{\"input_tokens\":"
	     "5,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n"
	     "event: message_delta\ndata: "
	     "{\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n"
	     "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	    "event: message_start\ndata: "
	    "{\"type\":\"message_start\",\"message\":{\"model\":\"al\",\"usage\":{\"input_tokens\":"
	    "5,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n"
	    "event: message_delta\ndata: "
	    "{\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n"
	    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	    WIRE_MESSAGES, "al", true, 7, 9);
}

Test(fastpath, the_tap_reads_responses_events_too)
{
	pass(
	    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":"
	    "\"g\",\"usage\":null}}\n\n"
	    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{"
	    "\"model\":\"g\",\"usage\":{\"input_tokens\":6,\"output_tokens\":2}}}\n\n",
	    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":"
	    "\"al\",\"usage\":null}}\n\n"
	    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{"
	    "\"model\":\"al\",\"usage\":{\"input_tokens\":6,\"output_tokens\":2}}}\n\n",
	    WIRE_RESPONSES, "al", true, 6, 2);
}

Test(fastpath, a_whole_answer_keeps_its_bytes_but_for_the_alias)
{
	struct tap t;
	struct buf out = BUF_INIT(4096);
	tap_init(&t, WIRE_CHAT, STR("fast"), true);
	cr_assert(tap_whole(&t,
	    STR("{\"model\": \"gpt\", "
		"\"n\":1e400,\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}"),
	    &out));
	cr_assert_str_eq(out.ptr,
	    "{\"model\": \"fast\", "
	    "\"n\":1e400,\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}");
	cr_assert_eq(t.usage.output, 2);
	buf_done(&out);
	tap_done(&t);
}

Test(fastpath, what_is_no_json_object_is_no_answer)
{
	static const char *const bodies[] = {
	    "", "<html>busy</html>", "[]", "\"x\"", "{\"a\":", "{} {}", "null"};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct tap t;
		struct buf out = BUF_INIT(4096);
		tap_init(&t, WIRE_CHAT, STR(""), true);
		cr_assert(!tap_whole(&t, str_c(bodies[i]), &out), "row %zu", i);
		cr_assert_eq(out.len, 0, "row %zu", i);
		buf_done(&out);
		tap_done(&t);
	}
}

#define LAST "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define NOT_LAST                                                                                   \
	"data: "                                                                                   \
	"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\\"finish_reason\\\":\\\"a\"},"      \
	"\"finish_reason\": null}]}\n\n"

/* Where the provider closes early, and in good order. */
Test(fastpath, the_end_of_a_stream_is_judged)
{
	static const struct {
		const char *in, *out;
		bool has_end;
		enum wire wire;
	} rows[] = {
	    {LAST, LAST DONE, true, WIRE_CHAT},
	    {LAST USAGE, LAST DONE, true, WIRE_CHAT},
	    {NOT_LAST, NOT_LAST, false, WIRE_CHAT},
	    {CHUNK "data: [DONE]", CHUNK DONE, true, WIRE_CHAT},
	    {CHUNK "data: {\"id\":\"1\",\"choi", CHUNK, false, WIRE_CHAT},
	    {CHUNK "da", CHUNK, false, WIRE_CHAT},
	    {"event: message_stop\ndata: {\"type\":\"message_stop\"}",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true, WIRE_MESSAGES},
	    {"data: {\"type\":\"response.completed\",\"response\":{\"usage\":null}}\n\n",
		"data: {\"type\":\"response.completed\",\"response\":{\"usage\":null}}\n\n", true,
		WIRE_RESPONSES},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tap t;
		struct buf out = BUF_INIT(4096);
		tap_init(&t, rows[i].wire, STR(""), true);
		cr_assert_eq(tap_stream(&t, str_c(rows[i].in), &out, NULL), ERR_OK);
		tap_stream_end(&t, &out);
		cr_assert(str_eq(buf_str(&out), str_c(rows[i].out)), "row %zu: %s", i, out.ptr);
		cr_assert_eq(t.has_end, rows[i].has_end, "row %zu", i);
		buf_done(&out);
		tap_done(&t);
	}
}

Test(fastpath, a_document_that_comes_inline_is_noticed)
{
#define IN_CHAT(part) "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[" part "]}]}"
	static const struct {
		const char *body;
		enum wire wire;
		bool noticed;
	} rows[] = {
	    {"{\"model\":\"m\"," M "}", WIRE_CHAT, false},
	    {IN_CHAT("{\"type\":\"file\",\"file\":{\"file_data\" : \"data:;base64,AA==\"}}"),
		WIRE_CHAT, true},
	    {IN_CHAT("{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"data\":\"AA==\"}}"),
		WIRE_MESSAGES, true},
	    {IN_CHAT("{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"AA==\"}}"),
		WIRE_MESSAGES, false},
	    {IN_CHAT("{\"type\":\"document\",\"source\":{\"type\":\"text\",\"data\":\"a\"}}"),
		WIRE_MESSAGES, false},
	    {"{\"model\":\"m\",\"store\":false,\"input\":[{\"type\":\"input_file\",\"file_data\":"
	     "\"A\"}]}",
		WIRE_RESPONSES, true},
	    {"{\"model\":\"m\",\"store\":false,\"input\":\"a document in base64\"}", WIRE_RESPONSES,
		false},
	};
	struct arena *a = arena_new(1u << 20);
	struct fastpath f;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cr_assert(fits(a, rows[i].body, rows[i].wire, &f), "row %zu", i);
		cr_expect_eq(f.may_hold_document, rows[i].noticed, "row %zu", i);
	}
	/* an escape that could hide the word keeps it off the fast path altogether */
	cr_expect_not(fits(a,
	    IN_CHAT("{\"type\":\"file\",\"file\":{\"file\\u005fdata\":\"data:;base64,AA==\"}}"),
	    WIRE_CHAT, &f));
	arena_free(&a);
}
