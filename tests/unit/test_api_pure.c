/* The pure parts of the API: credentials in headers, query parameters, times. */
#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"
#include "worker/api/credential.h"
#include "worker/api/query.h"
#include "worker/api/timestamp.h"

TestSuite(api_pure, .timeout = 10);

Test(api_pure, times_are_read_strictly)
{
	static const struct {
		const char *in;
		int64_t out; /* -1: refused */
	} rows[] = {
	    {"1970-01-01T00:00:00Z", 0},
	    {"2026-11-30T10:00:00Z", 1796032800},
	    {"2026-11-30t10:00:00z", 1796032800},
	    {"2026-11-30 10:00:00", 1796032800},
	    {"2026-11-30T10:00:00.999999Z", 1796032800},
	    {"2026-11-30T12:30:00+02:30", 1796032800},
	    {"2026-11-30T02:00:00-08:00", 1796032800},
	    {"2024-02-29T00:00:00Z", 1709164800},
	    {"2000-02-29T00:00:00Z", 951782400},
	    {"9999-12-31T23:59:59Z", 253402300799},
	    {"2025-02-29T00:00:00Z", -1},
	    {"2100-02-29T00:00:00Z", -1},
	    {"1969-12-31T23:59:59Z", -1},
	    {"1970-01-01T00:00:00+01:00", -1},
	    {"2026-13-01T00:00:00Z", -1},
	    {"2026-00-01T00:00:00Z", -1},
	    {"2026-11-31T00:00:00Z", -1},
	    {"2026-11-30T24:00:00Z", -1},
	    {"2026-11-30T10:60:00Z", -1},
	    {"2026-11-30T10:00:61Z", -1},
	    {"2026-11-30T10:00:00.Z", -1},
	    {"2026-11-30T10:00:00+0200", -1},
	    {"2026-11-30T10:00:00Zjunk", -1},
	    {"2026-11-30", -1},
	    {"2026-11-3", -1},
	    {"20261130T100000Z", -1},
	    {"-026-11-30T10:00:00Z", -1},
	    {"", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t got = -1;
		bool ok = timestamp_parse(str_c(rows[i].in), &got);
		cr_assert(ok == (rows[i].out >= 0), "%s", rows[i].in);
		cr_assert(got == rows[i].out, "%s: %lld", rows[i].in, (long long)got);
	}
}

static int
files(struct arena *a, const char *query, enum wire wire, struct file_query *ret)
{
	struct err err;
	return query_read_files(a, str_c(query), wire, ret, &err);
}

Test(api_pure, file_list_parameters_are_checked)
{
	static const struct {
		const char *query;
		enum wire wire;
		int status;
		uint32_t limit;
	} rows[] = {
	    {"", WIRE_CHAT, 0, 100},
	    {"beta=true", WIRE_MESSAGES, 0, 100},
	    {"limit=1", WIRE_CHAT, 0, 1},
	    {"limit=1000", WIRE_MESSAGES, 0, 1000},
	    {"limit=10000", WIRE_CHAT, 0, 1000},
	    {"limit=10001", WIRE_CHAT, 422, 0},
	    {"limit=1001", WIRE_MESSAGES, 422, 0},
	    {"limit=0", WIRE_CHAT, 422, 0},
	    {"limit=-1", WIRE_CHAT, 422, 0},
	    {"limit=", WIRE_CHAT, 422, 0},
	    {"limit=1x", WIRE_CHAT, 422, 0},
	    {"limit=99999999999999999999", WIRE_CHAT, 422, 0},
	    {"order=asc", WIRE_CHAT, 0, 100},
	    {"order=desc", WIRE_CHAT, 0, 100},
	    {"order=ASC", WIRE_CHAT, 422, 0},
	    {"order=", WIRE_CHAT, 422, 0},
	    {"workspace_id=00000000-0000-4000-8000-00000000000A", WIRE_CHAT, 0, 100},
	    {"workspace_id=00000000-0000-4000-8000-00000000000", WIRE_CHAT, 422, 0},
	    {"workspace_id=00000000_0000-4000-8000-000000000001", WIRE_CHAT, 422, 0},
	    {"workspace_id=g0000000-0000-4000-8000-000000000001", WIRE_CHAT, 422, 0},
	    {"page=page_!", WIRE_MESSAGES, 400, 0},
	    {"page=page_", WIRE_MESSAGES, 400, 0},
	    {"page=file-1", WIRE_MESSAGES, 400, 0},
	    {"after_id=a&before_id=b", WIRE_MESSAGES, 400, 0},
	    {"ids[]=a&limit=3", WIRE_MESSAGES, 400, 0},
	    {"ids%5B%5D=a&ids%5B%5D=b", WIRE_MESSAGES, 0, 100},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 20);
		struct file_query q = {.limit = 0};
		int status = files(a, rows[i].query, rows[i].wire, &q);
		cr_assert(status == rows[i].status, "%s: %d", rows[i].query, status);
		cr_assert(q.limit == rows[i].limit, "%s: %u", rows[i].query, q.limit);
		arena_free(&a);
	}
}

Test(api_pure, file_cursors_of_every_generation_are_read)
{
	struct arena *a = arena_new(1 << 20);
	struct file_query q;
	cr_assert(files(a, "after=file-1&after_id=file-2&order=asc", WIRE_CHAT, &q) == 0);
	cr_assert(str_eq(q.after, STR("file-1")));
	cr_assert(q.ascending && !q.after_is_token && q.before.ptr == NULL);
	cr_assert(files(a, "after_id=file-2", WIRE_MESSAGES, &q) == 0);
	cr_assert(str_eq(q.after, STR("file-2")));
	cr_assert(files(a, "before_id=file-3", WIRE_MESSAGES, &q) == 0);
	cr_assert(str_eq(q.before, STR("file-3")) && q.after.ptr == NULL);
	struct str token = query_page_token(a, STR("file-0123456789abcdef0123456789abcdef"));
	cr_assert(str_starts(token, STR("page_")));
	struct str query = arena_printf(a, "limit=2&page=%.*s", STR_FMT(token));
	cr_assert(files(a, query.ptr, WIRE_MESSAGES, &q) == 0);
	cr_assert(q.after_is_token && q.limit == 2);
	cr_assert(str_eq(q.after, STR("file-0123456789abcdef0123456789abcdef")));
	cr_assert(files(a, "ids[]=a&ids[]=b&ids[]=a", WIRE_MESSAGES, &q) == 0);
	cr_assert(q.by_ids && q.id_count == 2);
	cr_assert(str_eq(q.ids[0], STR("a")) && str_eq(q.ids[1], STR("b")));
	arena_free(&a);
}

Test(api_pure, more_than_a_hundred_distinct_ids_are_refused)
{
	struct arena *a = arena_new(1 << 20);
	struct buf b = BUF_INIT(65536);
	struct file_query q;
	for (int i = 0; i < 100; i++)
		buf_printf(&b, "ids[]=f%d&", i);
	buf_add(&b, STR("ids[]=f1"));
	cr_assert(files(a, b.ptr, WIRE_MESSAGES, &q) == 0);
	cr_assert(q.id_count == 100);
	buf_add(&b, STR("&ids[]=one-more"));
	cr_assert(files(a, b.ptr, WIRE_MESSAGES, &q) == 400);
	buf_done(&b);
	arena_free(&a);
}

Test(api_pure, slices_of_a_list_never_pass_its_ends)
{
	struct page_slice p = page_from(5, 0, 2);
	cr_assert(p.first == 0 && p.count == 2 && p.has_more);
	p = page_from(5, 4, 2);
	cr_assert(p.first == 4 && p.count == 1 && !p.has_more);
	p = page_from(5, 5, 2);
	cr_assert(p.count == 0 && !p.has_more);
	p = page_from(0, 0, 2);
	cr_assert(p.count == 0 && !p.has_more);
	p = page_before(3, 2);
	cr_assert(p.first == 1 && p.count == 2 && p.has_more);
	p = page_before(2, 2);
	cr_assert(p.first == 0 && p.count == 2 && !p.has_more);
	p = page_before(0, 2);
	cr_assert(p.count == 0 && !p.has_more);
}

Test(api_pure, credentials_come_in_their_order)
{
	struct http_header headers[] = {
	    {STR_INIT("x-api-key"), STR_INIT("third")},
	    {STR_INIT("AUTHORIZATION"), STR_INIT("  bearer  second ")},
	    {STR_INIT("Authorization"), STR_INIT("Basic dTpw")},
	    {STR_INIT("x-api-key"), STR_INIT("  ")},
	    {STR_INIT("Otari-Key"), STR_INIT("Bearer first")},
	    {STR_INIT("cookie"), STR_INIT("gw-no")},
	    {STR_INIT("Authorization"), STR_INIT("Bearer ")},
	    {STR_INIT("x-api-key"), STR_INIT("Bearer kept")},
	};
	static const char *const want[] = {"first", "second", "", "", "third", "Bearer kept"};
	const struct http_head head = {.headers = headers, .header_count = ARRAY_LEN(headers)};
	struct str got;
	bool bad;
	size_t pos = 0, n = 0;
	while (credential_next(&head, &pos, &got, &bad)) {
		cr_assert(n < ARRAY_LEN(want) && str_eq(got, str_c(want[n])), "%zu: %.*s", n,
		    STR_FMT(got));
		cr_assert(bad == (want[n][0] == '\0'), "%zu", n);
		n++;
	}
	cr_assert(n == ARRAY_LEN(want));
	const struct http_head none = {.headers = NULL, .header_count = 0};
	pos = 0;
	cr_assert(!credential_next(&none, &pos, &got, &bad));
}
