/* Random turns, from a fixed seed: what a client accumulates from the stream is what the whole
 * answer says, on every wire, executions in between included. */
#include <criterion/criterion.h>

#include "base/json_write.h"
#include "tests/unit/dialectfix.h"
#include "worker/dialect/live_input.h"

struct random {
	uint64_t state;
};

static uint32_t
next(struct random *r, uint32_t below)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)(r->state >> 11) % below;
}

static struct str
pick(struct random *r, const struct str *list, uint32_t n)
{
	return list[next(r, n)];
}

#define PICK(r, list) pick((r), (list), (uint32_t)ARRAY_LEN(list))

static const struct str texts[] = {STR_INIT("a"), STR_INIT(""), STR_INIT(" "), STR_INIT("\n\n"),
    STR_INIT("\"q\\"), STR_INIT("\xe5\x8c\x97"), STR_INIT("\xf0\x9f\x98\x80 "),
    STR_INIT("data: x\n\n"), STR_INIT("\x01\x7f"), STR_INIT("</script>")};
static const struct str arguments[] = {STR_INIT(""), STR_INIT("  "), STR_INIT("null"),
    STR_INIT("{}"), STR_INIT("{\"a\": \" b \"}"), STR_INIT(" {\"n\":[1,2]}"), STR_INIT("[1]"),
    STR_INIT("nonsense"), STR_INIT("\"s\""), STR_INIT("{\"cut\": \"x"), STR_INIT("{} trailing"),
    STR_INIT("nul")};

struct clients {
	const struct dialect *d;
	struct reply *reply[2]; /* streamed, whole */
};

static void
tell(struct clients *c, const struct turn_event *ev)
{
	for (int i = 0; i < 2; i++)
		c->d->reply_event(c->reply[i], ev);
}

static void
tell_delta(struct clients *c, enum block_kind kind, enum delta_field field, struct str s)
{
	tell(c, &(struct turn_event){
		    .type = TURN_BLOCK_DELTA, .kind = kind, .field = field, .text = s});
}

static void
say_call(struct random *r, struct clients *c, struct str id)
{
	struct str args = PICK(r, arguments);
	tell(c, &(struct turn_event){
		    .type = TURN_BLOCK_START, .kind = BLOCK_CALL, .id = id, .name = STR("f")});
	while (args.len > 0) {
		uint32_t n = 1 + next(r, (uint32_t)args.len);
		tell_delta(c, BLOCK_CALL, DELTA_TEXT, str_sub(args, 0, n));
		args = str_from(args, n);
	}
	tell(c, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = BLOCK_CALL});
}

static void
say_item(struct random *r, struct clients *c)
{
	static const struct str items[] = {
	    STR_INIT("{\"id\":\"ci_1\",\"type\":\"code_interpreter_call\",\"status\":\"completed\","
		     "\"code\":\"1\",\"container_id\":\"cntr_1\",\"outputs\":[]}"),
	    STR_INIT("{\"id\":\"ci_2\",\"type\":\"code_interpreter_call\",\"code\":null,"
		     "\"outputs\":null}"),
	    STR_INIT("{\"id\":\"mcp_1\",\"type\":\"mcp_call\",\"status\":\"failed\","
		     "\"arguments\":\"{}\",\"error\":{\"code\":1},\"output\":null}"),
	    STR_INIT("{\"id\":\"ws_1\",\"type\":\"web_search_call\",\"status\":\"completed\"}"),
	    STR_INIT("{\"id\":\"x_1\",\"type\":\"news_to_come\",\"status\":\"completed\"}"),
	};
	tell(c, &(struct turn_event){.type = TURN_BLOCK_START,
		    .kind = BLOCK_OPAQUE,
		    .raw_wire = WIRE_RESPONSES,
		    .raw = PICK(r, items)});
	tell(c, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = BLOCK_OPAQUE});
}

static void
say_opaque(struct random *r, struct clients *c)
{
	if (next(r, 2)) {
		say_item(r, c);
		return;
	}
	tell(c, &(struct turn_event){.type = TURN_BLOCK_START,
		    .kind = BLOCK_OPAQUE,
		    .raw_wire = WIRE_MESSAGES,
		    .raw = STR("{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\","
			       "\"input\":{}}")});
	if (next(r, 2))
		tell(c,
		    &(struct turn_event){.type = TURN_BLOCK_DELTA,
			.kind = BLOCK_OPAQUE,
			.field = DELTA_RAW,
			.raw_wire = WIRE_MESSAGES,
			.raw = STR(
			    "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":1}\"}")});
	tell(c, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = BLOCK_OPAQUE});
}

static void
say_text(struct random *r, struct clients *c)
{
	static const enum block_kind kinds[] = {BLOCK_TEXT, BLOCK_REASONING, BLOCK_REFUSAL};
	static const struct str ids[] = {STR_INIT(""), STR_INIT("item_1"), STR_INIT("item_2")};
	enum block_kind kind = kinds[next(r, 3)];
	enum wire from = (enum wire)next(r, 3);
	tell(c, &(struct turn_event){.type = TURN_BLOCK_START,
		    .kind = kind,
		    .raw_wire = from,
		    .id = from == WIRE_RESPONSES ? PICK(r, ids) : STR("")});
	for (uint32_t n = next(r, 4); n > 0; n--) {
		tell_delta(c, kind, DELTA_TEXT, PICK(r, texts));
		if (from == WIRE_RESPONSES && kind == BLOCK_REASONING && next(r, 2))
			tell(c, &(struct turn_event){.type = TURN_BLOCK_DELTA,
				    .kind = kind,
				    .raw_wire = from,
				    .text = STR("\n\n"),
				    .raw = next(r, 2) ? STR("\"reasoning_text\"")
						      : STR("\"summary_text\"")});
	}
	if (kind == BLOCK_REASONING && next(r, 2))
		tell_delta(c, kind, next(r, 3) ? DELTA_SIGNATURE : DELTA_ENCRYPTED, STR("SIG"));
	if (kind == BLOCK_TEXT && next(r, 4) == 0)
		tell(c, &(struct turn_event){.type = TURN_ANNOTATION,
			    .kind = kind,
			    .raw_wire = c->d->wire,
			    .raw = STR("{\"type\":\"x\"}")});
	tell(c, &(struct turn_event){.type = TURN_BLOCK_STOP, .kind = kind});
}

/* What a model may write for a call, up to where it is cut, in pieces. Returns the whole input. */
static void
write_input(struct random *r, struct clients *c, struct code_record *rec, struct buf *json,
    struct buf *text)
{
	static const struct str written[] = {STR_INIT("{}"), STR_INIT("{\"code\" : \"\\n\"}"),
	    STR_INIT("{\"command\":\"view\",\"path\":\"a\"}"), STR_INIT("null"),
	    STR_INIT("{\"n\":[1,{\"a\":-2e3}],\"code\":\"\\u00e9\\ud83d\\ude00\xc3\xa9\"}"),
	    STR_INIT("{\"code\":\"a\\ud83d\",\"code\":\"b\"}"), STR_INIT("print(1)")};
	struct live_input live;
	struct str rest = PICK(r, written);
	if (next(r, 3) == 0)
		rest = str_sub(rest, 0, next(r, (uint32_t)rest.len));
	live_input_init(&live, STR("code"), 1024);
	for (;;) {
		size_t had = json->len, known = text->len;
		bool is_last = rest.len == 0;
		if (is_last) {
			(void)live_input_end(&live, json);
		} else {
			struct str piece = str_sub(rest, 0, 1 + next(r, 8));
			live_input_feed(&live, piece, json, text);
			rest = str_from(rest, piece.len);
		}
		for (int i = 0; i < 2; i++)
			c->d->reply_code_input(c->reply[i], str_from(buf_str(json), had),
			    str_from(buf_str(text), known));
		if (is_last)
			break;
	}
	rec->input_raw = buf_str(json);
	rec->code = buf_str(text);
}

static void
show_code(struct random *r, struct clients *c)
{
	static struct str files[] = {STR_INIT("file-1")};
	struct buf json = BUF_INIT(4096), text = BUF_INIT(4096);
	struct code_record rec = {.id = STR("otari_srvtoolu_1"),
	    .tool = (enum code_tool)next(r, CODE_TOOL_COUNT),
	    .ran = next(r, 2),
	    .out = PICK(r, texts),
	    .err = PICK(r, texts),
	    .edit = {.answer = (enum edit_answer)next(r, 3), .is_directory = next(r, 2)},
	    .file_ids = files,
	    .file_names = files,
	    .file_count = next(r, 2)};
	bool in_steps = next(r, 2);
	for (int i = 0; i < 2 && in_steps; i++)
		c->d->reply_code_begin(c->reply[i], &rec);
	write_input(r, c, &rec, &json, &text);
	for (int i = 0; i < 2 && in_steps; i++)
		c->d->reply_code_run(c->reply[i], &rec);
	c->d->reply_ping(c->reply[0]);
	for (int i = 0; i < 2; i++)
		c->d->reply_code(c->reply[i], &rec);
	buf_done(&json);
	buf_done(&text);
}

static void
say_turn(struct random *r, struct clients *c, struct arena *a)
{
	struct token_usage u = {next(r, 100), next(r, 100), next(r, 3), -1, next(r, 2), {NULL, 0}};
	tell(c,
	    &(struct turn_event){
		.type = TURN_START, .id = STR("x"), .name = STR("m"), .usage = TOKEN_USAGE_NONE});
	for (uint32_t n = next(r, 7); n > 0; n--) {
		switch (next(r, 6)) {
		case 0:
			say_call(r, c, arena_printf(a, "call_%u", n));
			break;
		case 1:
			say_opaque(r, c);
			break;
		case 2:
			show_code(r, c);
			break;
		default:
			say_text(r, c);
		}
		if (next(r, 4) == 0)
			c->d->reply_ping(c->reply[0]);
	}
	tell(
	    c, &(struct turn_event){.type = TURN_FINISH, .reason = (enum finish_reason)next(r, 9)});
	tell(c, &(struct turn_event){.type = TURN_USAGE, .usage = u});
	tell(c, &(struct turn_event){.type = TURN_END});
}

Test(dialect_random, streams_and_whole_answers_say_the_same, .timeout = 60)
{
	struct random r = {0x9e3779b97f4a7c15u};
	for (int round = 0; round < 1500; round++) {
		struct arena *a = arena_new(32u << 20);
		struct buf out[2] = {BUF_INIT(1u << 20), BUF_INIT(1u << 20)};
		struct clients c = {.d = dialect_of((enum wire)(round % 3))};
		for (int i = 0; i < 2; i++) {
			struct reply_options opt = {.stream = i == 0,
			    .include_usage = true,
			    .fallback_id = "1",
			    .native_code = true};
			c.reply[i] = c.d->reply_new(a, &opt, &out[i]);
		}
		say_turn(&r, &c, a);
		struct str acc = fix_accumulate(a, c.d->wire, buf_str(&out[0]));
		cr_assert(fix_json_eq(acc, buf_str(&out[1])), "round %d:\n%s\n%s\n%s", round,
		    out[0].ptr, acc.ptr, out[1].ptr);
		buf_done(&out[0]);
		buf_done(&out[1]);
		arena_free(&a);
	}
}
