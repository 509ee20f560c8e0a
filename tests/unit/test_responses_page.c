#include <criterion/criterion.h>

#include "worker/api/responses_page.h"

TestSuite(responses_page, .timeout = 20);

#define I(id) "{\"id\":\"" id "\",\"n\":0.70}"

Test(responses_page, pages_follow_the_order_asked_for)
{
	static const struct {
		const char *query, *page;
	} rows[] = {
	    {"", "{\"object\":\"list\",\"data\":[" I("c") "," I("b") "," I(
		     "a") "],\"first_id\":\"c\",\"last_id\":\"a\",\"has_more\":false}"},
	    {"order=asc&limit=2&include%5B%5D=x", "{\"object\":\"list\",\"data\":[" I("a") "," I(
						      "b") "],\"first_id\":\"a\",\"last_id\":\"b\","
							   "\"has_more\":true}"},
	    {"order=asc&limit=2&after=b",
		"{\"object\":\"list\",\"data\":[" I("c") "],\"first_id\":\"c\",\"last_id\":\"c\","
							 "\"has_more\":false}"},
	    {"limit=1&after=c",
		"{\"object\":\"list\",\"data\":[" I(
		    "b") "],\"first_id\":\"b\",\"last_id\":\"b\",\"has_more\":true}"},
	    {"after=a",
		"{\"object\":\"list\",\"data\":[],\"first_id\":null,\"last_id\":null,\"has_more\":"
		"false}"},
	};
	struct arena *a = arena_new(1u << 20);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct responses_page_query q;
		const char *param;
		struct err err;
		struct buf out = BUF_INIT(4096);
		cr_assert_eq(responses_page_read(a, str_c(rows[i].query), &q, &param, &err), ERR_OK,
		    "%s: %s", rows[i].query, err.msg);
		cr_assert_eq(responses_page_write(
				 a, STR("[" I("a") "," I("b") "," I("c") "]"), &q, &out, &err),
		    ERR_OK, "%s: %s", rows[i].query, err.msg);
		cr_expect(str_eq(buf_str(&out), str_c(rows[i].page)), "%s: %.*s", rows[i].query,
		    STR_FMT(buf_str(&out)));
		buf_done(&out);
	}
	arena_free(&a);
}

Test(responses_page, names_what_is_wrong)
{
	static const struct {
		const char *query, *param;
	} rows[] = {
	    {"limit=0", "limit"},
	    {"limit=101", "limit"},
	    {"limit=-1", "limit"},
	    {"limit=x", "limit"},
	    {"order=up", "order"},
	};
	struct arena *a = arena_new(1u << 20);
	struct responses_page_query q;
	struct err err;
	const char *param;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		param = "";
		cr_expect_eq(
		    responses_page_read(a, str_c(rows[i].query), &q, &param, &err), ERR_INPUT);
		cr_expect_str_eq(param, rows[i].param);
	}
	struct buf out = BUF_INIT(4096);
	q = (struct responses_page_query){.limit = 20, .after = STR("z")};
	cr_expect_eq(responses_page_write(a, STR("[" I("a") "]"), &q, &out, &err), ERR_INPUT);
	q.after = STR_NULL;
	cr_expect_eq(responses_page_write(a, STR("[{]"), &q, &out, &err), ERR_INTERNAL);
	buf_done(&out);
	arena_free(&a);
}
