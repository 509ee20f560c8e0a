/* http.h - what the rest of a worker sees of an HTTP exchange
 *
 * Process: worker, its loop only (SIGPIPE ignored). The strict HTTP/1.1 server of
 *          docs/ARCHITECTURE.md: parser (pure, parse.h), connection (conn.c), server (server.c).
 * Owns:    the exchange and its buffers, until on_close. Handlers keep their own state through
 *          http_set_state.
 * Limits:  base/limits.h LIMIT_HTTP_*; LIMIT_HTTP_OUT_BYTES of unsent reply before http_can_write()
 *          says no. Pipelined requests wait in the socket, at most LIMIT_HTTP_READ_BYTES here.
 * Life:    on_request (head complete, no body byte read yet) → handler asks for the body (or not) →
 *          reply → on_close. A client that leaves at any time gives on_close(aborted = true) once;
 *          aborted also means that the reply did not reach the socket whole. After on_close the
 *          exchange is gone; inside it every http_*() call is still allowed and does nothing. A
 *          reply before the body was read is legal: a small rest is read away, after a large one
 *          the connection is closed in such a way that the client reads the answer (lingering
 *          close). A client that shuts its sending side while it waits for an answer has left.
 * Rule:    no callback runs inside an http_*() call of a handler; they come from the loop, one
 *          after the other. http_server_free() must not be called inside one.
 */
#ifndef OTARI_WORKER_HTTP_HTTP_H
#define OTARI_WORKER_HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct event_base;
struct http_server;
struct http_exchange;

enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS
};

struct http_header {
	struct str name, value;
};

struct http_head { /* borrowed; valid until on_close */
	enum http_method method;
	struct str target; /* as sent */
	struct str path;   /* before '?', percent-encoded as sent */
	struct str query;  /* after '?', or empty */
	struct http_header *headers;
	size_t header_count;
	int64_t content_length; /* -1: none given */
	bool is_chunked, has_body, expects_continue;
	struct str peer; /* "127.0.0.1:4711" */
	struct str host;
	bool is_tls;
};

struct http_server_config {
	uint32_t head_timeout_ms;      /* absolute, from the first byte; and until it (10 s) */
	uint32_t idle_timeout_ms;      /* keep-alive without a request (75 s) */
	uint32_t body_min_bytes_per_s; /* slower for 10 s: closed (256) */
	uint32_t write_stall_ms;       /* nothing could be sent for so long: closed (60 s) */
	uint32_t max_connections;      /* over it: the longest idle one is closed, else 503 */
	uint32_t max_per_client;       /* of one IPv4 address or IPv6 /64: over it 503; 0: any */
};

struct http_server_ops {
	void (*on_request)(void *arg, struct http_exchange *x);
	/* One access-log/metrics hook for each finished exchange, before on_close. status 0: never
	 * answered. Also for requests that the layer refused itself: http_state is NULL then, and
	 * the head is empty where it could not be read. */
	void (*on_finished)(void *arg, struct http_exchange *x, int status, uint64_t bytes_in,
	    uint64_t bytes_out, bool aborted);
	/* Body of an error that the HTTP layer itself answers (400, 405, 408, 413, 414, 417, 431,
	 * 501, 503, 505): fills dst with JSON. reason is a static text for the client. May add
	 * headers; http_state(x) is NULL where no request was made of the head. */
	void (*error_body)(void *arg, struct http_exchange *x, int status, const char *reason,
	    struct str path, char *dst, size_t size);
};

MUST_CHECK enum err_code http_server_new(struct event_base *base,
    const struct http_server_config *cfg, const struct http_server_ops *ops, void *arg,
    struct http_server **ret, struct err *reterr);
/* Takes a listening, non-blocking fd (not on failure). SSL_CTX may be NULL (borrowed). May be
 * called several times. */
struct ssl_ctx_st;
MUST_CHECK enum err_code http_server_listen(
    struct http_server *s, int fd, struct ssl_ctx_st *tls, struct err *reterr);
/* Accepts until the queue is empty, stops listening (fds closed), closes idle connections, answers
 * `Connection: close` from now on. on_drained: no connection is left. */
void http_server_drain(struct http_server *s, void (*on_drained)(void *), void *arg);
uint32_t http_server_connections(const struct http_server *s);
void http_server_free(struct http_server **s); /* closes everything now */

/* --- request -------------------------------------------------------------------------------------
 */
const struct http_head *http_head(const struct http_exchange *x);
struct str http_header(
    const struct http_exchange *x, const char *name); /* first value or STR_NULL */
const char *http_method_name(enum http_method m);
void http_set_state(struct http_exchange *x, void *state);
void *http_state(const struct http_exchange *x);
/* Called once when the exchange ends, whatever way. Set early. */
void http_on_close(struct http_exchange *x, void (*on_close)(void *arg, bool aborted), void *arg);

/* Body, streamed: on_body(bytes) returns false to pause (the same bytes are not repeated: they are
 * taken; reading goes on after http_body_resume). on_body_end(ok): the last byte was delivered, or
 * (false) it broke, was too slow or went over max_bytes (a 400/408/413 has then been sent unless a
 * reply had begun). Neither is called any more once the reply has ended or the client has left.
 * 100-continue goes out now. */
struct http_body_sink {
	bool (*on_body)(void *arg, struct str bytes);
	void (*on_body_end)(void *arg, bool ok);
};
void http_body_stream(
    struct http_exchange *x, uint64_t max_bytes, const struct http_body_sink *sink, void *arg);
void http_body_resume(struct http_exchange *x);
/* Body, whole, in memory of the exchange; 413 past max_bytes is answered by the layer (on_whole not
 * called). */
void http_body_whole(struct http_exchange *x, uint64_t max_bytes,
    void (*on_whole)(void *arg, struct str body), void *arg);

/* --- reply
 * ---------------------------------------------------------------------------------------- */
/* Adds a header to the coming reply, or takes the place of one of that name (copied; CR, LF or NUL
 * in it is a CHECK failure: sanitise before). */
void http_reply_header(struct http_exchange *x, const char *name, struct str value);
/* Whole reply with Content-Length. The bytes are copied. */
void http_reply(struct http_exchange *x, int status, const char *content_type, struct str body);
/* Streamed reply: length -1 = chunked (HTTP/1.0 client: close-delimited). */
void http_reply_begin(
    struct http_exchange *x, int status, const char *content_type, int64_t length);
void http_reply_write(struct http_exchange *x, struct str bytes); /* copied */
void http_reply_end(struct http_exchange *x);
/* Breaks the connection off, so that the client sees a cut reply and not a short whole one. */
void http_reply_abort(struct http_exchange *x);
bool http_reply_begun(const struct http_exchange *x);
bool http_can_write(const struct http_exchange *x); /* less than LIMIT_HTTP_OUT_BYTES unsent */
/* Called (once a set) when the unsent bytes fell below half the limit again. */
void http_on_writable(struct http_exchange *x, void (*cb)(void *arg), void *arg);

#endif
