#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "worker/http/conn.h"

/* RFC 9110 §15 and RFC 6585; the phrase is for people only. */
static const char *
status_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} phrases[] = {
	    {200, "OK"},
	    {201, "Created"},
	    {202, "Accepted"},
	    {204, "No Content"},
	    {206, "Partial Content"},
	    {301, "Moved Permanently"},
	    {302, "Found"},
	    {303, "See Other"},
	    {304, "Not Modified"},
	    {307, "Temporary Redirect"},
	    {308, "Permanent Redirect"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {402, "Payment Required"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {405, "Method Not Allowed"},
	    {406, "Not Acceptable"},
	    {408, "Request Timeout"},
	    {409, "Conflict"},
	    {410, "Gone"},
	    {411, "Length Required"},
	    {412, "Precondition Failed"},
	    {413, "Content Too Large"},
	    {414, "URI Too Long"},
	    {415, "Unsupported Media Type"},
	    {416, "Range Not Satisfiable"},
	    {417, "Expectation Failed"},
	    {422, "Unprocessable Content"},
	    {424, "Failed Dependency"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"},
	    {501, "Not Implemented"},
	    {502, "Bad Gateway"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"},
	    {529, "Overloaded"},
	};
	for (size_t i = 0; i < ARRAY_LEN(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Unknown";
}

static void
put(struct http_exchange *x, const void *p, size_t n)
{
	x->bytes_out += n;
	http_conn_add(x->conn, p, n);
}

/* A reply may be said when none was; after the layer's own answer or the client's end it is
 * dropped. Anything else is a handler that answers twice. */
static bool
may_begin(struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	if (x->is_refused || x->is_closing || x->conn->is_gone || x->reply == HTTP_REPLY_ABORTED)
		return false;
	CHECK(x->reply == HTTP_REPLY_NONE);
	return true;
}

/* Takes the line of that name out of headers. */
static void
forget_header(struct buf *headers, struct str name)
{
	struct str rest = buf_str(headers), line;
	for (size_t at = 0; str_split(&rest, '\n', &line); at += line.len + 1)
		if (line.len > name.len && line.ptr[name.len] == ':' &&
		    str_eq_nocase(str_sub(line, 0, name.len), name)) {
			size_t end = at + line.len + 1;
			memmove(headers->ptr + at, headers->ptr + end, headers->len - end);
			headers->len -= end - at;
			return;
		}
}

void
http_reply_header(struct http_exchange *x, const char *name, struct str value)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	CHECK(strpbrk(name, "\r\n: ") == NULL);
	CHECK(str_chr(value, '\r') == SIZE_MAX && str_chr(value, '\n') == SIZE_MAX &&
	      str_chr(value, '\0') == SIZE_MAX);
	size_t n = strlen(name);
	forget_header(&x->headers, str_n(name, n));
	if (x->headers.len + n + value.len + 4 > HTTP_REPLY_HEADER_BYTES)
		return;
	buf_addn(&x->headers, name, n);
	buf_add(&x->headers, STR(": "));
	buf_add(&x->headers, value);
	buf_add(&x->headers, STR("\r\n"));
}

static void
put_head(struct http_exchange *x, int status, const char *content_type, int64_t length)
{
	struct http_conn *c = x->conn;
	struct buf h = BUF_INIT(HTTP_REPLY_HEADER_BYTES + 2048);
	buf_printf(&h, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, status_phrase(status),
	    http_server_date(c->server));
	if (content_type != NULL)
		buf_printf(&h, "Content-Type: %.256s\r\n", content_type);
	buf_add(&h, buf_str(&x->headers));
	if (status != 204 && status != 304) {
		if (length >= 0)
			buf_printf(&h, "Content-Length: %" PRId64 "\r\n", length);
		else if (x->framing == HTTP_FRAME_CHUNKED)
			buf_add(&h, STR("Transfer-Encoding: chunked\r\n"));
	}
	if (c->close_after)
		buf_add(&h, STR("Connection: close\r\n"));
	else if (x->parser.minor_version == 0)
		buf_add(&h, STR("Connection: keep-alive\r\n"));
	buf_add(&h, STR("\r\n"));
	put(x, h.ptr, h.len);
	buf_done(&h);
	buf_done(&x->headers);
}

static void
begin(struct http_exchange *x, int status, const char *content_type, int64_t length)
{
	struct http_conn *c = x->conn;
	CHECK(status >= 200 && status <= 999);
	CHECK(content_type == NULL || strpbrk(content_type, "\r\n") == NULL);
	x->status = status;
	x->reply = HTTP_REPLY_BEGUN;
	x->is_bodiless = x->parser.head.method == HTTP_HEAD || status == 204 || status == 304;
	if (length >= 0) {
		x->framing = HTTP_FRAME_LENGTH;
		x->reply_left_bytes = (uint64_t)length;
	} else {
		x->framing =
		    x->parser.minor_version > 0 ? HTTP_FRAME_CHUNKED : HTTP_FRAME_UNTIL_CLOSE;
	}
	if (!x->parser.keep_alive || c->server->is_draining || !http_body_is_cheap(x) ||
	    (x->framing == HTTP_FRAME_UNTIL_CLOSE && !x->is_bodiless))
		c->close_after = true;
	put_head(x, status, content_type, length);
}

void
http_reply(struct http_exchange *x, int status, const char *content_type, struct str body)
{
	if (!may_begin(x))
		return;
	begin(x, status, content_type, (int64_t)body.len);
	if (!x->is_bodiless && body.len > 0)
		put(x, body.ptr, body.len);
	x->reply = HTTP_REPLY_ENDED;
	http_conn_later(x->conn);
}

void
http_reply_begin(struct http_exchange *x, int status, const char *content_type, int64_t length)
{
	if (may_begin(x))
		begin(x, status, content_type, length);
}

static bool
is_streaming(struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	if (x->is_refused || x->is_closing || x->conn->is_gone || x->reply == HTTP_REPLY_ABORTED)
		return false;
	CHECK(x->reply == HTTP_REPLY_BEGUN);
	return true;
}

void
http_reply_write(struct http_exchange *x, struct str bytes)
{
	if (!is_streaming(x) || x->is_bodiless || bytes.len == 0)
		return;
	if (x->framing == HTTP_FRAME_CHUNKED) {
		char size[24];
		int n = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
		put(x, size, (size_t)n);
		put(x, bytes.ptr, bytes.len);
		put(x, "\r\n", 2);
		return;
	}
	if (x->framing == HTTP_FRAME_LENGTH) {
		/* More than was promised would be read as the next reply. */
		if (bytes.len > x->reply_left_bytes) {
			http_reply_abort(x);
			return;
		}
		x->reply_left_bytes -= bytes.len;
	}
	put(x, bytes.ptr, bytes.len);
}

void
http_reply_end(struct http_exchange *x)
{
	if (!is_streaming(x))
		return;
	if (!x->is_bodiless && x->framing == HTTP_FRAME_CHUNKED)
		put(x, "0\r\n\r\n", 5);
	if (!x->is_bodiless && x->framing == HTTP_FRAME_LENGTH && x->reply_left_bytes > 0) {
		http_reply_abort(x);
		return;
	}
	x->reply = HTTP_REPLY_ENDED;
	http_conn_later(x->conn);
}

void
http_reply_abort(struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	if (x->is_refused || x->is_closing || x->reply == HTTP_REPLY_ENDED)
		return;
	x->reply = HTTP_REPLY_ABORTED;
	x->conn->close_after = true;
	http_conn_later(x->conn);
}

bool
http_reply_begun(const struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	return x->reply != HTTP_REPLY_NONE;
}

bool
http_can_write(const struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	return http_conn_unsent(x->conn) < LIMIT_HTTP_OUT_BYTES;
}

void
http_on_writable(struct http_exchange *x, void (*cb)(void *arg), void *arg)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	x->on_writable = cb;
	x->writable_arg = arg;
	if (cb != NULL)
		http_conn_later(x->conn);
}
