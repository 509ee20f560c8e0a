#include <string.h>

#include "worker/http/parse.h"

#define SIZE_DIGITS     16u
#define EXTRA_MAX_BYTES 16384u /* of chunk extensions and trailers together, in one request */

static enum http_parse
fail(struct http_body_parser *p, int status, const char *reason)
{
	p->status = status;
	p->reason = reason;
	return HTTP_PARSE_FAILED;
}

void
http_body_parser_init(struct http_body_parser *p, const struct http_head *head)
{
	memset(p, 0, sizeof(*p));
	p->reason = "";
	if (head->is_chunked)
		p->state = HTTP_BODY_SIZE;
	else if (head->content_length > 0)
		p->left = (uint64_t)head->content_length;
	else
		p->state = HTTP_BODY_DONE;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool
is_text(char c)
{
	unsigned char u = (unsigned char)c;
	return c == '\t' || (u >= ' ' && u != 0x7f);
}

static bool
is_name(char c)
{
	return is_text(c) && c != ' ' && c != '\t' && (unsigned char)c < 0x80 &&
	       strchr("\"(),/:;<=>?@[\\]{}", c) == NULL;
}

static bool
take_size_digit(struct http_body_parser *p, char c)
{
	int v = hex_value(c);
	if (v >= 0 && p->digits < SIZE_DIGITS && p->left <= UINT64_MAX >> 5) {
		p->left = p->left << 4 | (uint64_t)v;
		p->digits++;
		return true;
	}
	if (v >= 0 || p->digits == 0 || (c != ';' && c != '\r'))
		return false;
	p->state = c == ';' ? HTTP_BODY_EXT : HTTP_BODY_SIZE_LF;
	return true;
}

/* One byte of framing (RFC 9112 §7.1); false when it cannot stand there. */
static bool
take_framing(struct http_body_parser *p, char c)
{
	switch (p->state) {
	case HTTP_BODY_SIZE:
		return take_size_digit(p, c);
	case HTTP_BODY_EXT:
		if (c == '\r')
			p->state = HTTP_BODY_SIZE_LF;
		p->extra_bytes++;
		return c == '\r' || is_text(c);
	case HTTP_BODY_SIZE_LF:
		p->state = p->left > 0 ? HTTP_BODY_CHUNK : HTTP_BODY_TRAILER;
		p->digits = 0;
		return c == '\n';
	case HTTP_BODY_CHUNK_CR:
		p->state = HTTP_BODY_CHUNK_LF;
		return c == '\r';
	case HTTP_BODY_CHUNK_LF:
		p->state = HTTP_BODY_SIZE;
		return c == '\n';
	case HTTP_BODY_TRAILER:
		p->state = c == '\r' ? HTTP_BODY_LAST_LF : HTTP_BODY_TRAILER_NAME;
		p->extra_bytes++;
		return c == '\r' || is_name(c);
	case HTTP_BODY_TRAILER_NAME:
		if (c == ':')
			p->state = HTTP_BODY_TRAILER_VALUE;
		p->extra_bytes++;
		return c == ':' || is_name(c);
	case HTTP_BODY_TRAILER_VALUE:
		if (c == '\r')
			p->state = HTTP_BODY_TRAILER_LF;
		p->extra_bytes++;
		return c == '\r' || is_text(c);
	case HTTP_BODY_TRAILER_LF:
		p->state = HTTP_BODY_TRAILER;
		return c == '\n';
	case HTTP_BODY_LAST_LF:
		p->state = HTTP_BODY_DONE;
		return c == '\n';
	case HTTP_BODY_LENGTH:
	case HTTP_BODY_CHUNK:
	case HTTP_BODY_DONE:
		break;
	}
	return false;
}

enum http_parse
http_body_feed(
    struct http_body_parser *p, struct str bytes, size_t *ret_taken, struct str *ret_data)
{
	for (size_t i = 0;; i++) {
		*ret_taken = i;
		if (p->state == HTTP_BODY_DONE)
			return HTTP_PARSE_DONE;
		if (i == bytes.len)
			return HTTP_PARSE_MORE;
		if (p->state == HTTP_BODY_LENGTH || p->state == HTTP_BODY_CHUNK) {
			*ret_data =
			    str_sub(bytes, i, p->left < SIZE_MAX ? (size_t)p->left : SIZE_MAX);
			p->left -= ret_data->len;
			*ret_taken = i + ret_data->len;
			if (p->left == 0)
				p->state = p->state == HTTP_BODY_LENGTH ? HTTP_BODY_DONE
									: HTTP_BODY_CHUNK_CR;
			return HTTP_PARSE_DATA;
		}
		bool is_size = p->state == HTTP_BODY_SIZE && hex_value(bytes.ptr[i]) >= 0;
		if (!take_framing(p, bytes.ptr[i]))
			return is_size ? fail(p, 413, "chunk too large")
				       : fail(p, 400, "malformed chunked body");
		if (p->extra_bytes > EXTRA_MAX_BYTES)
			return fail(p, 400, "too many chunk extensions or trailers");
	}
}
