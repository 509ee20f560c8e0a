/* Answers as clients get them, byte for byte. */
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"
#include "worker/dialect/error_event.h"

struct rig {
	struct arena *a;
	const struct dialect *d;
	struct buf out;
	struct reply *r;
};

static void
rig_start(struct rig *g, enum wire w, bool stream, const struct reply_options *base)
{
	struct reply_options opt =
	    base != NULL ? *base : (struct reply_options){.native_code = true};
	opt.stream = stream;
	opt.fallback_id = "0123";
	opt.created_s = 17;
	g->a = arena_new(64u << 20);
	g->d = dialect_of(w);
	buf_init(&g->out, 16u << 20);
	g->r = g->d->reply_new(g->a, &opt, &g->out);
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
	g->d->reply_event(g->r, ev);
}

static void
say_start(struct rig *g, const char *id)
{
	say(g, &(struct turn_event){.type = TURN_START,
		   .id = str_c(id),
		   .name = STR("prov"),
		   .usage = TOKEN_USAGE_NONE});
}

static void
say_block(struct rig *g, enum block_kind kind, const char *id, const char *name, const char *text)
{
	say(g, &(struct turn_event){
		   .type = TURN_BLOCK_START, .kind = kind, .id = str_c(id), .name = str_c(name)});
	if (text != NULL)
		say(g, &(struct turn_event){
			   .type = TURN_BLOCK_DELTA, .kind = kind, .text = str_c(text)});
	say(g, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = kind});
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
	return (struct code_record){.id = STR("otari_srvtoolu_1"),
	    .tool = CODE_TOOL_PYTHON,
	    .input_raw = STR("{\"code\":\"print(\\\"\xc3\xa9\\\")\\n\"}"),
	    .code = STR("print(\"\xc3\xa9\")\n"),
	    .ran = true,
	    .out = STR("\xc3\xa9\n"),
	    .err = STR(""),
	    .file_ids = ids,
	    .file_names = ids,
	    .file_count = 2};
}

static void
expect(struct rig *g, const char *want)
{
	cr_expect(str_eq(buf_str(&g->out), str_c(want)), "got:\n%s\nwanted:\n%s", g->out.ptr, want);
}

#define EV(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define USAGE                                                                                      \
	"\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":2,\"cache_read_input_"      \
	"tokens\":3,"                                                                              \
	"\"output_tokens\":4"
#define START                                                                                      \
	EV("message_start",                                                                        \
	    ",\"message\":{\"id\":\"msg_0123\",\"type\":\"message\",\"role\":\"assistant\","       \
	    "\"model\":\"prov\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"       \
	    "\"usage\":{\"input_tokens\":0,\"cache_creation_input_tokens\":0,"                     \
	    "\"cache_read_input_tokens\":0,\"output_tokens\":0}}")

Test(dialect_reply, an_execution_in_a_messages_stream, .timeout = 10)
{
	struct rig g;
	struct code_record rec = record();
	rig_start(&g, WIRE_MESSAGES, true, NULL);
	say_start(&g, "chatcmpl-9");
	g.d->reply_ping(g.r);
	g.d->reply_code(g.r, &rec);
	say_block(&g, BLOCK_TEXT, "", "", "ok");
	say_end(&g, FINISH_STOP);
	expect(&g,
	    START EV("ping", "") EV("content_block_start",
		",\"index\":0,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"otari_"
		"srvtoolu_1\","
		"\"name\":\"code_execution\",\"input\":{}}") EV("content_block_delta",
		",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":"
		"\"{\\\"code\\\":\\\"print(\\\\\\\"\xc3\xa9\\\\\\\")\\\\n\\\"}\"}")
		EV("content_block_stop", ",\"index\":0") EV("content_block_start",
		    ",\"index\":1,\"content_block\":{\"type\":\"code_execution_tool_result\","
		    "\"tool_use_id\":\"otari_srvtoolu_1\",\"content\":{\"type\":"
		    "\"code_execution_result\",\"stdout\":\"\xc3\xa9\\n\",\"stderr\":\"\","
		    "\"return_code\":0,\"content\":[{\"type\":\"code_execution_output\",\"file_"
		    "id\":"
		    "\"file-1\"},{\"type\":\"code_execution_output\",\"file_id\":\"file-2\"}]}}")
		    EV("content_block_stop", ",\"index\":1") EV("content_block_start",
			",\"index\":2,\"content_block\":{\"type\":\"text\",\"text\":\"\"}")
			EV("content_block_delta",
			    ",\"index\":2,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}")
			    EV("content_block_stop", ",\"index\":2") EV("message_delta",
				",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null}"
				"," USAGE ",\"server_tool_use\":{\"code_execution_requests\":1}}")
				EV("message_stop", ""));
	rig_done(&g);
}

Test(dialect_reply, executions_of_a_whole_message, .timeout = 10)
{
	struct rig g;
	struct code_record rec = record(), failed = record();
	failed.ran = false;
	rec.file_count = 0;
	rec.return_code = 1;
	rig_start(&g, WIRE_MESSAGES, false, NULL);
	say_start(&g, "msg_7");
	g.d->reply_code(g.r, &rec);
	g.d->reply_code(g.r, &failed);
	say_end(&g, FINISH_PAUSE);
	expect(&g, "{\"id\":\"msg_7\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
		   "\"prov\",\"content\":["
		   "{\"type\":\"server_tool_use\",\"id\":\"otari_srvtoolu_1\",\"name\":\"code_"
		   "execution\",\"input\":"
		   "{\"code\":\"print(\\\"\xc3\xa9\\\")\\n\"}},{\"type\":\"code_execution_tool_"
		   "result\",\"tool_use_id\":"
		   "\"otari_srvtoolu_1\",\"content\":{\"type\":\"code_execution_result\","
		   "\"stdout\":\"\xc3\xa9\\n\","
		   "\"stderr\":\"\",\"return_code\":1,\"content\":[]}},{\"type\":\"server_tool_"
		   "use\",\"id\":"
		   "\"otari_srvtoolu_1\",\"name\":\"code_execution\",\"input\":{\"code\":\"print("
		   "\\\"\xc3\xa9\\\")\\n\"}},"
		   "{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"otari_srvtoolu_1\","
		   "\"content\":{\"type\":"
		   "\"code_execution_tool_result_error\",\"error_code\":\"unavailable\"}}],\"stop_"
		   "reason\":"
		   "\"pause_turn\",\"stop_sequence\":null," USAGE
		   ",\"server_tool_use\":{\"code_execution_requests\":2}}}");
	rig_done(&g);
}

/* An execution where the wire, or the declaration, has no block for it. */
#define LIST                                                                                       \
	"\"otari_code_executions\":[{\"id\":\"otari_srvtoolu_1\",\"tool\":\"code_execution\","     \
	"\"input\":{\"code\":\"print(\\\"\xc3\xa9\\\")\\n\"},\"stdout\":\"\xc3\xa9\\n\","          \
	"\"stderr\":\"\",\"return_code\":0,\"files\":[{\"file_id\":\"file-1\",\"filename\":"       \
	"\"file-1\"},{\"file_id\":\"file-2\",\"filename\":\"file-2\"}],\"error_code\":null}]"

#define CH(choices)                                                                                \
	"data: "                                                                                   \
	"{\"id\":\"chatcmpl-0123\",\"object\":\"chat.completion.chunk\",\"created\":17,\"model\":" \
	"\"alias\",\"choices\":[" choices "],\"usage\":null}\n\n"
#define CD(delta) CH("{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":null}")

Test(dialect_reply, a_chat_stream, .timeout = 10)
{
	struct rig g;
	struct reply_options opt = {.include_usage = true, .model = STR("alias")};
	struct code_record rec = record();
	rig_start(&g, WIRE_CHAT, true, &opt);
	say_start(&g, "msg_9");
	g.d->reply_ping(g.r);
	say_block(&g, BLOCK_REASONING, "", "", "hm");
	say_block(&g, BLOCK_TEXT, "", "", "ok");
	g.d->reply_code(g.r, &rec);
	say_block(&g, BLOCK_CALL, "a", "f", "{\"x\":1}");
	say_block(&g, BLOCK_CALL, "b", "f", NULL);
	say_end(&g, FINISH_STOP);
	expect(&g,
	    CD("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}") ": ping\n\n" CD(
		"{\"reasoning_content\":\"hm\"}") CD("{\"content\":\"ok\"}")
		CD("{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{"
		   "\"name\":"
		   "\"f\",\"arguments\":\"\"}}]}") CD("{\"tool_calls\":[{\"index\":0,\"function\":{"
						      "\"arguments\":\"{\\\"x\\\":1}\"}}]}")
		    CD("{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"type\":\"function\","
		       "\"function\":"
		       "{\"name\":\"f\",\"arguments\":\"\"}}]}")
			CD("{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{}\"}}]}")
			    CH("{\"index\":0,\"delta\":{" LIST
			       "},\"logprobs\":null,\"finish_reason\":"
			       "\"tool_calls\"}") "data: "
						  "{\"id\":\"chatcmpl-0123\",\"object\":\"chat."
						  "completion.chunk\",\"created\":17,\"model\":"
						  "\"alias\",\"choices\":[],\"usage\":{\"prompt_"
						  "tokens\":10,\"completion_tokens\":4,"
						  "\"total_tokens\":14,\"prompt_tokens_details\":{"
						  "\"cached_tokens\":3,\"cache_write_tokens\":2},"
						  "\"completion_tokens_details\":{\"reasoning_"
						  "tokens\":1}}}\n\ndata: [DONE]\n\n");
	rig_done(&g);
}

/* What ran is there for every client, also where no block shows it. */
Test(dialect_reply, e1_executions_without_blocks_are_listed, .timeout = 10)
{
	for (int i = 0; i < 4; i++) {
		struct rig g;
		struct reply_options opt = {.native_code = false};
		struct code_record rec = record();
		rig_start(&g, i / 2 ? WIRE_MESSAGES : WIRE_CHAT, i % 2, &opt);
		say_start(&g, "x");
		say_block(&g, BLOCK_TEXT, "", "", "t");
		g.d->reply_code_begin(g.r, &rec);
		g.d->reply_code_input(g.r, rec.input_raw, rec.code);
		g.d->reply_code_run(g.r, &rec);
		g.d->reply_code(g.r, &rec);
		say_end(&g, FINISH_STOP);
		const char *at = strstr(g.out.ptr, LIST);
		cr_assert(at != NULL, "%s", g.out.ptr);
		cr_expect_eq(at[sizeof(LIST) - 1], '}');
		cr_expect(strstr(g.out.ptr, "server_tool_use") == NULL, "%s", g.out.ptr);
		rig_done(&g);
	}
}

Test(dialect_reply, finish_reasons_of_both_wires, .timeout = 10)
{
	static const struct {
		enum finish_reason reason;
		const char *chat, *messages, *chat_call, *messages_call;
	} rows[] = {{FINISH_STOP, "stop", "end_turn", "tool_calls", "tool_use"},
	    {FINISH_LENGTH, "length", "max_tokens", "length", "max_tokens"},
	    {FINISH_TOOL, "stop", "end_turn", "tool_calls", "tool_use"},
	    {FINISH_STOP_SEQUENCE, "stop", "stop_sequence", "stop", "stop_sequence"},
	    {FINISH_REFUSAL, "content_filter", "refusal", "content_filter", "refusal"},
	    {FINISH_CONTENT_FILTER, "content_filter", "refusal", "content_filter", "refusal"},
	    {FINISH_PAUSE, "stop", "pause_turn", "stop", "pause_turn"},
	    {FINISH_CONTEXT, "length", "model_context_window_exceeded", "length",
		"model_context_window_exceeded"},
	    {FINISH_OTHER, "stop", "end_turn", "tool_calls", "tool_use"}};
	for (size_t i = 0; i < 4 * ARRAY_LEN(rows); i++) {
		struct rig g;
		enum wire w = i % 2 ? WIRE_MESSAGES : WIRE_CHAT;
		bool call = i / 2 % 2;
		const char *want = call
				       ? (i % 2 ? rows[i / 4].messages_call : rows[i / 4].chat_call)
				       : (i % 2 ? rows[i / 4].messages : rows[i / 4].chat);
		rig_start(&g, w, false, NULL);
		say_start(&g, "x");
		if (call)
			say_block(&g, BLOCK_CALL, "a", "f", "{}");
		else
			say_block(&g, BLOCK_TEXT, "", "", "t");
		say_end(&g, rows[i / 4].reason);
		struct str key = arena_printf(
		    g.a, "\"%s\":\"%s\"", w == WIRE_CHAT ? "finish_reason" : "stop_reason", want);
		cr_expect(
		    str_find(buf_str(&g.out), key) != SIZE_MAX, "%s not in %s", key.ptr, g.out.ptr);
		rig_done(&g);
	}
}

Test(dialect_reply, refusal_text_ends_with_stop_on_chat, .timeout = 10)
{
	struct rig g;
	rig_start(&g, WIRE_CHAT, false, NULL);
	say_start(&g, "c-1");
	say_block(&g, BLOCK_REFUSAL, "", "", "No.");
	say_end(&g, FINISH_REFUSAL);
	cr_expect(
	    str_find(buf_str(&g.out), STR("\"content\":null,\"refusal\":\"No.\"},\"logprobs\":null,"
					  "\"finish_reason\":\"stop\"")) != SIZE_MAX,
	    "%s", g.out.ptr);
	cr_expect(str_find(buf_str(&g.out), STR("\"id\":\"c-1\"")) != SIZE_MAX, "%s", g.out.ptr);
	rig_done(&g);
}

/* The client that asked in the old form, or for a custom tool, is answered in kind. */
Test(dialect_reply, functions_of_old_and_custom_tools, .timeout = 10)
{
	static const struct {
		const char *request, *arguments, *want;
	} rows[] = {{"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],"
		     "\"functions\":[{\"name\":"
		     "\"f\"}]}",
			"{\"a\":1}",
			"\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
			"\"logprobs\":null,"
			"\"finish_reason\":\"function_call\""},
	    {"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"tools\":[{"
	     "\"type\":\"custom\","
	     "\"custom\":{\"name\":\"f\"}}]}",
		"{\"input\":\"free \\\"text\\\"\"}",
		"\"tool_calls\":[{\"id\":\"a\",\"type\":\"custom\",\"custom\":{\"name\":\"f\","
		"\"input\":\"free "
		"\\\"text\\\"\"}}]"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (int stream = 0; stream < 2; stream++) {
			struct rig g;
			struct arena *a = arena_new(1u << 20);
			struct reply_options opt = {
			    .request = fix_decode(a, WIRE_CHAT, str_c(rows[i].request), NULL)};
			rig_start(&g, WIRE_CHAT, stream, &opt);
			say_start(&g, "c");
			say_block(&g, BLOCK_CALL, "a", "f", rows[i].arguments);
			say_end(&g, FINISH_TOOL);
			if (!stream)
				cr_expect(
				    str_find(buf_str(&g.out), str_c(rows[i].want)) != SIZE_MAX,
				    "%s", g.out.ptr);
			else
				cr_expect(str_find(buf_str(&g.out),
					      i == 0 ? STR("\"function_call\":{\"name\":\"f\"")
						     : STR("\"type\":\"custom\"")) != SIZE_MAX,
				    "%s", g.out.ptr);
			rig_done(&g);
			arena_free(&a);
		}
	}
}

Test(dialect_reply, an_error_ends_a_stream_and_a_whole_answer_stays_empty, .timeout = 10)
{
	for (int i = 0; i < 4; i++) {
		struct rig g;
		enum wire w = i & 1 ? WIRE_MESSAGES : WIRE_CHAT;
		bool stream = i & 2;
		rig_start(&g, w, stream, NULL);
		say_start(&g, "x");
		size_t before = g.out.len;
		say(&g,
		    &(struct turn_event){
			.type = TURN_ERROR, .status = 529, .error_message = STR("busy \"now\"")});
		say_block(&g, BLOCK_TEXT, "", "", "late");
		say_end(&g, FINISH_STOP);
		g.d->reply_ping(g.r);
		struct str tail = str_from(buf_str(&g.out), before);
		if (!stream)
			cr_expect_eq(g.out.len, 0);
		else if (w == WIRE_MESSAGES)
			cr_expect(
			    str_starts(tail,
				STR("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
				    "\"overloaded_error\",\"message\":\"busy \\\"now\\\"\"}")) &&
				str_find(tail, STR("message_stop")) == SIZE_MAX,
			    "%s", tail.ptr);
		else
			cr_expect(
			    str_starts(tail,
				STR("data: {\"error\":{\"message\":\"busy \\\"now\\\"\",\"type\":"
				    "\"server_error\",\"param\":null,\"code\":null}")) &&
				str_ends(tail, STR("data: [DONE]\n\n")),
			    "%s", tail.ptr);
		rig_done(&g);
	}
}

Test(dialect_reply, error_bodies_hold_the_envelope_and_detail, .timeout = 10)
{
	static const struct {
		enum wire wire;
		int status;
		const char *type, *details, *want;
	} rows[] = {
	    {WIRE_CHAT, 404, NULL, NULL,
		"{\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\",\"param\":null,"
		"\"code\":null},"
		"\"detail\":\"m\"}"},
	    {WIRE_MESSAGES, 402, NULL, NULL,
		"{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"m\"},"
		"\"request_id\":\"r\","
		"\"detail\":{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
		"\"message\":\"m\"}}}"},
	    {WIRE_MESSAGES, 400, NULL, "{\"error_code\":\"thread_unsupported_request\"}",
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		"\"m\",\"details\":"
		"{\"error_code\":\"thread_unsupported_request\"}},\"request_id\":\"r\",\"detail\":{"
		"\"type\":"
		"\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"m\"}}}"},
	    {WIRE_MESSAGES, 418, "teapot_error", NULL,
		"{\"type\":\"error\",\"error\":{\"type\":\"teapot_error\",\"message\":\"m\"},"
		"\"request_id\":\"r\","
		"\"detail\":{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
		"\"message\":\"m\"}}}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(4096);
		dialect_error_body(rows[i].wire, rows[i].status, rows[i].type, STR("m"),
		    str_c(rows[i].details), "r", &b);
		cr_expect(str_eq(buf_str(&b), str_c(rows[i].want)), "%s", b.ptr);
		buf_done(&b);
	}
}

/* What a round said goes into the next round's transcript as the model produced it. */
Test(dialect_reply, a_collected_round_is_replayed, .timeout = 10)
{
	struct arena *a = arena_new(16u << 20);
	struct err e;
	struct conversation *c = fix_decode(a, WIRE_MESSAGES,
	    STR("{\"model\":\"m\",\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":"
		"\"q\"}]}"),
	    &e);
	struct turn_collect t;
	struct message *m;
	turn_collect_init(&t, c, 1u << 20);
	static const struct turn_event events[] = {
	    {.type = TURN_BLOCK_START, .kind = BLOCK_REASONING, .raw_wire = WIRE_MESSAGES},
	    {.type = TURN_BLOCK_DELTA, .text = STR_INIT("h")},
	    {.type = TURN_BLOCK_DELTA, .text = STR_INIT("m")},
	    {.type = TURN_BLOCK_DELTA, .field = DELTA_SIGNATURE, .text = STR_INIT("S")},
	    {.type = TURN_BLOCK_STOP, .kind = BLOCK_REASONING},
	    {.type = TURN_BLOCK_START,
		.kind = BLOCK_OPAQUE,
		.raw_wire = WIRE_MESSAGES,
		.raw = STR_INIT("{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}}")},
	    {.type = TURN_BLOCK_DELTA,
		.field = DELTA_RAW,
		.raw =
		    STR_INIT("{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":1}\"}")},
	    {.type = TURN_BLOCK_STOP, .kind = BLOCK_OPAQUE},
	    {.type = TURN_BLOCK_START,
		.kind = BLOCK_CALL,
		.id = STR_INIT("a"),
		.name = STR_INIT("f")},
	    {.type = TURN_BLOCK_DELTA, .text = STR_INIT("{\"x\":18446744073709551615}")},
	    {.type = TURN_BLOCK_STOP, .kind = BLOCK_CALL},
	};
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		turn_collect_event(&t, &events[i]);
	cr_assert_eq(turn_collect_end(&t, &m, &e), ERR_OK);
	cr_expect_eq(c->added_bytes, strlen("hm{'q':1}{'x':18446744073709551615}"));
	turn_collect_done(&t);
	struct buf out = BUF_INIT(1u << 20);
	struct encode_options opt = {.model = STR("m")};
	cr_assert_eq(dialect_messages.encode(c, &opt, &out, &e), ERR_OK);
	cr_expect(str_find(buf_str(&out),
		      STR("{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
			  "\"thinking\":\"hm\","
			  "\"signature\":\"S\"},{\"type\":\"server_tool_use\",\"id\":\"s\","
			  "\"input\":{\"q\":1}},"
			  "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":"
			  "18446744073709551615}}]}")) != SIZE_MAX,
	    "%s", out.ptr);
	turn_collect_init(&t, c, 4);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		turn_collect_event(&t, &events[i]);
	cr_expect_eq(turn_collect_end(&t, &m, &e), ERR_TOOLARGE);
	turn_collect_done(&t);
	buf_done(&out);
	arena_free(&a);
}

static bool
pass_on(void *arg, const struct turn_event *ev)
{
	struct rig *g = arg;
	g->d->reply_event(g->r, ev);
	return true;
}

/* Every allocation fails once: an error or a cut answer, never a crash. */
Test(dialect_reply, memory_may_end_anywhere, .timeout = 60)
{
	static const char request[] = "{\"model\":\"m\",\"max_tokens\":5,\"system\":\"s\",\"stop_"
				      "sequences\":[\"a\"],\"tools\":[{\"name\":\"f\","
				      "\"input_schema\":{}}],\"messages\":[{\"role\":\"user\","
				      "\"content\":[{\"type\":\"text\",\"text\":\"\\u0041\"},"
				      "{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":"
				      "[{\"type\":\"image\",\"source\":{\"type\":\"url\","
				      "\"url\":\"u\"}}]}]}]}";
	static const char answer[] =
	    "{\"id\":\"c1\",\"model\":\"mm\",\"choices\":[{\"index\":0,\"message\":{\"content\":"
	    "\"T\","
	    "\"reasoning_content\":\"R\",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":"
	    "\"f\",\"arguments\":"
	    "\"{}\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7}}";
	for (size_t cap = 0; cap < 16384; cap += 96) {
		for (int i = 0; i < 4; i++) {
			struct rig g = {
			    .a = arena_new(cap), .d = i & 1 ? &dialect_messages : &dialect_chat};
			struct buf body = BUF_INIT(1u << 16);
			struct jval root;
			struct conversation *c = NULL;
			struct err e;
			struct reply_options ro = {.stream = i & 2, .fallback_id = "1"};
			struct encode_options eo = {.model = STR("m")};
			buf_init(&g.out, 1u << 20);
			if (jdoc_parse(g.a, str_c(request), &root, &e) == ERR_OK &&
			    dialect_messages.decode(g.a, str_c(request), root, &c, &e) == ERR_OK)
				(void)!g.d->encode(c, &eo, &body, &e);
			g.r = g.d->reply_new(g.a, &ro, &g.out);
			struct events *ev = dialect_chat.events_new(g.a, pass_on, &g);
			enum err_code rc = dialect_chat.events_whole(ev, str_c(answer), &e);
			if (rc == ERR_OK)
				rc = dialect_chat.events_end(ev, &e);
			g.d->reply_ping(g.r);
			buf_done(&body);
			rig_done(&g);
		}
	}
}
