#include "worker/request.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/mapping.h"
#include "worker/env.h"

#define ERROR_BODY_MAX_BYTES (64u * 1024u)

static void
gauge_active(struct worker_env *env, int64_t by)
{
	if (env->slot == NULL)
		return;
	uint64_t now =
	    atomic_load_explicit(&env->slot->gauges[BG_REQUESTS_ACTIVE], memory_order_relaxed);
	board_gauge(env->slot, BG_REQUESTS_ACTIVE, (uint64_t)((int64_t)now + by));
}

static void
on_close(void *arg, bool aborted)
{
	struct request *req = arg;
	CHECK_MAGIC(req, REQUEST_MAGIC);
	req->x = NULL;
	gauge_active(req->env, -1);
	if (req->state_close != NULL)
		req->state_close(req, aborted);
	if (req->work_close != NULL)
		req->work_close(req, aborted);
	request_put(&req);
}

struct request *
request_new(struct worker_env *env, struct http_exchange *x, bool from_admin)
{
	struct request *req = MEM_NEW(struct request);
	req->magic = REQUEST_MAGIC;
	req->refs = 1;
	req->x = x;
	req->env = env;
	req->arena = arena_new(LIMIT_ARENA_REQUEST_BYTES);
	req->wire = WIRE_CHAT;
	req->from_admin = from_admin;
	req->endpoint = "";
	req->started_us = clock_mono_us();
	id_make("req_", req->id);
	gauge_active(env, 1);
	http_set_state(x, req);
	http_on_close(x, on_close, req);
	http_reply_header(x, "request-id", str_c(req->id));
	http_reply_header(x, "x-request-id", str_c(req->id));
	return req;
}

struct request *
request_get(struct request *req)
{
	CHECK_MAGIC(req, REQUEST_MAGIC);
	CHECK(req->refs > 0 && req->refs < UINT32_MAX);
	req->refs++;
	return req;
}

void
request_put(struct request **reqp)
{
	struct request *req = *reqp;
	*reqp = NULL;
	if (req == NULL)
		return;
	CHECK_MAGIC(req, REQUEST_MAGIC);
	CHECK(req->refs > 0);
	if (--req->refs > 0)
		return;
	CHECK(req->x == NULL);
	arena_free(&req->arena);
	req->magic = 0;
	mem_free(req);
}

struct request *
request_of(const struct http_exchange *x)
{
	return http_state(x);
}

bool
request_closed(const struct request *req)
{
	return req->x == NULL;
}

/* --- answers ----------------------------------------------------------------------------- */

void
request_reply_json(struct request *req, int status, struct buf *body)
{
	if (req->x == NULL)
		return;
	if (body->overflowed) {
		log_error("answer outgrew its limit", LOG_C("request_id", req->id));
		request_error(req, 500, NULL, STR("Internal server error"));
		return;
	}
	req->status = status;
	http_reply(req->x, status, "application/json", buf_str(body));
}

void
request_reply_empty(struct request *req, int status)
{
	if (req->x == NULL)
		return;
	req->status = status;
	http_reply(req->x, status, NULL, STR(""));
}

static const char *
word(struct arena *a, struct str s)
{
	return s.len > 0 ? arena_cstr(a, s) : NULL;
}

/* Upstream's clients of the Files, models and administrative routes read `detail` as a text, also
 * where the envelope beside it is Anthropic's. */
static void
write_error(const struct request *req, int status, const char *type, struct str message,
    struct str details_raw, struct buf *out)
{
	if (req->wire != WIRE_MESSAGES && (req->error_code.len > 0 || req->error_param.len > 0)) {
		dialect_error_body_coded(status, message, word(req->arena, req->error_param),
		    word(req->arena, req->error_code), out);
		return;
	}
	if (req->wire != WIRE_MESSAGES || !req->detail_is_text) {
		dialect_error_body(req->wire, status, type, message, details_raw, req->id, out);
		return;
	}
	struct jw w;
	jw_init(&w, out);
	jw_object(&w);
	jw_kcstr(&w, "type", "error");
	jw_key(&w, "error");
	jw_object(&w);
	jw_kcstr(&w, "type", type != NULL ? type : error_type_for(WIRE_MESSAGES, status));
	jw_kstr(&w, "message", message);
	if (details_raw.ptr != NULL)
		jw_kraw(&w, "details", details_raw);
	jw_end_object(&w);
	jw_kcstr(&w, "request_id", req->id);
	jw_kstr(&w, "detail", message);
	jw_end_object(&w);
}

/* False: it is too late for an answer, or nobody is there. */
static bool
can_answer(struct request *req)
{
	if (req->x == NULL)
		return false;
	if (!http_reply_begun(req->x))
		return true;
	http_reply_abort(req->x);
	return false;
}

void
request_error_coded(
    struct request *req, int status, const char *param, const char *code, struct str message)
{
	if (!can_answer(req))
		return;
	struct buf body = BUF_INIT(ERROR_BODY_MAX_BYTES);
	dialect_error_body_coded(status, message, param, code, &body);
	req->status = status;
	http_reply(req->x, status, "application/json", buf_str(&body));
	buf_done(&body);
}

void
request_error_details(
    struct request *req, int status, const char *type, struct str message, struct str details_raw)
{
	if (!can_answer(req))
		return;
	struct buf body = BUF_INIT(ERROR_BODY_MAX_BYTES);
	if (status == 401)
		req->error_code = STR("invalid_api_key");
	write_error(req, status, type, message, details_raw, &body);
	if (status == 401)
		http_reply_header(req->x, "WWW-Authenticate", STR("Bearer"));
	req->status = status;
	http_reply(req->x, status, "application/json", buf_str(&body));
	buf_done(&body);
}

void
request_error(struct request *req, int status, const char *type, struct str message)
{
	request_error_details(req, status, type, message, STR_NULL);
}

void
request_errorf(struct request *req, int status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	request_error(req, status, NULL, str_n(text, len));
}

int
request_status_of(enum err_code code)
{
	switch (code) {
	case ERR_INPUT:
		return 400;
	case ERR_AUTH:
		return 401;
	case ERR_BUDGET:
		return 402;
	case ERR_DENIED:
		return 403;
	case ERR_NOTFOUND:
		return 404;
	case ERR_CONFLICT:
		return 409;
	case ERR_TOOLARGE:
		return 413;
	case ERR_LIMIT:
		return 429;
	case ERR_UNSUPPORTED:
		return 501;
	case ERR_UPSTREAM:
	case ERR_PROTO:
		return 502;
	case ERR_UNCERTAIN:
	case ERR_BUSY:
	case ERR_NOMEM:
		return 503;
	case ERR_TIMEOUT:
		return 504;
	case ERR_OK:
	case ERR_IO:
	case ERR_INTERNAL:
	case ERR_MAX_:
		break;
	}
	return 500;
}

/* What the client reads where the operator's text is not for it. */
static const char *
public_text(enum err_code code)
{
	switch (code) {
	case ERR_BUSY:
	case ERR_NOMEM:
		return "The gateway is at capacity or a service it needs cannot be reached; try "
		       "again later";
	case ERR_UNCERTAIN:
		return "The connection to the database broke while saving; the change may or may "
		       "not have been made";
	case ERR_UPSTREAM:
	case ERR_PROTO:
		return "The provider failed to answer";
	case ERR_TIMEOUT:
		return "The deadline passed before there was an answer";
	default:
		return "Internal server error";
	}
}

void
request_fail(struct request *req, const struct err *err)
{
	int status = request_status_of(err->code);
	bool is_callers = status < 500 || err->code == ERR_UNSUPPORTED;
	if (!is_callers)
		log_warn("request failed", LOG_C("request_id", req->id),
		    LOG_C("endpoint", req->endpoint), LOG_C("code", err_name(err->code)),
		    LOG_ERR(err));
	if (req->x == NULL)
		return;
	if ((status == 429 || err->code == ERR_BUSY || err->code == ERR_NOMEM) &&
	    !http_reply_begun(req->x))
		http_reply_header(req->x, "Retry-After", STR("1"));
	request_error(req, status, NULL, str_c(is_callers ? err->msg : public_text(err->code)));
}
