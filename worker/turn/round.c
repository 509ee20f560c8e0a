#include "base/limits.h"
#include "worker/request.h"
#include "worker/turn/turn.h"

/* Calls of the client's tools are shown under ids that can be found again. */
void
turn_show_block(struct turn *t, const struct turn_event *ev)
{
	struct turn_event shown = *ev;
	if (ev->type == TURN_BLOCK_START && ev->kind == BLOCK_CALL &&
	    t->plan.decision.outcome == EXECUTOR_HERE)
		shown.id = carry_add_call(
		    ev->choice == 0 ? &t->carry : NULL, t->req->arena, t->client->wire, ev->id);
	t->client->reply_event(t->reply, &shown);
}

static void
own_call_begins(struct turn *t, const struct turn_event *ev, enum code_tool tool)
{
	t->in_own_call = true;
	if (ev->choice != 0) /* the transcript goes on from the first choice alone */
		return;
	struct tool_call *call = ARENA_NEW(t->req->arena, struct tool_call);
	if (call == NULL)
		return;
	call->tool = tool;
	*t->calls_end = call;
	t->calls_end = &call->next;
	turn_live_begin(t, ev, call);
}

static void
on_own_call(struct turn *t, const struct turn_event *ev)
{
	if (ev->type == TURN_BLOCK_DELTA && ev->field == DELTA_TEXT) {
		turn_live_piece(t, ev->text);
	} else if (ev->type == TURN_BLOCK_STOP) {
		turn_live_end(t);
		t->in_own_call = false;
	}
}

static void
on_block(struct turn *t, const struct turn_event *ev)
{
	bool is_call = ev->type == TURN_BLOCK_START && ev->kind == BLOCK_CALL;
	enum code_tool tool;
	if (is_call && gateway_tool_of(&t->plan.tools, ev->name, &tool)) {
		own_call_begins(t, ev, tool);
		return;
	}
	if (t->in_own_call) {
		on_own_call(t, ev);
		return;
	}
	if (is_call && ev->choice == 0)
		t->has_foreign_call = true;
	turn_live_block(t, ev);
}

/* Held back until it is known whether another round follows. */
static void
keep_ending(struct turn *t, const struct turn_event *ev)
{
	struct arena *a = t->req->arena;
	struct turn_ending *e = ARENA_NEW(a, struct turn_ending);
	if (e == NULL)
		return;
	e->ev = *ev;
	e->ev.reason_raw = arena_str(a, ev->reason_raw);
	e->ev.raw = ev->raw.ptr != NULL ? arena_str(a, ev->raw) : STR_NULL;
	if (ev->stop_sequence.ptr != NULL)
		e->ev.stop_sequence = arena_str(a, ev->stop_sequence);
	*t->endings_end = e;
	t->endings_end = &e->next;
	if (ev->choice == 0)
		t->reason = ev->reason;
}

static void
note_error(struct turn *t, const struct turn_event *ev)
{
	struct failure f;
	failure_from_event(t->req->arena, ev->status != 0 ? ev->status : 502, ev->error_message,
	    &t->plan.target, &f);
	t->error_status = f.status;
	t->error_message = f.message;
}

bool
turn_on_turn_event(void *arg, const struct turn_event *ev)
{
	struct turn *t = arg;
	turn_collect_event(&t->collect, ev);
	switch (ev->type) {
	case TURN_START:
		if (!t->has_started) {
			t->client->reply_event(t->reply, ev);
			t->start_bytes = t->out.len;
		}
		t->has_started = true;
		break;
	case TURN_BLOCK_START:
	case TURN_BLOCK_DELTA:
	case TURN_BLOCK_STOP:
	case TURN_ANNOTATION:
		on_block(t, ev);
		break;
	case TURN_FINISH:
		keep_ending(t, ev);
		break;
	case TURN_USAGE:
		t->round_usage = ev->usage;
		t->round_usage.raw = STR_NULL;
		if (t->rounds == 1 && ev->usage.raw.ptr != NULL)
			t->round_usage.raw = arena_str(t->req->arena, ev->usage.raw);
		break;
	case TURN_END:
		t->round_ended = true;
		break;
	case TURN_ERROR:
		note_error(t, ev);
		break;
	case TURN_PING:
		if (t->has_begun)
			t->client->reply_event(t->reply, ev);
		break;
	}
	return true;
}

/* May the calls of this round be run? Not when the answer was cut or refused. */
static bool
wants_tools(const struct turn *t)
{
	return t->reason == FINISH_TOOL || t->reason == FINISH_STOP || t->reason == FINISH_OTHER;
}

void
turn_round_end(struct turn *t)
{
	struct err err;
	struct message *said;
	struct str first_raw = t->round_usage.raw;
	if (t->usage.input < 0 && t->usage.output < 0) {
		t->usage = t->round_usage;
		t->usage.raw = first_raw;
	} else {
		token_usage_add(&t->usage, &t->round_usage);
	}
	enum err_code rc = turn_collect_end(&t->collect, &said, &err);
	t->is_collecting = false;
	turn_collect_done(&t->collect);
	if (rc != ERR_OK || arena_overflowed(t->req->arena)) {
		turn_fail(t, 502, NULL, STR("the provider's answer is too large"));
		return;
	}
	if (t->calls == NULL || !wants_tools(t)) {
		turn_finish(t, t->reason);
		return;
	}
	turn_run_calls(t);
}
