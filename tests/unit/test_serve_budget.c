#include <criterion/criterion.h>

#include "base/err.h"
#include "worker/api/sandbox_serve_budget.h"

TestSuite(serve_budget);

#define MANY 1000u

static enum serve_verdict
begin(struct serve_budget *b, const char *peer, struct serve_account *a, struct serve_claim *c)
{
	return serve_claim_begin(b, str_c(peer), a, 2, c);
}

Test(serve_budget, a_client_is_an_address_and_not_a_connection)
{
	static const struct {
		const char *one, *other;
		bool is_same;
	} pairs[] = {
	    {"10.0.0.1:1", "10.0.0.1:2", true},
	    {"10.0.0.1:1", "10.0.0.2:1", false},
	    {"[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:7", true},
	    {"[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1", false},
	    {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.2]:1", false},
	    {"local", "local", true},
	    {"", "10.0.0.1:1", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct serve_budget *b = serve_budget_new();
		struct serve_account *a = serve_account_new();
		struct serve_claim c[3];
		cr_assert_eq(begin(b, pairs[i].one, a, &c[0]), SERVE_ADMITTED);
		cr_assert_eq(begin(b, pairs[i].one, a, &c[1]), SERVE_ADMITTED);
		cr_expect_eq(begin(b, pairs[i].other, a, &c[2]),
		    pairs[i].is_same ? SERVE_CLIENT_FULL : SERVE_ADMITTED, "%s %s", pairs[i].one,
		    pairs[i].other);
		for (size_t k = 0; k < 3; k++)
			serve_claim_end(&c[k]);
		serve_account_put(&a);
		serve_budget_free(&b);
	}
}

Test(serve_budget, a_session_has_so_many_calls)
{
	struct serve_budget *b = serve_budget_new();
	struct serve_account *a = serve_account_new();
	struct serve_claim c[SERVE_SESSION_MAX_CALLS + 1];
	for (size_t i = 0; i < SERVE_SESSION_MAX_CALLS; i++)
		cr_assert_eq(
		    serve_claim_begin(b, STR("10.0.0.1:1"), a, MANY, &c[i]), SERVE_ADMITTED);
	cr_expect_eq(serve_claim_begin(b, STR("10.0.0.2:1"), a, MANY, &c[SERVE_SESSION_MAX_CALLS]),
	    SERVE_SESSION_FULL);
	serve_claim_end(&c[SERVE_SESSION_MAX_CALLS]);
	serve_claim_end(&c[3]);
	serve_claim_end(&c[3]); /* nothing more */
	cr_expect_eq(serve_claim_begin(b, STR("10.0.0.2:1"), a, MANY, &c[3]), SERVE_ADMITTED);
	serve_account_put(&a); /* the session is closed first */
	for (size_t i = 0; i < SERVE_SESSION_MAX_CALLS; i++)
		serve_claim_end(&c[i]);
	serve_budget_free(&b);
}

Test(serve_budget, bytes_are_bounded_by_session_client_and_all)
{
	struct serve_budget *b = serve_budget_new();
	struct serve_account *a[3] = {
	    serve_account_new(), serve_account_new(), serve_account_new()};
	struct serve_claim c[3];
	cr_assert_eq(serve_claim_begin(b, STR("10.0.0.1:1"), a[0], MANY, &c[0]), SERVE_ADMITTED);
	cr_assert_eq(serve_claim_begin(b, STR("10.0.0.1:2"), a[1], MANY, &c[1]), SERVE_ADMITTED);
	cr_assert_eq(serve_claim_begin(b, STR("10.0.0.2:1"), a[2], MANY, &c[2]), SERVE_ADMITTED);
	uint64_t rest = SERVE_CLIENT_MAX_BYTES - SERVE_SESSION_MAX_BYTES;
	cr_expect_eq(serve_claim_add(&c[0], SERVE_SESSION_MAX_BYTES), SERVE_ADMITTED);
	cr_expect_eq(serve_claim_add(&c[1], rest), SERVE_ADMITTED);
	cr_expect_eq(serve_claim_add(&c[1], 1), SERVE_CLIENT_FULL);
	cr_expect_eq(serve_claim_add(&c[0], 1), SERVE_SESSION_FULL);
	/* The other one does not notice, until all together are too much. */
	cr_expect_eq(serve_claim_add(&c[2], SERVE_SESSION_MAX_BYTES), SERVE_ADMITTED);
	struct serve_claim third;
	cr_assert_eq(serve_claim_begin(b, STR("10.0.0.3:1"), a[1], MANY, &third), SERVE_ADMITTED);
	cr_expect_eq(serve_claim_add(&third, rest), SERVE_FULL);
	serve_claim_end(&third);
	serve_claim_end(&c[0]);
	cr_expect_eq(serve_claim_add(&c[1], 1), SERVE_ADMITTED);
	for (size_t i = 0; i < 3; i++) {
		serve_claim_end(&c[i]);
		serve_account_put(&a[i]);
	}
	cr_expect_eq(serve_budget_bytes(b), 0);
	serve_budget_free(&b);
}
