/* Answers of providers: what the readers make of them. Rows named after the reports in which other
 * programs got them wrong (A…, C…, D…: public bug log). Each is fed cut at every byte, and written
 * to clients of every wire, streamed and whole, which must agree. */
#include <criterion/criterion.h>

#include "base/json_write.h"
#include "tests/unit/dialectfix.h"

#define CHUNK(choices) "{\"id\":\"c1\",\"model\":\"mm\",\"choices\":[" choices "]}\n"
#define D(delta)       CHUNK("{\"index\":0,\"delta\":" delta "}")
#define FIN(reason)    CHUNK("{\"index\":0,\"delta\":{},\"finish_reason\":\"" reason "\"}")
#define CALL(i, id, name, args)                                                                    \
	D("{\"tool_calls\":[{\"index\":" i ",\"id\":\"" id                                         \
	  "\",\"type\":\"function\",\"function\":"                                                 \
	  "{\"name\":\"" name "\",\"arguments\":\"" args "\"}}]}")
#define ARGS(i, args)                                                                              \
	D("{\"tool_calls\":[{\"index\":" i ",\"function\":{\"arguments\":\"" args "\"}}]}")
#define HEAD  "start c1 mm\n"
#define NOUSE "usage -1 -1\nend\n"

struct row {
	const char *name, *lines, *want;
};

static const struct row chat_rows[] = {
    {"text",
	D("{\"role\":\"assistant\",\"content\":\"\"}") D("{\"content\":\"He\"}")
	    D("{\"content\":\"llo\"}") FIN("stop"),
	HEAD "text:Hello\nfinish stop\n" NOUSE},
    {"a1 two calls back to back",
	CALL("0", "a", "f", "{\\\"x\\\":1}") CALL("1", "b", "f", "{\\\"x\\\":2}") FIN("tool_calls"),
	HEAD "call a f:{\"x\":1}\ncall b f:{\"x\":2}\nfinish tool\n" NOUSE},
    {"a4 reasoning first, nothing lost",
	D("{\"reasoning_content\":\"R1\"}") D("{\"content\":\"T1\"}") D("{\"content\":\"T2\"}")
	    FIN("stop"),
	HEAD "reasoning:R1\ntext:T1T2\nfinish stop\n" NOUSE},
    {"both in one chunk", D("{\"reasoning\":\"R\",\"content\":\"T\"}") FIN("stop"),
	HEAD "reasoning:R\ntext:T\nfinish stop\n" NOUSE},
    {"a15 usage behind the finish",
	D("{\"content\":\"x\"}") FIN(
	    "stop") "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n",
	HEAD "text:x\nfinish stop\nusage 7 3\nend\n"},
    {"a16 usage on the finish chunk",
	D("{\"content\":\"x\"}") "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":"
				 "null},"
				 "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,"
				 "\"completion_tokens\":3}}\n",
	HEAD "text:x\nfinish stop\nusage 7 3\nend\n"},
    {"usage in x_groq",
	D("{\"content\":\"x\"}") "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"x_"
				 "groq\":{\"usage\":"
				 "{\"prompt_tokens\":1,\"completion_tokens\":2}}}\n",
	HEAD "text:x\nfinish stop\nusage 1 2\nend\n"},
    {"a17 MAX_TOKENS keeps the cut of a call", CALL("0", "a", "f", "{\\\"x\\\":") FIN("MAX_TOKENS"),
	HEAD "call a f:{\"x\":\nfinish length\n" NOUSE},
    {"a17 completed with a call", CALL("0", "a", "f", "{}") FIN("completed"),
	HEAD "call a f:{}\nfinish tool\n" NOUSE},
    {"a17 end_turn", D("{\"content\":\"x\"}") FIN("end_turn"), HEAD "text:x\nfinish stop\n" NOUSE},
    {"tool_calls without a call", D("{\"content\":\"x\",\"tool_calls\":[]}") FIN("tool_calls"),
	HEAD "text:x\nfinish stop\n" NOUSE},
    {"d1 no arguments at all", CALL("0", "a", "f", "") FIN("tool_calls"),
	HEAD "call a f:\nfinish tool\n" NOUSE},
    {"d1 blank arguments", CALL("0", "a", "f", "  ") FIN("stop"),
	HEAD "call a f:  \nfinish tool\n" NOUSE},
    {"d1 null arguments",
	D("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":"
	  "null}}]}") FIN("tool_calls"),
	HEAD "call a f:\nfinish tool\n" NOUSE},
    {"arguments as an object",
	D("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{"
	  "\"n\":"
	  "5}}}]}") FIN("tool_calls"),
	HEAD "call a f:{\"n\":5}\nfinish tool\n" NOUSE},
    {"no index, whole calls, one chunk each",
	D("{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}") D(
	    "{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}")
	    FIN("stop"),
	HEAD "call a f:{}\ncall b g:{}\nfinish tool\n" NOUSE},
    {"no index, two calls in one chunk",
	D("{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}},"
	  "{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]}") FIN("stop"),
	HEAD "call a f:\ncall b g:{}\nfinish tool\n" NOUSE},
    {"index always 0, other ids",
	CALL("0", "a", "f", "{}") CALL("0", "b", "g", "{\\\"y\\\":1}") FIN("stop"),
	HEAD "call a f:{}\ncall b g:{\"y\":1}\nfinish tool\n" NOUSE},
    {"indexes from 1", CALL("1", "a", "f", "{}") CALL("2", "b", "g", "{}") FIN("tool_calls"),
	HEAD "call a f:{}\ncall b g:{}\nfinish tool\n" NOUSE},
    {"the same id under two indexes",
	CALL("0", "a", "f", "{}") CALL("1", "a", "g", "{\\\"y\\\":1}") FIN("stop"),
	HEAD "call a f:{}\ncall a g:{\"y\":1}\nfinish tool\n" NOUSE},
    {"a piece ends with a space inside a string",
	CALL("0", "a", "f", " {\\\"t\\\": \\\"x ") ARGS("0", "y\\\"}") FIN("tool_calls"),
	HEAD "call a f: {\"t\": \"x y\"}\nfinish tool\n" NOUSE},
    {"interleaved calls",
	CALL("0", "a", "f", "") CALL("1", "b", "g", "") ARGS("0", "{\\\"x\\\"")
	    ARGS("1", "{\\\"y\\\"") ARGS("0", ":1}") ARGS("1", ":2}") FIN("tool_calls"),
	HEAD "call a f:{\"x\":1}\ncall b g:{\"y\":2}\nfinish tool\n" NOUSE},
    {"pieces repeat id and an empty name",
	CALL("0", "a", "f", "{") CALL("0", "a", "", "}") FIN("tool_calls"),
	HEAD "call a f:{}\nfinish tool\n" NOUSE},
    {"space behind complete arguments",
	CALL("0", "a", "f", "{}") CALL("1", "b", "g", "{}") ARGS("0", " ") FIN("tool_calls"),
	HEAD "call a f:{}\ncall b g:{}\nfinish tool\n" NOUSE},
    {"id comes late",
	D("{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\"}}]}") CALL("0", "a", "", "{}")
	    FIN("stop"),
	HEAD "call a f:{}\nfinish tool\n" NOUSE},
    {"text, call, text",
	D("{\"content\":\"A\"}") CALL("0", "a", "f", "{}") D("{\"content\":\"B\"}") FIN("stop"),
	HEAD "text:A\ncall a f:{}\ntext:B\nfinish tool\n" NOUSE},
    {"function_call of old",
	D("{\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\"\"}}")
	    D("{\"function_call\":{\"arguments\":\":1}\"}}") FIN("function_call"),
	NULL},
    {"content as parts",
	D("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}"
	  "]}") D("{\"content\":[{\"type\":\"text\",\"text\":\"yes\"}]}") FIN("stop"),
	HEAD "reasoning:hm\ntext:yes\nfinish stop\n" NOUSE},
    {"refusal", D("{\"refusal\":\"No\"}") D("{\"refusal\":\".\"}") FIN("stop"),
	HEAD "refusal:No.\nfinish refusal\n" NOUSE},
    {"content filter", D("{\"content\":\"x\"}") FIN("content_filter"),
	HEAD "text:x\nfinish content_filter\n" NOUSE},
    {"two choices interleaved",
	CHUNK("{\"index\":1,\"delta\":{\"content\":\"b\"}}")
	    CHUNK("{\"index\":0,\"delta\":{\"content\":\"a\"}}") CHUNK(
		"{\"index\":1,\"delta\":{\"content\":\"B\"},\"finish_reason\":\"stop\"}")
		CHUNK("{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":\"length\"}"),
	NULL},
    {"first chunk without choices, empty id",
	"{\"id\":\"\",\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n" D(
	    "{\"content\":\"x\"}") FIN("stop"),
	HEAD "text:x\nfinish stop\n" NOUSE},
    {"finish_reason empty until the end",
	CHUNK("{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"\"}") FIN("stop"),
	HEAD "text:x\nfinish stop\n" NOUSE},
    {"[DONE] without a finish", D("{\"content\":\"x\"}"), HEAD "text:x\nfinish stop\n" NOUSE},
    {"a member that must go back",
	D("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":"
	  "\"{}\"},"
	  "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}}]}") FIN("stop"),
	HEAD "call a f:{}<3 {\"google\":{\"thought_signature\":\"s\"}}>\nfinish tool\n" NOUSE},
    {"annotations",
	D("{\"content\":\"see\"}")
	    D("{\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{\"url\":\"u\"}}]}")
		FIN("stop"),
	HEAD "text:see<note {\"type\":\"url_citation\",\"url_citation\":{\"url\":\"u\"}}>\nfinish "
	     "stop\n" NOUSE},
    {"c1 characters cut by reads", D("{\"content\":\"\xe5\x8c\x97\xf0\x9f\x98\x80\"}") FIN("stop"),
	HEAD "text:\xe5\x8c\x97\xf0\x9f\x98\x80\nfinish stop\n" NOUSE},
};

#define ME(s) s "\n"
#define MSTART                                                                                     \
	ME("{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\","       \
	   "\"role\":"                                                                             \
	   "\"assistant\",\"model\":\"mm\",\"content\":[],\"stop_reason\":null,\"usage\":"         \
	   "{\"input_tokens\":5,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}")
#define BSTART(i, block)                                                                           \
	ME("{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block "}")
#define BDELTA(i, delta)                                                                           \
	ME("{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}")
#define BSTOP(i) ME("{\"type\":\"content_block_stop\",\"index\":" i "}")
#define TEXT(i, s)                                                                                 \
	BSTART(i, "{\"type\":\"text\",\"text\":\"\"}")                                             \
	BDELTA(i, "{\"type\":\"text_delta\",\"text\":\"" s "\"}") BSTOP(i)
#define MEND(reason)                                                                               \
	ME("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason                      \
	   "\",\"stop_sequence\":"                                                                 \
	   "null},\"usage\":{\"output_tokens\":9}}")                                               \
	ME("{\"type\":\"message_stop\"}")
#define MHEAD "start msg_1 mm\n"
#define MUSE  "usage 7 9\nend\n"
#define TOOL(i, id, args)                                                                          \
	BSTART(i, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}")         \
	BDELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"\"}")                         \
	BDELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"" args "\"}") BSTOP(i)

static const struct row messages_rows[] = {
    {"text with pings",
	MSTART ME("{\"type\":\"ping\"}") TEXT("0", "hi") ME("{\"type\":\"news\",\"x\":1}")
	    MEND("end_turn"),
	MHEAD "text:hi\nfinish stop\n" MUSE},
    {"a5 a6 a7 thinking, text, two calls",
	MSTART BSTART("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
	    BDELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}") BDELTA(
		"0", "{\"type\":\"signature_delta\",\"signature\":\"S\"}") BSTOP("0") TEXT("1", "t")
		TOOL("2", "a", "{\\\"x\\\":1}") TOOL("3", "b", "{}") MEND("tool_use"),
	MHEAD "reasoning:hm<1 S>\ntext:t\ncall a f:{\"x\":1}\ncall b f:{}\nfinish tool\n" MUSE},
    {"redacted thinking",
	MSTART BSTART("0", "{\"type\":\"redacted_thinking\",\"data\":\"XX\"}") BSTOP("0")
	    TEXT("1", "t") MEND("end_turn"),
	MHEAD "reasoning:<2 XX>\ntext:t\nfinish stop\n" MUSE},
    {"thinking without text keeps its signature",
	MSTART BSTART("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
	    BDELTA("0", "{\"type\":\"signature_delta\",\"signature\":\"S\"}") BSTOP("0")
		TEXT("1", "t") MEND("end_turn"),
	MHEAD "reasoning:<1 S>\ntext:t\nfinish stop\n" MUSE},
    {"thinking in a text block",
	MSTART BSTART("0", "{\"type\":\"text\",\"text\":\"\"}")
	    BDELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")
		BDELTA("0", "{\"type\":\"text_delta\",\"text\":\"t\"}") BSTOP("0") MEND("end_turn"),
	MHEAD "text:\nreasoning:hm\ntext:t\nfinish stop\n" MUSE},
    {"no arguments", MSTART TOOL("0", "a", "") MEND("tool_use"),
	MHEAD "call a f:\nfinish tool\n" MUSE},
    {"call with its input at the start",
	MSTART BSTART(
	    "0", "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}}")
	    BSTOP("0") MEND("tool_use"),
	MHEAD "call a f:{\"x\":1}\nfinish tool\n" MUSE},
    {"a18 refusal", MSTART TEXT("0", "no") MEND("refusal"), MHEAD "text:no\nfinish refusal\n" MUSE},
    {"a18 refusal with a call", MSTART TOOL("0", "a", "{}") MEND("refusal"),
	MHEAD "call a f:{}\nfinish refusal\n" MUSE},
    {"a18 context window", MSTART TEXT("0", "x") MEND("model_context_window_exceeded"),
	MHEAD "text:x\nfinish context\n" MUSE},
    {"a18 pause", MSTART TEXT("0", "x") MEND("pause_turn"), MHEAD "text:x\nfinish pause\n" MUSE},
    {"a18 unknown reason", MSTART TEXT("0", "x") MEND("something_new"),
	MHEAD "text:x\nfinish other\n" MUSE},
    {"stop sequence",
	MSTART TEXT("0", "x")
	    ME("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop_sequence\","
	       "\"stop_sequence\":\"END\"},\"usage\":{\"output_tokens\":9}}")
		ME("{\"type\":\"message_stop\"}"),
	MHEAD "text:x\nfinish stop_sequence\n" MUSE},
    {"server tools stay whole",
	MSTART BSTART("0",
	    "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_search\","
	    "\"input\":{}}") BDELTA("0",
	    "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"query\\\":\"}") BDELTA("0",
	    "{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"q\\\"}\"}") BSTOP("0")
	    BSTART("1", "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_1\","
			"\"content\":[{\"type\":\"web_search_result\",\"url\":\"u\"}]}") BSTOP("1")
		TEXT("2", "t") MEND("end_turn"),
	NULL},
    {"citations",
	MSTART BSTART("0", "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}")
	    BDELTA("0", "{\"type\":\"citations_delta\",\"citation\":{\"type\":\"char_location\","
			"\"cited_text\":\"c\"}}")
		BDELTA("0", "{\"type\":\"text_delta\",\"text\":\"t\"}") BSTOP("0") MEND("end_turn"),
	NULL},
    {"a finished message at once",
	ME("{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"mm\",\"content\":"
	   "[{\"type\":"
	   "\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}}],\"stop_reason\":\"tool_"
	   "use\","
	   "\"container\":{\"id\":\"cntr\"},\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}")
	    ME("{\"type\":\"message_stop\"}"),
	MHEAD "call a f:{\"x\":1}\nfinish tool\nusage 0 0\nend\n"},
    {"a call made by the provider's code",
	MSTART BSTART("0",
	    "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1},\"caller\":"
	    "{\"type\":\"code_execution_20250825\",\"tool_id\":\"s\"}}") BSTOP("0")
	    MEND("tool_use"),
	MHEAD "opaque:\nfinish tool\n" MUSE},
    {"container in the delta",
	MSTART TEXT("0", "x")
	    ME("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\","
	       "\"stop_sequence\":null,\"container\":{\"id\":\"c\",\"expires_at\":\"e\"}},"
	       "\"usage\":{\"input_tokens\":50,\"cache_read_input_tokens\":2,"
	       "\"output_tokens\":9,\"server_tool_use\":{\"web_search_requests\":1}},"
	       "\"context_management\":{\"applied_edits\":[]}}") ME("{\"type\":\"message_stop\"}"),
	MHEAD "text:x\nfinish stop\nusage 52 9\nend\n"},
};

/* Chat's form of the answer has no place for some members; those of Messages must agree as they
 * are. */
static void
check_clients(struct arena *a, const struct row *row, enum wire from, struct str sse)
{
	static const enum wire wires[] = {WIRE_CHAT, WIRE_MESSAGES, WIRE_RESPONSES};
	for (size_t i = 0; i < ARRAY_LEN(wires); i++) {
		struct fix_way way = {from, wires[i], true, true, true, NULL};
		struct fix_answer streamed, whole;
		fix_answer(a, &way, sse, 0, &streamed);
		way.stream_out = false;
		fix_answer(a, &way, sse, 0, &whole);
		struct str acc = fix_accumulate(a, wires[i], streamed.bytes);
		cr_expect(fix_json_eq(acc, whole.bytes), "%s to %s:\n%.*s\n%.*s", row->name,
		    wire_name(wires[i]), STR_FMT(acc), STR_FMT(whole.bytes));
	}
}

static void
check_rows(const struct row *rows, size_t n, enum wire w)
{
	for (size_t i = 0; i < n; i++) {
		struct arena *a = arena_new(256u << 20);
		struct fix_way way = {w, WIRE_MESSAGES, true, true, false, NULL};
		struct fix_answer once, cut;
		struct str sse = fix_frames(a, w, str_c(rows[i].lines));
		fix_answer(a, &way, sse, 0, &once);
		cr_expect_eq(once.code, ERR_OK, "%s", rows[i].name);
		if (rows[i].want != NULL)
			cr_expect(str_eq(once.log, str_c(rows[i].want)), "%s:\n%.*s", rows[i].name,
			    STR_FMT(once.log));
		cr_expect(once.ended, "%s: %.*s", rows[i].name, STR_FMT(once.log));
		static const size_t steps[] = {1, 2, 3, 7, 64};
		for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
			fix_answer(a, &way, sse, steps[s], &cut);
			cr_expect(
			    str_eq(cut.bytes, once.bytes), "%s by %zu", rows[i].name, steps[s]);
		}
		if (once.ended)
			check_clients(a, &rows[i], w, sse);
		if (str_find(str_c(rows[i].name), STR("made by the provider")) != SIZE_MAX)
			cr_expect(
			    str_find(once.bytes, STR("\"stop_reason\":\"tool_use\"")) != SIZE_MAX,
			    "%s", once.bytes.ptr);
		arena_free(&a);
	}
}

Test(dialect_events, chat_streams, .timeout = 60)
{
	check_rows(chat_rows, ARRAY_LEN(chat_rows), WIRE_CHAT);
}

Test(dialect_events, messages_streams, .timeout = 60)
{
	check_rows(messages_rows, ARRAY_LEN(messages_rows), WIRE_MESSAGES);
}

static const struct {
	const char *name;
	enum wire wire;
	const char *sse, *want;
} failures[] = {
    {"c7 error first", WIRE_CHAT,
	"data: {\"error\":{\"message\":\"ctx too long\",\"code\":400}}\n\n",
	"error 400 : ctx too long\n"},
    {"error behind text", WIRE_CHAT,
	"data: {\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
	"data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n",
	HEAD "text:x\nerror 500 server_error: boom\n"},
    {"error as a string", WIRE_CHAT, "data: {\"code\":\"x\",\"error\":\"text\"}\n\n",
	"error 502 : text\n"},
    {"error in an array", WIRE_CHAT, "data: [{\"error\":{\"code\":429,\"message\":\"slow\"}}]\n\n",
	"error 429 : slow\n"},
    {"error without a wrapper", WIRE_CHAT,
	"data: {\"object\":\"error\",\"message\":\"bad\",\"type\":\"t\",\"code\":\"3230\"}\n\n",
	"error 502 t: bad\n"},
    {"error null is none", WIRE_CHAT,
	"data: "
	"{\"id\":\"c1\",\"model\":\"mm\",\"error\":null,\"choices\":[{\"delta\":{\"content\":\"x\"}"
	","
	"\"finish_reason\":\"stop\"}]}\n\n",
	HEAD "text:x\nfinish stop\n" NOUSE},
    {"finish_reason error", WIRE_CHAT,
	"data: "
	"{\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}"
	"\n\n",
	"error 502 api_error: the provider's answer was cut off\n"},
    {"cut before the finish", WIRE_CHAT,
	"data: {\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
	HEAD "text:x\nerror 502 api_error: the provider's answer was cut off\n"},
    {"nothing at all", WIRE_CHAT, "", "error 502 api_error: the provider's answer was cut off\n"},
    {"[DONE] alone", WIRE_CHAT, "data: [DONE]\n\n",
	"error 502 api_error: the provider's answer was cut off\n"},
    {"overloaded", WIRE_MESSAGES,
	"event: error\ndata: "
	"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}"
	"\n\n",
	"error 529 overloaded_error: busy\n"},
    {"cut message", WIRE_MESSAGES,
	"data: "
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"mm\",\"content\":[]}"
	"}\n\n"
	"data: "
	"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
	"\"text\":\"x\"}}"
	"\n\n",
	MHEAD "text:x\nerror 502 api_error: the provider's answer was cut off\n"},
    {"cut behind message_delta is complete", WIRE_MESSAGES,
	"data: "
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"mm\",\"content\":[]}"
	"}\n\n"
	"data: "
	"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_"
	"tokens\":"
	"1}}\n\n",
	MHEAD "finish stop\nusage -1 1\nend\n"},
};

Test(dialect_events, failures_end_with_one_error, .timeout = 30)
{
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct arena *a = arena_new(64u << 20);
		struct fix_way way = {failures[i].wire, WIRE_MESSAGES, true, true, false, NULL};
		struct fix_answer r;
		fix_answer(a, &way, str_c(failures[i].sse), 0, &r);
		cr_expect(str_eq(r.log, str_c(failures[i].want)), "%s:\n%.*s", failures[i].name,
		    STR_FMT(r.log));
		if (r.failed) { /* c8: an error event with a type of the wire, and no second end */
			cr_expect(str_find(r.bytes, STR("event: error\n")) != SIZE_MAX, "%s",
			    failures[i].name);
			cr_expect_eq(str_find(r.bytes, STR("message_stop")), SIZE_MAX, "%s",
			    failures[i].name);
		}
		arena_free(&a);
	}
}

Test(dialect_events, what_is_no_answer_is_a_protocol_error, .timeout = 30)
{
	static const struct {
		enum wire wire;
		bool stream;
		const char *in;
	} bad[] = {{WIRE_CHAT, true, "data: {\"id\":\n\n"}, {WIRE_CHAT, true, "data: 5\n\n"},
	    {WIRE_CHAT, false, "<html>"}, {WIRE_CHAT, false, "{}"},
	    {WIRE_CHAT, false, "{\"choices\":[]}"}, {WIRE_MESSAGES, true, "data: nonsense\n\n"},
	    {WIRE_MESSAGES, false, "{\"content\":\"x\"}"}, {WIRE_MESSAGES, false, ""}};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct arena *a = arena_new(64u << 20);
		struct fix_way way = {bad[i].wire, WIRE_CHAT, bad[i].stream, true, false, NULL};
		struct fix_answer r;
		fix_answer(a, &way, str_c(bad[i].in), 0, &r);
		cr_expect_eq(r.code, ERR_PROTO, "%s: %d", bad[i].in, r.code);
		arena_free(&a);
	}
}

/* Both forms of the same answer give the same blocks. */
Test(dialect_events, whole_answers_read_like_streams, .timeout = 30)
{
	static const struct {
		enum wire wire;
		const char *body, *want;
	} rows[] = {
	    {WIRE_CHAT,
		"{\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
		"\"assistant\","
		"\"content\":\"T\",\"reasoning_content\":\"R\",\"refusal\":null,\"tool_calls\":[{"
		"\"id\":\"a\","
		"\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}"
		"\"}},{\"id\":"
		"\"b\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}}]},"
		"\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":7,\"completion_"
		"tokens\":3,"
		"\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":"
		"{\"reasoning_tokens\":1}}}",
		HEAD "reasoning:R\ntext:T\ncall a f:{\"x\":1}\ncall b g:\nfinish tool\nusage 7 "
		     "3\nend\n"},
	    {WIRE_CHAT,
		"{\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"index\":0,\"message\":{"
		"\"content\":\"a\"},"
		"\"finish_reason\":\"stop\"},{\"index\":1,\"message\":{\"content\":\"b\"},\"finish_"
		"reason\":"
		"\"length\"}]}",
		HEAD "text:a\ntext @1:b\nfinish stop\nfinish length\n" NOUSE},
	    {WIRE_MESSAGES,
		"{\"id\":\"msg_1\",\"type\":\"message\",\"model\":\"mm\",\"content\":[{\"type\":"
		"\"thinking\","
		"\"thinking\":\"hm\",\"signature\":\"S\"},{\"type\":\"text\",\"text\":\"t\"},{"
		"\"type\":"
		"\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"n\":18446744073709551615}}],"
		"\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":5,\"output_tokens\":9,"
		"\"cache_read_input_tokens\":2}}",
		MHEAD "reasoning:hm<1 S>\ntext:t\ncall a f:{\"n\":18446744073709551615}\nfinish "
		      "tool\n" MUSE},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(64u << 20);
		for (int to = 0; to < 2; to++) {
			struct fix_way way = {
			    rows[i].wire, to ? WIRE_MESSAGES : WIRE_CHAT, false, true, true, NULL};
			struct fix_answer s, w;
			fix_answer(a, &way, str_c(rows[i].body), 0, &s);
			cr_expect(
			    str_eq(s.log, str_c(rows[i].want)), "%zu:\n%.*s", i, STR_FMT(s.log));
			way.stream_out = false;
			fix_answer(a, &way, str_c(rows[i].body), 0, &w);
			struct str acc = fix_accumulate(a, way.to, s.bytes);
			cr_expect(fix_json_eq(acc, w.bytes) || i == 2, "%zu to %d:\n%.*s\n%.*s", i,
			    to, STR_FMT(acc), STR_FMT(w.bytes));
		}
		arena_free(&a);
	}
}

static bool
is_inside_character(struct str s, size_t at)
{
	return at < s.len && ((unsigned char)s.ptr[at] & 0xc0) == 0x80;
}

/* Arguments arrive in pieces that end anywhere; they reach both clients as they were. */
Test(dialect_events, arguments_survive_every_cut, .timeout = 60)
{
	static const char args[] =
	    "{\"t\" : \" x \\\"y\\\" \xc3\xa9\\ud83d\\ude00 \", \"n\": 0.70 }";
	struct str all = str_c(args);
	for (size_t i = 0; i <= all.len; i++)
		for (size_t j = i; j <= all.len; j += 3) {
			if (is_inside_character(all, i) || is_inside_character(all, j))
				continue; /* cannot be sent as JSON */
			struct str cut[] = {
			    str_sub(all, 0, i), str_sub(all, i, j - i), str_from(all, j)};
			struct arena *a = arena_new(16u << 20);
			struct buf b = BUF_INIT(1u << 16);
			buf_add(&b, STR("data: "));
			buf_add(&b, STR("{\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"delta\":{"
					"\"tool_calls\":["
					"{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}]}"
					"}]}\n\n"));
			for (size_t k = 0; k < 3; k++) {
				buf_add(&b,
				    STR("data: "
					"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
					"\"function\":{\"arguments\":\""));
				jw_escape(&b, cut[k]);
				buf_add(&b, STR("\"}}]}}]}\n\n"));
			}
			buf_add(&b, STR("data: "
					"{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_"
					"calls\"}]}\n\n"));
			for (int to = 0; to < 2; to++) {
				struct fix_way way = {WIRE_CHAT, to ? WIRE_MESSAGES : WIRE_CHAT,
				    true, true, false, NULL};
				struct fix_answer r;
				struct jval v;
				fix_answer(a, &way, buf_str(&b), 0, &r);
				struct str acc = fix_accumulate(a, way.to, r.bytes);
				cr_assert_eq(jdoc_parse(a, acc, &v, NULL), ERR_OK);
				if (to) {
					struct str got =
					    jv_raw(jv_get(jv_at(jv_get(v, "content"), 0), "input"));
					cr_assert(
					    fix_json_eq(got, all), "%zu %zu: %s", i, j, acc.ptr);
					continue;
				}
				struct jval m = jv_get(jv_at(jv_get(v, "choices"), 0), "message");
				struct jval f =
				    jv_get(jv_at(jv_get(m, "tool_calls"), 0), "function");
				cr_assert(str_eq(jv_str(a, jv_get(f, "arguments")), all),
				    "%zu %zu: %s", i, j, acc.ptr);
			}
			buf_done(&b);
			arena_free(&a);
		}
}
