/* A call's arguments while they come: what goes out at once is what the whole would say. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/json.h"
#include "worker/dialect/live_input.h"

#define MAX (1u << 20)

static const struct {
	const char *in, *json, *code;
	bool is_whole;
} rows[] = {
    {"{\"code\":\"print(1)\\n\"}", "{\"code\":\"print(1)\\n\"}", "print(1)\n", true},
    {" { \"code\" :\t\"a\" ,\r\n \"n\" : [ 1 , -2.5e+3 , true , null , { } , [ ] ] } ",
	"{\"code\":\"a\",\"n\":[1,-2.5e+3,true,null,{},[]]}", "a", true},
    {"{\"code\":\"\\u00e9\\uD83D\\uDE00\\\"\\\\\\/\\b\\f\\r\\t\"}",
	"{\"code\":\"\\u00e9\\uD83D\\uDE00\\\"\\\\\\/\\b\\f\\r\\t\"}",
	"\xc3\xa9\xf0\x9f\x98\x80\"\\/\b\f\r\t", true},
    {"{\"code\":\"\xc3\xa9\xe5\x8c\x97\xf0\x9f\x98\x80\"}",
	"{\"code\":\"\xc3\xa9\xe5\x8c\x97\xf0\x9f\x98\x80\"}",
	"\xc3\xa9\xe5\x8c\x97\xf0\x9f\x98\x80", true},
    {"{}", "{}", "", true},
    {"{\"x\":{\"code\":\"no\"},\"c\\u006fde\":\"yes\"}",
	"{\"x\":{\"code\":\"no\"},\"c\\u006fde\":\"yes\"}", "yes", true},
    {"{\"code\":7}", "{\"code\":7}", "", true},
    {"{\"code\":[\"a\"]}", "{\"code\":[\"a\"]}", "", true},
    /* lone halves: strict readers would refuse what lenient ones take */
    {"{\"code\":\"\\ud83d\"}", "{\"code\":\"\\ufffd\"}", "\xef\xbf\xbd", true},
    {"{\"code\":\"\\ude00\\ud83d\\ud83d\\ude00\\ud83dx\\ud83d\\n\xc3\xa9\\ud83d\\u0041\"}",
	"{\"code\":\"\\ufffd\\ufffd\\ud83d\\ude00\\ufffdx\\ufffd\\n\xc3\xa9\\ufffd\\u0041\"}",
	"\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbdx\xef\xbf\xbd\n\xc3\xa9\xef\xbf\xbd"
	"A",
	true},
    /* cut */
    {"", "{}", "", false},
    {"  ", "{}", "", false},
    {"{", "{}", "", false},
    {"{\"co", "{}", "", false},
    {"{\"code\"", "{}", "", false},
    {"{\"code\": ", "{}", "", false},
    {"{\"code\":\"", "{\"code\":\"\"}", "", false},
    {"{\"code\":\"for i\\", "{\"code\":\"for i\"}", "for i", false},
    {"{\"code\":\"for i\\u00", "{\"code\":\"for i\"}", "for i", false},
    {"{\"code\":\"for i\\ud83d", "{\"code\":\"for i\"}", "for i", false},
    {"{\"code\":\"for i\\ud83d\\u", "{\"code\":\"for i\"}", "for i", false},
    {"{\"code\":\"for i\xe5\x8c", "{\"code\":\"for i\"}", "for i", false},
    {"{\"code\":\"a\"", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":12", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":tru", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":[1,2", "{\"code\":\"a\",\"n\":[1]}", "a", false},
    {"{\"code\":\"a\",\"n\":[{\"b\":[", "{\"code\":\"a\",\"n\":[{\"b\":[]}]}", "a", false},
    /* not JSON */
    {"null", "{}", "", false},
    {"[1]", "{}", "", false},
    {"print(1)", "{}", "", false},
    {"{\"code\":\"a\nb\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\\x\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\\u12G4\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\xff\xff\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\xed\xa0\x80\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\xc3\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\"} x", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\"}{}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\"]", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":[1,]}", "{\"code\":\"a\",\"n\":[1]}", "a", false},
    {"{\"code\":\"a\",\"n\":01}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":1.}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":-}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":1e}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"n\":truer}", "{\"code\":\"a\",\"n\":true}", "a", false},
    {"{\"code\":\"a\",\"n\":nil}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\" \"a\"}", "{}", "", false},
    {"{code:\"a\"}", "{}", "", false},
    /* which of the two would run? */
    {"{\"code\":\"a\",\"code\":\"b\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"code\":\"a\",\"c\\u006fde\":\"b\"}", "{\"code\":\"a\"}", "a", false},
    {"{\"n\":1,\"n\":2}", "{\"n\":1}", "", false},
};

/* The pieces of `in` end at every multiple of `step` behind `first`. */
static bool
say(struct str in, size_t first, size_t step, struct buf *json, struct buf *text)
{
	struct live_input live;
	live_input_init(&live, STR("code"), MAX);
	live_input_feed(&live, str_sub(in, 0, first), json, text);
	for (size_t at = first; at < in.len; at += step)
		live_input_feed(&live, str_sub(in, at, step), json, text);
	return live_input_end(&live, json);
}

Test(dialect_live_input, any_borders_give_the_same, .timeout = 20)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str in = str_c(rows[i].in);
		for (size_t first = 0; first <= in.len; first++)
			for (size_t step = 1; step <= in.len + 1; step += in.len > 0 ? in.len : 2) {
				struct buf json = BUF_INIT(MAX), text = BUF_INIT(MAX);
				bool is_whole = say(in, first, step, &json, &text);
				cr_expect_eq(is_whole, rows[i].is_whole, "%s", rows[i].in);
				cr_expect(str_eq(buf_str(&json), str_c(rows[i].json)),
				    "%s at %zu: %.*s", rows[i].in, first, STR_FMT(buf_str(&json)));
				cr_expect(str_eq(buf_str(&text), str_c(rows[i].code)),
				    "%s at %zu: %.*s", rows[i].in, first, STR_FMT(buf_str(&text)));
				buf_done(&json);
				buf_done(&text);
			}
	}
}

/* Wherever the model is cut, what is out so far can be closed, and says no more than the whole. */
Test(dialect_live_input, every_cut_closes, .timeout = 20)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t cut = 0; cut <= strlen(rows[i].in); cut++) {
			struct arena *a = arena_new(MAX);
			struct buf json = BUF_INIT(MAX), text = BUF_INIT(MAX);
			struct jval v;
			(void)say(str_n(rows[i].in, cut), cut, 1, &json, &text);
			cr_assert_eq(jdoc_parse(a, buf_str(&json), &v, NULL), ERR_OK, "%.*s",
			    STR_FMT(buf_str(&json)));
			cr_expect(jv_is(v, JT_OBJECT));
			cr_expect(str_starts(str_c(rows[i].code), buf_str(&text)));
			struct str code = jv_str(a, jv_get(v, "code"));
			cr_expect(str_eq(code.ptr != NULL ? code : STR(""), buf_str(&text)),
			    "%s cut at %zu", rows[i].in, cut);
			buf_done(&json);
			buf_done(&text);
			arena_free(&a);
		}
}

/* A reader is not made to wait: what is certain is out before the rest comes. */
Test(dialect_live_input, nothing_certain_is_held_back, .timeout = 10)
{
	static const struct {
		const char *piece, *json;
	} steps[] = {{"{\"code\":", "{"}, {" \"pri", "{\"code\":\"pri"},
	    {"nt", "{\"code\":\"print"}, {"\\", "{\"code\":\"print"},
	    {"n\xc3", "{\"code\":\"print\\n"}, {"\xa9", "{\"code\":\"print\\n\xc3\xa9"},
	    {"\",\"n\":4", "{\"code\":\"print\\n\xc3\xa9\""},
	    {"2}", "{\"code\":\"print\\n\xc3\xa9\",\"n\":42}"}};
	struct live_input live;
	struct buf json = BUF_INIT(MAX), text = BUF_INIT(MAX);
	live_input_init(&live, STR("code"), MAX);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		live_input_feed(&live, str_c(steps[i].piece), &json, &text);
		cr_expect(str_eq(buf_str(&json), str_c(steps[i].json)), "%zu: %.*s", i,
		    STR_FMT(buf_str(&json)));
	}
	cr_expect(live_input_end(&live, &json));
	buf_done(&json);
	buf_done(&text);
}

static void
expect_stop(struct str in, size_t max, const char *want)
{
	struct live_input live;
	struct buf json = BUF_INIT(MAX), text = BUF_INIT(MAX);
	live_input_init(&live, STR("code"), max);
	live_input_feed(&live, in, &json, &text);
	cr_expect_not(live_input_end(&live, &json));
	cr_expect(str_eq(buf_str(&json), str_c(want)), "%.*s", STR_FMT(buf_str(&json)));
	buf_done(&json);
	buf_done(&text);
}

Test(dialect_live_input, what_is_too_much_stops_it, .timeout = 10)
{
	struct buf b = BUF_INIT(MAX);
	expect_stop(STR("{\"code\":\"abc\"}"), 11, "{\"code\":\"ab\"}");
	/* a name of 65 bytes */
	buf_printf(&b, "{\"code\":\"a\",\"%065d\":1}", 0);
	expect_stop(buf_str(&b), MAX, "{\"code\":\"a\"}");
	/* … that is longer as it is written */
	buf_clear(&b);
	buf_add(&b, STR("{\"code\":\"a\",\"x\":{\""));
	for (int i = 0; i < 100; i++)
		buf_add(&b, STR("\\u0061"));
	buf_add(&b, STR("\":1}}"));
	expect_stop(buf_str(&b), MAX, "{\"code\":\"a\",\"x\":{}}");
	buf_clear(&b);
	buf_printf(&b, "{\"code\":\"a\",\"x\":1%0600d}", 0);
	expect_stop(buf_str(&b), MAX, "{\"code\":\"a\"}");
	buf_clear(&b);
	buf_addc(&b, '{');
	for (unsigned i = 0; i < LIVE_INPUT_NAMES; i++)
		buf_printf(&b, "%s\"m%u\":1", i > 0 ? "," : "", i);
	struct buf full = BUF_INIT(MAX);
	buf_add(&full, buf_str(&b));
	buf_addc(&full, '}');
	buf_add(&b, STR(",\"one more\":1}"));
	expect_stop(buf_str(&b), MAX, full.ptr);
	buf_done(&full);
	buf_clear(&b);
	buf_add(&b, STR("{\"x\":"));
	for (int i = 0; i < 40; i++)
		buf_addc(&b, '[');
	expect_stop(buf_str(&b), MAX,
	    "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}");
	buf_done(&b);
}
