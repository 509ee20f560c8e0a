#include "worker/http/conn.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/bufferevent_struct.h>
#include <netinet/in.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"

#define ROOM_TRIES     8
#define SENDS_PER_PUMP 2

size_t
http_conn_unsent(const struct http_conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

void
http_conn_add(struct http_conn *c, const void *p, size_t n)
{
	c->is_adding = true;
	(void)evbuffer_add(bufferevent_get_output(c->bev), p, n);
	c->is_adding = false;
	if (!c->awaits_writable)
		http_conn_later(c); /* which sends what the whole turn has added */
}

static size_t
unread(const struct http_conn *c)
{
	return evbuffer_get_length(bufferevent_get_input(c->bev));
}

/* --- the pump --- */

static bool
idle_step(struct http_conn *c)
{
	if (unread(c) > 0) {
		c->x = http_exchange_new(c);
		c->state = HTTP_CONN_HEAD;
		return true;
	}
	c->is_gone = c->server->is_draining && c->has_served;
	return false;
}

static bool
head_step(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_iovec v;
	if (evbuffer_peek(in, -1, NULL, &v, 1) < 1 || v.iov_len == 0)
		return false;
	size_t taken = 0;
	enum http_parse rc = http_head_feed(&x->parser, str_n(v.iov_base, v.iov_len), &taken);
	x->bytes_in += taken;
	(void)evbuffer_drain(in, taken);
	if (rc == HTTP_PARSE_MORE)
		return true;
	c->state = HTTP_CONN_EXCHANGE;
	c->has_served = true;
	http_body_parser_init(&x->body.parser, &x->parser.head);
	if (rc == HTTP_PARSE_FAILED) {
		c->must_linger = true;
		http_exchange_refuse(x, x->parser.status, x->parser.reason);
	} else {
		c->server->ops.on_request(c->server->arg, x);
	}
	return true;
}

/* The reply is in the kernel's hands, or cut. */
static bool
exchange_ends(struct http_conn *c, bool aborted)
{
	struct http_exchange *x = c->x;
	bool reset = aborted && x->framing == HTTP_FRAME_UNTIL_CLOSE;
	c->must_linger = c->must_linger || !http_body_is_over(x);
	http_exchange_end(x, aborted);
	if (aborted) {
		/* Where only the close ends a reply, only a reset says that it is not whole. */
		const struct linger off = {.l_onoff = 1, .l_linger = 0};
		if (reset)
			(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
		c->is_gone = true;
	} else if (c->close_after || c->is_eof) {
		http_conn_close_politely(c);
	} else {
		c->state = HTTP_CONN_IDLE;
	}
	return true;
}

static bool
exchange_step(struct http_conn *c)
{
	struct http_exchange *x = c->x;
	if (http_body_pump(x))
		return true;
	size_t unsent = http_conn_unsent(c);
	if (x->on_writable != NULL && unsent < LIMIT_HTTP_OUT_BYTES / 2 &&
	    x->reply < HTTP_REPLY_ENDED) {
		void (*cb)(void *) = x->on_writable;
		x->on_writable = NULL;
		cb(x->writable_arg);
		return true;
	}
	if (unsent > 0)
		return false;
	if (x->reply == HTTP_REPLY_ABORTED)
		return exchange_ends(c, true);
	if (x->reply == HTTP_REPLY_ENDED && (http_body_is_over(x) || c->close_after))
		return exchange_ends(c, false);
	return false;
}

static bool
pump_step(struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_IDLE:
		return idle_step(c);
	case HTTP_CONN_HEAD:
		return head_step(c);
	case HTTP_CONN_EXCHANGE:
		return exchange_step(c);
	case HTTP_CONN_TLS:
	case HTTP_CONN_LINGER:
		break;
	}
	return false;
}

/* Reading stops at the watermark and then goes on when the socket has something; bytes that OpenSSL
 * has decrypted already would wait for ever. */
static void
kick_tls(struct http_conn *c)
{
	if (c->tls != NULL && c->state != HTTP_CONN_LINGER && !c->is_eof &&
	    unread(c) < LIMIT_HTTP_READ_BYTES && SSL_pending(c->tls) > 0)
		event_active(&c->bev->ev_read, EV_READ, 0);
}

static void
update_idle_list(struct http_conn *c)
{
	bool is_idle = c->state == HTTP_CONN_IDLE && c->has_served && !c->is_gone;
	if (is_idle == c->is_idle)
		return;
	c->is_idle = is_idle;
	if (is_idle)
		TAILQ_INSERT_TAIL(&c->server->idle, c, idle_link);
	else
		TAILQ_REMOVE(&c->server->idle, c, idle_link);
}

static void
await_writable(struct http_conn *c, bool on)
{
	if (c->awaits_writable == on || c->tls != NULL)
		return;
	c->awaits_writable = on;
	if (on)
		(void)bufferevent_enable(c->bev, EV_WRITE);
	else
		(void)bufferevent_disable(c->bev, EV_WRITE);
}

/* Sends at once, which spares a turn of the loop and two system calls an answer; what the socket
 * does not take waits for the write event. True when something went. TLS is sent by its
 * bufferevent. */
static bool
flush(struct http_conn *c)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);
	if (c->tls != NULL || c->awaits_writable || http_conn_unsent(c) == 0)
		return false;
	(void)evbuffer_unfreeze(out, 1); /* a bufferevent guards its buffer's front */
	int n = evbuffer_write_atmost(out, c->fd, LIMIT_HTTP_OUT_BYTES);
	int why = errno;
	(void)evbuffer_freeze(out, 1);
	if (n < 0 && why != EAGAIN && why != EINTR)
		c->is_gone = true;
	else if (http_conn_unsent(c) > 0)
		await_writable(c, true);
	return n > 0;
}

void
http_conn_pump(struct http_conn *c)
{
	CHECK_MAGIC(c, HTTP_CONN_MAGIC);
	if (c->in_pump)
		return;
	c->in_pump = true;
	if (http_conn_unsent(c) == 0)
		await_writable(c, false);
	for (unsigned sends = 0; !c->is_gone;) {
		if (pump_step(c))
			continue;
		/* A fast reader must not keep the loop: then the write event takes over. */
		if (sends++ == SENDS_PER_PUMP)
			await_writable(c, http_conn_unsent(c) > 0);
		if (!flush(c))
			break;
	}
	c->in_pump = false;
	if (c->is_gone) {
		http_conn_free(c);
		return;
	}
	update_idle_list(c);
	http_conn_timers_update(c);
	kick_tls(c);
}

static void
on_later(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	http_conn_pump(arg);
}

void
http_conn_later(struct http_conn *c)
{
	if (!c->in_pump)
		event_active(&c->later, EV_TIMEOUT, 0);
}

/* --- libevent's callbacks --- */

/* Some versions of libevent's TLS try to send as soon as bytes are added, and tell of it from
 * there: that is inside a handler's call, so it has to wait. */
static void
pump_or_later(struct http_conn *c)
{
	if (c->is_adding)
		http_conn_later(c);
	else
		http_conn_pump(c);
}

static void
on_io(struct bufferevent *bev, void *arg)
{
	(void)bev;
	pump_or_later(arg);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *c = arg;
	(void)bev;
	if (what & BEV_EVENT_CONNECTED) {
		c->state = HTTP_CONN_IDLE;
	} else {
		/* A client that closes its sending side while it waits is taken to have left. One
		 * whose whole answer is on its way still gets it; TLS cannot send after that. */
		bool is_answered = c->x != NULL && c->x->reply == HTTP_REPLY_ENDED;
		c->is_eof = c->close_after = true;
		if (!(what & BEV_EVENT_EOF) || !is_answered || c->tls != NULL)
			c->is_gone = true;
	}
	pump_or_later(c);
}

/* --- life --- */

static void
name_peer(struct http_conn *c, const struct sockaddr_storage *addr)
{
	char ip[INET6_ADDRSTRLEN] = "";
	if (addr->ss_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, addr, sizeof(in));
		(void)inet_ntop(AF_INET, &in.sin_addr, ip, sizeof(ip));
		(void)snprintf(c->peer_text, sizeof(c->peer_text), "%s:%u", ip, ntohs(in.sin_port));
	} else if (addr->ss_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, addr, sizeof(in6));
		(void)inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip));
		(void)snprintf(
		    c->peer_text, sizeof(c->peer_text), "[%s]:%u", ip, ntohs(in6.sin6_port));
	} else {
		(void)snprintf(c->peer_text, sizeof(c->peer_text), "local");
	}
	c->peer = str_c(c->peer_text);
}

static void
name_client(unsigned char dst[8], const struct sockaddr_storage *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	memset(dst, 0, 8);
	if (addr->ss_family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		memcpy(dst, &in.sin_addr, 4);
	} else if (addr->ss_family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
			memcpy(dst, in6.sin6_addr.s6_addr + 12, 4);
		else
			memcpy(dst, in6.sin6_addr.s6_addr, 8);
	}
}

/* Connections of this client, where it may have too many: a look takes a step for each of all. */
static uint32_t
count_of(const struct http_server *s, const unsigned char client[8])
{
	uint32_t n = 0;
	const struct http_conn *c;
	if (s->cfg.max_per_client == 0 || s->conn_count < s->cfg.max_per_client)
		return 0;
	TAILQ_FOREACH(c, &s->conns, link)
		n += memcmp(c->client, client, sizeof(c->client)) == 0 ? 1 : 0;
	return n;
}

static struct bufferevent *
make_bufferevent(struct http_listener *l, int fd, struct ssl_st **ret_tls)
{
	struct event_base *base = l->server->base;
	if (l->tls == NULL)
		return bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	SSL *tls = SSL_new(l->tls);
	if (tls == NULL)
		return NULL;
	(void)SSL_set_min_proto_version(tls, TLS1_2_VERSION);
	(void)SSL_set_options(
	    tls, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
	struct bufferevent *bev = bufferevent_openssl_socket_new(
	    base, fd, tls, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL)
		return NULL; /* it has freed tls */
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	*ret_tls = tls;
	return bev;
}

/* Whether the client has sent what we have not read yet. */
static bool
has_unread(const struct http_conn *c)
{
	char b;
	return recv(c->fd, &b, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* At the limit an idle connection makes room; its client opens a new one when it needs it. */
static bool
make_room(struct http_server *s)
{
	struct http_conn *c;
	unsigned tries = 0;
	TAILQ_FOREACH(c, &s->idle, idle_link) {
		if (++tries > ROOM_TRIES)
			break;
		if (!c->in_pump && !has_unread(c)) {
			http_conn_free(c);
			return true;
		}
	}
	return false;
}

void
http_conn_accepted(struct http_listener *l, int fd, const struct sockaddr_storage *addr)
{
	struct http_server *s = l->server;
	unsigned char client[8];
	name_client(client, addr);
	uint32_t max = s->cfg.max_connections, count = count_of(s, client);
	bool is_greedy = count > 0 && count >= s->cfg.max_per_client;
	bool is_over = is_greedy || (s->conn_count >= max && !make_room(s));
	struct ssl_st *tls = NULL;
	struct bufferevent *bev = NULL;
	/* Those that are only told 503 are bounded too; beyond, and on TLS, the close must do. */
	bool is_told = l->tls == NULL && s->conn_count < max + max / 8 + 8 &&
		       (!is_greedy || count < s->cfg.max_per_client + max / 8);
	if (!is_over || is_told)
		bev = make_bufferevent(l, fd, &tls);
	if (bev == NULL) {
		fd_close(&fd);
		return;
	}
	struct http_conn *c = MEM_NEW(struct http_conn);
	c->magic = HTTP_CONN_MAGIC;
	c->server = s;
	c->bev = bev;
	c->tls = tls;
	c->fd = fd;
	c->state = tls != NULL ? HTTP_CONN_TLS : HTTP_CONN_IDLE;
	name_peer(c, addr);
	memcpy(c->client, client, sizeof(client));
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->conn_count++;
	(void)event_assign(&c->later, s->base, -1, 0, on_later, c);
	http_conn_timers_init(c);
	bufferevent_setcb(bev, on_io, on_io, on_event, c);
	bufferevent_setwatermark(bev, EV_READ, 0, LIMIT_HTTP_READ_BYTES);
	/* A write is told of when less than half the limit is left. */
	bufferevent_setwatermark(bev, EV_WRITE, LIMIT_HTTP_OUT_BYTES / 2 - 1, 0);
	(void)bufferevent_set_max_single_write(bev, LIMIT_HTTP_OUT_BYTES);
	(void)bufferevent_set_max_single_read(bev, LIMIT_HTTP_READ_BYTES);
	(void)bufferevent_disable(bev, EV_WRITE); /* on by default */
	(void)bufferevent_enable(bev, tls != NULL ? EV_READ | EV_WRITE : EV_READ);
	if (is_over) {
		c->must_linger = true;
		c->x = http_exchange_new(c);
		c->state = HTTP_CONN_EXCHANGE;
		http_exchange_refuse(c->x, 503,
		    is_greedy ? "too many connections from this address" : "too many connections");
	}
	http_conn_timers_update(c);
}

void
http_conn_free(struct http_conn *c)
{
	CHECK_MAGIC(c, HTTP_CONN_MAGIC);
	c->is_gone = true;
	c->in_pump = true; /* on_close of the exchange may call anything of it */
	if (c->x != NULL)
		http_exchange_end(c->x, true);
	if (c->state == HTTP_CONN_LINGER)
		(void)event_del(&c->linger);
	update_idle_list(c);
	http_conn_timers_done(c);
	(void)event_del(&c->later);
	bufferevent_free(c->bev);
	http_server_forget(c->server, c);
	c->magic = 0;
	mem_free(c);
}

void
http_conn_drain(struct http_conn *c)
{
	/* What the client has sent already is served; an idle connection is closed by the pump. */
	if (c->state != HTTP_CONN_IDLE || has_unread(c))
		return;
	c->serial++; /* a fresh one gets the short idle time of a drain */
	http_conn_later(c);
}
