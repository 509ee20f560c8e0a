/* conn.h - inside of the HTTP server: one connection and the one exchange that runs on it
 *
 * Process: worker, its loop only. Private to worker/http.
 * Owns:    a server owns its connections, a connection its bufferevent and its exchange.
 * Rule:    callbacks of handlers run from conn_pump() and nowhere else; what a handler calls only
 *          writes to the output buffer, sets flags and asks for another pump. So no callback runs
 *          inside an http_*() call, nothing is freed under a handler's feet, and the one place that
 *          frees a connection is the end of the pump.
 */
#ifndef OTARI_WORKER_HTTP_CONN_H
#define OTARI_WORKER_HTTP_CONN_H

#include <sys/queue.h>
#include <sys/socket.h>

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/buf.h"
#include "base/limits.h"
#include "worker/http/http.h"
#include "worker/http/parse.h"

struct bufferevent;
struct evbuffer;
struct ssl_st;
struct ssl_ctx_st;

#define HTTP_EXCHANGE_MAGIC 0x68747458u
#define HTTP_CONN_MAGIC     0x68747443u
#define HTTP_BODY_WINDOW_MS 10000 /* over which the rate of a body is judged */
#define HTTP_BODY_DRAIN_BYTES                                                                      \
	(64 * 1024) /* an unread body so small does not cost the connection                        \
		     */
#define HTTP_LINGER_MS          10000
#define HTTP_LINGER_BYTES       (256u * 1024u * 1024u)
#define HTTP_REPLY_HEADER_BYTES (64u * 1024u)

enum http_body_mode {
	HTTP_BODY_UNASKED, /* bytes wait in the socket and in the input buffer */
	HTTP_BODY_STREAM,
	HTTP_BODY_WHOLE,
	HTTP_BODY_DROP, /* the reply has ended; what is left is read away */
};

struct http_exchange_body {
	enum http_body_mode mode;
	struct http_body_parser parser;
	uint64_t max_bytes, got_bytes;
	bool is_paused;
	bool is_done;    /* the last byte was read */
	bool is_told;    /* on_body_end or on_whole was called, or never will be */
	int fail_status; /* broken, too large or too slow: to be told by the pump */
	const char *fail_reason;
	const struct http_body_sink *sink;
	void (*on_whole)(void *arg, struct str body);
	void *arg;
	struct buf whole;
};

enum http_reply_state { HTTP_REPLY_NONE, HTTP_REPLY_BEGUN, HTTP_REPLY_ENDED, HTTP_REPLY_ABORTED };

struct http_exchange {
	uint32_t magic;
	struct http_conn *conn;
	struct http_head_parser parser;
	void *state;
	void (*on_close)(void *arg, bool aborted);
	void *close_arg;
	struct http_exchange_body body;
	enum http_reply_state reply;
	enum { HTTP_FRAME_LENGTH, HTTP_FRAME_CHUNKED, HTTP_FRAME_UNTIL_CLOSE } framing;
	bool is_bodiless; /* HEAD, 204, 304: bytes written are dropped */
	bool is_refused;  /* the layer answered; what the handler says is dropped */
	bool is_closing;  /* on_close is running */
	int status;
	uint64_t reply_left_bytes; /* HTTP_FRAME_LENGTH */
	uint64_t bytes_in, bytes_out;
	struct buf headers; /* of the coming reply */
	void (*on_writable)(void *arg);
	void *writable_arg;
};

enum http_conn_state {
	HTTP_CONN_TLS,      /* handshake */
	HTTP_CONN_IDLE,     /* between requests */
	HTTP_CONN_HEAD,     /* some bytes of a head are there */
	HTTP_CONN_EXCHANGE, /* the handler has it */
	HTTP_CONN_LINGER,   /* answered and shut; reading away what the client still sends */
};

enum http_conn_timer {
	HTTP_TIMER_NONE,
	HTTP_TIMER_HANDSHAKE,
	HTTP_TIMER_IDLE,
	HTTP_TIMER_HEAD,
	HTTP_TIMER_BODY,
	HTTP_TIMER_LINGER,
};

struct http_conn {
	uint32_t magic;
	struct http_server *server;
	TAILQ_ENTRY(http_conn) link, idle_link;
	struct bufferevent *bev;
	struct ssl_st *tls; /* NULL: plain; owned by bev */
	int fd;             /* owned by bev */
	enum http_conn_state state;
	bool is_idle; /* in the server's list: has served, and waits for the next request */
	bool in_pump;
	bool is_adding;     /* to the output */
	bool is_gone;       /* peer lost, or done with: the pump frees it */
	bool is_eof;        /* the peer sends no more */
	bool close_after;   /* no further request on this connection */
	bool must_linger;   /* the client may still be sending */
	bool is_over_limit; /* accepted only to be told 503 */
	bool has_served;    /* at least one request */
	bool is_stall_armed;
	bool awaits_writable; /* the socket was full: the rest goes by the write event */
	struct http_exchange *x;
	struct event timer, stall, later, linger;
	enum http_conn_timer timer_kind;
	uint64_t timer_serial, serial; /* serial: counts exchanges, so that a new one arms anew */
	uint64_t window_bytes;         /* body bytes when the rate window began */
	int64_t progress_ms;           /* when bytes of the output last went */
	uint64_t lingered_bytes;
	struct str peer;
	char peer_text[72];
	unsigned char client[8]; /* IPv4 address, or the half of an IPv6 one that a customer has */
};

TAILQ_HEAD(http_conn_list, http_conn);

struct http_listener {
	struct http_server *server;
	struct event *ev;
	int fd;
	struct ssl_ctx_st *tls;
};

struct http_server {
	struct event_base *base;
	struct http_server_config cfg;
	struct http_server_ops ops;
	void *arg;
	struct http_listener *listeners[LIMIT_LISTENERS];
	size_t listener_count;
	struct http_conn_list conns;
	struct http_conn_list idle; /* the longest idle first: given up when room is needed */
	uint32_t conn_count;
	struct event *resume, *drained; /* accepting again after running out of descriptors */
	int reserve_fd;
	int64_t warned_ms; /* last complaint about descriptors */
	bool is_draining;
	void (*on_drained)(void *arg);
	void *drained_arg;
	int64_t date_s;
	char date[40];
};

/* conn.c. Takes fd. */
void http_conn_accepted(struct http_listener *l, int fd, const struct sockaddr_storage *addr);
void http_conn_pump(struct http_conn *c);
void http_conn_later(struct http_conn *c); /* a pump from the loop, unless one is running */
void http_conn_free(struct http_conn *c);
void http_conn_drain(struct http_conn *c);                        /* closes it when it is idle */
void http_conn_add(struct http_conn *c, const void *p, size_t n); /* to the output */
size_t http_conn_unsent(const struct http_conn *c);

/* exchange.c */
struct http_exchange *http_exchange_new(struct http_conn *c);
void http_exchange_end(struct http_exchange *x, bool aborted); /* tells and frees */
/* The layer's own error answer; the connection is closed after it. Nothing once a reply began. */
void http_exchange_refuse(struct http_exchange *x, int status, const char *reason);

/* body.c: one step; true when it did something (then call again). */
bool http_body_pump(struct http_exchange *x);
bool http_body_is_awaited(const struct http_exchange *x);
bool http_body_is_over(const struct http_exchange *x);
/* Whether the connection can be kept if the reply is the last that is said about this body. */
bool http_body_is_cheap(const struct http_exchange *x);
void http_body_fail(struct http_exchange *x, int status, const char *reason);

/* timer.c: init wants the bufferevent; update arms what the state of the connection asks for. */
void http_conn_timers_init(struct http_conn *c);
void http_conn_timers_update(struct http_conn *c);
void http_conn_timers_done(struct http_conn *c);

/* linger.c: the reply is out and this was the last. */
void http_conn_close_politely(struct http_conn *c);

/* server.c */
void http_server_forget(struct http_server *s, struct http_conn *c);
const char *http_server_date(struct http_server *s);

#endif
