/* request.h - one API request of a client, from its head to its last byte
 *
 * Process: worker, loop thread.
 * Owns:    the arena and everything in it. Made by api/ when a head arrived, given up when the
 *          exchange closes; whoever has work outstanding for it (a job on a thread, a publication)
 *          holds a reference meanwhile and looks at x, which is NULL once the client is gone.
 * Arena:   while a job of the request is with a thread, the arena is that thread's; the loop leaves
 *          it alone. (The access log does not allocate.)
 * Replies: the answer may end the exchange at once. After request_reply*, request_error* and
 *          request_fail a handler returns and touches nothing that it holds no reference to.
 */
#ifndef OTARI_WORKER_REQUEST_H
#define OTARI_WORKER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "worker/dialect/conversation.h"
#include "worker/http/http.h"

struct worker_env;

#define REQUEST_MAGIC 0x6f746172u

struct caller { /* copied from the snapshot; in the request's arena */
	bool is_known, is_master;
	struct str key_id;       /* STR_NULL: master key */
	struct str user_id;      /* STR_NULL: master key, which names a user itself */
	struct str workspace_id; /* master key: the default workspace */
	bool reject_user_mismatch;
	bool any_model; /* false: only allowed_models */
	struct str *allowed_models;
	size_t allowed_model_count;
};

struct request {
	uint32_t magic, refs;
	struct http_exchange *x; /* NULL: closed */
	struct worker_env *env;
	struct arena *arena;
	char id[ID_SIZE];    /* "req_…", sent as request-id and x-request-id */
	enum wire wire;      /* whose error envelope the caller reads */
	bool detail_is_text; /* `detail` of an error is a string on this route, whatever the wire */
	bool from_admin;     /* came in on the administrative listener */
	const char *endpoint; /* "/v1/messages": the route without prefix and ids; static */
	struct str path_id;   /* the route's {id}, decoded; STR_NULL: none */
	struct caller caller;
	int64_t started_us; /* monotonic */
	/* For the access log and the settlement; set by whoever learns them. In the arena. */
	struct str model, provider;
	struct str cause; /* why the provider failed it, for the operator */
	/* What an error of OpenAI's wires says for programs; empty: null. In the arena. */
	struct str error_code, error_param;
	uint32_t code_runs;
	int status; /* answered; 0: not yet */
	/* The pipeline's own. state_close is called once when the exchange ends, whatever way. */
	void *state;
	void (*state_close)(struct request *req, bool aborted);
	/* A handler's clean-up beside the pipeline's; same rules. */
	void *work;
	void (*work_close)(struct request *req, bool aborted);
};

/* Makes the request of this exchange and sets it as the exchange's state. Starts with one
 * reference, which the exchange's end takes away. */
struct request *request_new(struct worker_env *env, struct http_exchange *x, bool from_admin);
struct request *request_get(struct request *req);
void request_put(struct request **req);
/* The request of an exchange, or NULL when there is none (the HTTP layer refused the head). */
struct request *request_of(const struct http_exchange *x);
bool request_closed(const struct request *req);

/* --- answers ----------------------------------------------------------------------------- */
/* Whole JSON answer; an overflowed buffer becomes a 500. Nothing happens on a closed request. */
void request_reply_json(struct request *req, int status, struct buf *body);
void request_reply_empty(struct request *req, int status);
/* An error in the caller's dialect. type NULL: the wire's own for this status. When an answer has
 * begun the exchange is cut off instead. */
void request_error(struct request *req, int status, const char *type, struct str message);
void request_errorf(struct request *req, int status, const char *fmt, ...) PRINTF(3, 4);
/* details_raw: a JSON object for error.details. */
void request_error_details(
    struct request *req, int status, const char *type, struct str message, struct str details_raw);
/* In OpenAI's envelope; param, code: static, NULL is null. For Responses. */
void request_error_coded(
    struct request *req, int status, const char *param, const char *code, struct str message);
/* Answers by the code. The text reaches the client for the caller's own mistakes only (4xx); for
 * the others it is logged under the request id and the client reads a general sentence. 429 and 503
 * carry Retry-After. */
void request_fail(struct request *req, const struct err *err);
int request_status_of(enum err_code code);

#endif
