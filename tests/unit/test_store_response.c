#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "storage/sql/store_response.h"
#include "tests/unit/dbfix.h"

TestSuite(store_response, .timeout = 120);

#define ARENA_BYTES (32u << 20)

static const struct store_response_scope BOB = {STR_INIT("bob"), STR_INIT("w1")};
static const struct store_response_scope EVE = {STR_INIT("eve"), STR_INIT("w1")};
static const struct store_response_scope BOB_W2 = {STR_INIT("bob"), STR_INIT("w2")};

static enum err_code
put(struct dbfix *f, const char *id, int64_t created, int64_t expires, struct str input)
{
	struct str items[] = {STR("msg_1"), STR("otari_ci_1")};
	struct store_response r = {
	    .id = str_c(id),
	    .scope = BOB,
	    .provider = STR("openai"),
	    .created_at_s = created,
	    .expires_at_s = expires,
	    .input_json = input,
	    .response_json = STR("{\"id\":\"r\",\"big\":18446744073709551615}"),
	    .item_ids = items,
	    .item_count = 2,
	};
	return store_response_insert(f->db, &r, NULL);
}

static void
kept_by_owner(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct store_response r;
	struct str id;
	size_t n = 3u * STORE_RESPONSE_CHUNK_BYTES + 7;
	char *big = mem_alloc(n);
	memset(big, 'x', n);
	big[STORE_RESPONSE_CHUNK_BYTES] = '\0'; /* any byte, on the edge of a chunk */
	cr_assert_eq(put(f, "resp_1", 100, 0, str_n(big, n)), ERR_OK, "%s", f->name);
	cr_assert_eq(put(f, "resp_1", 100, 0, STR("[]")), ERR_CONFLICT);
	cr_assert_eq(put(f, "resp_2", 200, 0, STR("")), ERR_OK);
	cr_assert_eq(store_response_get(f->db, a, &BOB, STR("resp_1"), 150, &r, NULL), ERR_OK);
	cr_assert(str_eq(r.input_json, str_n(big, n)), "%s: input of %zu bytes", f->name,
	    r.input_json.len);
	cr_assert(str_eq(r.provider, STR("openai")));
	cr_assert(str_eq(r.response_json, STR("{\"id\":\"r\",\"big\":18446744073709551615}")));
	cr_assert_eq(
	    store_response_get(f->db, a, &EVE, STR("resp_1"), 150, &r, NULL), ERR_NOTFOUND);
	cr_assert_eq(
	    store_response_get(f->db, a, &BOB_W2, STR("resp_1"), 150, &r, NULL), ERR_NOTFOUND);
	cr_assert_eq(store_response_of_item(f->db, a, &BOB, STR("msg_1"), 150, &id, NULL), ERR_OK);
	cr_assert(str_eq(id, STR("resp_2")), "the latest that holds it");
	cr_assert_eq(
	    store_response_of_item(f->db, a, &EVE, STR("msg_1"), 150, &id, NULL), ERR_NOTFOUND);
	cr_assert_eq(store_response_delete(f->db, &EVE, STR("resp_1"), NULL), ERR_NOTFOUND);
	cr_assert_eq(store_response_delete(f->db, &BOB, STR("resp_2"), NULL), ERR_OK);
	cr_assert_eq(store_response_delete(f->db, &BOB, STR("resp_2"), NULL), ERR_NOTFOUND);
	cr_assert_eq(store_response_of_item(f->db, a, &BOB, STR("msg_1"), 150, &id, NULL), ERR_OK);
	cr_assert(str_eq(id, STR("resp_1")));
	mem_free(big);
	arena_free(&a);
}

static void
expired_are_swept(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA_BYTES);
	struct store_response r;
	struct str id;
	size_t n = 0;
	cr_assert_eq(put(f, "resp_a", 1, 500, STR("[1]")), ERR_OK);
	cr_assert_eq(put(f, "resp_b", 1, 600, STR("[2]")), ERR_OK);
	cr_assert_eq(put(f, "resp_c", 1, 0, STR("[3]")), ERR_OK);
	cr_assert_eq(store_response_get(f->db, a, &BOB, STR("resp_a"), 499, &r, NULL), ERR_OK);
	cr_assert_eq(
	    store_response_get(f->db, a, &BOB, STR("resp_a"), 500, &r, NULL), ERR_NOTFOUND);
	cr_assert_eq(store_response_sweep(f->db, 700, 1, &n, NULL), ERR_OK);
	cr_assert_eq(n, 1, "%s: bounded", f->name);
	cr_assert_eq(store_response_sweep(f->db, 700, 100, &n, NULL), ERR_OK);
	cr_assert_eq(n, 1);
	cr_assert_eq(store_response_get(f->db, a, &BOB, STR("resp_c"), 900, &r, NULL), ERR_OK);
	cr_assert_eq(
	    store_response_of_item(f->db, a, &BOB, STR("otari_ci_1"), 900, &id, NULL), ERR_OK);
	cr_assert(str_eq(id, STR("resp_c")));
	arena_free(&a);
}

Test(store_response, is_the_owners_alone_and_byte_for_byte)
{
	dbfix_each(kept_by_owner);
}

Test(store_response, goes_when_it_expires)
{
	dbfix_each(expired_are_swept);
}
