/* parse.h - strict HTTP/1.1 request parser: bytes in at any split, a head and body pieces out
 *
 * Process: any; pure (no I/O, no clock).
 * Owns:    a head parser owns the bytes of its head; every span of its http_head points into them
 *          until http_head_parser_done().
 * Limits:  LIMIT_HTTP_HEAD_BYTES (431), LIMIT_HTTP_TARGET_BYTES (414), LIMIT_HTTP_HEADERS (431).
 * Rules:   RFC 9112, and where it lets a server be lenient we are not, because requests are
 *          smuggled through what two parsers read differently: CRLF only, no folding, no white
 *          space before a colon, one Content-Length of digits, Transfer-Encoding exactly
 *          "chunked", never both.
 */
#ifndef OTARI_WORKER_HTTP_PARSE_H
#define OTARI_WORKER_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "worker/http/http.h"

enum http_parse {
	HTTP_PARSE_MORE,   /* all bytes were taken, more are needed */
	HTTP_PARSE_DATA,   /* body only: a piece of payload; call again with what is left */
	HTTP_PARSE_DONE,   /* complete; bytes behind it were not taken */
	HTTP_PARSE_FAILED, /* see status and reason; the connection cannot be used further */
};

struct http_head_parser {
	struct buf raw;
	size_t line_start;
	bool has_cr, has_line; /* the last byte was CR; the request line was read and checked */
	bool has_blank;        /* the one empty line before a request line was skipped */
	/* Of a complete head: */
	struct http_head head; /* without peer and is_tls */
	int minor_version;     /* HTTP/1.x */
	bool keep_alive;       /* what the client wants, by version and Connection */
	/* Of a failed one (method and path may have been read; the strings are never NULL): */
	int status;
	const char *reason; /* static, for the client */
	struct http_header headers[LIMIT_HTTP_HEADERS];
};

void http_head_parser_init(struct http_head_parser *p);
void http_head_parser_done(struct http_head_parser *p);
/* Takes bytes up to the end of the head. Not to be called again after DONE or FAILED. */
enum http_parse http_head_feed(struct http_head_parser *p, struct str bytes, size_t *ret_taken);
/* Whether a comma-separated header value holds this token (any case). */
bool http_list_has(struct str value, struct str token);

struct http_body_parser {
	enum {
		HTTP_BODY_LENGTH,
		HTTP_BODY_SIZE,
		HTTP_BODY_EXT,
		HTTP_BODY_SIZE_LF,
		HTTP_BODY_CHUNK,
		HTTP_BODY_CHUNK_CR,
		HTTP_BODY_CHUNK_LF,
		HTTP_BODY_TRAILER,
		HTTP_BODY_TRAILER_NAME,
		HTTP_BODY_TRAILER_VALUE,
		HTTP_BODY_TRAILER_LF,
		HTTP_BODY_LAST_LF,
		HTTP_BODY_DONE,
	} state;
	uint64_t left; /* bytes of the body or of this chunk still to come */
	unsigned digits;
	size_t extra_bytes; /* chunk extensions and trailers so far: bounded */
	int status;
	const char *reason;
};

void http_body_parser_init(struct http_body_parser *p, const struct http_head *head);
/* For DATA, *ret_data is the piece, inside bytes. A head without a body is DONE at once. */
enum http_parse http_body_feed(
    struct http_body_parser *p, struct str bytes, size_t *ret_taken, struct str *ret_data);

#endif
