#include <sys/socket.h>

#include <errno.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "worker/http/conn.h"

#define READS_PER_TURN 16

/* Closing a socket with unread bytes resets the connection, and a reset can overtake the answer. So
 * the sending side is shut, and what the client still sends is read away, for a while. */

static void
on_linger(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	char waste[16384];
	(void)what;
	for (int i = 0; i < READS_PER_TURN; i++) {
		ssize_t n = recv((int)fd, waste, sizeof(waste), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0)
			c->lingered_bytes += (uint64_t)n;
		if (n <= 0 || c->lingered_bytes > HTTP_LINGER_BYTES) {
			c->is_gone = true;
			http_conn_pump(c);
			return;
		}
	}
}

static bool
has_unread(const struct http_conn *c)
{
	char b;
	return evbuffer_get_length(bufferevent_get_input(c->bev)) > 0 ||
	       recv(c->fd, &b, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void
http_conn_close_politely(struct http_conn *c)
{
	bool must_linger = !c->is_eof && (c->must_linger || has_unread(c));
	(void)bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	if (c->tls != NULL) {
		(void)SSL_shutdown(c->tls); /* close_notify: the reply is whole */
		ERR_clear_error();
	}
	(void)shutdown(c->fd, SHUT_WR);
	if (!must_linger || event_assign(&c->linger, c->server->base, c->fd, EV_READ | EV_PERSIST,
				on_linger, c) != 0) {
		c->is_gone = true;
		return;
	}
	struct evbuffer *in = bufferevent_get_input(c->bev);
	(void)evbuffer_drain(in, evbuffer_get_length(in));
	c->state = HTTP_CONN_LINGER;
	(void)event_add(&c->linger, NULL);
}
