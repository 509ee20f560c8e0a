/* The multipart reader: every row runs whole, byte by byte, cut in two at each place, and with a
 * pause at every callback; what comes out must not depend on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "worker/http/multipart.h"

TestSuite(multipart, .timeout = 60);

struct reader {
	struct multipart *m;
	struct buf out;
	bool in_part, is_fresh, pause, stop_in_data;
	unsigned calls;
	uint64_t bytes;
	bool count_only;
};

static bool
flow(struct reader *r)
{
	cr_assert(!multipart_is_paused(r->m));
	r->calls++;
	return !r->pause;
}

static bool
begin(void *arg, const struct multipart_part *p)
{
	struct reader *r = arg;
	cr_assert(!r->in_part);
	r->in_part = true;
	buf_printf(&r->out, "(%.*s", STR_FMT(p->name));
	if (p->has_filename)
		buf_printf(&r->out, "|%.*s", STR_FMT(p->filename));
	if (p->content_type.ptr != NULL)
		buf_printf(&r->out, "|%.*s", STR_FMT(p->content_type));
	buf_addc(&r->out, ':');
	return flow(r);
}

static bool
data(void *arg, struct str bytes)
{
	struct reader *r = arg;
	cr_assert(r->in_part && bytes.len > 0);
	r->bytes += bytes.len;
	if (!r->count_only)
		buf_add(&r->out, bytes);
	if (r->stop_in_data)
		multipart_stop(r->m);
	return flow(r);
}

static bool
end(void *arg)
{
	struct reader *r = arg;
	cr_assert(r->in_part);
	r->in_part = false;
	buf_addc(&r->out, ')');
	return flow(r);
}

static const struct multipart_ops ops = {begin, data, end};

static enum err_code
feed(struct reader *r, struct str piece)
{
	/* A copy of its own, so that a read past the end is seen. */
	char *p = mem_alloc(piece.len + 1);
	memcpy(p, piece.ptr, piece.len);
	enum err_code rc = multipart_feed(r->m, str_n(p, piece.len), NULL);
	mem_free(p);
	while (rc == ERR_OK && multipart_is_paused(r->m))
		rc = multipart_resume(r->m, NULL);
	return rc;
}

static void
finish(struct reader *r, enum err_code rc)
{
	struct err e = {0};
	if (rc == ERR_OK)
		rc = multipart_end(r->m, &e);
	if (rc != ERR_OK) {
		cr_assert(rc == ERR_INPUT || rc == ERR_TOOLARGE);
		buf_add(&r->out, rc == ERR_INPUT ? STR("!bad") : STR("!large"));
		cr_assert(multipart_feed(r->m, STR("more"), NULL) == rc); /* it stays */
	}
	multipart_free(&r->m);
}

static void
reader_init(struct reader *r, struct str type)
{
	struct err e;
	memset(r, 0, sizeof(*r));
	buf_init(&r->out, 8u << 20);
	cr_assert(multipart_new(type, &ops, r, &r->m, &e) == ERR_OK, "%s", e.msg);
}

struct row {
	const char *name;
	struct str body;
	const char *expect;
};

static void
check(const struct row *row, struct str type, size_t cut, size_t step, bool pause)
{
	struct reader r;
	reader_init(&r, type);
	r.pause = pause;
	enum err_code rc = ERR_OK;
	if (step == 0) {
		rc = feed(&r, str_sub(row->body, 0, cut));
		if (rc == ERR_OK)
			rc = feed(&r, str_from(row->body, cut));
	}
	for (size_t i = 0; step > 0 && i < row->body.len && rc == ERR_OK; i += step)
		rc = feed(&r, str_sub(row->body, i, step));
	finish(&r, rc);
	cr_assert(str_eq(buf_str(&r.out), str_c(row->expect)),
	    "%s (cut %zu, step %zu): got %s, expected %s", row->name, cut, step, r.out.ptr,
	    row->expect);
	buf_done(&r.out);
}

static void
check_rows(const struct row *rows, size_t n, struct str type)
{
	for (size_t i = 0; i < n; i++) {
		for (int pause = 0; pause < 2; pause++) {
			check(&rows[i], type, rows[i].body.len, 0, pause);
			for (size_t step = 1; step < 8; step++)
				check(&rows[i], type, 0, step, pause);
			for (size_t cut = 1; cut < rows[i].body.len; cut++)
				check(&rows[i], type, cut, 0, pause);
		}
	}
}

#define ROW(name, raw, expect)                                                                     \
	{                                                                                          \
		name, STR_INIT(raw), expect                                                        \
	}
#define TYPE  "multipart/form-data; boundary=bound"
#define B     "--bound\r\n"
#define LAST  "\r\n--bound--\r\n"
#define CD(p) "Content-Disposition: form-data; " p "\r\n\r\n"
#define A     B CD("name=a")

Test(multipart, framing)
{
	static const struct row rows[] = {
	    ROW("one field", A "hello" LAST, "(a:hello)"),
	    ROW("field then file",
		A "1\r\n" B "Content-Disposition: form-data; name=\"file\"; filename=\"x.csv\"\r\n"
		  "Content-Type: text/csv\r\n\r\na,b\r\n1,2\r\n" LAST,
		"(a:1)(file|x.csv|text/csv:a,b\r\n1,2\r\n)"),
	    ROW("file then field",
		B CD("name=f; filename=x") "data\r\n" B CD("name=model") "gpt" LAST,
		"(f|x:data)(model:gpt)"),
	    ROW("same name twice", A "1\r\n" A "2" LAST, "(a:1)(a:2)"),
	    ROW("no epilogue line", A "x\r\n--bound--", "(a:x)"),
	    ROW("epilogue", A "x" LAST "junk\r\n--bound\r\n\r\n", "(a:x)"),
	    ROW("preamble", "junk\r\n\r\n" A "x" LAST, "(a:x)"),
	    ROW("preamble like a boundary", "--boundx\r\n" A "x" LAST, "!bad"),
	    ROW("preamble with part of one", "--boux\r\n" A "x" LAST, "(a:x)"),
	    ROW("line end first", "\r\n" A "x" LAST, "(a:x)"),
	    ROW("no line end before the first boundary", "junk" A "x" LAST, "!bad"),
	    ROW("empty part", A LAST, "(a:)"),
	    ROW("empty part without its own line end", A "--bound--", "(a:)"),
	    ROW("empty file", B CD("name=f; filename=\"\"") LAST, "(f|:)"),
	    ROW("part of a boundary in data", A "x\r\n--bounx\r\n--boun\r\n--\r\n-\r\n\r\r\n" LAST,
		"(a:x\r\n--bounx\r\n--boun\r\n--\r\n-\r\n\r\r\n)"),
	    ROW("boundary inside a line", A "x--bound--y" LAST, "(a:x--bound--y)"),
	    ROW("boundary behind LF or CR only", A "x\n--bound--\r--bound--" LAST,
		"(a:x\n--bound--\r--bound--)"),
	    ROW("data starts like a boundary", A "--boux" LAST, "(a:--boux)"),
	    ROW("data starts with a line end", A "\r\nx" LAST, "(a:\r\nx)"),
	    ROW("data ends with a line end", A "x\r\n" LAST, "(a:x\r\n)"),
	    ROW("repeated starts", A "\r\n\r\n-\r\n--\r\n--b\r\n--bo\r\n--bound--",
		"(a:\r\n\r\n-\r\n--\r\n--b\r\n--bo)"),
	    ROW("white space behind boundaries", "--bound \t\r\n" CD("name=a") "x\r\n--bound-- ",
		"(a:x)"),
	    ROW("nothing", "", "!bad"),
	    ROW("only the last boundary", "--bound--\r\n", ""),
	    ROW("last boundary missing", A "x", "(a:x!bad"),
	    ROW("last boundary cut", A "x\r\n--bound-", "(a:x)!bad"),
	    ROW("head cut", B "Content-Disp", "!bad"),
	    ROW("other character behind a boundary", A "x\r\n--boundY\r\n" LAST, "(a:x)!bad"),
	    ROW("garbage behind a boundary", A "x\r\n--bound-Y\r\n" LAST, "(a:x)!bad"),
	    ROW("LF behind a boundary", "--bound\n" CD("name=a") "x" LAST, "!bad"),
	    ROW("CR without LF behind a boundary", "--bound\rX" CD("name=a") "x" LAST, "!bad"),
	    ROW("nested is opaque",
		B "Content-Disposition: form-data; name=n\r\nContent-Type: multipart/mixed; "
		  "boundary=in\r\n\r\n--in\r\n\r\nx\r\n--in--" LAST,
		"(n|multipart/mixed; boundary=in:--in\r\n\r\nx\r\n--in--)"),
	};
	check_rows(rows, ARRAY_LEN(rows), STR(TYPE));
}

Test(multipart, part_headers)
{
	static const struct row rows[] = {
	    ROW("token", B CD("name=a;filename=b.txt") LAST, "(a|b.txt:)"),
	    ROW("quoted", B CD("name=\"a b\"; filename=\"b;c.txt\"") LAST, "(a b|b;c.txt:)"),
	    ROW("any case", B "CONTENT-DISPOSITION: Form-Data; NAME=a; FileName=b\r\n\r\n" LAST,
		"(a|b:)"),
	    ROW("escaped quotes", B CD("name=\"a\\\"b\"; filename=\"c\\\\d\\\"e\"") LAST,
		"(a\"b|d\"e:)"),
	    ROW("quotes as browsers do", B CD("name=\"a%22b\"; filename=\"c%22d\"") LAST,
		"(a\"b|c\"d:)"),
	    ROW("path", B CD("name=a; filename=\"../../etc/passwd\"") LAST, "(a|passwd:)"),
	    ROW("windows path", B CD("name=a; filename=\"C:\\dir\\f.txt\"") LAST, "(a|f.txt:)"),
	    ROW("path only", B CD("name=a; filename=\"dir/\"") LAST, "(a|:)"),
	    ROW("utf-8", B CD("name=a; filename=\"\xC3\xA9.txt\"") LAST, "(a|\xC3\xA9.txt:)"),
	    ROW("latin-1", B CD("name=a; filename=\"\xE9.txt\"") LAST, "(a|\xEF\xBF\xBD.txt:)"),
	    ROW("extended", B CD("name=a; filename=\"x\"; filename*=UTF-8''%C3%A9%20b") LAST,
		"(a|\xC3\xA9 b:)"),
	    ROW("extended first", B CD("name=a; filename*=utf-8'en'%C3%A9; filename=\"x\"") LAST,
		"(a|\xC3\xA9:)"),
	    ROW("extended path", B CD("name=a; filename*=UTF-8''..%2Fx") LAST, "(a|x:)"),
	    ROW("extended NUL", B CD("name=a; filename*=UTF-8''a%00b") LAST, "!bad"),
	    ROW("extended line end", B CD("name=a; filename*=UTF-8''a%0D%0Ab") LAST, "!bad"),
	    ROW("extended latin-1", B CD("name=a; filename*=ISO-8859-1''%E9") LAST, "!bad"),
	    ROW("extended broken", B CD("name=a; filename*=UTF-8''%E") LAST, "!bad"),
	    ROW("bare boundary characters", B CD("name=a; filename=x:y=z") LAST, "(a|x:y=z:)"),
	    ROW("other parameters", B CD("size=3; name=a; x=\"y\";") LAST, "(a:)"),
	    ROW("no name", B CD("filename=x") LAST, "!bad"),
	    ROW("empty name", B CD("name=\"\"") LAST, "(:)"),
	    ROW("name twice", B CD("name=a; name=b") LAST, "!bad"),
	    ROW("filename twice", B CD("name=a; filename=b; filename=c") LAST, "!bad"),
	    ROW("not form-data", B "Content-Disposition: attachment; name=a\r\n\r\n" LAST, "!bad"),
	    ROW("no disposition", B "Content-Type: text/plain\r\n\r\n" LAST, "!bad"),
	    ROW("no headers", B "\r\nx" LAST, "!bad"),
	    ROW("two dispositions",
		B "Content-Disposition: form-data; name=a\r\n" CD("name=b") LAST, "!bad"),
	    ROW("quote not closed", B CD("name=\"a") LAST, "!bad"),
	    ROW("garbage parameter", B CD("name=a; ???") LAST, "!bad"),
	    ROW("garbage behind a value", B CD("name=\"a\"b") LAST, "!bad"),
	    ROW("NUL", B CD("name=\"a\0b\"") LAST, "!bad"),
	    ROW("control", B CD("name=\"a\x01\"") LAST, "!bad"),
	    ROW("tab in name", B CD("name=\"a\tb\"") LAST, "!bad"),
	    ROW("bare LF", B "Content-Disposition: form-data; name=a\n\r\n" LAST, "!bad"),
	    ROW("bare CR", B "Content-Disposition: form-data; \rname=a\r\n\r\n" LAST, "!bad"),
	    ROW("folded", B "Content-Disposition: form-data;\r\n name=a\r\n\r\n" LAST, "!bad"),
	    ROW("space before colon", B "Content-Disposition : form-data; name=a\r\n\r\n" LAST,
		"!bad"),
	    ROW("base64", B "Content-Transfer-Encoding: base64\r\n" CD("name=a") "eA==" LAST,
		"!bad"),
	    ROW("binary", B "Content-Transfer-Encoding: BINARY\r\n" CD("name=a") "x" LAST, "(a:x)"),
	};
	check_rows(rows, ARRAY_LEN(rows), STR(TYPE));
}

#define B70 "0123456789012345678901234567890123456789012345678901234567890123456789"

Test(multipart, request_content_types)
{
	static const struct {
		struct str type, body;
		enum err_code rc;
	} rows[] = {
	    {STR_INIT("multipart/form-data; boundary=b"), STR_INIT("--b--"), ERR_OK},
	    {STR_INIT(" Multipart/Form-Data ;charset=utf-8; BOUNDARY=\"b\" "), STR_INIT("--b--"),
		ERR_OK},
	    {STR_INIT("multipart/form-data; boundary=\"a b:c\""), STR_INIT("--a b:c--"), ERR_OK},
	    {STR_INIT("multipart/form-data; boundary=a/b=c?"), STR_INIT("--a/b=c?--"), ERR_OK},
	    {STR_INIT("multipart/form-data; boundary=" B70), STR_INIT("--" B70 "--"), ERR_OK},
	    {STR_INIT("multipart/form-data; boundary=" B70 "x"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary="), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=\"\""), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=\"a \""), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=\"a\r\n\""), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=a\0b"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=a*b"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=a; boundary=b"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data; boundary=\"a"), STR_INIT(""), ERR_INPUT},
	    {STR_INIT("multipart/form-data boundary=a"), STR_INIT(""), ERR_UNSUPPORTED},
	    {STR_INIT("multipart/form-datax; boundary=a"), STR_INIT(""), ERR_UNSUPPORTED},
	    {STR_INIT("multipart/mixed; boundary=a"), STR_INIT(""), ERR_UNSUPPORTED},
	    {STR_INIT("application/json"), STR_INIT(""), ERR_UNSUPPORTED},
	    {STR_INIT(""), STR_INIT(""), ERR_UNSUPPORTED},
	    {{NULL, 0}, STR_INIT(""), ERR_UNSUPPORTED},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct multipart *m = NULL;
		enum err_code rc = multipart_new(rows[i].type, &ops, NULL, &m, NULL);
		cr_assert(rc == rows[i].rc, "row %zu: %s", i, err_name(rc));
		if (rc == ERR_OK) {
			cr_assert(multipart_feed(m, rows[i].body, NULL) == ERR_OK);
			cr_assert(multipart_end(m, NULL) == ERR_OK, "row %zu", i);
		}
		multipart_free(&m);
	}
}

static void
expect_large(struct buf *body, const char *name, bool is_large)
{
	struct reader r;
	reader_init(&r, STR(TYPE));
	r.count_only = true;
	finish(&r, feed(&r, buf_str(body)));
	cr_assert(str_ends(buf_str(&r.out), STR("!large")) == is_large, "%s: %s", name, r.out.ptr);
	cr_assert(is_large || !str_ends(buf_str(&r.out), STR("!bad")), "%s", name);
	buf_done(&r.out);
	buf_clear(body);
}

static void
fill(struct buf *b, size_t n)
{
	while (n-- > 0)
		buf_addc(b, 'x');
}

Test(multipart, limits)
{
	struct buf b = BUF_INIT(8u << 20);
	for (unsigned extra = 0; extra < 2; extra++) {
		for (unsigned i = 0; i < LIMIT_MULTIPART_PARTS + extra; i++)
			buf_add(&b, STR(A "x\r\n"));
		buf_add(&b, STR("--bound--"));
		expect_large(&b, "parts", extra == 1);
		buf_add(&b, STR(A));
		fill(&b, LIMIT_MULTIPART_FIELD_BYTES + extra);
		buf_add(&b, STR(LAST));
		expect_large(&b, "field", extra == 1);
		buf_add(&b, STR(B "X: "));
		fill(&b, LIMIT_MULTIPART_HEAD_BYTES - (sizeof("X: \r\n" CD("name=a")) - 1) + extra);
		buf_add(&b, STR("\r\n" CD("name=a") LAST));
		expect_large(&b, "headers", extra == 1);
		buf_add(&b, STR(B));
		for (unsigned i = 1; i < 32 + extra; i++)
			buf_add(&b, STR("X: y\r\n"));
		buf_add(&b, STR(CD("name=a") LAST));
		expect_large(&b, "header count", extra == 1);
	}
	/* Every byte of the longest header becomes three. */
	buf_add(&b, STR(B "Content-Disposition: form-data; name=a; filename=\""));
	while (b.len < LIMIT_MULTIPART_HEAD_BYTES)
		buf_addc(&b, (char)0xE9);
	buf_add(&b, STR("\"\r\n\r\n" LAST));
	expect_large(&b, "mended", false);
	fill(&b, 100000); /* no boundary at all */
	struct reader r;
	reader_init(&r, STR(TYPE));
	cr_assert(feed(&r, buf_str(&b)) == ERR_INPUT);
	multipart_free(&r.m);
	buf_done(&r.out);
	buf_done(&b);
}

Test(multipart, file_of_512_mb_streams_and_stop_swallows)
{
	struct reader r;
	static char block[65536];
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = i % 97 == 0 ? '\r' : (char)(i % 251);
	reader_init(&r, STR(TYPE));
	r.count_only = true;
	cr_assert(feed(&r, STR(B CD("name=f; filename=x"))) == ERR_OK);
	for (int i = 0; i < 8192; i++)
		cr_assert(multipart_feed(r.m, str_n(block, sizeof(block)), NULL) == ERR_OK);
	cr_assert(feed(&r, STR(LAST)) == ERR_OK && r.bytes == 536870912);
	/* Pieces are given on as they come, not cut at each CR. */
	cr_assert(r.calls < 3 * 8192, "%u callbacks", r.calls);
	finish(&r, ERR_OK);
	cr_assert(str_eq(buf_str(&r.out), STR("(f|x:)")));
	buf_done(&r.out);
	reader_init(&r, STR(TYPE));
	r.stop_in_data = true;
	r.pause = true;
	cr_assert(multipart_feed(r.m, STR(A "x"), NULL) == ERR_OK && multipart_is_paused(r.m));
	cr_assert(multipart_resume(r.m, NULL) == ERR_OK && !multipart_is_paused(r.m));
	cr_assert(multipart_feed(r.m, STR("any\r\n--boundX"), NULL) == ERR_OK);
	finish(&r, ERR_OK);
	cr_assert(str_eq(buf_str(&r.out), STR("(a:x")), "%s", r.out.ptr);
	buf_done(&r.out);
}
