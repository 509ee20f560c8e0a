/* A custom tool's call on Responses: the free text out of {"input": …}, while it comes. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "tests/unit/dialectfix.h"

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
    {"{\"note\":{\"input\":1},\"input\":\"behind\"}", "behind"},
    {"{\"input\":\"\\ud83d\\ude00\\ud83d\"}", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
};

Test(dialect_custom_call, its_text_streams, .timeout = 20)
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
