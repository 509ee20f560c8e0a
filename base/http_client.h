/* http_client.h - HTTP requests of ours: one libcurl multi on the caller's event loop
 *
 * Process: any with a libevent loop (worker, tools); SIGPIPE ignored. Not thread-safe: all calls
 *          from the loop's thread.
 * Owns:    connections (kept alive and shared by all calls of one client) and running calls.
 * Limits:  bodies stream; nothing is buffered here but what libcurl holds (one write of up to
 *          16 KiB). Of an answer's head at most 128 headers and 128 KiB.
 * Traps:   CURLOPT_QUICK_EXIT, NOSIGNAL, PROTOCOLS_STR "http,https" on every handle; no redirects;
 *          a handle is never removed inside one of its own callbacks. A connection that the peer
 *          closed while it was idle is replaced in silence, and the request sent again.
 */
#ifndef OTARI_BASE_HTTP_CLIENT_H
#define OTARI_BASE_HTTP_CLIENT_H

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct event_base;
struct http_client; /* the multi handle */
struct http_call;   /* one running request */

struct http_client_header {
	struct str name, value;
};

struct http_call_spec {     /* everything is copied by http_call_start except body.read's source */
	const char *method; /* "POST" */
	struct str url;
	const struct http_client_header *headers;
	size_t header_count;
	struct str body; /* borrowed until the call ends; not copied */
	/* Streamed body instead of `body`: fills dst with up to n bytes, returns the count, 0 =
	 * end, -1 = abort, -2 = nothing yet (then http_call_resume_upload). body_bytes -1: chunked.
	 */
	ssize_t (*read_body)(void *arg, char *dst, size_t n);
	int64_t body_bytes;
	uint32_t connect_timeout_ms;    /* 0: 10 s */
	uint32_t first_byte_timeout_ms; /* until the status line; 0: none */
	uint32_t idle_timeout_ms;       /* without a byte while not paused; 0: none */
	const char *proxy;              /* NULL: none (the environment is never read) */
	const char *ca_file;            /* NULL: system */
};

struct http_call_ops {
	/* Once, after the final status line and headers (1xx are skipped). header() below works
	 * here and later. */
	void (*on_head)(void *arg, struct http_call *c, int status);
	/* Body bytes, content-decoded (identity is asked for). Return false to be paused: the same
	 * bytes come again after http_call_resume(). */
	bool (*on_data)(void *arg, struct http_call *c, struct str bytes);
	/* Exactly once, last; never after http_call_cancel. err is NULL when the whole answer
	 * arrived: ERR_TIMEOUT, ERR_UPSTREAM (refused, reset, TLS, name), ERR_INPUT (read_body said
	 * -1) otherwise. The text names host and port, never the path. The call is freed after
	 * return. */
	void (*on_done)(void *arg, struct http_call *c, const struct err *err);
};

MUST_CHECK enum err_code http_client_new(
    struct event_base *base, struct http_client **ret, struct err *reterr);
void http_client_free(struct http_client **c); /* cancels what runs; not inside callbacks */
/* No callback runs before it returns. ops and arg are borrowed until on_done or cancel. */
MUST_CHECK enum err_code http_call_start(struct http_client *c, const struct http_call_spec *spec,
    const struct http_call_ops *ops, void *arg, struct http_call **ret, struct err *reterr);
void http_call_cancel(
    struct http_call **c);                  /* from anywhere, also inside callbacks; NULL allowed */
void http_call_resume(struct http_call *c); /* after on_data said false */
void http_call_resume_upload(struct http_call *c);
/* First value of a response header (any case), or STR_NULL. Borrowed until the call ends. Headers
 * whose name is no token or whose value holds a control character are left out. */
struct str http_call_header(const struct http_call *c, const char *name);
/* All response headers in order. */
const struct http_client_header *http_call_headers(const struct http_call *c, size_t *ret_count);
int http_call_status(const struct http_call *c); /* 0 before on_head */

#endif
