/* Answers of Responses servers as a whole: failures, both forms, every cut (C…: public bug log). */
#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"
#include "tests/unit/responses_lines.h"

struct row {
	const char *name, *lines, *want;
};

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

Test(dialect_responses_answers, failures_end_with_one_error, .timeout = 30)
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

Test(dialect_responses_answers, what_is_no_answer_is_a_protocol_error, .timeout = 10)
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

Test(dialect_responses_answers, whole_answers_read_like_streams, .timeout = 30)
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

Test(dialect_responses_answers, cut_at_every_byte_the_client_gets_the_same, .timeout = 60)
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

/* Positions count over the whole content of a Chat answer, in characters. */
static const struct {
	const char *name;
	enum wire from;
	const char *lines, *want;
} cited[] = {
    {"responses", WIRE_RESPONSES,
	CREATED CLOSED("0",
	    MSG("msg_0",
		TEXT("\xc3\xa9\xc3\xa9 ") ",{\"type\":\"output_text\",\"text\":\"see "
					  "it\",\"annotations\":["
					  "{\"type\":\"url_citation\",\"url\":\"http://u/"
					  "\",\"title\":"
					  "\"t\",\"start_index\":4,\"end_index\":6},{\"type\":"
					  "\"container_file_citation\",\"file_id\":\"f\"}]}")) DONE,
	"\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":7,"
	"\"end_index\":9,\"title\":\"t\",\"url\":\"http://u/\"}}]"},
    {"messages", WIRE_MESSAGES,
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\",\"content\":[],"
	"\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n"
	"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
	"\"text\":\"ab\"}}\n{\"type\":\"content_block_stop\",\"index\":0}\n"
	"{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\","
	"\"text\":\"\",\"citations\":[]}}\n"
	"{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"citations_delta\","
	"\"citation\":{\"type\":\"web_search_result_location\",\"url\":\"http://u/\",\"title\":"
	"\"t\",\"cited_text\":\"x\",\"encrypted_index\":\"e\"}}}\n"
	"{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\","
	"\"text\":\"c\xc3\xa9\"}}\n{\"type\":\"content_block_stop\",\"index\":1}\n"
	"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n"
	"{\"type\":\"message_stop\"}\n",
	"\"annotations\":[{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":2,"
	"\"end_index\":4,\"title\":\"t\",\"url\":\"http://u/\"}}]"},
};

Test(dialect_responses_answers, cited_pages_reach_chat, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(cited); i++)
		for (int stream = 0; stream < 2; stream++) {
			struct arena *a = arena_new(64u << 20);
			struct fix_way way = {
			    cited[i].from, WIRE_CHAT, true, stream == 1, false, NULL};
			struct fix_answer got;
			fix_answer(
			    a, &way, fix_frames(a, cited[i].from, str_c(cited[i].lines)), 0, &got);
			cr_expect(str_find(got.bytes, str_c(cited[i].want)) != SIZE_MAX,
			    "%s %d: %.*s", cited[i].name, stream, STR_FMT(got.bytes));
			arena_free(&a);
		}
}

struct seen {
	struct buf text;
};

static bool
on_seen(void *arg, const struct turn_event *ev)
{
	struct seen *s = arg;
	if (ev->type == TURN_BLOCK_DELTA && ev->field == DELTA_TEXT)
		buf_add(&s->text, ev->text);
	return true;
}

/* What is not held back for the order's sake is passed on at once. */
Test(dialect_responses_answers, pieces_are_passed_on_as_they_come, .timeout = 10)
{
	static const struct {
		const char *line, *text;
	} steps[] = {
	    {CREATED, ""},
	    {ADDED("0", "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}"), ""},
	    {"{\"type\":\"response.reasoning_summary_text.delta\",\"item_id\":\"rs_1\","
	     "\"output_index\":0,\"summary_index\":0,\"delta\":\"a\"}\n",
		"a"},
	    {CLOSED("0", "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}"), "a"},
	    {ADDED("1", MSG("msg_1", "")), "a"},
	    {SAY("1", "b"), "ab"},
	    {SAY("1", "c"), "abc"},
	    {CLOSED("1", MSG("msg_1", TEXT("bc"))), "abc"},
	    {ADDED("2", FC("fc_2", "c2", "f", "")), "abc"},
	    {ADDED("3", FC("fc_3", "c3", "f", "")), "abc"},
	    {ARGS("2", "fc_2", "["), "abc["},
	    {ARGS("3", "fc_3", "{"), "abc["},
	    {ARGS("2", "fc_2", "]"), "abc[]"},
	    {CLOSED("2", FC("fc_2", "c2", "f", "[]")), "abc[]{"},
	    {ARGS("3", "fc_3", "}"), "abc[]{}"},
	};
	struct arena *a = arena_new(16u << 20);
	struct seen s = {.text = BUF_INIT(1024)};
	struct events *e = dialect_responses.events_new(a, on_seen, &s);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct str line = str_trim(str_c(steps[i].line));
		cr_assert_eq(dialect_responses.events_sse(e, STR(""), line, NULL), ERR_OK);
		cr_expect(str_eq(buf_str(&s.text), str_c(steps[i].text)), "step %zu: %.*s", i,
		    STR_FMT(buf_str(&s.text)));
	}
	cr_expect_eq(dialect_responses.events_sse(NULL, STR(""), STR("{}"), NULL), ERR_NOMEM);
	cr_expect_eq(dialect_responses.events_whole(NULL, STR("{}"), NULL), ERR_NOMEM);
	cr_expect_eq(dialect_responses.events_end(NULL, NULL), ERR_NOMEM);
	buf_done(&s.text);
	arena_free(&a);
}
