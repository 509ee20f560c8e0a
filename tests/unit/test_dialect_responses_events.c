/* Answers of Responses servers: what the reader makes of them. Rows named after the reports in
 * which other programs got them wrong (B…: public bug log). Each is fed in pieces of several sizes
 * and written to clients of every wire, streamed and whole, which must agree. */
#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"
#include "tests/unit/responses_lines.h"

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
