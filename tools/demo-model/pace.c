#include "tools/demo-model/pace.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/buf.h"
#include "base/mem.h"

struct pace {
	struct evhttp_request *req;
	struct event *timer;
	struct str *pieces;       /* each owned */
	size_t count, next, gate; /* gate: waits in front of this piece; 0: nowhere */
	unsigned delay_ms;
	enum pace_end end;
};

static void send_next(evutil_socket_t fd, short what, void *arg);

static struct pace *waiting; /* at its gate */
static unsigned passes;      /* pace_go came first */

struct pace *
pace_new(struct evhttp_request *req, unsigned delay_ms)
{
	struct pace *p = MEM_NEW(struct pace);
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(conn)), on = 1;

	/* Pieces are small and follow each other: none may wait for the last one's receipt. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	p->req = req;
	p->delay_ms = delay_ms;
	p->timer = event_new(evhttp_connection_get_base(conn), -1, 0, send_next, p);
	return p;
}

static void
pace_free(struct pace *p)
{
	if (waiting == p)
		waiting = NULL;
	for (size_t i = 0; i < p->count; i++)
		mem_free((char *)(uintptr_t)p->pieces[i].ptr);
	mem_free(p->pieces);
	event_free(p->timer);
	mem_free(p);
}

void
pace_add(struct pace *p, struct str piece)
{
	if (piece.len == 0)
		return;
	if ((p->count & (p->count - 1)) == 0) /* full at every power of two */
		p->pieces =
		    mem_grow(p->pieces, p->count > 0 ? p->count * 2 : 1, sizeof(p->pieces[0]));
	p->pieces[p->count++] = str_n(mem_strndup(piece.ptr, piece.len), piece.len);
}

void
pace_add_event(struct pace *p, const char *event, struct str data)
{
	struct buf b = BUF_INIT(data.len + 1024);

	if (event != NULL)
		buf_printf(&b, "event: %s\n", event);
	buf_add(&b, STR("data: "));
	buf_add(&b, data);
	buf_add(&b, STR("\n\n"));
	pace_add(p, buf_str(&b));
	buf_done(&b);
}

/* The peer has gone: the request is ours alone now and is freed by ending the reply. */
static void
on_close(struct evhttp_connection *conn, void *arg)
{
	struct pace *p = arg;

	(void)conn;
	evhttp_send_reply_end(p->req);
	pace_free(p);
}

void
pace_halve(struct pace *p)
{
	size_t keep = p->count / 2;

	while (p->count > keep)
		mem_free((char *)(uintptr_t)p->pieces[--p->count].ptr);
}

static void
schedule(struct pace *p)
{
	struct timeval tv = {p->delay_ms / 1000, (suseconds_t)(p->delay_ms % 1000) * 1000};

	evtimer_add(p->timer, &tv);
}

void
pace_gate(struct pace *p)
{
	p->gate = p->count / 2;
}

void
pace_go(void)
{
	struct pace *p = waiting;

	waiting = NULL;
	if (p != NULL)
		schedule(p);
	else
		passes++;
}

void
pace_take(struct pace *p, struct buf *dst)
{
	for (size_t i = 0; i < p->count; i++)
		buf_add(dst, p->pieces[i]);
	pace_free(p);
}

/* evhttp does not look at a connection whose answer has not begun. */
static void
on_hang_event(struct bufferevent *bev, short what, void *arg)
{
	struct pace *p = arg;

	(void)bev;
	(void)what;
	evhttp_connection_free(evhttp_request_get_connection(p->req));
	pace_free(p);
}

void
pace_hang(struct pace *p)
{
	struct bufferevent *bev =
	    evhttp_connection_get_bufferevent(evhttp_request_get_connection(p->req));

	bufferevent_setcb(bev, NULL, NULL, on_hang_event, p);
	bufferevent_setwatermark(bev, EV_READ, 0, 65536);
	bufferevent_enable(bev, EV_READ);
}

static void
on_drained(struct evhttp_connection *conn, void *arg)
{
	(void)conn;
	schedule(arg);
}

static void
finish(struct pace *p)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(p->req);

	if (p->end == PACE_STALL)
		return; /* until the peer goes */
	evhttp_connection_set_closecb(conn, NULL, NULL);
	if (p->end == PACE_CUT)
		evhttp_connection_free(conn); /* and the request with it */
	else
		evhttp_send_reply_end(p->req);
	pace_free(p);
}

static void
send_next(evutil_socket_t fd, short what, void *arg)
{
	struct pace *p = arg;
	struct evbuffer *out;

	(void)fd;
	(void)what;
	if (p->gate > 0 && p->next == p->gate) {
		p->gate = 0;
		if (passes == 0) {
			waiting = p;
			return;
		}
		passes--;
	}
	if (p->next == p->count && p->end == PACE_REPEAT && p->count > 0)
		p->next--;
	if (p->next == p->count) {
		finish(p);
		return;
	}
	out = evbuffer_new();
	evbuffer_add(out, p->pieces[p->next].ptr, p->pieces[p->next].len);
	p->next++;
	evhttp_send_reply_chunk_with_cb(p->req, out, on_drained, p);
	evbuffer_free(out);
}

void
pace_run(struct pace *p, int status, const char *content_type, enum pace_end end)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(p->req);

	p->end = end;
	if (content_type != NULL && evhttp_find_header(headers, "Content-Type") == NULL)
		evhttp_add_header(headers, "Content-Type", content_type);
	evhttp_connection_set_closecb(evhttp_request_get_connection(p->req), on_close, p);
	evhttp_send_reply_start(p->req, status, NULL);
	send_next(-1, 0, p);
}
