/* Executions that are shown in steps, while the model writes them and while they run. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/json.h"
#include "tests/unit/dialectfix.h"

struct rig {
	struct arena *a;
	const struct dialect *d;
	struct buf out;
	struct reply *r;
};

static void
rig_start(struct rig *g, enum wire w, bool stream)
{
	struct reply_options opt = {.stream = stream,
	    .native_code = w != WIRE_CHAT,
	    .fallback_id = "0123",
	    .created_s = 17};
	g->a = arena_new(64u << 20);
	g->d = dialect_of(w);
	buf_init(&g->out, 16u << 20);
	g->r = g->d->reply_new(g->a, &opt, &g->out);
	g->d->reply_event(
	    g->r, &(struct turn_event){
		      .type = TURN_START, .name = STR("prov"), .usage = TOKEN_USAGE_NONE});
}

static void
rig_done(struct rig *g)
{
	buf_done(&g->out);
	arena_free(&g->a);
}

static void
say_block(struct rig *g, enum block_kind kind, const char *id, const char *name, const char *text)
{
	struct turn_event ev = {
	    .type = TURN_BLOCK_START, .kind = kind, .id = str_c(id), .name = str_c(name)};
	g->d->reply_event(g->r, &ev);
	ev.type = TURN_BLOCK_DELTA;
	ev.text = str_c(text);
	g->d->reply_event(g->r, &ev);
	ev.type = TURN_BLOCK_STOP;
	g->d->reply_event(g->r, &ev);
}

static void
say_end(struct rig *g)
{
	g->d->reply_event(g->r, &(struct turn_event){.type = TURN_FINISH, .reason = FINISH_STOP});
	g->d->reply_event(g->r, &(struct turn_event){.type = TURN_END});
}

static struct code_record
record(const struct rig *g)
{
	bool is_messages = g->d->wire == WIRE_MESSAGES;
	return (struct code_record){.id = is_messages ? STR("otari_srvtoolu_1") : STR("otari_ci_1"),
	    .container_id = STR("otari_cntr_1"),
	    .input_raw = STR("{\"code\":\"print(1)\\n\"}"),
	    .code = STR("print(1)\n"),
	    .ran = true,
	    .out = STR("1\n"),
	    .err = STR("")};
}

/* From the first event of the execution on, without the answer's head. */
static void
expect(const struct rig *g, const char *first, const char *want)
{
	struct str all = buf_str(&g->out);
	size_t at = str_find(all, str_c(first));
	cr_assert(at != SIZE_MAX);
	cr_expect(str_eq(str_from(all, at), str_c(want)), "got:\n%.*s\nwanted:\n%s",
	    STR_FMT(str_from(all, at)), want);
}

#define EV(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define JSON_DELTA(text)                                                                           \
	EV("content_block_delta",                                                                  \
	    ",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" text       \
	    "\"}")

Test(dialect_live_code, messages_in_steps, .timeout = 10)
{
	struct rig g;
	rig_start(&g, WIRE_MESSAGES, true);
	struct code_record rec = record(&g);
	g.d->reply_code_begin(g.r, &rec);
	g.d->reply_code_input(g.r, STR("{"), STR(""));
	g.d->reply_code_input(g.r, STR(""), STR(""));
	g.d->reply_code_input(g.r, STR("\"code\":\"print(1)"), STR("print(1)"));
	g.d->reply_ping(g.r);
	g.d->reply_code_input(g.r, STR("\\n\"}"), STR("\n"));
	g.d->reply_code_run(g.r, &rec);
	g.d->reply_ping(g.r);
	g.d->reply_code(g.r, &rec);
	expect(&g, "event: content_block_start",
	    EV("content_block_start",
		",\"index\":0,\"content_block\":{\"type\":\"server_tool_use\",\"id\":"
		"\"otari_srvtoolu_1\",\"name\":\"code_execution\",\"input\":{}}") JSON_DELTA("{")
		JSON_DELTA("\\\"code\\\":\\\"print(1)") EV("ping", "") JSON_DELTA("\\\\n\\\"}") EV(
		    "content_block_stop", ",\"index\":0") EV("ping", "") EV("content_block_start",
		    ",\"index\":1,\"content_block\":{\"type\":\"code_execution_tool_"
		    "result\",\"tool_use_id\":\"otari_srvtoolu_1\",\"content\":{\"type\":"
		    "\"code_execution_result\",\"stdout\":\"1\\n\",\"stderr\":\"\","
		    "\"return_code\":0,\"content\":[]}}") EV("content_block_stop", ",\"index\":1"));
	rig_done(&g);
}

#define RE(number, name, rest)                                                                     \
	"event: response." name "\ndata: {\"type\":\"response." name                               \
	"\",\"sequence_number\":" number rest "}\n\n"
#define ITEM ",\"item_id\":\"otari_ci_1\",\"output_index\":0"
#define CI(status, code, outputs)                                                                  \
	"{\"id\":\"otari_ci_1\",\"type\":\"code_interpreter_call\",\"status\":\"" status           \
	"\",\"code\":\"" code "\",\"container_id\":\"otari_cntr_1\",\"outputs\":" outputs "}"

Test(dialect_live_code, responses_in_steps, .timeout = 10)
{
	struct rig g;
	rig_start(&g, WIRE_RESPONSES, true);
	struct code_record rec = record(&g);
	g.d->reply_code_begin(g.r, &rec);
	g.d->reply_code_input(g.r, STR("{\"code\":\""), STR(""));
	g.d->reply_code_input(g.r, STR("print(1)"), STR("print(1)"));
	g.d->reply_code_input(g.r, STR("\\n\"}"), STR("\n"));
	g.d->reply_code_run(g.r, &rec);
	g.d->reply_ping(g.r);
	g.d->reply_code(g.r, &rec);
	expect(&g, "event: response.output_item.added",
	    RE("2", "output_item.added",
		",\"output_index\":0,\"item\":" CI("in_progress", "", "null"))
		RE("3", "code_interpreter_call.in_progress", ITEM)
		    RE("4", "code_interpreter_call_code.delta", ITEM ",\"delta\":\"print(1)\"") RE(
			"5", "code_interpreter_call_code.delta", ITEM ",\"delta\":\"\\n\"")
			RE("6", "code_interpreter_call_code.done", ITEM ",\"code\":\"print(1)\\n\"")
			    RE("7", "code_interpreter_call.interpreting", ITEM) ": ping\n\n" RE("8",
				"code_interpreter_call.completed", ITEM) RE("9", "output_item.done",
				",\"output_index\":0,\"item\":" CI("completed", "print(1)\\n",
				    "[{\"type\":\"logs\",\"logs\":\"1\\n\"}]")));
	rig_done(&g);
}

static void
say_answer(struct rig *g, unsigned steps, bool ran)
{
	struct code_record rec = record(g);
	rec.ran = ran;
	rec.out = ran ? rec.out : STR("");
	rec.error_code = ran ? STR("") : STR("invalid_tool_input");
	say_block(g, BLOCK_TEXT, "", "", "Let me see.");
	if (steps > 0)
		g->d->reply_code_begin(g->r, &rec);
	if (steps > 1) {
		g->d->reply_code_input(g->r, STR("{\"code\":\"print"), STR("print"));
		g->d->reply_code_input(g->r, STR("(1)\\n\"}"), STR("(1)\n"));
	}
	if (steps > 2)
		g->d->reply_code_run(g->r, &rec);
	g->d->reply_code(g->r, &rec);
	rec.id = STR("otari_other_2");
	g->d->reply_code(g->r, &rec);
	say_block(g, BLOCK_CALL, "toolu_1", "get_time", "{\"zone\":\"UTC\"}");
	say_end(g);
}

/* What a client's accumulator ends with is the whole answer, also when nothing was shown before. */
Test(dialect_live_code, the_stream_ends_as_the_whole, .timeout = 10)
{
	static const enum wire wires[] = {WIRE_MESSAGES, WIRE_RESPONSES};
	static const unsigned steps[] = {0, 2, 3};
	for (size_t i = 0; i < ARRAY_LEN(wires) * ARRAY_LEN(steps) * 2; i++) {
		struct rig stream, whole;
		enum wire w = wires[i % 2];
		rig_start(&stream, w, true);
		rig_start(&whole, w, false);
		say_answer(&stream, steps[i / 4], i / 2 % 2);
		say_answer(&whole, 0, i / 2 % 2);
		struct str got = fix_accumulate(stream.a, w, buf_str(&stream.out));
		cr_expect(fix_json_eq(got, buf_str(&whole.out)), "%zu: %.*s\nand %.*s", i,
		    STR_FMT(got), STR_FMT(buf_str(&whole.out)));
		rig_done(&stream);
		rig_done(&whole);
	}
}

/* Programs and outputs without end do not make an answer without end. */
Test(dialect_live_code, a_list_of_executions_is_bounded, .timeout = 20)
{
	struct rig g;
	struct buf large = BUF_INIT(1u << 20);
	struct jval v;
	for (int i = 0; i < 256 * 1024; i++)
		buf_addc(&large, 'x');
	rig_start(&g, WIRE_CHAT, false);
	struct code_record rec = record(&g);
	rec.out = rec.err = buf_str(&large);
	rec.ran = false;
	for (int i = 0; i < 256; i++)
		g.d->reply_code(g.r, &rec);
	say_end(&g);
	cr_expect_lt(g.out.len, 9u << 20);
	cr_assert_eq(jdoc_parse(g.a, buf_str(&g.out), &v, NULL), ERR_OK);
	struct jval list =
	    jv_get(jv_get(jv_at(jv_get(v, "choices"), 0), "message"), "otari_code_executions");
	cr_assert_eq(jv_count(list), 256);
	cr_expect_not(jv_present(jv_get(jv_at(list, 0), "truncated")));
	cr_expect(jv_bool(jv_get(jv_at(list, 255), "truncated"), false));
	cr_expect(jv_str_is(jv_get(jv_at(list, 255), "error_code"), "unavailable"));
	buf_done(&large);
	rig_done(&g);
}

/* Chat has one text: what the model says of a result stands apart from what it said before. */
Test(dialect_live_code, a_blank_line_stands_for_an_execution_on_chat, .timeout = 10)
{
	for (int stream = 0; stream < 2; stream++) {
		struct rig g;
		rig_start(&g, WIRE_CHAT, stream == 1);
		struct code_record rec = record(&g);
		g.d->reply_code(g.r, &rec);
		say_block(&g, BLOCK_TEXT, "", "", "First.");
		say_block(&g, BLOCK_TEXT, "", "", "Still.");
		g.d->reply_code(g.r, &rec);
		g.d->reply_code(g.r, &rec);
		say_block(&g, BLOCK_REASONING, "", "", "hm");
		say_block(&g, BLOCK_TEXT, "", "", "Second.");
		g.d->reply_code(g.r, &rec);
		say_block(&g, BLOCK_TEXT, "", "", "\nThird.");
		g.d->reply_code(g.r, &rec);
		say_end(&g);
		struct str whole =
		    stream ? fix_accumulate(g.a, WIRE_CHAT, buf_str(&g.out)) : buf_str(&g.out);
		struct jval root;
		cr_assert_eq(jdoc_parse(g.a, whole, &root, NULL), ERR_OK);
		struct jval message = jv_get(jv_at(jv_get(root, "choices"), 0), "message");
		cr_expect(jv_str_is(jv_get(message, "content"), "First.Still.\n\nSecond.\nThird."),
		    "%.*s", STR_FMT(whole));
		rig_done(&g);
	}
}
