/* Answers of Responses servers: what the reader makes of them. Rows named after the reports in
 * which other programs got them wrong (B…: public bug log). Each is fed in pieces of several sizes
 * and written to clients of every wire, streamed and whole, which must agree. */
#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"

#define CREATED                                                                                    \
	"{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"mm\","         \
	"\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n"
#define END(response)                                                                              \
	"{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"model\":\"mm\","       \
	"\"status\":\"completed\",\"error\":null," response "}}\n"
#define DONE END("\"output\":[]")
#define ADDED(i, item)                                                                             \
	"{\"type\":\"response.output_item.added\",\"output_index\":" i ",\"item\":" item "}\n"
#define CLOSED(i, item)                                                                            \
	"{\"type\":\"response.output_item.done\",\"output_index\":" i ",\"item\":" item "}\n"
#define MSG(id, parts)                                                                             \
	"{\"id\":\"" id "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\"," \
	"\"content\":[" parts "]}"
#define TEXT(t) "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"" t "\"}"
#define SAY(i, t)                                                                                  \
	"{\"type\":\"response.output_text.delta\",\"output_index\":" i ",\"content_index\":0,"     \
	"\"item_id\":\"msg_" i "\",\"delta\":\"" t "\",\"logprobs\":[]}\n"
#define FC(id, call, name, args)                                                                   \
	"{\"id\":\"" id                                                                            \
	"\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"" call               \
	"\",\"name\":\"" name "\",\"arguments\":\"" args "\"}"
#define ARGS(i, id, piece)                                                                         \
	"{\"type\":\"response.function_call_arguments.delta\",\"output_index\":" i                 \
	",\"item_id\":\"" id "\",\"delta\":\"" piece "\"}\n"
#define ARGS_DONE(i, id, args)                                                                     \
	"{\"type\":\"response.function_call_arguments.done\",\"output_index\":" i                  \
	",\"item_id\":\"" id "\",\"arguments\":\"" args "\"}\n"
#define HEAD  "start resp_1 mm\n"
#define NOUSE "usage -1 -1\nend\n"

struct row {
	const char *name, *lines, *want;
};

static const struct row rows[] = {
    {"text",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "He") SAY("0", "llo")
	    CLOSED("0", MSG("msg_0", TEXT("Hello"))) DONE,
	HEAD "text:Hello\nfinish stop\n" NOUSE},
    {"b1 arguments only in their closing event",
	CREATED ADDED("0", FC("fc_1", "c1", "f", "")) ARGS_DONE("0", "fc_1", "{\\\"a\\\":5}")
	    CLOSED("0", FC("fc_1", "c1", "f", "{\\\"a\\\":5}")) DONE,
	HEAD "call c1 f:{\"a\":5}\nfinish tool\n" NOUSE},
    {"b1 arguments only in the closed item",
	CREATED ADDED("0", FC("fc_1", "c1", "f", ""))
	    CLOSED("0", FC("fc_1", "c1", "f", "{\\\"a\\\":5}")) DONE,
	HEAD "call c1 f:{\"a\":5}\nfinish tool\n" NOUSE},
    {"b1 some of the arguments in pieces",
	CREATED ADDED("0", FC("fc_1", "c1", "f", "")) ARGS("0", "fc_1", "{\\\"a\\\"")
	    ARGS_DONE("0", "fc_1", "{\\\"a\\\":5}") DONE,
	HEAD "call c1 f:{\"a\":5}\nfinish tool\n" NOUSE},
    {"b1 arguments written again with other spaces",
	CREATED ADDED("0", FC("fc_1", "c1", "f", "")) ARGS("0", "fc_1", "{\\\"a\\\":5}")
	    CLOSED("0", FC("fc_1", "c1", "f", "{\\\"a\\\": 5 }")) DONE,
	HEAD "call c1 f:{\"a\":5}\nfinish tool\n" NOUSE},
    {"b2 an empty piece",
	CREATED ADDED("0", FC("fc_1", "c1", "f", "")) ARGS("0", "fc_1", "") ARGS("0", "fc_1", "{}")
	    CLOSED("0", FC("fc_1", "c1", "f", "{}")) DONE,
	HEAD "call c1 f:{}\nfinish tool\n" NOUSE},
    {"b8 a call without an item id",
	CREATED CLOSED("0", "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\","
			    "\"arguments\":\"{}\"}") DONE,
	HEAD "call c f:{}\nfinish tool\n" NOUSE},
    {"a call without any id",
	CREATED CLOSED("0", "{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}")
	    DONE,
	NULL},
    {"b9 four calls, ids of two kinds",
	CREATED CLOSED("0", FC("fc_0", "call_0", "f", "{}")) CLOSED(
	    "1", FC("fc_1", "call_1", "f", "{}")) CLOSED("2", FC("fc_2", "call_2", "f", "{}"))
	    CLOSED("3", FC("fc_3", "call_3", "f", "{}")) DONE,
	HEAD "call call_0 f:{}\ncall call_1 f:{}\ncall call_2 f:{}\ncall call_3 f:{}\n"
	     "finish tool\n" NOUSE},
    {"b12 usage of an incomplete answer",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0",
	    "He") "{\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\","
		  "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[" MSG(
		      "msg_0", TEXT("He")) "],\"usage\":{\"input_tokens\":64,\"output_tokens\":1500"
					   "}}}\n",
	HEAD "text:He\nfinish length\nusage 64 1500\nend\n"},
    {"a cut call keeps its reason",
	CREATED ADDED("0", FC("fc_1", "c1", "f", "")) ARGS("0", "fc_1",
	    "{\\\"a") "{\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":"
		      "{\"reason\":\"content_filter\"}}}\n",
	HEAD "call c1 f:{\"a\nfinish content_filter\n" NOUSE},
    {"calls side by side",
	CREATED ADDED("0", FC("fc_0", "a", "f", "")) ADDED("1", FC("fc_1", "b", "g", ""))
	    ARGS("0", "fc_0", "{\\\"x\\\"") ARGS("1", "fc_1", "{\\\"y\\\"") ARGS("1", "fc_1", ":2}")
		ARGS_DONE("1", "fc_1", "{\\\"y\\\":2}") ARGS("0", "fc_0", ":1}")
		    ARGS_DONE("0", "fc_0", "{\\\"x\\\":1}") DONE,
	HEAD "call a f:{\"x\":1}\ncall b g:{\"y\":2}\nfinish tool\n" NOUSE},
    {"a later item is announced first",
	CREATED ADDED("1", FC("fc_1", "b", "g", "")) ADDED("0", FC("fc_0", "a", "f", ""))
	    ARGS("0", "fc_0", "{}") ARGS("1", "fc_1", "{}") DONE,
	NULL},
    {"numbers are all 0, ids differ",
	CREATED ADDED("0", FC("fc_0", "a", "f", "")) ARGS("0", "fc_0", "{}")
	    CLOSED("0", FC("fc_0", "a", "f", "{}")) ADDED("0", FC("fc_1", "b", "g", "")) ARGS("0",
		"fc_1", "{\\\"y\\\":1}") CLOSED("0", FC("fc_1", "b", "g", "{\\\"y\\\":1}")) DONE,
	HEAD "call a f:{}\ncall b g:{\"y\":1}\nfinish tool\n" NOUSE},
    {"numbers are all 0, only closed items",
	CREATED CLOSED("0", FC("fc_0", "a", "f", "{}")) CLOSED("0", FC("fc_1", "b", "g", "{}"))
	    DONE,
	HEAD "call a f:{}\ncall b g:{}\nfinish tool\n" NOUSE},
    {"the same id for all",
	CREATED ADDED("0", FC("fc_0", "a", "f", "")) ARGS("0", "fc_0", "{}")
	    CLOSED("0", FC("fc_0", "a", "f", "{}")) ADDED("1", FC("fc_0", "b", "g", "")) ARGS("1",
		"fc_0", "{\\\"y\\\":1}") CLOSED("1", FC("fc_0", "b", "g", "{\\\"y\\\":1}")) DONE,
	HEAD "call a f:{}\ncall b g:{\"y\":1}\nfinish tool\n" NOUSE},
    {"the same id for all, side by side, never closed",
	CREATED ADDED("0", FC("fc_0", "a", "f", "")) ADDED("1", FC("fc_0", "b", "g", ""))
	    ARGS("0", "fc_0", "{") ARGS("1", "fc_0", "[") ARGS("0", "fc_0", "}")
		END("\"output\":[" FC("fc_0", "a", "f", "{}") "," FC("fc_0", "b", "g", "[]") "]"),
	HEAD "call a f:{}\ncall b g:[]\nfinish tool\n" NOUSE},
    {"announced twice",
	CREATED ADDED("0", FC("fc_0", "a", "f", "")) ADDED("0", FC("fc_0", "a", "f", ""))
	    ARGS("0", "fc_0", "{}") DONE,
	HEAD "call a f:{}\nfinish tool\n" NOUSE},
    {"ids change from event to event",
	CREATED ADDED("0", MSG("x1", "")) SAY("0", "He") CLOSED("0", MSG("x2", TEXT("Hello")))
	    END("\"output\":[" MSG("x3", TEXT("Hello")) "]"),
	HEAD "text:Hello\nfinish stop\n" NOUSE},
    {"no numbers, no ids",
	CREATED "{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"role\":"
		"\"assistant\",\"content\":[]}}\n"
		"{\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n"
		"{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"role\":"
		"\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}}\n"
		"{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\","
		"\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"\"}}\n"
		"{\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\"}\n" DONE,
	HEAD "text:Hi\ncall c f:{}\nfinish tool\n" NOUSE},
    {"only pieces", CREATED SAY("0", "He") SAY("0", "llo") DONE,
	HEAD "text:Hello\nfinish stop\n" NOUSE},
    {"only the last event",
	"{\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"model\":\"mm\","
	"\"status\":\"completed\",\"output\":[" MSG("msg_0", TEXT("Hello")) "," FC(
	    "fc_1", "c1", "f", "{}") "],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n",
	HEAD "text:Hello\ncall c1 f:{}\nfinish tool\nusage 1 2\nend\n"},
    {"the last event repeats all",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "Hi") CLOSED("0", MSG("msg_0", TEXT("Hi")))
	    CLOSED("1", FC("fc_1", "c1", "f", "{}"))
		END("\"output\":[" MSG("msg_0", TEXT("Hi")) "," FC("fc_1", "c1", "f", "{}") "]"),
	HEAD "text:Hi\ncall c1 f:{}\nfinish tool\n" NOUSE},
    {"the last event knows more",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "Hi")
	    END("\"output\":[" MSG("msg_0", TEXT("Hi there")) "," FC("fc_1", "c1", "f", "{}") "]"),
	HEAD "text:Hi there\ncall c1 f:{}\nfinish tool\n" NOUSE},
    {"no closing events",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "Hi") ADDED("1", FC("fc_1", "c1", "f", ""))
	    ARGS("1", "fc_1", "{}") DONE,
	HEAD "text:Hi\ncall c1 f:{}\nfinish tool\n" NOUSE},
    {"[DONE] in the place of an end",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "Hi") "[DONE]\n",
	HEAD "text:Hi\nfinish stop\n" NOUSE},
    {"two parts, a refusal",
	CREATED ADDED("0", MSG("msg_0", "")) SAY(
	    "0", "A") "{\"type\":\"response.refusal.delta\",\"output_index\":0,\"content_index\":1,"
		      "\"item_id\":\"msg_0\",\"delta\":\"No\"}\n"
		      "{\"type\":\"response.refusal.done\",\"output_index\":0,\"content_index\":1,"
		      "\"item_id\":\"msg_0\",\"refusal\":\"No.\"}\n" DONE,
	HEAD "text:A\nrefusal:No.\nfinish refusal\n" NOUSE},
    {"annotations, told and repeated",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0",
	    "A") "{\"type\":\"response.output_text.annotation.added\",\"output_index\":0,"
		 "\"content_index\":0,\"item_id\":\"msg_0\",\"annotation_index\":0,\"annotation\":"
		 "{\"type\":\"x\",\"n\":0}}\n" CLOSED(
		     "0", MSG("msg_0",
			      "{\"type\":\"output_text\",\"annotations\":[{\"type\":\"x\",\"n\":0},"
			      "{\"type\":\"x\",\"n\":1}],\"text\":\"A\"}")) DONE,
	HEAD "text:A<note {\"type\":\"x\",\"n\":0}><note {\"type\":\"x\",\"n\":1}>\n"
	     "finish stop\n" NOUSE},
    {"reasoning: two summaries, encrypted content of the closed item",
	CREATED ADDED("0",
	    "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],"
	    "\"encrypted_content\":\"E1\"}") "{\"type\":\"response.reasoning_summary_text.delta\","
					     "\"item_id\":\"rs_1\","
					     "\"output_index\":0,\"summary_index\":0,\"delta\":"
					     "\"one\"}\n"
					     "{\"type\":\"response.reasoning_summary_text.delta\","
					     "\"item_id\":\"rs_1\","
					     "\"output_index\":0,\"summary_index\":1,\"delta\":"
					     "\"two\"}\n" CLOSED("0",
						 "{\"id\":\"rs_1\",\"type\":\"reasoning\","
						 "\"summary\":[{\"type\":\"summary_text\","
						 "\"text\":\"one\"},{\"type\":\"summary_text\","
						 "\"text\":\"two\"}],"
						 "\"encrypted_content\":\"E2\"}") DONE,
	HEAD "reasoning:one\n\ntwo<2 E2>\nfinish stop\n" NOUSE},
    {"reasoning without a word is kept",
	CREATED CLOSED("0", "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}") DONE,
	HEAD "reasoning:\nfinish stop\n" NOUSE},
    {"reasoning streamed as text, repeated as summary",
	CREATED ADDED("0",
	    "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}") "{\"type\":\"response."
								       "reasoning_text.delta\","
								       "\"item_id\":\"rs_1\","
								       "\"output_index\":0,"
								       "\"content_index\":0,"
								       "\"delta\":\"hm\"}\n" CLOSED(
									   "0",
									   "{\"id\":\"rs_1\","
									   "\"type\":\"reasoning\","
									   "\"summary\":[{\"type\":"
									   "\"summary_text\","
									   "\"text\":\"hm\"}]}")
									   DONE,
	HEAD "reasoning:hm\nfinish stop\n" NOUSE},
    {"custom tool: free text is wrapped",
	CREATED ADDED("0",
	    "{\"id\":\"ctc_1\",\"type\":\"custom_tool_call\",\"call_id\":\"c\","
	    "\"name\":\"q\",\"input\":\"\"}") "{\"type\":\"response.custom_tool_call_input.delta\","
					      "\"item_id\":\"ctc_1\","
					      "\"output_index\":0,\"delta\":\"SELECT "
					      "\\\"a\\\"\"}\n" CLOSED("0",
						  "{\"id\":\"ctc_1\",\"type\":\"custom_tool_call\","
						  "\"call_id\":\"c\",\"name\":\"q\","
						  "\"input\":\"SELECT \\\"a\\\"\\nFROM b\"}") DONE,
	HEAD "call c q:{\"input\":\"SELECT \\\"a\\\"\\nFROM b\"}\nfinish tool\n" NOUSE},
    {"custom tool without input",
	CREATED CLOSED("0", "{\"id\":\"ctc_1\",\"type\":\"custom_tool_call\",\"call_id\":\"c\","
			    "\"name\":\"q\",\"input\":\"\"}") DONE,
	HEAD "call c q:{\"input\":\"\"}\nfinish tool\n" NOUSE},
    {"hosted tools pass whole, in their place",
	CREATED ADDED("0",
	    "{\"id\":\"ws_1\",\"type\":\"web_search_call\",\"status\":"
	    "\"in_progress\"}") "{\"type\":\"response.web_search_call.searching\",\"item_id\":\"ws_"
				"1\","
				"\"output_index\":0}\n" ADDED("1", MSG("msg_1", "")) SAY("1", "Hi")
				    CLOSED("0", "{\"id\":\"ws_1\",\"type\":\"web_search_call\","
						"\"status\":\"completed\"}")
					CLOSED("1", MSG("msg_1", TEXT("Hi"))) DONE,
	HEAD "opaque:\ntext:Hi\nfinish stop\n" NOUSE},
    {"a null item, a null error, an event to come",
	CREATED CLOSED("0", "null") "{\"type\":\"keepalive\"}\n"
				    "{\"type\":\"response.news\",\"error\":null}\n" SAY("0", "x")
					DONE,
	HEAD "text:x\nfinish stop\n" NOUSE},
    {"nothing but an end", CREATED DONE, HEAD "finish stop\n" NOUSE},
};

static void
check_clients(struct arena *a, const char *name, struct str sse)
{
	for (enum wire to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
		struct fix_way way = {WIRE_RESPONSES, to, true, true, true, NULL};
		struct fix_answer streamed, whole;
		fix_answer(a, &way, sse, 0, &streamed);
		way.stream_out = false;
		fix_answer(a, &way, sse, 0, &whole);
		struct str acc = fix_accumulate(a, to, streamed.bytes);
		cr_expect(fix_json_eq(acc, whole.bytes), "%s to %s:\n%.*s\n%.*s", name,
		    wire_name(to), STR_FMT(acc), STR_FMT(whole.bytes));
	}
}

Test(dialect_responses_events, streams, .timeout = 60)
{
	static const size_t steps[] = {1, 3, 64};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(256u << 20);
		struct fix_way way = {WIRE_RESPONSES, WIRE_RESPONSES, true, true, false, NULL};
		struct fix_answer once, cut;
		struct str sse = fix_frames(a, WIRE_RESPONSES, str_c(rows[i].lines));
		fix_answer(a, &way, sse, 0, &once);
		cr_expect_eq(once.code, ERR_OK, "%s", rows[i].name);
		cr_expect(once.ended, "%s: %.*s", rows[i].name, STR_FMT(once.log));
		if (rows[i].want != NULL)
			cr_expect(str_eq(once.log, str_c(rows[i].want)), "%s:\n%.*s", rows[i].name,
			    STR_FMT(once.log));
		for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
			fix_answer(a, &way, sse, steps[s], &cut);
			cr_expect(
			    str_eq(cut.bytes, once.bytes), "%s by %zu", rows[i].name, steps[s]);
		}
		if (once.ended)
			check_clients(a, rows[i].name, sse);
		arena_free(&a);
	}
}

static const struct row failures[] = {
    {"an error event, flat",
	CREATED "{\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\","
		"\"param\":null,\"sequence_number\":1}\n",
	"error 429 rate_limit_exceeded: slow\n"},
    {"an error event, nested, and its echo",
	CREATED "{\"type\":\"error\",\"sequence_number\":2,\"error\":{\"type\":"
		"\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"pay\","
		"\"param\":null}}\n{\"type\":\"response.failed\",\"response\":{\"status\":"
		"\"failed\",\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}}\n",
	"error 429 insufficient_quota: pay\n"},
    {"c7 an error without a type", "{\"error\":{\"message\":\"ctx too long\",\"code\":400}}\n",
	"error 400 : ctx too long\n"},
    {"response.failed",
	CREATED "{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":"
		"{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}}\n",
	"error 400 context_length_exceeded: too long\n"},
    {"b12 usage of a failed answer",
	CREATED SAY("0", "x") "{\"type\":\"response.failed\",\"response\":{\"status\":\"failed\","
			      "\"error\":{\"code\":\"server_error\",\"message\":\"boom\"},"
			      "\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n",
	HEAD "text:x\nusage 5 1\nerror 500 server_error: boom\n"},
    {"cancelled",
	CREATED "{\"type\":\"response.completed\",\"response\":{\"status\":\"cancelled\"}}\n",
	"error 502 : the answer was cancelled\n"},
    {"cut off behind closed items",
	CREATED ADDED("0", MSG("msg_0", "")) SAY("0", "x") CLOSED("0", MSG("msg_0", TEXT("x"))),
	HEAD "text:x\nerror 502 api_error: the provider's answer was cut off\n"},
    {"cut off inside an item", CREATED SAY("0", "x"),
	HEAD "text:x\nerror 502 api_error: the provider's answer was cut off\n"},
    {"nothing at all", "", "error 502 api_error: the provider's answer was cut off\n"},
    {"[DONE] alone", "[DONE]\n", "error 502 api_error: the provider's answer was cut off\n"},
};

Test(dialect_responses_events, failures_end_with_one_error, .timeout = 30)
{
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct arena *a = arena_new(64u << 20);
		struct str sse = fix_frames(a, WIRE_RESPONSES, str_c(failures[i].lines));
		for (enum wire to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
			struct fix_way way = {WIRE_RESPONSES, to, true, true, false, NULL};
			struct fix_answer got;
			fix_answer(a, &way, sse, 0, &got);
			cr_expect(got.failed && !got.ended, "%s", failures[i].name);
			cr_expect(str_eq(got.log, str_c(failures[i].want)), "%s:\n%.*s",
			    failures[i].name, STR_FMT(got.log));
			way.stream_out = false;
			fix_answer(a, &way, sse, 0, &got);
			cr_expect_eq(got.bytes.len, 0, "%s", failures[i].name);
		}
		arena_free(&a);
	}
}

static const char *const no_answers[] = {"{\"type\":\"response.output_text.delta\"}",
    "{\"type\":\"response.function_call_arguments.delta\",\"delta\":null}", "not json", "[]", "7",
    "{\"id\":\"x\"}", "{\"type\":\"response.output_text.delta\",\"delta\":[\"x\"]}"};

Test(dialect_responses_events, what_is_no_answer_is_a_protocol_error, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(no_answers); i++)
		for (int stream = 0; stream < 2; stream++) {
			struct arena *a = arena_new(64u << 20);
			struct str in = str_c(no_answers[i]);
			struct fix_way way = {
			    WIRE_RESPONSES, WIRE_RESPONSES, stream == 1, true, false, NULL};
			struct fix_answer got;
			if (stream)
				in = arena_printf(a, "data: %s\n\n", no_answers[i]);
			fix_answer(a, &way, in, 0, &got);
			cr_expect_eq(
			    got.code, ERR_PROTO, "%s %d: %d", no_answers[i], stream, got.code);
			arena_free(&a);
		}
}

/* {items, what the events say}: the same from a whole answer as from its stream. */
static const struct row wholes[] = {
    {"all kinds",
	"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":"
	"\"one\"},{\"type\":\"summary_text\",\"text\":\"two\"}],\"encrypted_content\":\"E\"}\n"
	"{\"id\":\"ci_1\",\"type\":\"code_interpreter_call\",\"status\":\"completed\",\"code\":"
	"\"1\",\"container_id\":\"cntr_1\",\"outputs\":null}\n"
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\","
	"\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\",\"annotations\":[{\"type\":\"x\"}]}"
	",{\"type\":\"refusal\",\"refusal\":\"No\"}],\"phase\":\"commentary\"}\n" FC(
	    "fc_1", "c1", "f", "{\\\"a\\\":1}") "\n"
						"{\"id\":\"ctc_1\",\"type\":\"custom_tool_call\","
						"\"call_id\":\"c2\",\"name\":\"q\",\"input\":"
						"\"x\"}\n",
	"start resp_9 mm\nreasoning:one\n\ntwo<2 E>\nopaque:\ntext:Hi<note {\"type\":\"x\"}>\n"
	"refusal:No\ncall c1 f:{\"a\":1}\ncall c2 q:{\"input\":\"x\"}\nfinish tool\nusage 3 4\n"
	"end\n"},
    {"text of open models",
	"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"content\":[{\"type\":"
	"\"reasoning_text\",\"text\":\"hm\"}]}\n" MSG("msg_1", TEXT("Hi")) "\n",
	"start resp_9 mm\nreasoning:hm\ntext:Hi\nfinish stop\nusage 3 4\nend\n"},
};

static struct str
as_list(struct arena *a, struct str lines)
{
	struct str s = STR(""), line;
	while (str_split(&lines, '\n', &line))
		if (line.len > 0)
			s = arena_printf(
			    a, "%.*s%s%.*s", STR_FMT(s), s.len > 0 ? "," : "", STR_FMT(line));
	return s;
}

static struct str
as_stream(struct arena *a, struct str lines, struct str response)
{
	struct str s = STR(""), line;
	for (int i = 0; str_split(&lines, '\n', &line); i++)
		if (line.len > 0)
			s = arena_printf(a,
			    "%.*sdata: {\"type\":\"response.output_item.done\",\"output_index\":%d,"
			    "\"item\":%.*s}\n\n",
			    STR_FMT(s), i, STR_FMT(line));
	return arena_printf(a,
	    "data: "
	    "{\"type\":\"response.created\",\"response\":{\"id\":\"resp_9\",\"model\":\"mm\"}}"
	    "\n\n%.*sdata: {\"type\":\"response.completed\",\"response\":%.*s}\n\n",
	    STR_FMT(s), STR_FMT(response));
}

Test(dialect_responses_events, whole_answers_read_like_streams, .timeout = 30)
{
	for (size_t i = 0; i < ARRAY_LEN(wholes); i++) {
		struct arena *a = arena_new(64u << 20);
		struct str list = as_list(a, str_c(wholes[i].lines));
		struct str response = arena_printf(a,
		    "{\"id\":\"resp_9\",\"object\":\"response\",\"model\":\"mm\",\"status\":"
		    "\"completed\",\"error\":null,\"output\":[%.*s],\"temperature\":0.7,"
		    "\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}",
		    STR_FMT(list));
		struct str sse = as_stream(a, str_c(wholes[i].lines), response);
		for (enum wire to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
			struct fix_way way = {WIRE_RESPONSES, to, false, false, false, NULL};
			struct fix_answer whole, stream;
			fix_answer(a, &way, response, 0, &whole);
			way.stream_in = true;
			fix_answer(a, &way, sse, 0, &stream);
			cr_expect(str_eq(whole.log, str_c(wholes[i].want)), "%s:\n%.*s",
			    wholes[i].name, STR_FMT(whole.log));
			cr_expect(str_eq(whole.log, stream.log), "%s:\n%.*s", wholes[i].name,
			    STR_FMT(stream.log));
			cr_expect(str_eq(whole.bytes, stream.bytes), "%s to %s", wholes[i].name,
			    wire_name(to));
		}
		arena_free(&a);
	}
}

/* c1, c2: cut at every byte, inside characters too; c3: every line ending; c5: comments, no space
 * behind the colon, an event's data in several lines. */
static const char cut_lines[] = CREATED ADDED("0", MSG("msg_0", ""))
    SAY("0", "\xe5\x8c\x97 \xf0\x9f\x98\x80") SAY("0", "\\ud83d\\ude00\\n")
	CLOSED("0", MSG("msg_0", TEXT("\xe5\x8c\x97 \xf0\x9f\x98\x80\\ud83d\\ude00\\n")))
	    CLOSED("1", FC("fc_1", "c1", "f", "{\\\"a\\\":\\\"\xc3\xa9\\\"}")) DONE;

static struct str
with_endings(struct arena *a, struct str lines, const char *nl)
{
	struct buf b = BUF_INIT(1u << 20);
	struct str line;
	while (str_split(&lines, '\n', &line)) {
		if (line.len == 0)
			continue;
		size_t comma = str_chr(line, ',');
		buf_printf(&b, ": ping%s%sdata:%.*s%sdata:%.*s%s%s", nl, nl,
		    STR_FMT(str_sub(line, 0, comma + 1)), nl, STR_FMT(str_from(line, comma + 1)),
		    nl, nl);
	}
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

Test(dialect_responses_events, cut_at_every_byte_the_client_gets_the_same, .timeout = 60)
{
	static const char *const endings[] = {"\n", "\r\n", "\r"};
	struct arena *a = arena_new(256u << 20);
	struct fix_way way = {WIRE_RESPONSES, WIRE_RESPONSES, true, true, false, NULL};
	struct fix_answer want, got;
	struct str sse = fix_frames(a, WIRE_RESPONSES, str_c(cut_lines));
	fix_answer(a, &way, sse, 0, &want);
	cr_assert(want.ended);
	cr_expect(str_find(want.log, STR("text:\xe5\x8c\x97 \xf0\x9f\x98\x80\xf0\x9f\x98\x80\n")) !=
		      SIZE_MAX,
	    "%s", want.log.ptr);
	for (size_t step = 1; step <= sse.len; step++) {
		struct arena *each = arena_new(64u << 20);
		way.to = (enum wire)(step % 3);
		struct fix_answer whole;
		fix_answer(each, &way, sse, 0, &whole);
		fix_answer(each, &way, sse, step, &got);
		cr_expect(
		    str_eq(got.bytes, whole.bytes), "cut at %zu to %s", step, wire_name(way.to));
		arena_free(&each);
	}
	way.to = WIRE_RESPONSES;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		for (size_t step = 0; step < 3; step++) {
			struct str other = with_endings(a, str_c(cut_lines), endings[i]);
			fix_answer(a, &way, other, step, &got);
			cr_expect(
			    str_eq(got.bytes, want.bytes), "line ending %zu, by %zu", i, step);
		}
	arena_free(&a);
}
