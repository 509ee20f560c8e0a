/* The request parser against everything that lets two servers read one request differently. Every
 * row runs whole, byte by byte and cut in two at each place: the answer must not depend on it. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "worker/http/parse.h"

TestSuite(http_parse, .timeout = 60);

#define H11 " HTTP/1.1\r\nHost: h\r\n"

struct row {
	const char *name;
	struct str raw;
	const char *expect;
};

/* Reads requests until the bytes end, across pieces, as a connection would. */
struct reader {
	struct http_head_parser head;
	struct http_body_parser body;
	bool in_body, has_failed;
	struct buf out;
};

static void
reader_init(struct reader *r)
{
	http_head_parser_init(&r->head);
	r->in_body = r->has_failed = false;
	buf_init(&r->out, 1u << 20);
}

static void
reader_done(struct reader *r)
{
	http_head_parser_done(&r->head);
	buf_done(&r->out);
}

static void
reader_fail(struct reader *r, int status, const char *reason)
{
	cr_assert(status >= 400 && reason[0] != '\0');
	buf_printf(&r->out, "!%d", status);
	r->has_failed = true;
}

static void
reader_begin_body(struct reader *r)
{
	const struct http_head *h = &r->head.head;
	buf_printf(&r->out, "%s %.*s", http_method_name(h->method), STR_FMT(h->path));
	if (h->query.len > 0)
		buf_printf(&r->out, "?%.*s", STR_FMT(h->query));
	if (h->is_chunked)
		buf_add(&r->out, STR(" chunked"));
	else if (h->content_length >= 0)
		buf_printf(&r->out, " %lld", (long long)h->content_length);
	if (h->expects_continue)
		buf_add(&r->out, STR(" expect"));
	buf_add(&r->out, r->head.keep_alive ? STR(" keep") : STR(" close"));
	buf_add(&r->out, STR(" ["));
	http_body_parser_init(&r->body, h);
	r->in_body = true;
}

static size_t
reader_step(struct reader *r, struct str bytes, bool *ret_more)
{
	size_t taken = 0;
	struct str data = STR("");
	enum http_parse rc = r->in_body ? http_body_feed(&r->body, bytes, &taken, &data)
					: http_head_feed(&r->head, bytes, &taken);
	*ret_more = rc == HTTP_PARSE_MORE;
	cr_assert(!*ret_more || taken == bytes.len);
	buf_add(&r->out, data);
	if (rc == HTTP_PARSE_FAILED) {
		reader_fail(r, r->in_body ? r->body.status : r->head.status,
		    r->in_body ? r->body.reason : r->head.reason);
	} else if (rc == HTTP_PARSE_DONE && !r->in_body) {
		reader_begin_body(r);
	} else if (rc == HTTP_PARSE_DONE) {
		buf_add(&r->out, STR("];"));
		http_head_parser_done(&r->head);
		http_head_parser_init(&r->head);
		r->in_body = false;
	}
	return taken;
}

static void
reader_feed(struct reader *r, struct str bytes)
{
	bool more = false;
	while (!more && !r->has_failed) {
		if (bytes.len == 0 && !r->in_body)
			return;
		bytes = str_from(bytes, reader_step(r, bytes, &more));
	}
}

static void
check(const struct row *row, struct str first, struct str second, size_t step)
{
	struct reader r;
	reader_init(&r);
	if (step == 0) {
		reader_feed(&r, first);
		reader_feed(&r, second);
	} else {
		for (size_t i = 0; i < first.len; i += step)
			reader_feed(&r, str_sub(first, i, step));
	}
	cr_assert(str_eq(buf_str(&r.out), str_c(row->expect)),
	    "%s (cut %zu, step %zu): got %s, expected %s", row->name, first.len, step,
	    r.out.ptr != NULL ? r.out.ptr : "", row->expect);
	reader_done(&r);
}

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		check(&rows[i], rows[i].raw, STR(""), 0);
		check(&rows[i], rows[i].raw, STR(""), 1);
		for (size_t cut = 1; cut < rows[i].raw.len; cut++)
			check(
			    &rows[i], str_sub(rows[i].raw, 0, cut), str_from(rows[i].raw, cut), 0);
	}
}

#define ROW(name, raw, expect)                                                                     \
	{                                                                                          \
		name, STR_INIT(raw), expect                                                        \
	}

Test(http_parse, request_lines)
{
	static const struct row rows[] = {
	    ROW("plain", "GET /a/b?c=d&e" H11 "\r\n", "GET /a/b?c=d&e keep [];"),
	    ROW("1.0", "GET / HTTP/1.0\r\n\r\n", "GET / close [];"),
	    ROW("1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
		"GET / keep [];"),
	    ROW("1.0 with Host", "GET / HTTP/1.0\r\nHost: h\r\n\r\n", "GET / close [];"),
	    ROW("every method: HEAD", "HEAD /" H11 "\r\n", "HEAD / keep [];"),
	    ROW("PUT", "PUT /" H11 "Content-Length: 0\r\n\r\n", "PUT / 0 keep [];"),
	    ROW("PATCH", "PATCH /" H11 "\r\n", "PATCH / keep [];"),
	    ROW("DELETE", "DELETE /" H11 "\r\n", "DELETE / keep [];"),
	    ROW("OPTIONS *", "OPTIONS *" H11 "\r\n", "OPTIONS * keep [];"),
	    ROW("GET *", "GET *" H11 "\r\n", "!400"),
	    ROW("unknown method", "BREW /" H11 "\r\n", "!405"),
	    ROW("TRACE", "TRACE /" H11 "\r\n", "!405"),
	    ROW("CONNECT", "CONNECT h:443" H11 "\r\n", "!405"),
	    ROW("lower case", "get /" H11 "\r\n", "!405"),
	    ROW("method not a token", "G@T /" H11 "\r\n", "!400"),
	    ROW("no method", " /" H11 "\r\n", "!400"),
	    ROW("leading CRLF once", "\r\nGET /" H11 "\r\n", "GET / keep [];"),
	    ROW("leading CRLF twice", "\r\n\r\nGET /" H11 "\r\n", "!400"),
	    ROW("leading space", " GET /" H11 "\r\n", "!400"),
	    ROW("space in target", "GET /a b" H11 "\r\n", "!400"),
	    ROW("two spaces", "GET  /" H11 "\r\n", "!400"),
	    ROW("two spaces behind", "GET / " H11 "\r\n", "!400"),
	    ROW("space at the end", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "!400"),
	    ROW("tab", "GET\t/" H11 "\r\n", "!400"),
	    ROW("absolute target", "GET http://h/" H11 "\r\n", "!400"),
	    ROW("relative target", "GET a" H11 "\r\n", "!400"),
	    ROW("fragment", "GET /a#b" H11 "\r\n", "!400"),
	    ROW("8 bit target", "GET /\xC3\xA9" H11 "\r\n", "!400"),
	    ROW("brackets", "GET /?ids[]=1|2" H11 "\r\n", "GET /?ids[]=1|2 keep [];"),
	    ROW("HTTP/2.0", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "!505"),
	    ROW("HTTP/1.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", "!505"),
	    ROW("HTTP/0.9", "GET / HTTP/0.9\r\n\r\n", "!505"),
	    ROW("0.9 form", "GET /\r\n", "!400"),
	    ROW("PRI *", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505"),
	    ROW("lower version", "GET / http/1.1\r\nHost: h\r\n\r\n", "!400"),
	    ROW("version junk", "GET / HTTP/1.1x\r\nHost: h\r\n\r\n", "!400"),
	    ROW("version 1.10", "GET / HTTP/1.10\r\nHost: h\r\n\r\n", "!400"),
	    ROW("TLS hello", "\x16\x03\x01\x02\x00\x01", "!400"),
	    ROW("pipeline of 3",
		"GET /1" H11 "\r\nPOST /2" H11 "Content-Length: 2\r\n\r\nhiGET /3" H11 "\r\n",
		"GET /1 keep [];POST /2 2 keep [hi];GET /3 keep [];"),
	};
	check_rows(rows, ARRAY_LEN(rows));
}

Test(http_parse, header_fields)
{
	static const struct row rows[] = {
	    ROW("OWS", "GET /" H11 "A:\t x y \t\r\n\r\n", "GET / keep [];"),
	    ROW("empty value", "GET /" H11 "A:\r\n\r\n", "GET / keep [];"),
	    ROW("8 bit value", "GET /" H11 "A: \xC3\xA9\r\n\r\n", "GET / keep [];"),
	    ROW("bare LF", "GET / HTTP/1.1\nHost: h\n\n", "!400"),
	    ROW("one bare LF", "GET /" H11 "A: b\n\r\n", "!400"),
	    ROW("bare CR in value", "GET /" H11 "A: b\rc\r\n\r\n", "!400"),
	    ROW("CR CR LF", "GET /" H11 "A: b\r\r\n\r\n", "!400"),
	    ROW("NUL in value", "GET /" H11 "A: 3\0junk\r\n\r\n", "!400"),
	    ROW("NUL in name", "GET /" H11 "A\0: 3\r\n\r\n", "!400"),
	    ROW("control", "GET /" H11 "A: \x01\r\n\r\n", "!400"),
	    ROW("DEL", "GET /" H11 "A: \x7f\r\n\r\n", "!400"),
	    ROW("name X(A", "GET /" H11 "X(A: b\r\n\r\n", "!400"),
	    ROW("8 bit name", "GET /" H11 "\xC3\xA9: b\r\n\r\n", "!400"),
	    ROW("empty name", "GET /" H11 ": b\r\n\r\n", "!400"),
	    ROW("no colon", "GET /" H11 "abc\r\n\r\n", "!400"),
	    ROW("space before colon", "GET /" H11 "A : b\r\n\r\n", "!400"),
	    ROW("tab before colon", "GET /" H11 "A\t: b\r\n\r\n", "!400"),
	    ROW("obs-fold", "GET /" H11 "A: b\r\n c\r\n\r\n", "!400"),
	    ROW("obs-fold with tab", "GET /" H11 "A: b\r\n\tc\r\n\r\n", "!400"),
	    ROW("fold on first header", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", "!400"),
	    ROW("no Host", "GET / HTTP/1.1\r\n\r\n", "!400"),
	    ROW("two Hosts", "GET /" H11 "Host: h\r\n\r\n", "!400"),
	    ROW("two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n", "!400"),
	    ROW("Host port", "GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", "GET / keep [];"),
	    ROW("Host with path", "GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", "!400"),
	    ROW("Host with user", "GET / HTTP/1.1\r\nHost: a@h\r\n\r\n", "!400"),
	    ROW("Host of two", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "!400"),
	    ROW("close", "GET /" H11 "Connection: close\r\n\r\n", "GET / close [];"),
	    ROW("x, close", "GET /" H11 "Connection: x, close\r\n\r\n", "GET / close [];"),
	    ROW("x,CLOSE", "GET /" H11 "connection: x ,\tCLOSE\r\n\r\n", "GET / close [];"),
	    ROW("second Connection", "GET /" H11 "Connection: x\r\nConnection: close\r\n\r\n",
		"GET / close [];"),
	    ROW("closed", "GET /" H11 "Connection: closed\r\n\r\n", "GET / keep [];"),
	    ROW("Expect", "PUT /" H11 "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\nx",
		"PUT / 1 expect keep [x];"),
	    ROW("Expect without body", "PUT /" H11 "Expect: 100-continue\r\n\r\n",
		"PUT / keep [];"),
	    ROW("other Expect", "PUT /" H11 "Content-Length: 1\r\nExpect: x\r\n\r\nx", "!417"),
	    ROW("Upgrade", "GET /" H11 "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
		"GET / keep [];"),
	};
	check_rows(rows, ARRAY_LEN(rows));
}

#define CL "Content-Length: "
#define TE "Transfer-Encoding: "

Test(http_parse, body_framing)
{
	static const struct row rows[] = {
	    ROW("CL", "POST /" H11 CL "3\r\n\r\nabc", "POST / 3 keep [abc];"),
	    ROW("CL with tab", "POST /" H11 "Content-Length:\t3 \r\n\r\nabc",
		"POST / 3 keep [abc];"),
	    ROW("CL zeros", "POST /" H11 CL "0003\r\n\r\nabc", "POST / 3 keep [abc];"),
	    ROW("HEAD with body", "HEAD /" H11 CL "3\r\n\r\nabcGET /2" H11 "\r\n",
		"HEAD / 3 keep [abc];GET /2 keep [];"),
	    ROW("GET with body", "GET /" H11 CL "3\r\n\r\nabc", "GET / 3 keep [abc];"),
	    ROW("CL and TE", "POST /" H11 CL "3\r\n" TE "chunked\r\n\r\n", "!400"),
	    ROW("TE and CL", "POST /" H11 TE "chunked\r\n" CL "3\r\n\r\n", "!400"),
	    ROW("CL and TE junk", "POST /" H11 CL "3\r\n" TE "x\r\n\r\n", "!400"),
	    ROW("two CL", "POST /" H11 CL "3\r\n" CL "4\r\n\r\n", "!400"),
	    ROW("two same CL", "POST /" H11 CL "3\r\n" CL "3\r\n\r\nabc", "!400"),
	    ROW("CL space colon", "POST /" H11 "Content-Length : 3\r\n\r\nabc", "!400"),
	    ROW("CL +3", "POST /" H11 CL "+3\r\n\r\nabc", "!400"),
	    ROW("CL -1", "POST /" H11 CL "-1\r\n\r\n", "!400"),
	    ROW("CL 0x3", "POST /" H11 CL "0x3\r\n\r\n", "!400"),
	    ROW("CL 3, 3", "POST /" H11 CL "3, 3\r\n\r\n", "!400"),
	    ROW("CL 3 3", "POST /" H11 CL "3 3\r\n\r\n", "!400"),
	    ROW("CL empty", "POST /" H11 CL "\r\n\r\n", "!400"),
	    ROW("CL 1e1", "POST /" H11 CL "1e1\r\n\r\n", "!400"),
	    ROW("CL NUL", "POST /" H11 CL "3\0\r\n\r\n", "!400"),
	    ROW("CL huge", "POST /" H11 CL "99999999999999999999\r\n\r\n", "!413"),
	    ROW("CL 2^63", "POST /" H11 CL "9223372036854775808\r\n\r\n", "!413"),
	    ROW("CL folded", "POST /" H11 "Content-Length:\r\n 3\r\n\r\nabc", "!400"),
	    ROW("TE xchunked", "POST /" H11 TE "xchunked\r\n\r\n", "!501"),
	    ROW("TE identity", "POST /" H11 TE "identity\r\n\r\n", "!501"),
	    ROW("TE gzip, chunked", "POST /" H11 TE "gzip, chunked\r\n\r\n", "!501"),
	    ROW("TE chunked, gzip", "POST /" H11 TE "chunked, gzip\r\n\r\n", "!400"),
	    ROW("TE chunked twice", "POST /" H11 TE "chunked, chunked\r\n\r\n", "!400"),
	    ROW("two TE", "POST /" H11 TE "chunked\r\n" TE "chunked\r\n\r\n", "!400"),
	    ROW("TE gzip + TE chunked", "POST /" H11 TE "gzip\r\n" TE "chunked\r\n\r\n", "!501"),
	    ROW("TE chunked + TE x", "POST /" H11 TE "chunked\r\n" TE "x\r\n\r\n", "!400"),
	    ROW("TE empty", "POST /" H11 TE "\r\n\r\n", "!400"),
	    ROW("TE chunked,", "POST /" H11 TE "chunked,\r\n\r\n", "!400"),
	    ROW("TE quoted", "POST /" H11 TE "\"chunked\"\r\n\r\n", "!501"),
	    ROW("TE chunked;q=1", "POST /" H11 TE "chunked;q=1\r\n\r\n", "!501"),
	    ROW("TE VT",
		"POST /" H11 TE "\x0b"
		"chunked\r\n\r\n",
		"!400"),
	    ROW("TE folded", "POST /" H11 "Transfer-Encoding:\r\n chunked\r\n\r\n", "!400"),
	    ROW("TE in 1.0", "POST / HTTP/1.0\r\n" TE "chunked\r\n\r\n0\r\n\r\n", "!400"),
	    ROW("TE upper", "POST /" H11 TE "CHUNKED\r\n\r\n0\r\n\r\n", "POST / chunked keep [];"),
	};
	check_rows(rows, ARRAY_LEN(rows));
}

#define CHUNKED "POST /" H11 TE "chunked\r\n\r\n"
#define HEADOK  "POST / chunked keep ["

Test(http_parse, chunked_bodies)
{
	static const struct row rows[] = {
	    ROW("two chunks", CHUNKED "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /2" H11 "\r\n",
		HEADOK "abcde];GET /2 keep [];"),
	    ROW("hex and zeros", CHUNKED "00a\r\n0123456789\r\n0B\r\n0123456789A\r\n000\r\n\r\n",
		HEADOK "01234567890123456789A];"),
	    ROW("extension", CHUNKED "3;a=b;c=\"d;\"\r\nabc\r\n0;x\r\n\r\n", HEADOK "abc];"),
	    ROW("trailers",
		CHUNKED "1\r\na\r\n0\r\nA: b\r\nContent-Length: 9\r\n\r\nGET /2" H11 "\r\n",
		HEADOK "a];GET /2 keep [];"),
	    ROW("0x3", CHUNKED "0x3\r\nabc\r\n", HEADOK "!400"),
	    ROW(" 3 junk", CHUNKED " 3 junk\r\nabc\r\n", HEADOK "!400"),
	    ROW("3 junk", CHUNKED "3 junk\r\nabc\r\n", HEADOK "!400"),
	    ROW("+3", CHUNKED "+3\r\nabc\r\n", HEADOK "!400"),
	    ROW("-3", CHUNKED "-3\r\nabc\r\n", HEADOK "!400"),
	    ROW("no size", CHUNKED "\r\nabc\r\n", HEADOK "!400"),
	    ROW("only extension", CHUNKED ";a\r\nabc\r\n", HEADOK "!400"),
	    ROW("no CRLF behind data", CHUNKED "3\r\nabc4\r\n", HEADOK "abc!400"),
	    ROW("data longer than said", CHUNKED "3\r\nabcd\r\n0\r\n\r\n", HEADOK "abc!400"),
	    ROW("LF only", CHUNKED "3\nabc\n0\n\n", HEADOK "!400"),
	    ROW("LF behind data", CHUNKED "3\r\nabc\n0\r\n\r\n", HEADOK "abc!400"),
	    ROW("CR in extension", CHUNKED "3;a\rb\r\nabc", HEADOK "!400"),
	    ROW("NUL in extension", CHUNKED "3;\0\r\nabc", HEADOK "!400"),
	    ROW("overflow", CHUNKED "FFFFFFFFFFFFFFFFF\r\n", HEADOK "!413"),
	    ROW("2^64-1", CHUNKED "FFFFFFFFFFFFFFFF\r\n", HEADOK "!413"),
	    ROW("2^64+3", CHUNKED "10000000000000003\r\nabc\r\n", HEADOK "!413"),
	    ROW("folded trailer", CHUNKED "0\r\nA: b\r\n c\r\n\r\n", HEADOK "!400"),
	    ROW("trailer without name", CHUNKED "0\r\n: b\r\n\r\n", HEADOK "!400"),
	    ROW("trailer without colon", CHUNKED "0\r\nabc\r\n\r\n", HEADOK "!400"),
	    ROW("LF trailer", CHUNKED "0\r\nA: b\n\r\n", HEADOK "!400"),
	    ROW("LF end", CHUNKED "0\r\n\n", HEADOK "!400"),
	};
	check_rows(rows, ARRAY_LEN(rows));
}

static void
check_status(struct buf *b, const char *name, int status, enum http_parse expect)
{
	struct http_head_parser p;
	size_t taken;
	http_head_parser_init(&p);
	enum http_parse rc = http_head_feed(&p, buf_str(b), &taken);
	cr_assert(
	    rc == expect && p.status == status, "%s: rc %d status %d", name, (int)rc, p.status);
	http_head_parser_done(&p);
	buf_clear(b);
}

static void
fill(struct buf *b, char c, size_t n)
{
	while (n-- > 0)
		buf_addc(b, c);
}

Test(http_parse, limits_of_a_head)
{
	struct buf b = BUF_INIT(1u << 20);
	buf_add(&b, STR("GET /"));
	fill(&b, 'a', LIMIT_HTTP_TARGET_BYTES - 1);
	buf_add(&b, STR(H11 "\r\n"));
	check_status(&b, "longest target", 0, HTTP_PARSE_DONE);
	buf_add(&b, STR("GET /"));
	fill(&b, 'a', LIMIT_HTTP_TARGET_BYTES);
	buf_add(&b, STR(H11 "\r\n"));
	check_status(&b, "target too long", 414, HTTP_PARSE_FAILED);
	buf_add(&b, STR("GET /"));
	fill(&b, 'a', 100000);
	check_status(&b, "target without end", 414, HTTP_PARSE_FAILED);
	buf_add(&b, STR("GET /" H11 "A: "));
	fill(&b, 'a', LIMIT_HTTP_HEAD_BYTES - b.len - 4);
	buf_add(&b, STR("\r\n\r\n"));
	check_status(&b, "largest head", 0, HTTP_PARSE_DONE);
	buf_add(&b, STR("GET /" H11 "A: "));
	fill(&b, 'a', LIMIT_HTTP_HEAD_BYTES - b.len - 3);
	buf_add(&b, STR("\r\n\r\n"));
	check_status(&b, "head too large", 431, HTTP_PARSE_FAILED);
	buf_add(&b, STR("GET /" H11));
	for (unsigned i = 1; i < LIMIT_HTTP_HEADERS; i++)
		buf_add(&b, STR("A:\r\n"));
	buf_add(&b, STR("\r\n"));
	check_status(&b, "most headers", 0, HTTP_PARSE_DONE);
	buf_add(&b, STR("GET /" H11));
	for (unsigned i = 0; i < LIMIT_HTTP_HEADERS; i++)
		buf_add(&b, STR("A:\r\n"));
	buf_add(&b, STR("\r\n"));
	check_status(&b, "too many headers", 431, HTTP_PARSE_FAILED);
	buf_done(&b);
}

Test(http_parse, chunk_extensions_are_bounded)
{
	struct http_head head = {.is_chunked = true, .has_body = true, .content_length = -1};
	struct http_body_parser p;
	http_body_parser_init(&p, &head);
	enum http_parse rc = HTTP_PARSE_MORE;
	size_t fed = 0, taken;
	for (; rc != HTTP_PARSE_FAILED && fed < 1000000; fed += 16) {
		struct str in = STR("1;xxxxxxxxxx\r\na\r\n"), data;
		do {
			rc = http_body_feed(&p, in, &taken, &data);
			in = str_from(in, taken);
		} while (rc == HTTP_PARSE_DATA);
	}
	cr_assert(rc == HTTP_PARSE_FAILED && p.status == 400 && fed < 100000, "%zu", fed);
}
