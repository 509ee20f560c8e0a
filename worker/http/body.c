#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/check.h"
#include "worker/http/conn.h"

/* A body that nobody asked for goes on waiting in the socket: back-pressure costs no memory. */

static void
ask(struct http_exchange *x, enum http_body_mode mode, uint64_t max_bytes, void *arg)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	struct http_exchange_body *b = &x->body;
	struct http_conn *c = x->conn;
	CHECK(b->mode == HTTP_BODY_UNASKED || b->mode == HTTP_BODY_DROP);
	if (b->mode == HTTP_BODY_DROP || x->is_closing || c->is_gone)
		return;
	b->mode = mode;
	b->max_bytes = max_bytes;
	b->arg = arg;
	const struct http_head *head = &x->parser.head;
	if (head->content_length > 0 && (uint64_t)head->content_length > max_bytes)
		http_body_fail(x, 413, "request body too large");
	else if (head->expects_continue && x->reply == HTTP_REPLY_NONE &&
		 evbuffer_get_length(bufferevent_get_input(c->bev)) == 0)
		http_conn_add(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	http_conn_later(c);
}

void
http_body_stream(
    struct http_exchange *x, uint64_t max_bytes, const struct http_body_sink *sink, void *arg)
{
	x->body.sink = sink;
	ask(x, HTTP_BODY_STREAM, max_bytes, arg);
}

void
http_body_whole(struct http_exchange *x, uint64_t max_bytes,
    void (*on_whole)(void *arg, struct str body), void *arg)
{
	x->body.on_whole = on_whole;
	buf_init(&x->body.whole, max_bytes < SIZE_MAX / 4 ? (size_t)max_bytes : SIZE_MAX / 4);
	ask(x, HTTP_BODY_WHOLE, max_bytes, arg);
}

void
http_body_resume(struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	if (!x->body.is_paused)
		return;
	x->body.is_paused = false;
	http_conn_later(x->conn);
}

void
http_body_fail(struct http_exchange *x, int status, const char *reason)
{
	if (x->body.fail_status != 0)
		return;
	x->body.fail_status = status;
	x->body.fail_reason = reason;
	x->conn->close_after = true;
	x->conn->must_linger = true;
}

bool
http_body_is_awaited(const struct http_exchange *x)
{
	const struct http_exchange_body *b = &x->body;
	return b->mode != HTTP_BODY_UNASKED && !b->is_paused && !b->is_done && b->fail_status == 0;
}

bool
http_body_is_over(const struct http_exchange *x)
{
	return x->body.is_done || !x->parser.head.has_body;
}

bool
http_body_is_cheap(const struct http_exchange *x)
{
	const struct http_exchange_body *b = &x->body;
	const struct http_head *head = &x->parser.head;
	if (b->fail_status != 0)
		return false;
	if (http_body_is_over(x))
		return true;
	if (head->is_chunked)
		return false;
	/* A client that still waits for 100 may send the body or not: there is no telling what the
	 * next byte would be. */
	if (head->expects_continue && b->mode == HTTP_BODY_UNASKED)
		return false;
	return (uint64_t)head->content_length - b->got_bytes <= HTTP_BODY_DRAIN_BYTES;
}

/* Tells the handler how its body ended, once. True when there was somebody to tell. */
static bool
tell_end(struct http_exchange *x, bool ok)
{
	struct http_exchange_body *b = &x->body;
	if (b->is_told)
		return false;
	b->is_told = true;
	if (b->mode == HTTP_BODY_STREAM)
		b->sink->on_body_end(b->arg, ok);
	else if (b->mode == HTTP_BODY_WHOLE && ok)
		b->on_whole(b->arg, buf_str(&b->whole));
	return true;
}

static void
deliver(struct http_exchange *x, struct str data)
{
	struct http_exchange_body *b = &x->body;
	b->got_bytes += data.len;
	if (b->mode == HTTP_BODY_DROP)
		return;
	if (b->got_bytes > b->max_bytes) {
		http_body_fail(x, 413, "request body too large");
	} else if (b->mode == HTTP_BODY_WHOLE) {
		buf_add(&b->whole, data);
	} else {
		/* Paused first, so that a resume from inside the callback is not lost. */
		b->is_paused = true;
		if (b->sink->on_body(b->arg, data))
			b->is_paused = false;
	}
}

bool
http_body_pump(struct http_exchange *x)
{
	struct http_exchange_body *b = &x->body;
	if (x->reply >= HTTP_REPLY_ENDED && b->mode != HTTP_BODY_DROP && !b->is_told) {
		b->mode = HTTP_BODY_DROP; /* the handler is through with it */
		b->is_told = true;
		b->is_paused = false;
		buf_done(&b->whole);
	}
	if (b->mode == HTTP_BODY_UNASKED)
		return false;
	if (b->fail_status != 0) {
		if (b->is_told)
			return false;
		http_exchange_refuse(x, b->fail_status, b->fail_reason);
		return tell_end(x, false);
	}
	if (b->is_done)
		return tell_end(x, true);
	if (b->is_paused || (b->mode == HTTP_BODY_DROP && x->conn->close_after))
		return false;
	struct evbuffer *in = bufferevent_get_input(x->conn->bev);
	struct evbuffer_iovec v = {NULL, 0};
	if (evbuffer_peek(in, -1, NULL, &v, 1) < 1)
		v.iov_len = 0;
	size_t taken = 0;
	struct str data = STR("");
	enum http_parse rc =
	    http_body_feed(&b->parser, str_n(v.iov_base, v.iov_len), &taken, &data);
	if (rc == HTTP_PARSE_FAILED)
		http_body_fail(x, b->parser.status, b->parser.reason);
	else if (rc == HTTP_PARSE_DATA)
		deliver(x, data); /* borrowed from the buffer, so drained only now */
	b->is_done = rc == HTTP_PARSE_DONE;
	x->bytes_in += taken;
	(void)evbuffer_drain(in, taken);
	return rc != HTTP_PARSE_MORE || taken > 0;
}
