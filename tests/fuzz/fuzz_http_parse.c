/* Request heads and bodies. The first byte says how the rest is cut; what comes out must be the
 * same as when it is fed whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "worker/http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct http_head_parser head;
	struct http_body_parser body;
	bool in_body;
	int status;
	struct buf out;
};

static void
check_span(const struct run *r, struct str s)
{
	const struct buf *raw = &r->head.raw;
	if (s.len > 0 && (s.ptr < raw->ptr || s.ptr + s.len > raw->ptr + raw->len))
		abort();
}

static void
head_is_done(struct run *r)
{
	const struct http_head *h = &r->head.head;
	check_span(r, h->target);
	check_span(r, h->path);
	check_span(r, h->host);
	for (size_t i = 0; i < h->header_count; i++) {
		check_span(r, h->headers[i].name);
		check_span(r, h->headers[i].value);
		buf_add(&r->out, h->headers[i].value);
	}
	if (h->is_chunked && h->content_length >= 0)
		abort();
	buf_printf(&r->out, "%d %d %lld %.*s\n", (int)h->method, r->head.keep_alive,
	    (long long)h->content_length, STR_FMT(h->target));
	http_body_parser_init(&r->body, h);
	r->in_body = true;
}

static void
feed(struct run *r, struct str s)
{
	while (r->status == 0) {
		size_t taken = 0;
		struct str piece = STR("");
		if (s.len == 0 && !r->in_body)
			return;
		enum http_parse rc = r->in_body ? http_body_feed(&r->body, s, &taken, &piece)
						: http_head_feed(&r->head, s, &taken);
		if (taken > s.len)
			abort();
		s = str_from(s, taken);
		buf_add(&r->out, piece);
		if (rc == HTTP_PARSE_MORE)
			return;
		if (rc == HTTP_PARSE_FAILED) {
			r->status = r->in_body ? r->body.status : r->head.status;
		} else if (rc == HTTP_PARSE_DONE && !r->in_body) {
			head_is_done(r);
		} else if (rc == HTTP_PARSE_DONE) {
			http_head_parser_done(&r->head);
			http_head_parser_init(&r->head);
			r->in_body = false;
		}
	}
}

static void
run(struct run *r, struct str s, size_t step)
{
	memset(r, 0, sizeof(*r));
	buf_init(&r->out, 1u << 22);
	http_head_parser_init(&r->head);
	for (size_t i = 0; i < s.len; i += step)
		feed(r, str_sub(s, i, step));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run a, b;
	if (size < 1)
		return 0;
	struct str s = str_n(data + 1, size - 1);
	run(&a, s, s.len + 1);
	run(&b, s, 1u + data[0] % 64u);
	if (a.status != b.status || !str_eq(buf_str(&a.out), buf_str(&b.out)))
		abort();
	http_head_parser_done(&a.head);
	http_head_parser_done(&b.head);
	buf_done(&a.out);
	buf_done(&b.out);
	return 0;
}
