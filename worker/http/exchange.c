#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "worker/http/conn.h"

struct http_exchange *
http_exchange_new(struct http_conn *c)
{
	struct http_exchange *x = MEM_NEW(struct http_exchange);
	x->magic = HTTP_EXCHANGE_MAGIC;
	x->conn = c;
	http_head_parser_init(&x->parser);
	x->parser.head.peer = c->peer;
	x->parser.head.is_tls = c->tls != NULL;
	buf_init(&x->headers, HTTP_REPLY_HEADER_BYTES);
	c->serial++;
	return x;
}

void
http_exchange_end(struct http_exchange *x, bool aborted)
{
	struct http_server *s = x->conn->server;
	x->is_closing = true;
	/* Unsent bytes did not reach the client, whatever became of the connection. */
	if (s->ops.on_finished != NULL)
		s->ops.on_finished(s->arg, x, x->status, x->bytes_in, x->bytes_out, aborted);
	if (x->on_close != NULL)
		x->on_close(x->close_arg, aborted);
	x->conn->x = NULL;
	x->magic = 0;
	http_head_parser_done(&x->parser);
	buf_done(&x->body.whole);
	buf_done(&x->headers);
	mem_free(x);
}

void
http_exchange_refuse(struct http_exchange *x, int status, const char *reason)
{
	struct http_server *s = x->conn->server;
	if (x->reply != HTTP_REPLY_NONE)
		return;
	char body[2048] = "";
	if (s->ops.error_body != NULL)
		s->ops.error_body(
		    s->arg, x, status, reason, x->parser.head.path, body, sizeof(body));
	/* Headers that the handler has set early stay: they say which request this was. */
	x->conn->close_after = true;
	if (status == 405)
		http_reply_header(x, "Allow", STR("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
	if (status == 503)
		http_reply_header(x, "Retry-After", STR("1"));
	http_reply(x, status, "application/json", str_n(body, strnlen(body, sizeof(body))));
	x->is_refused = true;
}

const struct http_head *
http_head(const struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	return &x->parser.head;
}

struct str
http_header(const struct http_exchange *x, const char *name)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	struct str want = str_c(name);
	for (size_t i = 0; i < x->parser.head.header_count; i++)
		if (str_eq_nocase(x->parser.headers[i].name, want))
			return x->parser.headers[i].value;
	return STR_NULL;
}

void
http_set_state(struct http_exchange *x, void *state)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	x->state = state;
}

void *
http_state(const struct http_exchange *x)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	return x->state;
}

void
http_on_close(struct http_exchange *x, void (*on_close)(void *arg, bool aborted), void *arg)
{
	CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
	x->on_close = on_close;
	x->close_arg = arg;
}
