/* http_client_impl.h - inside of the HTTP client, shared by http_client.c (the multi handle on the
 * loop), http_call.c (a running call) and http_request.c (starting one). Nobody else includes it.
 *
 * Rule: libcurl runs only between http_client_enter() and http_client_leave(). What a caller asks
 * for inside (cancel, resume) is noted and done from the loop, because a handle must not be touched
 * inside its own callbacks, and so that no callback of a caller runs inside a call of the caller's.
 */
#ifndef OTARI_BASE_HTTP_CLIENT_IMPL_H
#define OTARI_BASE_HTTP_CLIENT_IMPL_H

#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/buf.h"
#include "base/http_client.h"

#define HTTP_CALL_MAGIC       0x6863616cu
#define CALL_HEAD_MAX_BYTES   (128u * 1024u) /* of an answer */
#define CALL_HEADERS_MAX      128u
#define CALL_LABEL_SIZE       128
#define CLIENT_IDLE_CONNS_MAX 256L

struct http_client {
	struct event_base *base;
	CURLM *multi;
	struct event timer;
	unsigned depth; /* inside libcurl */
	TAILQ_HEAD(call_list, http_call) calls;
};

struct call_span { /* of a header line in head.ptr, which may move while it grows */
	unsigned name, name_len, value, value_len;
};

struct http_call {
	uint32_t magic;
	struct http_client *client;
	TAILQ_ENTRY(http_call) link;
	CURL *easy;
	struct curl_slist *fields;
	const struct http_call_ops *ops;
	void *arg;
	ssize_t (*read_body)(void *arg, char *dst, size_t n);
	char label[CALL_LABEL_SIZE]; /* "host:port", for error texts */
	/* Answer */
	int status; /* 0 until the final head is complete */
	struct buf head;
	struct call_span spans[CALL_HEADERS_MAX];
	struct http_client_header headers[CALL_HEADERS_MAX];
	size_t header_count;
	bool is_head_too_large;
	/* State */
	bool is_added, is_paused, is_upload_paused, wants_resume, wants_upload_resume;
	bool is_cancelled, is_finishing;
	/* Clocks */
	uint32_t first_byte_timeout_ms, idle_timeout_ms;
	int64_t clock_ms; /* when the running clock was started or last fed */
	int64_t spent_ms; /* of the first-byte clock, before it was paused */
	struct event timer, later;
};

/* http_client.c */
static inline void
http_client_enter(struct http_client *c)
{
	c->depth++;
}
/* Leaves libcurl and tells of the calls that ended meanwhile. */
void http_client_leave(struct http_client *c);

/* http_call.c */
void http_call_finish(struct http_call *c, CURLcode code); /* tells and frees */
void http_call_destroy(struct http_call *c);               /* frees without a word */

void http_call_set_callbacks(struct http_call *c);
void http_call_init_events(struct http_call *c);
void http_call_clock_start(struct http_call *c); /* the clock of the present phase */

#endif
