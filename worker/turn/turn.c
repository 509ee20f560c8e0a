#include "worker/turn/turn.h"

#include <event2/event.h>

#include "base/clock.h"
#include "base/limits.h"
#include "ipc/board.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/http/http.h"
#include "worker/request.h"
#include "worker/turn/carry_store.h"
#include "worker/turn/extract.h"
#include "worker/turn/lend.h"

#define LINGER_MS                                                                                  \
	1000 /* after the last event, for the provider to close, so that the connection is kept */

/* --- bytes to the client -------------------------------------------------------------------------
 */
static struct str
dropped_header(struct turn *t)
{
	struct buf b = BUF_INIT(1024);
	for (const struct dropped *d = t->plan.conv->dropped; d != NULL; d = d->next) {
		if (b.len > 0)
			buf_add(&b, STR(", "));
		buf_add(&b, d->what);
	}
	struct str s = arena_str(t->req->arena, buf_str(&b));
	buf_done(&b);
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e)
			return STR("(names that cannot be shown)");
	return s;
}

void
turn_flush(struct turn *t)
{
	if (!t->plan.conv->stream || t->out.len == 0)
		return;
	if (!t->has_begun) {
		t->has_begun = true;
		t->req->status = 200;
		http_reply_header(t->req->x, "Cache-Control", STR("no-cache"));
		http_reply_header(
		    t->req->x, "X-Accel-Buffering", STR("no")); /* for proxies in front */
		http_reply_begin(t->req->x, 200, "text/event-stream", -1);
	}
	t->wrote_since_tick = true;
	http_reply_write(t->req->x, buf_str(&t->out));
	buf_clear(&t->out);
}

/* Where code may be run, nothing goes out before there is something to see: until then a sandbox
 * that has no room is a 503, which clients know to try again, and not an error within a stream. */
static bool
may_begin(const struct turn *t)
{
	return t->has_begun || t->plan.decision.outcome != EXECUTOR_HERE ||
	       t->out.len > t->start_bytes;
}

static void
on_keepalive(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct turn *t = arg;
	bool is_silent = !t->wrote_since_tick && http_can_write(t->req->x);
	if (is_silent && t->has_begun)
		t->client->reply_ping(t->reply);
	if (is_silent) /* for as long as the start may wait */
		turn_flush(t);
	t->wrote_since_tick = false;
}

/* --- bytes from the provider ---------------------------------------------------------------------
 */
static void
on_writable(void *arg)
{
	struct turn *t = arg;
	if (t->call != NULL)
		upstream_resume(t->call);
}

static void
on_accept(void *arg, struct upstream_call *c)
{
	struct turn *t = arg;
	t->is_sse = upstream_is_event_stream(c);
	if (!t->has_begun && t->rounds == 1)
		upstream_relay_headers(c, t->req->x);
}

static enum err_code
on_sse(void *arg, struct str name, struct str data)
{
	struct turn *t = arg;
	struct err err;
	enum err_code rc = t->provider->events_sse(t->events, name, data, &err);
	if (rc != ERR_OK && t->error_status == 0) {
		t->error_status = 502;
		t->error_message = arena_str(t->req->arena, str_c(err.msg));
	}
	return rc;
}

static void
on_linger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct turn *t = arg;
	upstream_cancel(&t->call);
	turn_round_end(t);
}

static bool
on_data(void *arg, struct str bytes)
{
	struct turn *t = arg;
	if (!t->is_sse) {
		buf_add(&t->whole, bytes);
		if (t->whole.overflowed) /* there may be no end to it */
			turn_fail(t, 502, NULL, STR("the provider's answer is too large"));
		return true;
	}
	if (!http_can_write(t->req->x)) {
		http_on_writable(t->req->x, on_writable, t);
		return false;
	}
	bool was_ended = t->round_ended;
	if (!was_ended && sse_feed(&t->sse, bytes, on_sse, t, NULL) != ERR_OK &&
	    t->error_status == 0) {
		t->error_status = 502;
		t->error_message = STR("the provider's stream cannot be read");
	}
	if (t->error_status != 0) {
		turn_fail(t, t->error_status, NULL, t->error_message);
		return true;
	}
	if (may_begin(t))
		turn_flush(t);
	if (t->round_ended && !was_ended) {
		const struct timeval wait = {LINGER_MS / 1000, LINGER_MS % 1000 * 1000};
		(void)event_add(t->linger, &wait);
	}
	return true;
}

static void
on_done(void *arg, const struct failure *failure)
{
	struct turn *t = arg;
	struct err err = {.msg = "the provider broke off its answer"};
	t->call = NULL;
	(void)event_del(t->linger);
	if (failure != NULL && !t->round_ended) {
		if (!t->has_begun && failure->retry_after.len > 0)
			http_reply_header(t->req->x, "Retry-After", failure->retry_after);
		board_count(t->req->env->slot, BC_UPSTREAM_ERRORS, 1);
		t->req->cause = failure->cause;
		t->req->error_code = failure->code;
		t->req->error_param = failure->param;
		if (failure->status == 400 || failure->status == 404)
			lend_forget(t->req, &t->plan.target, &t->files);
		turn_fail(t, failure->status, failure->type, failure->message);
		return;
	}
	enum err_code rc = ERR_OK;
	if (!t->is_sse)
		rc = t->provider->events_whole(t->events, buf_str(&t->whole), &err);
	else if (!t->round_ended)
		rc = t->provider->events_end(t->events, &err);
	buf_done(&t->whole);
	if (t->error_status != 0)
		turn_fail(t, t->error_status, NULL, t->error_message);
	else if (rc != ERR_OK || !t->round_ended)
		turn_fail(t, 502, NULL, str_c(err.msg));
	else
		turn_round_end(t);
}

static const struct upstream_ops upstream_ops = {on_accept, on_data, on_done};

/* --- a round -------------------------------------------------------------------------------------
 */
static void
reset_round(struct turn *t)
{
	t->rounds++;
	t->is_sse = t->round_ended = t->in_own_call = t->has_foreign_call = false;
	turn_live_round(&t->live);
	t->calls = NULL;
	t->calls_end = &t->calls;
	t->reason = FINISH_OTHER;
	t->endings = NULL;
	t->endings_end = &t->endings;
	t->round_usage = TOKEN_USAGE_NONE;
	t->results = NULL;
	buf_clear(&t->body);
	buf_clear(&t->whole);
	sse_done(&t->sse);
	sse_init(&t->sse, LIMIT_SSE_EVENT_BYTES);
	turn_collect_init(&t->collect, t->plan.conv, LIMIT_UPSTREAM_WHOLE_BYTES);
	t->is_collecting = true;
	t->events = t->provider->events_new(t->req->arena, turn_on_turn_event, t);
}

static void
on_encoded(struct turn *t, const struct err *failed)
{
	struct err err;
	if (failed != NULL) {
		turn_fail(t, request_status_of(failed->code), NULL, str_c(failed->msg));
		return;
	}
	bool has_dropped = t->rounds == 1 && t->plan.conv->dropped != NULL;
	if (has_dropped && t->plan.limits.is_strict) {
		turn_failf(t, 400, "this model's provider has nothing for: %.*s",
		    STR_FMT(dropped_header(t)));
		return;
	}
	if (has_dropped)
		http_reply_header(t->req->x, "Otari-Dropped", dropped_header(t));
	board_count(t->req->env->slot, BC_UPSTREAM_CALLS, 1);
	if (upstream_start(t->req->env->client, t->req->arena, &t->plan.target, t->provider->path,
		buf_str(&t->body), t->plan.conv->stream, t->req->x, &upstream_ops, t, &t->call,
		&err) != ERR_OK)
		turn_fail(t, 502, NULL, STR("the provider could not be called"));
}

void
turn_round(struct turn *t)
{
	reset_round(t);
	struct encode_options opt = {
	    .model = t->plan.target.model,
	    .stream = t->plan.conv->stream,
	    .native_openai = str_eq_nocase(t->plan.target.provider_type, STR("openai")),
	    .is_mistral = str_eq_nocase(t->plan.target.provider_type, STR("mistral")),
	    .default_max_tokens = t->plan.target.max_tokens_default,
	};
	turn_encode(t, &opt, on_encoded);
}

/* --- start ---------------------------------------------------------------------------------------
 */
static void
on_carried(void *arg)
{
	turn_begin(arg);
}

/* What our tool gave in earlier turns and the client's transcript does not hold comes first. */
static void
first_round(struct turn *t)
{
	struct store_response_scope scope = {t->plan.user_id, t->plan.workspace_id};
	bool here = t->plan.decision.outcome == EXECUTOR_HERE;
	if (!here || !carry_load(t->req, &scope, t->plan.conv, on_carried, t))
		turn_begin(t);
}

static void
on_extracted(void *arg)
{
	struct turn *t = arg;
	t->extracting = NULL;
	extract_rewrite(t->plan.conv, &t->documents);
	first_round(t);
}

/* Documents that the provider does not read become text. */
static void
read_documents(struct turn *t)
{
	struct extract_options opt = {
	    .workspace_id = t->plan.workspace_id,
	    .queue_ms = t->plan.limits.queue_ms,
	    .max_text_bytes = t->plan.limits.max_inline_bytes,
	};
	extract_collect(t->plan.conv, t->plan.documents, &t->documents);
	if (t->documents.unread == 0)
		on_extracted(t);
	else
		t->extracting = extract_start(t->req, &t->documents, &opt, on_extracted, t);
}

static void
all_attached(struct turn *t)
{
	attach_rewrite(t->plan.conv, &t->files);
	read_documents(t);
}

static void
on_lent(void *arg, const struct failure *f)
{
	struct turn *t = arg;
	t->lending = NULL;
	if (f == NULL) {
		all_attached(t);
		return;
	}
	t->req->cause = f->cause;
	if (f->retry_after.len > 0)
		http_reply_header(t->req->x, "Retry-After", f->retry_after);
	turn_fail(t, f->status, NULL, f->message);
}

static void
on_attached(void *arg, const struct err *err)
{
	struct turn *t = arg;
	t->attaching = NULL;
	if (err != NULL) {
		int status = err->code == ERR_TOOLARGE ? 413
			     : err->code == ERR_BUSY   ? 503
			     : err->code == ERR_INPUT  ? 400
						       : 502;
		turn_fail(t, status, NULL, str_c(err->msg));
		return;
	}
	struct err e;
	if (lend_start(t->req, &t->plan.target, &t->files, on_lent, t, &t->lending, &e) != ERR_OK)
		turn_fail(t, 503, NULL, STR("the gateway is busy"));
	else if (t->lending == NULL)
		all_attached(t);
}

static void
make_reply(struct turn *t)
{
	struct reply_options opt = {
	    .stream = t->plan.conv->stream,
	    .include_usage = t->plan.conv->include_usage,
	    .model = t->plan.target.is_alias ? t->plan.target.asked : STR(""),
	    .fallback_id = t->req->id + 4, /* without "req_" */
	    .request_id = t->req->id,
	    .created_s = clock_wall_s(),
	    .native_code = t->plan.decision.native_blocks,
	    .names_caller = t->plan.decision.names_caller,
	    .request = t->plan.conv,
	    .public_base_url = t->plan.public_base_url,
	};
	t->reply = t->client->reply_new(t->req->arena, &opt, &t->out);
}

static bool
make_timers(struct turn *t)
{
	struct event_base *base = t->req->env->base;
	t->linger = event_new(base, -1, 0, on_linger, t);
	t->keepalive = event_new(base, -1, EV_PERSIST, on_keepalive, t);
	uint32_t ms = t->plan.limits.keepalive_ms;
	const struct timeval every = {ms / 1000, ms % 1000 * 1000};
	if (t->linger == NULL || t->keepalive == NULL)
		return false;
	return ms == 0 || !t->plan.conv->stream || event_add(t->keepalive, &every) == 0;
}

static enum attach_where
where_code_runs(const struct turn_plan *plan)
{
	if (plan->decision.outcome == EXECUTOR_HERE)
		return ATTACH_SANDBOX;
	bool takes =
	    executor_takes_files(plan->conv, plan->target.provider_type, plan->target.wire);
	return takes ? ATTACH_PROVIDER : ATTACH_NOWHERE;
}

void
turn_start(struct request *req, const struct turn_plan *plan)
{
	struct err err;
	struct turn *t = ARENA_NEW(req->arena, struct turn);
	if (t == NULL) {
		request_errorf(req, 503, "the gateway is out of memory for this request");
		return;
	}
	t->req = req;
	t->plan = *plan;
	t->client = dialect_of(plan->conv->wire);
	t->provider = dialect_of(plan->target.wire);
	t->usage = TOKEN_USAGE_NONE;
	buf_init(&t->out, 2u * LIMIT_UPSTREAM_WHOLE_BYTES);
	buf_init(&t->body, LIMIT_ARENA_REQUEST_BYTES);
	buf_init(&t->whole, LIMIT_UPSTREAM_WHOLE_BYTES);
	turn_live_init(&t->live);
	sse_init(&t->sse, LIMIT_SSE_EVENT_BYTES);
	req->state = t;
	req->state_close = turn_close;
	board_count(req->env->slot, BC_TURN_PATH, 1);
	make_reply(t);
	if (!make_timers(t)) {
		turn_fail(t, 500, NULL, STR("the gateway is out of timers"));
		return;
	}
	if (plan->takes_files && attach_collect(plan->conv, where_code_runs(plan),
				     plan->decision.claimed, &t->files, &err) != ERR_OK) {
		turn_fail(t, 400, NULL, str_c(err.msg));
		return;
	}
	if (t->files.count == 0) {
		read_documents(t);
		return;
	}
	struct attach_options opt = {
	    .user_id = plan->user_id,
	    .workspace_id = plan->file_workspace,
	    .account = t->files.where == ATTACH_PROVIDER ? lend_account(req->arena, &t->plan.target)
							 : STR_NULL,
	    .max_inline_bytes = plan->limits.max_inline_bytes,
	};
	if (attach_start(req, &t->files, &opt, on_attached, t, &t->attaching, &err) != ERR_OK)
		turn_fail(t, 503, NULL, STR("the gateway is busy"));
}
