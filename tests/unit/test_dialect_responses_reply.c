/* Answers as clients of Responses get them, byte for byte. */
#include <stdio.h>

#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"

struct rig {
	struct arena *a;
	struct buf out;
	struct reply *r;
};

static void
rig_start(struct rig *g, bool stream, const struct reply_options *base)
{
	struct reply_options opt =
	    base != NULL ? *base : (struct reply_options){.native_code = true};
	opt.stream = stream;
	opt.fallback_id = "0123";
	opt.created_s = 17;
	g->a = arena_new(64u << 20);
	buf_init(&g->out, 16u << 20);
	g->r = dialect_responses.reply_new(g->a, &opt, &g->out);
	cr_assert(g->r != NULL);
}

static void
rig_done(struct rig *g)
{
	buf_done(&g->out);
	arena_free(&g->a);
}

static void
say(struct rig *g, const struct turn_event *ev)
{
	dialect_responses.reply_event(g->r, ev);
}

static void
say_start(struct rig *g)
{
	say(g, &(struct turn_event){.type = TURN_START,
		   .id = STR("chatcmpl-9"),
		   .name = STR("prov"),
		   .usage = TOKEN_USAGE_NONE});
}

static void
open_block(struct rig *g, enum block_kind kind, enum wire from, const char *id, const char *name)
{
	say(g, &(struct turn_event){.type = TURN_BLOCK_START,
		   .kind = kind,
		   .raw_wire = from,
		   .id = str_c(id),
		   .name = str_c(name)});
}

static void
delta(struct rig *g, enum block_kind kind, enum delta_field field, const char *text)
{
	say(g, &(struct turn_event){
		   .type = TURN_BLOCK_DELTA, .kind = kind, .field = field, .text = str_c(text)});
}

static void
close_block(struct rig *g, enum block_kind kind)
{
	say(g, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = kind});
}

static void
say_block(struct rig *g, enum block_kind kind, const char *id, const char *name, const char *text)
{
	open_block(g, kind, WIRE_CHAT, id, name);
	if (text != NULL)
		delta(g, kind, DELTA_TEXT, text);
	close_block(g, kind);
}

static void
say_end(struct rig *g, enum finish_reason reason)
{
	struct token_usage u = {
	    .input = 10, .output = 4, .cache_read = 3, .cache_write = 2, .reasoning = 1};
	say(g, &(struct turn_event){.type = TURN_FINISH, .reason = reason});
	say(g, &(struct turn_event){.type = TURN_USAGE, .usage = u});
	say(g, &(struct turn_event){.type = TURN_END});
}

static struct code_record
record(void)
{
	static struct str ids[] = {STR_INIT("file-1"), STR_INIT("file-2")};
	static struct str names[] = {STR_INIT("plot.PNG"), STR_INIT("data.csv")};
	return (struct code_record){.id = STR("otari_ci_1"),
	    .container_id = STR("otari_cntr_1"),
	    .tool = CODE_TOOL_PYTHON,
	    .input_raw = STR("{\"code\":\"print(\\\"\xc3\xa9\\\")\\n\"}"),
	    .code = STR("print(\"\xc3\xa9\")\n"),
	    .ran = true,
	    .out = STR("\xc3\xa9\n"),
	    .err = STR("warn\n"),
	    .file_ids = ids,
	    .file_names = names,
	    .file_count = 2};
}

static void
expect(struct rig *g, const char *want)
{
	cr_expect(str_eq(buf_str(&g->out), str_c(want)), "got:\n%s\nwanted:\n%s", g->out.ptr, want);
}

/* Something that must be in what was written. */
static void
has(struct rig *g, const char *want)
{
	cr_expect(str_find(buf_str(&g->out), str_c(want)) != SIZE_MAX, "no\n%s\nin\n%s", want,
	    g->out.ptr);
}

#define EV(n, name, rest)                                                                          \
	"event: " name "\ndata: {\"type\":\"" name "\",\"sequence_number\":" n rest "}\n\n"
#define OBJECT(status, why, output, usage)                                                         \
	"{\"id\":\"resp_0123\",\"object\":\"response\",\"created_at\":17,\"status\":\"" status     \
	"\",\"background\":false,\"completed_at\":null,\"error\":null,\"incomplete_details\":" why \
	",\"model\":\"prov\",\"output\":[" output "],\"instructions\":null,"                       \
	"\"max_output_tokens\":null,\"max_tool_calls\":null,\"parallel_tool_calls\":true,"         \
	"\"previous_response_id\":null,\"conversation\":null,\"prompt_cache_key\":null,"           \
	"\"reasoning\":{\"effort\":null,\"summary\":null},\"safety_identifier\":null,"             \
	"\"service_tier\":\"default\",\"store\":true,\"temperature\":1.0,\"text\":{\"format\":"    \
	"{\"type\":\"text\"},\"verbosity\":\"medium\"},\"tool_choice\":\"auto\",\"tools\":[],"     \
	"\"top_logprobs\":0,\"top_p\":1.0,\"truncation\":\"disabled\",\"usage\":" usage            \
	",\"user\":null,\"metadata\":{}}"
#define USAGE                                                                                      \
	"{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":3,"                      \
	"\"cache_write_tokens\":2},\"output_tokens\":4,\"output_tokens_details\":"                 \
	"{\"reasoning_tokens\":1},\"total_tokens\":14}"
#define START                                                                                      \
	EV("0", "response.created", ",\"response\":" OBJECT("in_progress", "null", "", "null"))    \
	EV("1", "response.in_progress", ",\"response\":" OBJECT("in_progress", "null", "", "null"))

/* b4, b5, b6: the full life cycle, ids and numbers in every event, the text in all that close */
Test(dialect_responses_reply, a_text_stream, .timeout = 10)
{
	struct rig g;
	rig_start(&g, true, NULL);
	say_start(&g);
	dialect_responses.reply_ping(g.r);
	open_block(&g, BLOCK_TEXT, WIRE_RESPONSES, "msg_1", "");
	delta(&g, BLOCK_TEXT, DELTA_TEXT, "He");
	delta(&g, BLOCK_TEXT, DELTA_TEXT, "y");
	close_block(&g, BLOCK_TEXT);
	say_end(&g, FINISH_STOP);
#define AT      ",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0"
#define PART(t) "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"" t "\"}"
#define MESSAGE(status, parts)                                                                     \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"" status "\",\"content\":[" parts     \
	"],\"role\":\"assistant\"}"
	expect(&g,
	    START ": ping\n\n" EV("2", "response.output_item.added",
		",\"output_index\":0,\"item\":" MESSAGE("in_progress", ""))
		EV("3", "response.content_part.added", AT ",\"part\":" PART("")) EV(
		    "4", "response.output_text.delta", AT ",\"delta\":\"He\",\"logprobs\":[]")
		    EV("5", "response.output_text.delta", AT ",\"delta\":\"y\",\"logprobs\":[]")
			EV("6", "response.output_text.done", AT ",\"text\":\"Hey\",\"logprobs\":[]")
			    EV("7", "response.content_part.done", AT ",\"part\":" PART("Hey")) EV(
				"8", "response.output_item.done",
				",\"output_index\":0,\"item\":" MESSAGE("completed", PART("Hey")))
				EV("9", "response.completed",
				    ",\"response\":" OBJECT("completed", "null",
					MESSAGE("completed", PART("Hey")), USAGE)));
	rig_done(&g);
}

#define CI(status, code, outputs)                                                                  \
	"{\"id\":\"otari_ci_1\",\"type\":\"code_interpreter_call\",\"status\":\"" status           \
	"\",\"code\":\"" code "\",\"container_id\":\"otari_cntr_1\",\"outputs\":" outputs "}"
#define CODE "print(\\\"\xc3\xa9\\\")\\n"
#define LOGS "{\"type\":\"logs\",\"logs\":\"\xc3\xa9\\nwarn\\n\"}"

Test(dialect_responses_reply, an_execution_in_a_stream, .timeout = 10)
{
	struct rig g;
	struct code_record rec = record();
	rig_start(&g, true, NULL);
	say_start(&g);
	dialect_responses.reply_code(g.r, &rec);
	say_end(&g, FINISH_STOP);
#define ITEM ",\"item_id\":\"otari_ci_1\",\"output_index\":0"
	expect(&g,
	    START EV("2", "response.output_item.added",
		",\"output_index\":0,\"item\":" CI("in_progress", "", "null")) EV("3",
		"response.code_interpreter_call.in_progress", ITEM) EV("4",
		"response.code_interpreter_call_code.delta", ITEM ",\"delta\":\"" CODE "\"")
		EV("5", "response.code_interpreter_call_code.done", ITEM ",\"code\":\"" CODE "\"")
		    EV("6", "response.code_interpreter_call.interpreting", ITEM)
			EV("7", "response.code_interpreter_call.completed", ITEM)
			    EV("8", "response.output_item.done",
				",\"output_index\":0,\"item\":" CI("completed", CODE, "[" LOGS "]"))
				EV("9", "response.completed",
				    ",\"response\":" OBJECT("completed", "null",
					CI("completed", CODE, "[" LOGS "]"), USAGE)));
	rig_done(&g);
}

Test(dialect_responses_reply, executions_of_a_whole_answer, .timeout = 10)
{
	static const char link[] =
	    "{\"type\":\"image\",\"url\":\"https://o.example/api/v1/files/file-1/content\"}";
	struct rig g;
	struct reply_options opt = {
	    .native_code = true, .public_base_url = STR("https://o.example")};
	struct code_record rec = record(), failed = record(), silent = record();
	char want[1024];
	failed.return_code = 1;
	failed.file_count = 0;
	silent.ran = false;
	silent.out = silent.err = STR("");
	silent.file_count = 0;
	rig_start(&g, false, &opt);
	say_start(&g);
	dialect_responses.reply_code(g.r, &rec);
	dialect_responses.reply_code(g.r, &failed);
	dialect_responses.reply_code(g.r, &silent);
	say_end(&g, FINISH_PAUSE);
	(void)snprintf(want, sizeof(want),
	    "\"output\":[" CI("completed", CODE, "[" LOGS ",%s]") "," CI(
		"failed", CODE, "[" LOGS "]") "," CI("failed", CODE, "null") "],",
	    link);
	has(&g, want);
	has(&g, "\"status\":\"incomplete\",");
	has(&g, "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}");
	rig_done(&g);
}

Test(dialect_responses_reply, an_execution_is_listed_where_none_was_declared, .timeout = 10)
{
	struct rig g;
	struct reply_options opt = {.native_code = false};
	struct code_record rec = record();
	rig_start(&g, false, &opt);
	say_start(&g);
	dialect_responses.reply_code(g.r, &rec);
	say_end(&g, FINISH_STOP);
	has(&g, "\"output\":[],");
	has(&g,
	    ",\"otari_code_executions\":[{\"id\":\"otari_ci_1\",\"tool\":\"code_execution\","
	    "\"input\":{\"code\":\"" CODE "\"},\"stdout\":\"\xc3\xa9\\n\",\"stderr\":\"warn\\n"
	    "\",\"return_code\":0,\"files\":[{\"file_id\":\"file-1\",\"filename\":\"plot.PNG\"},"
	    "{\"file_id\":\"file-2\",\"filename\":\"data.csv\"}],\"error_code\":null}]}");
	rig_done(&g);
}

/* b13: what is open is closed before another begins; the accumulator sees to it */
Test(dialect_responses_reply, calls_stand_in_the_order_they_were_made, .timeout = 10)
{
	struct rig g;
	struct code_record rec = record();
	rig_start(&g, true, NULL);
	say_start(&g);
	say_block(&g, BLOCK_TEXT, "", "", "A");
	say_block(&g, BLOCK_TEXT, "", "", "B"); /* a second part of one message */
	dialect_responses.reply_code(g.r, &rec);
	say_block(&g, BLOCK_CALL, "call_1", "f", " {\"x\":1}");
	say_block(&g, BLOCK_CALL, "call_2", "g", NULL);
	say_end(&g, FINISH_STOP);
	struct jval v;
	struct str acc = fix_accumulate(g.a, WIRE_RESPONSES, buf_str(&g.out));
	cr_assert_eq(jdoc_parse(g.a, acc, &v, NULL), ERR_OK);
	struct jval output = jv_get(v, "output");
	static const char *const types[] = {
	    "message", "code_interpreter_call", "function_call", "function_call"};
	cr_assert_eq(jv_count(output), 4);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect(jv_str_is(jv_get(jv_at(output, i), "type"), types[i]), "%u", i);
	cr_expect_eq(jv_count(jv_get(jv_at(output, 0), "content")), 2);
	/* b7: an id of its own, none that the call has */
	struct str id = jv_str(g.a, jv_get(jv_at(output, 2), "id"));
	cr_expect(str_starts(id, STR("fc_")));
	cr_expect(!str_eq(id, jv_str(g.a, jv_get(jv_at(output, 3), "id"))));
	cr_expect(jv_str_is(jv_get(jv_at(output, 2), "call_id"), "call_1"));
	cr_expect(jv_str_is(jv_get(jv_at(output, 2), "arguments"), "{\"x\":1}"));
	cr_expect(jv_str_is(jv_get(jv_at(output, 3), "arguments"), "{}"));
	rig_done(&g);
}

/* What the client keeps for the model's provider, by the wire that it speaks. */
static const struct {
	const char *name;
	enum wire from;
	const char *member, *text;
	enum delta_field field;
	const char *secret, *want;
} secrets[] = {
    {"messages, signed", WIRE_MESSAGES, "", "hm", DELTA_SIGNATURE, "SIG", "otari_rs_m.SIG"},
    {"messages, redacted", WIRE_MESSAGES, "", "", DELTA_ENCRYPTED, "DATA", "otari_rs_d.DATA"},
    {"chat", WIRE_CHAT, "reasoning", "hm", DELTA_TEXT, "", "otari_rs_reasoning"},
    {"chat, the usual member", WIRE_CHAT, "", "hm", DELTA_TEXT, "", "otari_rs_reasoning_content"},
    {"responses", WIRE_RESPONSES, "", "hm", DELTA_ENCRYPTED, "ENC", "ENC"},
    {"responses, nothing", WIRE_RESPONSES, "", "hm", DELTA_TEXT, "", NULL},
};

Test(dialect_responses_reply, reasoning_goes_back_where_it_came_from, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		for (int stream = 0; stream < 2; stream++) {
			struct rig g;
			struct jval v;
			rig_start(&g, stream == 1, NULL);
			say_start(&g);
			open_block(&g, BLOCK_REASONING, secrets[i].from, "", secrets[i].member);
			delta(&g, BLOCK_REASONING, DELTA_TEXT, secrets[i].text);
			delta(&g, BLOCK_REASONING, secrets[i].field, secrets[i].secret);
			close_block(&g, BLOCK_REASONING);
			say_end(&g, FINISH_STOP);
			struct str whole = buf_str(&g.out);
			if (stream)
				whole = fix_accumulate(g.a, WIRE_RESPONSES, whole);
			cr_assert_eq(jdoc_parse(g.a, whole, &v, NULL), ERR_OK);
			struct jval item = jv_at(jv_get(v, "output"), 0);
			struct jval secret = jv_get(item, "encrypted_content");
			if (secrets[i].want == NULL)
				cr_expect(!jv_present(secret), "%s", secrets[i].name);
			else
				cr_expect(jv_str_is(secret, secrets[i].want), "%s: %.*s",
				    secrets[i].name, STR_FMT(whole));
			cr_expect_eq(jv_count(jv_get(item, "summary")), secrets[i].text[0] != 0,
			    "%s", secrets[i].name);
			rig_done(&g);
		}
}

static const struct {
	const char *name;
	enum wire from;
	const char *raw, *want;
} notes[] = {
    {"chat", WIRE_CHAT,
	"{\"type\":\"url_citation\",\"url_citation\":{\"url\":\"u\",\"title\":\"t\","
	"\"start_index\":1,\"end_index\":2}}",
	"{\"type\":\"url_citation\",\"start_index\":1,\"end_index\":2,\"title\":\"t\",\"url\":"
	"\"u\"}"},
    {"messages, web", WIRE_MESSAGES,
	"{\"type\":\"web_search_result_location\",\"url\":\"u\",\"title\":null,\"cited_text\":"
	"\"x\"}",
	"{\"type\":\"url_citation\",\"start_index\":0,\"end_index\":3,\"title\":\"\",\"url\":"
	"\"u\"}"},
    {"messages, a file", WIRE_MESSAGES,
	"{\"type\":\"page_location\",\"file_id\":\"file_1\",\"document_title\":\"d\"}",
	"{\"type\":\"file_citation\",\"file_id\":\"file_1\",\"filename\":\"d\",\"index\":3}"},
    {"messages, inline text", WIRE_MESSAGES,
	"{\"type\":\"char_location\",\"file_id\":null,\"document_index\":0}", NULL},
    {"responses", WIRE_RESPONSES, "{\"type\":\"news\",\"n\":1e400}",
	"{\"type\":\"news\",\"n\":1e400}"},
};

Test(dialect_responses_reply, annotations_in_the_words_of_the_wire, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		struct rig g;
		rig_start(&g, true, NULL);
		say_start(&g);
		open_block(&g, BLOCK_TEXT, notes[i].from, "", "");
		say(&g, &(struct turn_event){.type = TURN_ANNOTATION,
			    .kind = BLOCK_TEXT,
			    .raw_wire = notes[i].from,
			    .raw = str_c(notes[i].raw)});
		delta(&g, BLOCK_TEXT, DELTA_TEXT, "h\xc3\xa9y");
		close_block(&g, BLOCK_TEXT);
		say_end(&g, FINISH_STOP);
		struct str want = notes[i].want != NULL ? str_c(notes[i].want) : STR("");
		has(&g, arena_cstr(g.a, arena_printf(g.a, "\"annotations\":[%.*s],\"logprobs\"",
					    STR_FMT(want))));
		bool told = str_find(buf_str(&g.out), STR("annotation.added")) != SIZE_MAX;
		cr_expect_eq(told, notes[i].want != NULL, "%s", notes[i].name);
		rig_done(&g);
	}
}

Test(dialect_responses_reply, ends, .timeout = 10)
{
	static const struct {
		enum finish_reason reason;
		const char *refusal, *status, *details;
	} ends[] = {
	    {FINISH_STOP, NULL, "completed", "null"},
	    {FINISH_TOOL, NULL, "completed", "null"},
	    {FINISH_STOP_SEQUENCE, NULL, "completed", "null"},
	    {FINISH_OTHER, NULL, "completed", "null"},
	    {FINISH_LENGTH, NULL, "incomplete", "{\"reason\":\"max_output_tokens\"}"},
	    {FINISH_CONTEXT, NULL, "incomplete", "{\"reason\":\"max_output_tokens\"}"},
	    {FINISH_CONTENT_FILTER, NULL, "incomplete", "{\"reason\":\"content_filter\"}"},
	    {FINISH_REFUSAL, NULL, "incomplete", "{\"reason\":\"content_filter\"}"},
	    {FINISH_REFUSAL, "No.", "completed", "null"},
	};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct rig g;
		rig_start(&g, false, NULL);
		say_start(&g);
		if (ends[i].refusal != NULL)
			say_block(&g, BLOCK_REFUSAL, "", "", ends[i].refusal);
		say_end(&g, ends[i].reason);
		has(&g, arena_cstr(g.a,
			    arena_printf(g.a, "\"status\":\"%s\",\"background\"", ends[i].status)));
		has(&g, arena_cstr(
			    g.a, arena_printf(g.a, "\"incomplete_details\":%s,", ends[i].details)));
		rig_done(&g);
	}
}

Test(dialect_responses_reply, an_open_message_is_incomplete_when_the_answer_is, .timeout = 10)
{
	struct rig g;
	rig_start(&g, true, NULL);
	say_start(&g);
	say_block(&g, BLOCK_TEXT, "", "", "cut");
	say_end(&g, FINISH_LENGTH);
	has(&g, "\"type\":\"message\",\"status\":\"incomplete\"");
	has(&g, "event: response.incomplete\n");
	(void)fix_accumulate(g.a, WIRE_RESPONSES, buf_str(&g.out));
	rig_done(&g);
}

Test(dialect_responses_reply, an_error_is_the_last_event, .timeout = 10)
{
	struct rig g;
	rig_start(&g, true, NULL);
	say_start(&g);
	buf_clear(&g.out);
	say(&g, &(struct turn_event){
		    .type = TURN_ERROR, .status = 429, .error_message = STR("slow \"now\"")});
	say_end(&g, FINISH_STOP);
	dialect_responses.reply_ping(g.r);
	expect(&g, EV("2", "error",
		       ",\"error\":{\"type\":\"rate_limit_error\",\"code\":\"rate_limit_error\","
		       "\"message\":\"slow \\\"now\\\"\",\"param\":null},\"detail\":\"slow "
		       "\\\"now\\\"\""));
	rig_done(&g);
	rig_start(&g, false, NULL);
	say_start(&g);
	say(&g, &(struct turn_event){.type = TURN_ERROR, .status = 429});
	expect(&g, "");
	rig_done(&g);
}

/* The request that the answer repeats. */
static const char request[] =
    "{\"model\":\"alias\",\"input\":\"hi\",\"instructions\":\"Be  brief\",\"max_output_tokens\":"
    "99,\"max_tool_calls\":3,\"parallel_tool_calls\":false,\"prompt_cache_key\":\"k\","
    "\"reasoning\":{\"effort\":\"low\"},\"service_tier\":\"auto\",\"store\":false,"
    "\"temperature\":0.70,\"text\":{\"format\":{\"type\":\"text\"}},\"tools\":[{\n\r \"type\":"
    "\"custom\",\"name\":\"sql\"},{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}"
    "}],\"tool_choice\":{\"type\":\"custom\",\"name\":\"sql\"},\"top_p\":5e-1,\"truncation\":"
    "\"auto\",\"user\":\"u\",\"metadata\":{\"a\":\"b\"}}";

static struct str
without_line_ends(struct arena *a, struct str s)
{
	char *dst = arena_alloc(a, s.len + 1);
	size_t n = 0;
	cr_assert(dst != NULL);
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] != '\n' && s.ptr[i] != '\r')
			dst[n++] = s.ptr[i];
	return str_n(dst, n);
}

Test(dialect_responses_reply, the_request_is_repeated_as_it_was_sent, .timeout = 10)
{
	static const char *const members[] = {"instructions", "max_output_tokens", "max_tool_calls",
	    "parallel_tool_calls", "prompt_cache_key", "reasoning", "service_tier", "store",
	    "temperature", "text", "tools", "tool_choice", "top_p", "truncation", "user",
	    "metadata"};
	const struct str asked_text = str_c(request);
	struct rig g;
	struct err err;
	struct jval asked, got;
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_decode(a, WIRE_RESPONSES, asked_text, &err);
	cr_assert(c != NULL, "%s", err.msg);
	struct reply_options opt = {.request = c, .model = STR("alias")};
	rig_start(&g, false, &opt);
	say_start(&g);
	say_block(&g, BLOCK_CALL, "call_1", "sql", "{\"input\": \"SELECT\\n1\"}");
	say_end(&g, FINISH_TOOL);
	cr_assert_eq(jdoc_parse(a, asked_text, &asked, NULL), ERR_OK);
	cr_assert_eq(jdoc_parse(a, buf_str(&g.out), &got, NULL), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct str want = without_line_ends(a, jv_raw(jv_get(asked, members[i])));
		struct str have = jv_raw(jv_get(got, members[i]));
		cr_expect(str_eq(want, have), "%s: %.*s", members[i], STR_FMT(have));
	}
	cr_expect(jv_str_is(jv_get(got, "model"), "alias"));
	/* a custom tool gets its free text */
	struct jval call = jv_at(jv_get(got, "output"), 0);
	cr_expect(jv_str_is(jv_get(call, "type"), "custom_tool_call"));
	cr_expect(jv_str_is(jv_get(call, "input"), "SELECT\n1"), "%s", g.out.ptr);
	rig_done(&g);
	arena_free(&a);
}

Test(dialect_responses_reply, no_memory_no_answer, .timeout = 10)
{
	struct arena *a = arena_new(512);
	struct buf out = BUF_INIT(1024);
	struct reply_options opt = {.stream = true, .fallback_id = "1"};
	cr_expect(dialect_responses.reply_new(a, &opt, &out) == NULL);
	dialect_responses.reply_event(NULL, &(struct turn_event){.type = TURN_END});
	dialect_responses.reply_code(NULL, NULL);
	dialect_responses.reply_ping(NULL);
	cr_expect_eq(out.len, 0);
	arena_free(&a);
}
