#include "worker/http/parse.h"

#include <string.h>

/* Request line beside the target: longest method, two spaces, version. */
#define LINE_EXTRA_BYTES 32u

/* RFC 9110 §5.6.2 */
static bool
is_tchar(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool
is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_tchar(s.ptr[i]))
			return false;
	return s.len > 0;
}

static struct str
strip_ows(struct str s)
{
	while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
		s = str_from(s, 1);
	while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool
fail(struct http_head_parser *p, int status, const char *reason)
{
	p->status = status;
	p->reason = reason;
	return false;
}

void
http_head_parser_init(struct http_head_parser *p)
{
	memset(p, 0, sizeof(*p));
	buf_init(&p->raw, LIMIT_HTTP_HEAD_BYTES);
	p->head.target = p->head.path = p->head.query = p->head.host = p->head.peer = STR("");
	p->head.headers = p->headers;
	p->head.content_length = -1;
	p->reason = "";
}

void
http_head_parser_done(struct http_head_parser *p)
{
	buf_done(&p->raw);
}

static bool
read_method(struct http_head_parser *p, struct str s)
{
	static const struct {
		struct str name;
		enum http_method method;
	} known[] = {
	    {STR_INIT("GET"), HTTP_GET},
	    {STR_INIT("HEAD"), HTTP_HEAD},
	    {STR_INIT("POST"), HTTP_POST},
	    {STR_INIT("PUT"), HTTP_PUT},
	    {STR_INIT("PATCH"), HTTP_PATCH},
	    {STR_INIT("DELETE"), HTTP_DELETE},
	    {STR_INIT("OPTIONS"), HTTP_OPTIONS},
	};
	if (!is_token(s))
		return fail(p, 400, "malformed request line");
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (str_eq(s, known[i].name)) {
			p->head.method = known[i].method;
			return true;
		}
	}
	return fail(p, 405, "method not allowed");
}

static bool
read_target(struct http_head_parser *p, struct str s)
{
	if (s.len > LIMIT_HTTP_TARGET_BYTES)
		return fail(p, 414, "request target too long");
	bool is_asterisk = str_eq(s, STR("*")) && p->head.method == HTTP_OPTIONS;
	if (!is_asterisk && !str_starts(s, STR("/")))
		return fail(p, 400, "request target must be a path");
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || s.ptr[i] == '#')
			return fail(p, 400, "invalid character in request target");
	size_t mark = str_chr(s, '?');
	p->head.target = s;
	p->head.path = mark == SIZE_MAX ? s : str_sub(s, 0, mark);
	p->head.query = mark == SIZE_MAX ? STR("") : str_from(s, mark + 1);
	return true;
}

static bool
read_version(struct http_head_parser *p, struct str s)
{
	if (str_eq(s, STR("HTTP/1.1")) || str_eq(s, STR("HTTP/1.0"))) {
		p->minor_version = s.ptr[7] - '0';
		return true;
	}
	if (s.len == 8 && str_starts(s, STR("HTTP/")) && s.ptr[5] >= '0' && s.ptr[5] <= '9' &&
	    s.ptr[6] == '.' && s.ptr[7] >= '0' && s.ptr[7] <= '9')
		return fail(p, 505, "HTTP version not supported");
	return fail(p, 400, "malformed request line");
}

/* method SP target SP version, nothing else. The version is judged before the method, because what
 * another version's methods mean is not ours to say. */
static bool
read_request_line(struct http_head_parser *p, struct str line)
{
	size_t a = str_chr(line, ' '), b = str_rchr(line, ' ');
	if (a == SIZE_MAX || a == b || !is_token(str_sub(line, 0, a)))
		return fail(p, 400, "malformed request line");
	return read_version(p, str_from(line, b + 1)) && read_method(p, str_sub(line, 0, a)) &&
	       read_target(p, str_sub(line, a + 1, b - a - 1));
}

static bool
read_header(struct http_head_parser *p, struct str line)
{
	if (p->head.header_count == LIMIT_HTTP_HEADERS)
		return fail(p, 431, "too many headers");
	if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
		return fail(p, 400, "folded header");
	size_t colon = str_chr(line, ':');
	if (colon == SIZE_MAX || !is_token(str_sub(line, 0, colon)))
		return fail(p, 400, "malformed header");
	p->headers[p->head.header_count++] =
	    (struct http_header){str_sub(line, 0, colon), strip_ows(str_from(line, colon + 1))};
	return true;
}

/* Counts the headers of this name; *ret is the first one's value. */
static unsigned
find_header(const struct http_head_parser *p, struct str name, struct str *ret)
{
	unsigned n = 0;
	for (size_t i = 0; i < p->head.header_count; i++) {
		if (!str_eq_nocase(p->headers[i].name, name))
			continue;
		if (n++ == 0)
			*ret = p->headers[i].value;
	}
	return n;
}

bool
http_list_has(struct str value, struct str token)
{
	struct str piece;
	while (str_split(&value, ',', &piece))
		if (str_eq_nocase(strip_ows(piece), token))
			return true;
	return false;
}

static bool
check_host(struct http_head_parser *p)
{
	struct str host = STR("");
	unsigned n = find_header(p, STR("host"), &host);
	if (n > 1 || (n == 0 && p->minor_version > 0))
		return fail(p, 400, "exactly one Host header is required");
	for (size_t i = 0; i < host.len; i++)
		if (host.ptr[i] <= ' ' || host.ptr[i] > '~' ||
		    strchr("/?#@\\\"<>^`{|}", host.ptr[i]) != NULL)
			return fail(p, 400, "invalid Host header");
	p->head.host = host;
	return true;
}

/* What is wrong with a Transfer-Encoding that is not exactly "chunked": a list that hides or
 * repeats chunked cannot be framed (400), any other coding is one we do not have (501). */
static bool
refuse_coding(struct http_head_parser *p)
{
	unsigned chunked = 0;
	bool is_last = false, has_other = false;
	for (size_t i = 0; i < p->head.header_count; i++) {
		struct str rest = p->headers[i].value, piece;
		if (!str_eq_nocase(p->headers[i].name, STR("transfer-encoding")))
			continue;
		while (str_split(&rest, ',', &piece)) {
			is_last = str_eq_nocase(strip_ows(piece), STR("chunked"));
			chunked += is_last ? 1 : 0;
			has_other = has_other || (!is_last && strip_ows(piece).len > 0);
		}
	}
	if (chunked > 1 || (chunked == 1 && !is_last) || !has_other)
		return fail(p, 400, "invalid Transfer-Encoding");
	return fail(p, 501, "unsupported Transfer-Encoding");
}

static bool
check_framing(struct http_head_parser *p)
{
	struct str length = STR(""), coding = STR("");
	unsigned lengths = find_header(p, STR("content-length"), &length);
	unsigned codings = find_header(p, STR("transfer-encoding"), &coding);
	if (codings > 0 && lengths > 0)
		return fail(p, 400, "Content-Length beside Transfer-Encoding");
	if (lengths > 1)
		return fail(p, 400, "more than one Content-Length");
	if (codings > 0 && p->minor_version == 0)
		return fail(p, 400, "Transfer-Encoding in an HTTP/1.0 request");
	if (codings > 1 || (codings == 1 && !str_eq_nocase(coding, STR("chunked"))))
		return refuse_coding(p);
	p->head.is_chunked = codings == 1;
	if (lengths == 1) {
		for (size_t i = 0; i < length.len; i++)
			if (length.ptr[i] < '0' || length.ptr[i] > '9')
				return fail(p, 400, "invalid Content-Length");
		if (length.len == 0)
			return fail(p, 400, "invalid Content-Length");
		if (!str_i64(length, &p->head.content_length))
			return fail(p, 413, "request body too large");
	}
	p->head.has_body = p->head.is_chunked || p->head.content_length > 0;
	return true;
}

static bool
check_connection(struct http_head_parser *p)
{
	bool wants_close = false, wants_keep = false;
	struct str expect = STR("");
	for (size_t i = 0; i < p->head.header_count; i++) {
		if (!str_eq_nocase(p->headers[i].name, STR("connection")))
			continue;
		wants_close = wants_close || http_list_has(p->headers[i].value, STR("close"));
		wants_keep = wants_keep || http_list_has(p->headers[i].value, STR("keep-alive"));
	}
	p->keep_alive = !wants_close && (p->minor_version > 0 || wants_keep);
	unsigned n = find_header(p, STR("expect"), &expect);
	if (n > 1 || (n == 1 && !str_eq_nocase(expect, STR("100-continue"))))
		return fail(p, 417, "unsupported expectation");
	p->head.expects_continue = n == 1 && p->minor_version > 0 && p->head.has_body;
	return true;
}

/* Cuts the line that starts at *pos; its CRLF is known to be there. */
static struct str
line_at(const struct http_head_parser *p, size_t *pos)
{
	struct str rest = str_from(buf_str(&p->raw), *pos);
	struct str line = str_sub(rest, 0, str_chr(rest, '\r'));
	*pos += line.len + 2;
	return line;
}

/* The bytes are whole now and move no more: every span is set here. */
static bool
read_head(struct http_head_parser *p)
{
	size_t pos = 0;
	if (!read_request_line(p, line_at(p, &pos)))
		return false;
	for (;;) {
		struct str line = line_at(p, &pos);
		if (line.len == 0)
			break;
		if (!read_header(p, line))
			return false;
	}
	return check_host(p) && check_framing(p) && check_connection(p);
}

static bool
check_byte(struct http_head_parser *p, char c)
{
	unsigned char u = (unsigned char)c;
	if (p->has_cr != (c == '\n'))
		return fail(p, 400, "line does not end in CR LF");
	if ((u < ' ' && c != '\t' && c != '\r' && c != '\n') || u == 0x7f)
		return fail(p, 400, "control character in request head");
	return true;
}

/* Counts one byte in; *ret_end when it is the last of the head. */
static bool
take_byte(struct http_head_parser *p, char c, bool *ret_end)
{
	if (!check_byte(p, c))
		return false;
	if (p->raw.len == LIMIT_HTTP_HEAD_BYTES)
		return fail(p, 431, "request head too large");
	buf_addc(&p->raw, c);
	p->has_cr = c == '\r';
	size_t line_len = p->raw.len - p->line_start;
	if (!p->has_line && line_len > LIMIT_HTTP_TARGET_BYTES + LINE_EXTRA_BYTES)
		return fail(p, 414, "request target too long");
	if (c != '\n')
		return true;
	if (!p->has_line && line_len == 2) { /* RFC 9112 §2.2: one empty line may come first */
		if (p->has_blank)
			return fail(p, 400, "malformed request line");
		p->has_blank = true;
		buf_clear(&p->raw);
		return true;
	}
	if (!p->has_line) {
		size_t pos = 0;
		if (!read_request_line(p, line_at(p, &pos)))
			return false;
		p->has_line = true;
	} else if (line_len == 2) {
		*ret_end = true;
	}
	p->line_start = p->raw.len;
	return true;
}

enum http_parse
http_head_feed(struct http_head_parser *p, struct str bytes, size_t *ret_taken)
{
	bool is_end = false;
	for (size_t i = 0; i < bytes.len; i++) {
		/* Plain text between the line ends, the bulk of a head, is taken in one piece. */
		size_t run = 0, room = LIMIT_HTTP_HEAD_BYTES - p->raw.len;
		if (p->has_line && !p->has_cr)
			while (run < room && i + run < bytes.len && bytes.ptr[i + run] >= ' ' &&
			       bytes.ptr[i + run] < 0x7f)
				run++;
		if (run > 0) {
			buf_addn(&p->raw, bytes.ptr + i, run);
			i += run - 1;
			continue;
		}
		if (!take_byte(p, bytes.ptr[i], &is_end) || (is_end && !read_head(p))) {
			*ret_taken = i + 1;
			return HTTP_PARSE_FAILED;
		}
		if (is_end) {
			*ret_taken = i + 1;
			return HTTP_PARSE_DONE;
		}
	}
	*ret_taken = bytes.len;
	return HTTP_PARSE_MORE;
}
