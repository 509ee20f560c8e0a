#include <math.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/utf8.h"

Test(json_write, commas_and_nesting, .timeout = 10)
{
	struct buf b = BUF_INIT(4096);
	struct jw w;
	jw_init(&w, &b);
	jw_object(&w);
	jw_kcstr(&w, "a", "x\"\n");
	jw_kcstr(&w, "none", NULL);
	jw_key(&w, "list");
	jw_array(&w);
	jw_i64(&w, -5);
	jw_bool(&w, true);
	jw_null(&w);
	jw_array(&w);
	jw_end_array(&w);
	jw_object(&w);
	jw_knull(&w, "n");
	jw_end_object(&w);
	jw_raw(&w, STR("1e400"));
	jw_end_array(&w);
	jw_ki64(&w, "i", INT64_MIN);
	jw_kbool(&w, "no", false);
	jw_kraw(&w, "raw", STR("{}"));
	jw_kstr(&w, "s", STR("\0\x1f\x7f"));
	jw_end_object(&w);
	cr_expect(
	    str_eq(buf_str(&b), STR("{\"a\":\"x\\\"\\n\",\"none\":null,\"list\":[-5,true,null,[],"
				    "{\"n\":null},1e400],\"i\":-9223372036854775808,\"no\":false,"
				    "\"raw\":{},\"s\":\"\\u0000\\u001f\x7f\"}")),
	    "%s", b.ptr);
	buf_done(&b);
}

Test(json_write, doubles_read_back_the_same, .timeout = 10)
{
	static const struct {
		double v;
		const char *want;
	} rows[] = {{0.7, "0.7"}, {0.1, "0.1"}, {1.0, "1"}, {1e300, "1e+300"}, {-2.5, "-2.5"},
	    {1.0 / 3, "0.3333333333333333"}, {NAN, "null"}, {INFINITY, "null"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(256);
		struct jw w;
		jw_init(&w, &b);
		jw_double(&w, rows[i].v);
		cr_expect(
		    str_eq(buf_str(&b), str_c(rows[i].want)), "%s gave %s", rows[i].want, b.ptr);
		buf_done(&b);
	}
}

/* D8: whatever bytes a tool printed, the string is valid UTF-8 JSON and reads back mended. */
Test(json_write, d8_every_pair_of_bytes_gives_valid_json, .timeout = 30)
{
	struct buf b = BUF_INIT(256), mended = BUF_INIT(256);
	for (unsigned i = 0; i < 0x10000; i++) {
		char s[4] = {'x', (char)(i >> 8), (char)(i & 0xff), 'y'};
		struct arena *a = arena_new(1u << 16);
		struct jval v;
		struct jw w;
		buf_clear(&b);
		buf_clear(&mended);
		jw_init(&w, &b);
		jw_str(&w, str_n(s, 4));
		utf8_mend(str_n(s, 4), &mended);
		cr_assert_eq(jdoc_parse(a, buf_str(&b), &v, NULL), ERR_OK, "pair %04x", i);
		cr_assert(str_eq(jv_str(a, v), buf_str(&mended)), "pair %04x", i);
		arena_free(&a);
	}
	buf_done(&b);
	buf_done(&mended);
}

Test(json_write, an_invalid_run_becomes_one_replacement, .timeout = 10)
{
	struct buf b = BUF_INIT(256);
	jw_escape(&b, STR("evil\xc3\x28"
			  "data\xff\xfe\xff\xe2\x82\xac\xe2\x82"));
	cr_expect(
	    str_eq(buf_str(&b), STR("evil\xef\xbf\xbd(data\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd")),
	    "%s", b.ptr);
	buf_done(&b);
}
