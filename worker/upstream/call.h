/* call.h - one request to a provider, with its credential and allowed headers
 *
 * Process: worker, loop thread.
 * Owns:    the running HTTP call. The body, target and arena are borrowed and outlive it.
 * Rule:    headers of the client are never copied, but for the allow-list in call.c; credentials
 * never cross. Retries happen only while nothing of an answer has arrived, and only when the
 * connection was refused or lost, never after a time-out.
 */
#ifndef OTARI_WORKER_UPSTREAM_CALL_H
#define OTARI_WORKER_UPSTREAM_CALL_H

#include <stdbool.h>

#include "base/arena.h"
#include "worker/upstream/failure.h"
#include "worker/upstream/target.h"

struct http_exchange;
struct http_client;
struct upstream_call;

struct upstream_ops {
	/* A 2xx head arrived. */
	void (*on_accept)(void *arg, struct upstream_call *c);
	/* Body bytes of a 2xx answer; false pauses, the same bytes come again after
	 * upstream_resume. */
	bool (*on_data)(void *arg, struct str bytes);
	/* Exactly once, last, unless cancelled. NULL: the whole answer arrived. */
	void (*on_done)(void *arg, const struct failure *f);
};

/* path: below the provider's base ("/messages"). client: whose allow-listed headers go along; NULL:
 * none. */
MUST_CHECK enum err_code upstream_start(struct http_client *client, struct arena *a,
    const struct target *target, const char *path, struct str body, bool stream,
    const struct http_exchange *from, const struct upstream_ops *ops, void *arg,
    struct upstream_call **ret, struct err *reterr);
void upstream_cancel(struct upstream_call **c); /* NULL allowed; from anywhere */
void upstream_resume(struct upstream_call *c);
bool upstream_is_event_stream(const struct upstream_call *c);
/* Puts the provider's rate-limit and retry headers on the coming reply. */
void upstream_relay_headers(const struct upstream_call *c, struct http_exchange *to);

#endif
