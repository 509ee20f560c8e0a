/* The small pure helpers of the HTTP layer: uri, query, disposition, range, media types. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/buf.h"
#include "worker/http/disposition.h"
#include "worker/http/mime.h"
#include "worker/http/range.h"
#include "worker/http/uri.h"

TestSuite(http_text, .timeout = 10);

Test(http_text, uri_decodes_strictly)
{
	static const struct {
		struct str in, out; /* out.ptr NULL: refused */
	} rows[] = {
	    {STR_INIT(""), STR_INIT("")},
	    {STR_INIT("plain"), STR_INIT("plain")},
	    {STR_INIT("a%2Fb%2fc"), STR_INIT("a/b/c")},
	    {STR_INIT("a+b"), STR_INIT("a+b")},
	    {STR_INIT("%C3%A9"), STR_INIT("\xC3\xA9")},
	    {STR_INIT("a%00b"), {NULL, 0}},
	    {STR_INIT("%"), {NULL, 0}},
	    {STR_INIT("%4"), {NULL, 0}},
	    {STR_INIT("%4g"), {NULL, 0}},
	    {STR_INIT("%%41"), {NULL, 0}},
	    {STR_INIT("ok%41"), STR_INIT("okA")},
	};
	struct arena *a = arena_new(65536);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got = STR_NULL;
		bool ok = uri_decode(a, rows[i].in, &got);
		cr_assert(ok == (rows[i].out.ptr != NULL), "row %zu", i);
		cr_assert(!ok || str_eq(got, rows[i].out), "row %zu: %.*s", i, STR_FMT(got));
	}
	arena_free(&a);
}

Test(http_text, uri_encoding_leaves_only_unreserved_bytes)
{
	struct buf b = BUF_INIT(4096);
	uri_encode(STR("aZ09-._~ /+%\"\xC3\xA9\0x"), &b);
	cr_assert(str_eq(buf_str(&b), STR("aZ09-._~%20%2F%2B%25%22%C3%A9%00x")), "%s", b.ptr);
	buf_done(&b);
}

Test(http_text, query_fields)
{
	static const struct {
		const char *query, *name, *value; /* NULL: absent */
	} rows[] = {
	    {"", "a", NULL},
	    {"a=1", "a", "1"},
	    {"a=1&a=2", "a", "1"},
	    {"b=1&a=2", "a", "2"},
	    {"a", "a", ""},
	    {"a=", "a", ""},
	    {"&&a=1&", "a", "1"},
	    {"aa=1", "a", NULL},
	    {"a=b=c", "a", "b=c"},
	    {"a=x+y%20z%2B", "a", "x y z+"},
	    {"a=100%&b=%zz", "a", "100%"},
	    {"a=100%&b=%zz", "b", "%zz"},
	    {"%61=1", "a", "1"},
	    {"created%5Bgte%5D=5", "created[gte]", "5"},
	    {"=x", "", "x"},
	};
	struct arena *a = arena_new(65536);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got = query_get(a, str_c(rows[i].query), rows[i].name);
		cr_assert((got.ptr == NULL) == (rows[i].value == NULL), "row %zu", i);
		cr_assert(got.ptr == NULL || str_eq(got, str_c(rows[i].value)), "row %zu: %.*s", i,
		    STR_FMT(got));
	}
	struct str v[3];
	cr_assert(query_get_all(a, STR("ids[]=1&x=9&ids%5B%5D=2&ids=3&ids[]=4"), "ids", v, 3) == 4);
	cr_assert(str_eq(v[0], STR("1")) && str_eq(v[1], STR("2")) && str_eq(v[2], STR("3")));
	cr_assert(query_get_all(a, STR("ids[=1&idsx[]=2"), "ids", v, 3) == 0);
	arena_free(&a);
}

/* What was read outlives the connection's memory. */
Test(http_text, decoded_text_does_not_point_into_the_request)
{
	struct arena *a = arena_new(1 << 20);
	char target[] = "user=somebody&ids=file-1";
	char path[] = "file-123";
	struct str query = str_n(target, sizeof(target) - 1), user, ids[2], id;
	user = query_get(a, query, "user");
	cr_assert_eq(query_get_all(a, query, "ids", ids, 2), 1);
	cr_assert(uri_decode(a, str_n(path, sizeof(path) - 1), &id));
	memset(target, 'x', sizeof(target));
	memset(path, 'x', sizeof(path));
	cr_expect(str_eq(user, STR("somebody")));
	cr_expect(str_eq(ids[0], STR("file-1")));
	cr_expect(str_eq(id, STR("file-123")));
	arena_free(&a);
}

Test(http_text, disposition_cannot_be_broken_out_of)
{
	static const struct {
		struct str name;
		const char *value;
	} rows[] = {
	    {STR_INIT("chart.png"),
		"attachment; filename=\"chart.png\"; filename*=UTF-8''chart.png"},
	    {STR_INIT("a \"b\"\\.txt"),
		"attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20%22b%22%5C.txt"},
	    {STR_INIT("r\xC3\xA9sum\xC3\xA9.pdf"),
		"attachment; filename=\"rsum.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf"},
	    {STR_INIT("\xE6\x97\xA5"),
		"attachment; filename=\"download\"; filename*=UTF-8''%E6%97%A5"},
	    {STR_INIT("x\r\nSet-Cookie: a=b"), "attachment; filename=\"xSet-Cookie: a=b\"; "
					       "filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a%3Db"},
	    {STR_INIT(""), "attachment; filename=\"download\"; filename*=UTF-8''download"},
	};
	struct arena *a = arena_new(65536);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str got = disposition_attachment(a, rows[i].name);
		cr_assert(str_eq(got, str_c(rows[i].value)), "row %zu: %.*s", i, STR_FMT(got));
	}
	arena_free(&a);
}

Test(http_text, range_header)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum range_kind kind;
		uint64_t first, length;
	} rows[] = {
	    {NULL, 10, RANGE_WHOLE, 0, 0},
	    {"", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=0-3", 10, RANGE_PART, 0, 4},
	    {"Bytes=0-3", 10, RANGE_PART, 0, 4},
	    {"bytes=0-0", 10, RANGE_PART, 0, 1},
	    {"bytes=9-", 10, RANGE_PART, 9, 1},
	    {"bytes=0-", 10, RANGE_PART, 0, 10},
	    {"bytes=5-99", 10, RANGE_PART, 5, 5},
	    {"bytes=-3", 10, RANGE_PART, 7, 3},
	    {"bytes=-99", 10, RANGE_PART, 0, 10},
	    {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0},
	    {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0},
	    {"bytes=0-0", 0, RANGE_UNSATISFIABLE, 0, 0},
	    {"bytes=-1", 0, RANGE_UNSATISFIABLE, 0, 0},
	    {"bytes=5-3", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=a-b", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=-", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=+1-2", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=1 - 2", 10, RANGE_WHOLE, 0, 0},
	    {"lines=0-3", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=99999999999999999999-", 10, RANGE_WHOLE, 0, 0},
	    {"bytes=0-18446744073709551615", 10, RANGE_PART, 0, 10},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t first = 0, length = 0;
		enum range_kind k =
		    range_parse(str_c(rows[i].header), rows[i].size, &first, &length);
		cr_assert(k == rows[i].kind, "row %zu: kind %d", i, (int)k);
		cr_assert(first == rows[i].first && length == rows[i].length, "row %zu", i);
	}
	cr_assert(range_if_matches(STR_NULL, STR("\"e\"")));
	cr_assert(range_if_matches(STR(" \"e\""), STR("\"e\"")));
	cr_assert(!range_if_matches(STR("\"f\""), STR("\"e\"")));
	cr_assert(!range_if_matches(STR("W/\"e\""), STR("W/\"e\"")));
	cr_assert(!range_if_matches(STR("Mon, 30 Nov 2026 10:00:00 GMT"), STR("\"e\"")));
}

Test(http_text, media_type_by_name)
{
	cr_assert(str_eq(mime_of_name(STR("a.b.CSV")), STR("text/csv")));
	cr_assert(str_eq(mime_of_name(STR("chart.png")), STR("image/png")));
	cr_assert(str_eq(mime_of_name(STR("chart.svg")), STR("image/svg+xml")));
	cr_assert(str_eq(mime_of_name(STR("Makefile")), STR("application/octet-stream")));
	cr_assert(str_eq(mime_of_name(STR("x.")), STR("application/octet-stream")));
	cr_assert(str_eq(mime_of_name(STR_NULL), STR("application/octet-stream")));
}
