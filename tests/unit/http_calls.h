/* http_calls.h - calls of the HTTP client with everything counted, against http_rig.h's server */
#ifndef OTARI_TESTS_UNIT_HTTP_CALLS_H
#define OTARI_TESTS_UNIT_HTTP_CALLS_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http_client.h"
#include "base/str.h"
#include "tests/unit/http_rig.h"

struct event;
struct event_base;

enum cancel_at { CANCEL_NEVER, CANCEL_IN_HEAD, CANCEL_IN_DATA, CANCEL_IN_DONE, CANCEL_IN_UPLOAD };

struct got { /* one call and what came of it */
	struct event_base *base;
	struct http_call *call;
	struct http_call *victim; /* another's call, to be cancelled from inside our callbacks */
	struct buf body;
	size_t body_bytes, upload_left, upload_given;
	int heads, dones, status;
	bool ok, keep, pause, pause_once, upload_pause, upload_abort;
	enum cancel_at cancel_at;
	struct err err;
	struct event *timer;
	struct str expect_header; /* checked at the end */
	unsigned pauses;
	unsigned *running;
};

struct bench { /* a loop with a client and a server to talk to */
	struct event_base *base;
	struct http_client *client;
	struct rig rig;
};

extern const struct http_call_ops got_ops;

void bench_start(struct bench *b);
void bench_start_with(struct bench *b, const struct http_server_config *cfg, bool tls);
void bench_stop(struct bench *b);
void got_init(struct got *g, struct bench *b);
void got_end(struct got *g);
/* A read_body that gives g->upload_left bytes. */
ssize_t got_give(void *arg, char *dst, size_t n);
void got_begin(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec);
/* One call from start to end. */
void got_run(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec);

#endif
