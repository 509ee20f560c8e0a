#include <criterion/criterion.h>

#include "worker/upstream/beta.h"

TestSuite(beta, .timeout = 10);

static struct str
header(struct arena *a, const char *provider, bool without_code, const char *one, const char *two)
{
	struct http_header list[] = {{STR("host"), STR("code-execution-2025-08-25")},
	    {STR("Anthropic-Beta"), str_c(one)}, {STR("anthropic-beta"), str_c(two)}};
	struct http_head head = {
	    .headers = list, .header_count = 1u + (one != NULL) + (two != NULL)};

	return beta_header(a, &head, str_c(provider), without_code);
}

Test(beta, anthropic_gets_every_name_and_nobody_else_any)
{
	static const struct {
		const char *provider;
		bool without_code;
		const char *one, *two, *want; /* NULL: none */
	} rows[] = {
	    {"anthropic", false, "files-api-2025-04-14", NULL, "files-api-2025-04-14"},
	    {"Anthropic", false, "a-1 ,b-2,, never-heard-of", "c", "a-1, b-2, never-heard-of, c"},
	    {"anthropic", false, NULL, NULL, NULL},
	    {"anthropic", false, " , ", NULL, NULL},
	    {"anthropic", false, "code-execution-2025-08-25", NULL, "code-execution-2025-08-25"},
	    {"anthropic", true, "code-execution-2025-08-25,files-api-2025-04-14",
		"Code-Execution-2025-05-22,x", "files-api-2025-04-14, x"},
	    {"anthropic", true, "code-execution-2025-08-25", NULL, NULL},
	    {"openai", false, "files-api-2025-04-14", NULL, NULL},
	    {"bedrock", false, "a", "b", NULL},
	    {"", true, "a", "b", NULL},
	};
	struct arena *a = arena_new(1u << 20);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got =
		    header(a, rows[i].provider, rows[i].without_code, rows[i].one, rows[i].two);
		cr_expect(
		    str_eq(got, str_c(rows[i].want)) && (got.ptr == NULL) == (rows[i].want == NULL),
		    "row %zu: %.*s", i, STR_FMT(got));
	}
	arena_free(&a);
}
