#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "storage/sql/store_tool_result.h"
#include "tests/unit/dbfix.h"

TestSuite(store_tool_result, .timeout = 120);

#define NOW 1000

static const struct store_response_scope BOB = {STR_INIT("bob"), STR_INIT("w1")};
static const struct store_response_scope EVE = {STR_INIT("eve"), STR_INIT("w1")};
static const struct store_response_scope BOB_W2 = {STR_INIT("bob"), STR_INIT("w2")};

static enum err_code
put(struct dbfix *f, struct str id, struct str text, int64_t now, int64_t expires)
{
	struct store_tool_result r = {BOB, id, text, expires};
	return store_tool_result_put(f->db, &r, now, NULL);
}

/* The text of one id, STR_NULL: none. */
static struct str
get(struct dbfix *f, struct arena *a, const struct store_response_scope *scope, struct str id,
    int64_t now)
{
	struct str text = STR("untouched");
	struct err err;
	cr_assert_eq(store_tool_result_get(f->db, a, scope, &id, 1, 1u << 20, now, &text, &err),
	    ERR_OK, "%s: %s", f->name, err.msg);
	return text;
}

static void
the_owners_alone(struct dbfix *f)
{
	struct arena *a = arena_new(16u << 20);
	struct str hostile = STR("a\0b' OR 1=1 --\xff\xfe");
	size_t n = 1000;
	char *big = mem_alloc(STORE_TOOL_RESULT_MAX_BYTES + 1);

	memset(big, 'x', STORE_TOOL_RESULT_MAX_BYTES + 1);
	cr_assert_eq(put(f, STR("call_1"), STR("out \0 \xe2\x82\xac "), NOW, 2000), ERR_OK);
	cr_assert(str_eq(get(f, a, &BOB, STR("call_1"), NOW), STR("out \0 \xe2\x82\xac ")), "%s",
	    f->name);
	cr_assert_null(get(f, a, &EVE, STR("call_1"), NOW).ptr);
	cr_assert_null(get(f, a, &BOB_W2, STR("call_1"), NOW).ptr);
	cr_assert_null(get(f, a, &BOB, STR("CALL_1"), NOW).ptr);
	cr_assert_null(get(f, a, &BOB, STR("call_1 "), NOW).ptr);
	cr_assert_null(get(f, a, &BOB, STR(""), NOW).ptr);
	/* ids are the clients' and the providers': any bytes, any length */
	cr_assert_eq(put(f, hostile, STR("mine"), NOW, 2000), ERR_OK, "%s", f->name);
	cr_assert(str_eq(get(f, a, &BOB, hostile, NOW), STR("mine")));
	cr_assert_eq(put(f, str_n(big, n), STR("long"), NOW, 2000), ERR_OK);
	cr_assert(str_eq(get(f, a, &BOB, str_n(big, n), NOW), STR("long")));
	cr_assert_null(get(f, a, &BOB, str_n(big, n - 1), NOW).ptr);
	cr_assert_eq(put(f, STR("l"), str_n(big, STORE_TOOL_RESULT_MAX_BYTES), NOW, 2000), ERR_OK);
	cr_assert_eq(get(f, a, &BOB, STR("l"), NOW).len, STORE_TOOL_RESULT_MAX_BYTES);
	cr_assert_eq(
	    put(f, STR("m"), str_n(big, STORE_TOOL_RESULT_MAX_BYTES + 1), NOW, 2000), ERR_TOOLARGE);
	cr_assert_eq(put(f, STR("u"), STR("\xff"), NOW, 2000), ERR_INPUT);
	mem_free(big);
	arena_free(&a);
}

static void
given_again(struct dbfix *f)
{
	struct arena *a = arena_new(1u << 20);

	cr_assert_eq(put(f, STR("call_1"), STR("one"), NOW, 2000), ERR_OK);
	cr_assert_eq(put(f, STR("call_1"), STR("one"), NOW, 3000), ERR_OK); /* a retry */
	cr_assert(str_eq(get(f, a, &BOB, STR("call_1"), 2500), STR("one")), "%s", f->name);
	cr_assert_eq(put(f, STR("call_1"), STR("two"), NOW, 4000), ERR_OK);
	cr_assert_null(get(f, a, &BOB, STR("call_1"), NOW).ptr, "%s: whose is it?", f->name);
	cr_assert_eq(put(f, STR("call_1"), STR("two"), NOW, 4000), ERR_OK);
	cr_assert_null(get(f, a, &BOB, STR("call_1"), NOW).ptr, "%s: it stays so", f->name);
	/* after its time it is as if it had never been */
	cr_assert_eq(put(f, STR("call_1"), STR("three"), 4000, 9000), ERR_OK);
	cr_assert(str_eq(get(f, a, &BOB, STR("call_1"), 4000), STR("three")), "%s", f->name);
	arena_free(&a);
}

#define MANY 100

static void
many_at_once(struct dbfix *f)
{
	struct arena *a = arena_new(16u << 20);
	struct str ids[STORE_TOOL_RESULT_IDS_MAX + 1], texts[STORE_TOOL_RESULT_IDS_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		ids[i] = arena_printf(a, "call_%zu", i);
	for (size_t i = 0; i < MANY; i += 3)
		cr_assert_eq(put(f, ids[i], arena_printf(a, "text %zu", i), NOW, 2000), ERR_OK);
	cr_assert_eq(
	    store_tool_result_get(f->db, a, &BOB, ids, MANY, 1u << 20, NOW, texts, NULL), ERR_OK);
	for (size_t i = 0; i < MANY; i++) {
		if (i % 3 == 0)
			cr_assert(str_eq(texts[i], arena_printf(a, "text %zu", i)), "%s: %zu",
			    f->name, i);
		else
			cr_assert_null(texts[i].ptr, "%s: %zu", f->name, i);
	}
	/* over the maximum the last ids have theirs */
	cr_assert_eq(
	    store_tool_result_get(f->db, a, &BOB, ids, MANY, 40, NOW, texts, NULL), ERR_OK);
	cr_assert_not_null(texts[99].ptr);
	cr_assert_null(texts[0].ptr);
	cr_assert_eq(store_tool_result_get(f->db, a, &BOB, ids, 0, 40, NOW, texts, NULL), ERR_OK);
	cr_assert_eq(
	    store_tool_result_get(f->db, a, &BOB, ids, ARRAY_LEN(ids), 40, NOW, texts, NULL),
	    ERR_TOOLARGE);
	arena_free(&a);
}

static void
expired_are_swept(struct dbfix *f)
{
	struct arena *a = arena_new(1u << 20);
	size_t n = 0;

	cr_assert_eq(put(f, STR("a"), STR("1"), 1, 500), ERR_OK);
	cr_assert_eq(put(f, STR("b"), STR("2"), 1, 600), ERR_OK);
	cr_assert_eq(put(f, STR("c"), STR("3"), 1, 900), ERR_OK);
	cr_assert(str_eq(get(f, a, &BOB, STR("a"), 499), STR("1")));
	cr_assert_null(get(f, a, &BOB, STR("a"), 500).ptr);
	cr_assert_eq(store_tool_result_sweep(f->db, 700, 1, &n, NULL), ERR_OK);
	cr_assert_eq(n, 1, "%s: bounded", f->name);
	cr_assert_eq(store_tool_result_sweep(f->db, 700, 100, &n, NULL), ERR_OK);
	cr_assert_eq(n, 1);
	cr_assert_eq(store_tool_result_sweep(f->db, 700, 100, &n, NULL), ERR_OK);
	cr_assert_eq(n, 0);
	cr_assert(str_eq(get(f, a, &BOB, STR("c"), 700), STR("3")), "%s", f->name);
	arena_free(&a);
}

Test(store_tool_result, is_the_owners_alone_and_byte_for_byte)
{
	dbfix_each(the_owners_alone);
}

Test(store_tool_result, of_an_id_that_is_given_again_is_nobodys)
{
	dbfix_each(given_again);
}

Test(store_tool_result, is_found_among_many)
{
	dbfix_each(many_at_once);
}

Test(store_tool_result, goes_when_it_expires)
{
	dbfix_each(expired_are_swept);
}
