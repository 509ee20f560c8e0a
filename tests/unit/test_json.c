#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

static struct arena *
arena(void)
{
	return arena_new(64u << 20);
}

static bool
parses(struct str text, struct err *e)
{
	struct arena *a = arena();
	struct jval v;
	bool ok = jdoc_parse(a, text, &v, e) == ERR_OK;
	arena_free(&a);
	return ok;
}

static const char *const valid[] = {"0", "-0", "1", "10", "-1.5", "1e5", "1E+5", "1e-5", "0.5e0",
    "18446744073709551615", "1e400", "-123456789012345678901234567890.5", "\"\"", "\"a\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0000\"", "\"\\ud800\"", "\"\\udc00\\ud800\"",
    "\"\\uD83D\\uDE00\"", "\"\\ud83dx\"", "\"\x7f\"", "\"\xe2\x80\xa8\"", "\"\xf0\x9f\x98\x80\"",
    "\"\xf4\x8f\xbf\xbf\"", "\"\xef\xbf\xbf\"", "true", "false", "null", "[]", "{}", " [ ] ",
    "\t{\r\n}\n", "[1,2]", "[[],{}]", "{\"a\":1}", "{\"a\":1,\"a\":2}", "{\"\":{}}",
    "{\"a\" : [ 1 , { \"b\" : null } ] }", "\"12345678901234567890123456789012\xc3\xa9\"",
    "[\"1234567\\u00e9\",\"12345678\"]"};

static const struct {
	const char *name, *text;
} invalid[] = {{"empty", ""}, {"space only", " \n"}, {"two values", "1 2"}, {"leading zero", "01"},
    {"plus", "+1"}, {"lone minus", "-"}, {"minus letter", "-a"}, {"dot first", ".5"},
    {"dot last", "1."}, {"exponent empty", "1e"}, {"exponent sign", "1e+"}, {"hex", "0x10"},
    {"NaN", "NaN"}, {"Infinity", "Infinity"}, {"True", "True"}, {"cut literal", "tru"},
    {"long literal", "truex"}, {"open string", "\"abc"}, {"newline in string", "\"a\nb\""},
    {"tab in string", "\"a\tb\""}, {"control after eight", "\"12345678\x01\""},
    {"bad escape", "\"\\x\""}, {"bad hex", "\"\\u12g4\""}, {"cut hex", "\"\\u12\""},
    {"cut escape", "\"\\"}, {"single quotes", "'a'"}, {"stray continuation", "\"\x80\""},
    {"overlong", "\"\xc0\x80\""}, {"overlong three", "\"\xe0\x80\x80\""},
    {"encoded surrogate", "\"\xed\xa0\x80\""}, {"over U+10FFFF", "\"\xf4\x90\x80\x80\""},
    {"cut sequence", "\"\xe2\x82\""}, {"sequence cut by end", "\"\xf0\x9f\x98"}, {"fe", "\"\xfe\""},
    {"open array", "["}, {"array comma", "[1,]"}, {"array lone comma", "[,]"},
    {"array colon", "[1:2]"}, {"array missing comma", "[1 2]"}, {"wrong close", "[1}"},
    {"wrong close object", "{\"a\":1]"}, {"stray close", "]"}, {"open object", "{"},
    {"object comma", "{\"a\":1,}"}, {"number key", "{1:2}"}, {"no colon", "{\"a\" 1}"},
    {"no value", "{\"a\":}"}, {"key only", "{\"a\"}"}, {"comment", "[1/*x*/]"},
    {"byte-order mark", "\xef\xbb\xbf[]"}, {"form feed", "\f[]"},
    {"non-breaking space", "\xc2\xa0[]"}, {"trailing bytes", "{}x"}};

Test(json, accepts_what_rfc_8259_accepts, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(valid); i++) {
		struct err e = {0};
		cr_expect(parses(str_c(valid[i]), &e), "%s: %s", valid[i], e.msg);
	}
}

Test(json, refuses_what_rfc_8259_refuses_and_names_the_byte, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(invalid); i++) {
		struct err e = {0};
		cr_expect(!parses(str_c(invalid[i].text), &e), "%s was accepted", invalid[i].name);
		cr_expect(strstr(e.msg, "at byte ") != NULL, "%s: %s", invalid[i].name, e.msg);
		cr_expect_eq(e.code, ERR_INPUT, "%s", invalid[i].name);
	}
	cr_expect(!parses(STR("\"a\0b\""), NULL), "raw NUL");
	cr_expect(!parses(STR("[1]\0"), NULL), "NUL behind the value");
}

Test(json, never_reads_behind_a_cut_text, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(valid); i++)
		for (size_t n = 0; n <= strlen(valid[i]); n++) {
			char *exact = mem_strndup(valid[i], n); /* the sanitizer watches the end */
			char *tight = mem_alloc(n + 1);
			memcpy(tight, exact, n);
			(void)parses(str_n(tight, n), NULL);
			mem_free(tight);
			mem_free(exact);
		}
}

Test(json, depth_is_limited, .timeout = 10)
{
	char text[2 * LIMIT_JSON_DEPTH + 8];
	for (unsigned extra = 0; extra < 2; extra++) {
		size_t n = LIMIT_JSON_DEPTH + extra;
		memset(text, '[', n);
		memset(text + n, ']', n);
		cr_expect_eq(parses(str_n(text, 2 * n), NULL), extra == 0, "depth %zu", n);
	}
}

Test(json, token_count_and_memory_are_limited, .timeout = 20)
{
	size_t n = 2u * LIMIT_JSON_TOKENS + 3;
	char *text = mem_alloc(n);
	text[0] = '[';
	for (size_t i = 1; i < n - 1; i++)
		text[i] = i % 2 != 0 ? '1' : ',';
	text[n - 1] = ']';
	struct arena *a = arena_new(256u << 20);
	struct jval v;
	struct err e;
	cr_expect_eq(jdoc_parse(a, str_n(text, n), &v, &e), ERR_INPUT, "one token over");
	arena_free(&a);
	a = arena_new(1u << 20);
	cr_expect_eq(jdoc_parse(a, str_n(text, n), &v, &e), ERR_NOMEM, "over the arena");
	arena_free(&a);
	mem_free(text);
}

Test(json, look_ups_walk_paths_without_checks, .timeout = 10)
{
	struct arena *a = arena();
	struct jval v;
	cr_assert_eq(jdoc_parse(a,
			 STR("{\"a\":{\"b\":[1,{\"c\":\"x\\u00e9\"},[2,3]],\"n\":null},"
			     "\"a\\u0062\":7,\"dup\":1,\"dup\":2}"),
			 &v, NULL),
	    ERR_OK);
	struct jval b = jv_get(jv_get(v, "a"), "b");
	cr_expect_eq(jv_count(b), 3);
	cr_expect_eq(jv_count(v), 4);
	cr_expect(str_eq(jv_raw(jv_at(b, 1)), STR("{\"c\":\"x\\u00e9\"}")));
	cr_expect(str_eq(jv_str(a, jv_get(jv_at(b, 1), "c")), STR("x\xc3\xa9")));
	cr_expect(jv_str_is(jv_get(jv_at(b, 1), "c"), "x\xc3\xa9"));
	cr_expect(!jv_str_is(jv_get(jv_at(b, 1), "c"), "x"));
	cr_expect(str_eq(jv_raw(jv_at(jv_at(b, 2), 1)), STR("3")));
	cr_expect(jv_is(jv_at(b, 3), JT_ABSENT));
	cr_expect(jv_is(jv_get(jv_get(v, "a"), "n"), JT_NULL));
	cr_expect(!jv_present(jv_get(jv_get(v, "a"), "n")));
	cr_expect(jv_is(jv_get(jv_get(jv_get(v, "x"), "y"), "z"), JT_ABSENT));
	cr_expect(jv_raw(jv_get(v, "x")).ptr == NULL && jv_str(a, jv_get(v, "a")).ptr == NULL);
	cr_expect_eq(jv_i64_or(jv_get(v, "ab"), 0), 7, "escaped key");
	cr_expect_eq(jv_i64_or(jv_get(v, "dup"), 0), 2, "the last one counts");
	cr_expect_eq(jv_offset(b), 10);
	cr_expect_eq(jv_unique(v, (const char *const[]){"a", "ab", NULL}, NULL), ERR_OK);
	cr_expect_eq(jv_unique(v, (const char *const[]){"a", "dup", NULL}, NULL), ERR_INPUT);
	arena_free(&a);
}

Test(json, a_key_written_with_escapes_is_the_same_key, .timeout = 10)
{
	struct arena *a = arena();
	struct jval v;
	cr_assert_eq(jdoc_parse(a, STR("{\"model\":1,\"m\\u006fdel\":2}"), &v, NULL), ERR_OK);
	cr_expect_eq(jv_unique(v, (const char *const[]){"model", NULL}, NULL), ERR_INPUT);
	arena_free(&a);
}

Test(json, strings_decode, .timeout = 10)
{
	static const struct {
		const char *text;
		struct str want;
	} rows[] = {{"\"\\u0000\"", STR_INIT("\0")},
	    {"\"\\ud83d\\ude00\"", STR_INIT("\xf0\x9f\x98\x80")},
	    {"\"\\ud83d\"", STR_INIT("\xef\xbf\xbd")},
	    {"\"\\ude00a\"", STR_INIT("\xef\xbf\xbd"
				      "a")},
	    {"\"\\ud83d\\u0041\"", STR_INIT("\xef\xbf\xbd"
					    "A")},
	    {"\"\\ud83d\\ud83d\\ude00\"", STR_INIT("\xef\xbf\xbd\xf0\x9f\x98\x80")},
	    {"\"a\\/b\\\\c\\\"\\b\\f\\n\\r\\t\"", STR_INIT("a/b\\c\"\b\f\n\r\t")},
	    {"\"\\u20AC\\u00e9\\u007f\"", STR_INIT("\xe2\x82\xac\xc3\xa9\x7f")}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena();
		struct jval v;
		cr_assert_eq(jdoc_parse(a, str_c(rows[i].text), &v, NULL), ERR_OK);
		cr_expect(str_eq(jv_str(a, v), rows[i].want), "%s", rows[i].text);
		cr_expect(str_eq(jv_raw(v), str_c(rows[i].text)), "%s as sent", rows[i].text);
		arena_free(&a);
	}
}

Test(json, integers_and_doubles_convert_only_exactly, .timeout = 10)
{
	static const struct {
		const char *text;
		bool is_int;
		int64_t want;
	} rows[] = {{"0", true, 0}, {"-0", true, 0}, {"9223372036854775807", true, INT64_MAX},
	    {"-9223372036854775808", true, INT64_MIN}, {"9223372036854775808", false, 0},
	    {"18446744073709551615", false, 0}, {"1e3", true, 1000}, {"5.0", true, 5},
	    {"5.5", false, 0}, {"12.500e1", true, 125}, {"1200e-2", true, 12},
	    {"1200e-3", false, 0}, {"1e400", false, 0}, {"0e400", true, 0}, {"0.000", true, 0},
	    {"-9223372036854775808.0", true, INT64_MIN}, {"9223372036854775808.0", false, 0},
	    {"1E+2", true, 100}, {"1e99999999999999999999", false, 0},
	    {"100000000000000000000e-20", true, 1}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena();
		struct jval v;
		int64_t n = 0;
		cr_assert_eq(jdoc_parse(a, str_c(rows[i].text), &v, NULL), ERR_OK);
		cr_expect_eq(jv_i64(v, &n), rows[i].is_int, "%s", rows[i].text);
		cr_expect_eq(n, rows[i].want, "%s", rows[i].text);
		arena_free(&a);
	}
	struct arena *a = arena();
	struct jval v;
	double d = 0;
	cr_assert_eq(jdoc_parse(a, STR("[0.7,1e400,\"1\"]"), &v, NULL), ERR_OK);
	cr_expect(jv_double(jv_at(v, 0), &d) && d > 0.69 && d < 0.71);
	cr_expect(!jv_double(jv_at(v, 1), &d), "not finite");
	cr_expect(!jv_double(jv_at(v, 2), &d) && !jv_i64(jv_at(v, 2), &(int64_t){0}), "a string");
	arena_free(&a);
}
