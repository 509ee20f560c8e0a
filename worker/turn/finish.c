#include <stdarg.h>
#include <stdio.h>

#include <event2/event.h>

#include "worker/http/http.h"
#include "worker/request.h"
#include "worker/turn/carry_store.h"
#include "worker/turn/extract.h"
#include "worker/turn/lend.h"
#include "worker/turn/settle.h"
#include "worker/turn/turn.h"

static void
settle(struct turn *t, int status, struct str error)
{
	if (t->is_settled)
		return;
	t->is_settled = true;
	struct settle_facts facts = {
	    .target = &t->plan.target,
	    .usage = t->usage,
	    .status = status,
	    .error = error,
	    .end_user = t->plan.conv->user,
	    .code_billed = t->billed,
	    .code_errors = t->errors,
	};
	settle_request(t->req, &facts);
}

static void
stop_work(struct turn *t)
{
	if (t->linger != NULL)
		(void)event_del(t->linger);
	if (t->keepalive != NULL)
		(void)event_del(t->keepalive);
	upstream_cancel(&t->call);
	attach_cancel(&t->attaching);
	lend_cancel(&t->lending);
	extract_cancel(&t->extracting);
	turn_encode_cancel(t);
	turn_run_close(t);
}

/* As the provider said it, unless the gateway ended the turn in another way. */
static void
write_endings(struct turn *t, enum finish_reason reason)
{
	struct turn_event own = {
	    .type = TURN_FINISH, .reason = reason, .raw_wire = t->provider->wire};
	if (t->endings == NULL || reason != t->reason) {
		t->client->reply_event(t->reply, &own);
		return;
	}
	for (const struct turn_ending *e = t->endings; e != NULL; e = e->next)
		t->client->reply_event(t->reply, &e->ev);
}

static void
deliver(void *arg)
{
	struct turn *t = arg;
	if (t->plan.conv->stream) {
		turn_flush(t);
		http_reply_end(t->req->x);
		return;
	}
	t->req->status = 200;
	http_reply(t->req->x, 200, "application/json", buf_str(&t->out));
}

static void
keep_and_deliver(void *arg)
{
	struct turn *t = arg;
	if (t->out.overflowed ||
	    !keep_start(t->req, &t->plan.keep, buf_str(&t->out), t->plan.conv->stream, deliver, t))
		deliver(t);
}

void
turn_finish(struct turn *t, enum finish_reason reason)
{
	struct turn_event usage = {
	    .type = TURN_USAGE, .usage = t->usage, .raw_wire = t->provider->wire};
	struct turn_event end = {.type = TURN_END};
	stop_work(t);
	turn_live_settle(t, false);
	write_endings(t, reason);
	t->client->reply_event(t->reply, &usage);
	t->client->reply_event(t->reply, &end);
	if (t->out.overflowed && !t->has_begun) {
		turn_fail(t, 502, NULL, STR("the answer is too large"));
		return;
	}
	settle(t, 200, STR(""));
	struct store_response_scope scope = {t->plan.user_id, t->plan.workspace_id};
	if (!carry_save(t->req, &scope, &t->carry, keep_and_deliver, t))
		keep_and_deliver(t);
}

void
turn_fail(struct turn *t, int status, const char *type, struct str message)
{
	/* tokens of a round that broke off are used all the same */
	if (t->is_collecting)
		token_usage_add(&t->usage, &t->round_usage);
	stop_work(t);
	settle(t, status, message);
	if (!t->has_begun) {
		request_error(t->req, status, type, message);
		return;
	}
	turn_live_settle(t, true);
	t->client->reply_event(t->reply, &(struct turn_event){.type = TURN_ERROR,
					     .status = status,
					     .error_type = str_c(type),
					     .error_message = message,
					     .raw_wire = t->client->wire});
	keep_and_deliver(t);
}

void
turn_failf(struct turn *t, int status, const char *fmt, ...)
{
	char msg[256];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	turn_fail(t, status, NULL, str_c(msg));
}

void
turn_close(struct request *req, bool aborted)
{
	struct turn *t = req->state;
	if (aborted && t->is_collecting && !t->is_settled)
		token_usage_add(&t->usage, &t->round_usage);
	stop_work(t);
	if (aborted)
		settle(t, 499, STR("the client went away"));
	if (t->is_collecting)
		turn_collect_done(&t->collect);
	if (t->linger != NULL)
		event_free(t->linger);
	if (t->keepalive != NULL)
		event_free(t->keepalive);
	t->linger = t->keepalive = NULL;
	sse_done(&t->sse);
	buf_done(&t->out);
	buf_done(&t->body);
	buf_done(&t->whole);
	turn_live_done(&t->live);
}
