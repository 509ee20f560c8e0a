#include "worker/turn/forward.h"

#include <event2/event.h>

#include "base/limits.h"
#include "ipc/board.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/error_event.h"
#include "worker/env.h"
#include "worker/http/http.h"
#include "worker/request.h"
#include "worker/turn/settle.h"
#include "worker/turn/tap.h"
#include "worker/upstream/call.h"

#define LINGER_MS                                                                                  \
	1000 /* after the last event, for the provider to close, so that the connection is kept */

struct forward {
	struct request *req;
	struct target target;
	struct fastpath fast;
	struct upstream_call *call;
	struct tap tap;
	struct buf body;  /* to the provider */
	struct buf whole; /* of the provider, when it is not a stream */
	struct buf out;   /* on its way to the client */
	struct str end_user;
	struct event *linger; /* NULL until the answer's last event passed */
	bool is_stream, is_settled;
};

static void
settle(struct forward *f, int status, struct str error)
{
	if (f->is_settled)
		return;
	f->is_settled = true;
	struct settle_facts facts = {
	    .target = &f->target,
	    .usage = f->tap.usage,
	    .status = status,
	    .error = error,
	    .end_user = f->end_user,
	};
	settle_request(f->req, &facts);
}

static void
on_close(struct request *req, bool aborted)
{
	struct forward *f = req->state;
	upstream_cancel(&f->call);
	if (aborted)
		settle(f, 499, STR("the client went away"));
	if (f->linger != NULL)
		event_free(f->linger);
	f->linger = NULL;
	tap_done(&f->tap);
	buf_done(&f->body);
	buf_done(&f->whole);
	buf_done(&f->out);
}

static void
flush(struct forward *f)
{
	if (f->out.len > 0)
		http_reply_write(f->req->x, buf_str(&f->out));
	buf_clear(&f->out);
}

static void
on_accept(void *arg, struct upstream_call *c)
{
	struct forward *f = arg;
	f->is_stream = upstream_is_event_stream(c);
	upstream_relay_headers(c, f->req->x);
	if (!f->is_stream)
		return;
	http_reply_header(f->req->x, "Cache-Control", STR("no-cache"));
	http_reply_header(f->req->x, "X-Accel-Buffering", STR("no")); /* for proxies in front */
	http_reply_begin(f->req->x, 200, "text/event-stream", -1);
	f->req->status = 200;
}

static void
on_writable(void *arg)
{
	struct forward *f = arg;
	if (f->call != NULL)
		upstream_resume(f->call);
}

static void
on_linger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct forward *f = arg;
	upstream_cancel(&f->call);
	http_reply_end(f->req->x);
}

/* The answer's last event is about to go out: the record comes before it, and a provider that does
 * not close is not waited for. */
static void
last_event(struct forward *f)
{
	const struct timeval wait = {LINGER_MS / 1000, LINGER_MS % 1000 * 1000};
	bool failed = f->tap.has_error;
	settle(f, failed ? 502 : 200, failed ? STR("the provider sent an error event") : STR(""));
	if (f->linger == NULL && f->call != NULL)
		f->linger = event_new(f->req->env->base, -1, 0, on_linger, f);
	if (f->linger != NULL)
		(void)event_add(f->linger, &wait);
}

/* Ends a stream that has begun with the wire's error event; nothing may follow it. */
static void
end_with_error(struct forward *f, int status, struct str message)
{
	upstream_cancel(&f->call);
	dialect_error_event(
	    f->fast.wire, status, NULL, message, f->req->id, f->tap.events, &f->out);
	settle(f, status, message);
	flush(f);
	http_reply_end(f->req->x);
}

/* Some providers put an error into a 200. A failed response of Responses is an answer, and one that
 * has something beside its error as well. */
static bool
is_error_alone(struct forward *f)
{
	struct jval root;
	return f->tap.has_error && f->fast.wire != WIRE_RESPONSES &&
	       jdoc_parse(f->req->arena, buf_str(&f->whole), &root, NULL) == ERR_OK &&
	       jv_count(jv_get(root, "choices")) == 0 && jv_count(jv_get(root, "content")) == 0;
}

static void
answer_error(struct forward *f)
{
	struct failure said;
	failure_from_status(f->req->arena, 400, buf_str(&f->whole), STR(""), &f->target, &said);
	f->req->cause = STR("the provider put an error into a 200");
	f->req->error_code = said.code;
	f->req->error_param = said.param;
	board_count(f->req->env->slot, BC_UPSTREAM_ERRORS, 1);
	settle(f, 502, said.message);
	request_error(f->req, 502, NULL, said.message);
}

static void
answer_whole(struct forward *f)
{
	struct str wrong = STR("");
	if (f->whole.overflowed)
		wrong = STR("the provider's answer is too large");
	else if (!tap_whole(&f->tap, buf_str(&f->whole), &f->out))
		wrong = STR("the provider's answer is no JSON object");
	if (wrong.len > 0) {
		f->req->cause = wrong;
		board_count(f->req->env->slot, BC_UPSTREAM_ERRORS, 1);
		settle(f, 502, wrong);
		request_error(f->req, 502, NULL, wrong);
		return;
	}
	if (is_error_alone(f)) {
		answer_error(f);
		return;
	}
	bool failed = f->tap.has_error;
	if (failed)
		failure_mask(&f->target, f->out.ptr, f->out.len);
	settle(f, failed ? 502 : 200, failed ? STR("the provider sent an error") : STR(""));
	f->req->status = 200;
	http_reply(f->req->x, 200, "application/json", buf_str(&f->out));
}

static bool
on_data(void *arg, struct str bytes)
{
	struct forward *f = arg;
	struct err err;
	if (!f->is_stream) {
		buf_add(&f->whole, bytes);
		if (f->whole.overflowed) { /* there may be no end to it */
			upstream_cancel(&f->call);
			answer_whole(f);
		}
		return true;
	}
	if (f->tap.has_end) /* nothing may follow */
		return true;
	if (!http_can_write(f->req->x)) {
		http_on_writable(f->req->x, on_writable, f);
		return false;
	}
	bool had_error = f->tap.has_error;
	if (tap_stream(&f->tap, bytes, &f->out, &err) != ERR_OK) {
		end_with_error(f, 502, str_c(err.msg));
		return true;
	}
	if (f->tap.has_error && !had_error)
		failure_mask(&f->target, f->out.ptr, f->out.len);
	if (f->tap.has_end)
		last_event(f);
	flush(f);
	return true;
}

static void
on_done(void *arg, const struct failure *failure)
{
	struct forward *f = arg;
	f->call = NULL;
	if (f->linger != NULL)
		(void)event_del(f->linger);
	if (failure != NULL && !f->tap.has_end) {
		f->req->cause = failure->cause;
		board_count(f->req->env->slot, BC_UPSTREAM_ERRORS, 1);
	}
	if (failure != NULL && !http_reply_begun(f->req->x)) {
		settle(f, failure->status, failure->message);
		if (failure->retry_after.len > 0)
			http_reply_header(f->req->x, "Retry-After", failure->retry_after);
		f->req->error_code = failure->code;
		f->req->error_param = failure->param;
		request_error(f->req, failure->status, failure->type, failure->message);
		return;
	}
	if (!f->is_stream) {
		answer_whole(f);
		return;
	}
	if (failure == NULL)
		tap_stream_end(&f->tap, &f->out);
	if (f->tap.has_end || f->tap.has_error) {
		settle(f, f->tap.has_error ? 502 : 200,
		    f->tap.has_error ? STR("the provider sent an error event") : STR(""));
		flush(f);
		http_reply_end(f->req->x);
		return;
	}
	end_with_error(f, 502, STR("the provider broke off its answer"));
}

static const struct upstream_ops upstream_ops = {on_accept, on_data, on_done};

void
forward_start(struct request *req, const struct fastpath *fast, const struct target *target,
    struct str end_user)
{
	struct forward *f = ARENA_NEW(req->arena, struct forward);
	struct err err;
	if (f == NULL) {
		request_errorf(req, 503, "the gateway is out of memory for this request");
		return;
	}
	f->req = req;
	f->target = *target;
	f->fast = *fast;
	f->end_user = end_user;
	buf_init(&f->body, fast->body.len + target->model.len * 6 + 256);
	buf_init(&f->whole, LIMIT_UPSTREAM_WHOLE_BYTES);
	buf_init(&f->out, LIMIT_UPSTREAM_WHOLE_BYTES + LIMIT_SSE_EVENT_BYTES);
	tap_init(
	    &f->tap, fast->wire, target->is_alias ? target->asked : STR(""), !fast->wants_usage);
	req->state = f;
	req->state_close = on_close;
	fastpath_write(fast, target->model, &f->body);
	board_count(req->env->slot, BC_FAST_PATH, 1);
	board_count(req->env->slot, BC_UPSTREAM_CALLS, 1);
	if (upstream_start(req->env->client, req->arena, &f->target, dialect_of(fast->wire)->path,
		buf_str(&f->body), fast->stream, req->x, &upstream_ops, f, &f->call,
		&err) != ERR_OK) {
		settle(f, 502, str_c(err.msg));
		request_errorf(req, 502, "the provider could not be called");
	}
}
