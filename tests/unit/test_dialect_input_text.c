/* A custom tool's free text while it comes. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "tests/unit/dialectfix.h"
#include "worker/dialect/input_text.h"

static const struct {
	const char *json, *text;
} rows[] = {
    {"{\"input\":\"SELECT 1\"}", "SELECT 1"},
    {" { \"input\" : \"a\\n\\t\\\"\\\\\\/\\b\\f\\r\" } ", "a\n\t\"\\/\b\f\r"},
    {"{\"input\":\"\\u00e9\\u5317\\uD83D\\uDE00\\u0041\"}", "\xc3\xa9\xe5\x8c\x97\xf0\x9f\x98\x80"
							    "A"},
    {"{\"input\":\"\\ud83d\"}", "\xef\xbf\xbd"},
    {"{\"input\":\"\\ud83dx\\ude00\\ud83d\\n\\ud83d\\ud83d\\ude00\"}",
	"\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd\n\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"{\"input\":\"\xe5\x8c\x97\"}", "\xe5\x8c\x97"},
    {"{\"input\":\"\"}", ""},
    {"{\"input\":\"a\",\"more\":1}", "a"},
    {"{\"input\":\"cut \\u00", "cut "},
    {"{\"input\":\"cut \\ud83d", "cut "},
    {"{\"inputs\":\"a\"}", ""},
    {"{\"in\":\"a\"}", ""},
    {"{\"input\":7}", ""},
    {"[\"input\"]", ""},
    {"free text", ""},
    {"{\"input\":\"a\\x\"}", "a"},
    {"{\"input\":\"a\\u12G4\"}", "a"},
    {"", ""},
};

Test(dialect_input_text, every_piece_gives_what_is_certain, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i].json) + 1; step++) {
			struct input_text t = {.state = INPUT_START};
			struct buf out = BUF_INIT(1024);
			struct str json = str_c(rows[i].json);
			for (size_t at = 0; at < json.len; at += step) {
				size_t had = out.len;
				input_text_feed(&t, str_sub(json, at, step), &out);
				cr_assert(out.len >= had);
			}
			cr_expect(str_eq(buf_str(&out), str_c(rows[i].text)), "%s by %zu: %.*s",
			    rows[i].json, step, STR_FMT(buf_str(&out)));
			buf_done(&out);
		}
}

/* {arguments, the whole input} */
static const struct {
	const char *json, *input;
} calls[] = {
    {"{\"input\":\"SELECT\\n\\u00e91\"}", "SELECT\n\xc3\xa9"
					  "1"},
    {"{\"query\":\"x\"}", "{\"query\":\"x\"}"},
    {"plain", "plain"},
    {"{\"input\":\"cut in ha", "cut in ha"},
    {"{\"input\":7}", "{\"input\":7}"},
    {"{\"input\":\"a\",\"input\":\"b\"}", "a"},
};

Test(dialect_input_text, a_custom_call_streams, .timeout = 20)
{
	static const char request[] =
	    "{\"model\":\"m\",\"input\":\"q\",\"tools\":[{\"type\":\"custom\","
	    "\"name\":\"sql\"}]}";
	struct arena *a = arena_new(64u << 20);
	struct conversation *c = fix_decode(a, WIRE_RESPONSES, str_c(request), NULL);
	cr_assert(c != NULL);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		for (size_t step = 1; step < 9; step += 3) {
			struct buf out = BUF_INIT(1u << 20);
			struct reply_options opt = {
			    .stream = true, .fallback_id = "1", .request = c};
			struct reply *r = dialect_responses.reply_new(a, &opt, &out);
			struct turn_event ev = {.type = TURN_BLOCK_START,
			    .kind = BLOCK_CALL,
			    .id = STR("c1"),
			    .name = STR("sql")};
			struct str json = str_c(calls[i].json);
			dialect_responses.reply_event(r, &ev);
			ev.type = TURN_BLOCK_DELTA;
			for (size_t at = 0; at < json.len; at += step) {
				ev.text = str_sub(json, at, step);
				dialect_responses.reply_event(r, &ev);
			}
			ev.type = TURN_BLOCK_STOP;
			dialect_responses.reply_event(r, &ev);
			ev.type = TURN_END;
			dialect_responses.reply_event(r, &ev);
			struct jval v;
			struct str acc = fix_accumulate(a, WIRE_RESPONSES, buf_str(&out));
			cr_assert_eq(jdoc_parse(a, acc, &v, NULL), ERR_OK);
			struct jval item = jv_at(jv_get(v, "output"), 0);
			cr_expect(jv_str_is(jv_get(item, "type"), "custom_tool_call"));
			cr_expect(jv_str_is(jv_get(item, "input"), calls[i].input), "%s: %.*s",
			    calls[i].json, STR_FMT(jv_raw(jv_get(item, "input"))));
			if (i == 0 && step == 1)
				cr_expect(
				    str_find(buf_str(&out), STR("\"delta\":\"S\"")) != SIZE_MAX);
			buf_done(&out);
		}
	arena_free(&a);
}
