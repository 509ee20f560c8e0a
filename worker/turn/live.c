#include "worker/turn/live.h"

#include "base/limits.h"
#include "worker/request.h"
#include "worker/turn/mint.h"
#include "worker/turn/turn.h"

struct held { /* an event, or the place of a call of ours */
	struct held *next;
	struct tool_call *call;
	struct turn_event ev;
	bool has_text; /* in held_text */
	size_t from, len;
};

void
turn_live_init(struct turn_live *live)
{
	buf_init(&live->json, CODE_SOURCE_MAX + LIVE_INPUT_DEPTH + 1);
	buf_init(&live->text, CODE_SOURCE_MAX);
	buf_init(&live->held_text, LIMIT_UPSTREAM_WHOLE_BYTES);
}

void
turn_live_done(struct turn_live *live)
{
	buf_done(&live->json);
	buf_done(&live->text);
	buf_done(&live->held_text);
}

void
turn_live_round(struct turn_live *live)
{
	live->open = live->shown = NULL;
	live->held = live->held_last = NULL;
	buf_clear(&live->held_text);
}

/* --- holding -------------------------------------------------------------------------------------
 */
static struct held *
hold(struct turn *t)
{
	struct held *h = ARENA_NEW(t->req->arena, struct held);
	if (h == NULL)
		return NULL;
	if (t->live.held == NULL)
		t->live.held = h;
	else
		t->live.held_last->next = h;
	t->live.held_last = h;
	return h;
}

static struct str
copy(struct arena *a, struct str s)
{
	return s.ptr != NULL ? arena_str(a, s) : s;
}

static bool
is_text_alone(const struct turn_event *ev)
{
	return ev->type == TURN_BLOCK_DELTA && ev->field == DELTA_TEXT && ev->raw.len == 0;
}

static void
hold_event(struct turn *t, const struct turn_event *ev)
{
	struct arena *a = t->req->arena;
	struct turn_live *live = &t->live;
	size_t from = live->held_text.len;
	struct held *last = live->held != NULL ? live->held_last : NULL;
	if (is_text_alone(ev)) {
		buf_add(&live->held_text, ev->text);
		if (last != NULL && last->has_text) {
			last->len += live->held_text.len - from;
			return;
		}
	}
	struct held *h = hold(t);
	if (h == NULL)
		return;
	h->ev = *ev;
	h->ev.id = copy(a, ev->id);
	h->ev.name = copy(a, ev->name);
	h->ev.raw = copy(a, ev->raw);
	h->has_text = is_text_alone(ev);
	h->ev.text = h->has_text ? STR("") : copy(a, ev->text);
	h->from = from;
	h->len = live->held_text.len - from;
}

/* --- showing -------------------------------------------------------------------------------------
 */
/* What the client does not have yet. */
static void
show_input(struct turn *t)
{
	struct turn_live *live = &t->live;
	if (live->open != live->shown)
		return;
	t->client->reply_code_input(t->reply, str_from(buf_str(&live->json), live->json_out),
	    str_from(buf_str(&live->text), live->text_out));
	live->json_out = live->json.len;
	live->text_out = live->text.len;
}

static void
show_call(struct turn *t, struct tool_call *call)
{
	t->live.shown = call;
	t->client->reply_code_begin(t->reply, &call->shown);
}

/* Up to the next call of ours, whose result is to come first. */
static void
show_held(struct turn *t)
{
	struct turn_live *live = &t->live;
	struct held *h;
	while ((h = live->held) != NULL && live->shown == NULL) {
		live->held = h->next;
		if (h->call != NULL) {
			show_call(t, h->call);
			t->client->reply_code_input(
			    t->reply, h->call->shown.input_raw, h->call->shown.code);
			t->client->reply_code_run(t->reply, &h->call->shown);
			continue;
		}
		if (h->has_text)
			h->ev.text = str_sub(buf_str(&live->held_text), h->from, h->len);
		turn_show_block(t, &h->ev);
	}
}

/* --- the round -----------------------------------------------------------------------------------
 */
static struct str
member_of(enum code_tool tool)
{
	static const struct str members[CODE_TOOL_COUNT] = {
	    [CODE_TOOL_PYTHON] = STR_INIT("code"),
	    [CODE_TOOL_BASH] = STR_INIT("command"),
	    [CODE_TOOL_EDITOR] = STR_INIT(""),
	};
	return members[tool];
}

void
turn_live_begin(struct turn *t, const struct turn_event *ev, struct tool_call *call)
{
	struct arena *a = t->req->arena;
	struct turn_live *live = &t->live;
	if (t->container_id.len == 0)
		t->container_id = mint_container_id(a);
	call->id = arena_str(a, ev->id);
	call->shown = (struct code_record){
	    .id = mint_execution_id(a, t->client->wire),
	    .container_id = t->container_id,
	    .tool = call->tool,
	};
	live->open = call;
	live_input_init(&live->reader, member_of(call->tool), CODE_SOURCE_MAX);
	buf_clear(&live->json);
	buf_clear(&live->text);
	live->json_out = live->text_out = 0;
	if (!t->plan.decision.native_blocks)
		return;
	if (live->shown == NULL) {
		show_call(t, call);
		return;
	}
	struct held *h = hold(t);
	if (h != NULL)
		h->call = call;
}

void
turn_live_piece(struct turn *t, struct str arguments)
{
	struct turn_live *live = &t->live;
	if (live->open == NULL)
		return;
	live_input_feed(&live->reader, arguments, &live->json, &live->text);
	show_input(t);
}

void
turn_live_end(struct turn *t)
{
	struct turn_live *live = &t->live;
	struct tool_call *call = live->open;
	if (call == NULL)
		return;
	bool is_whole = live_input_end(&live->reader, &live->json);
	call->shown.input_raw = arena_str(t->req->arena, buf_str(&live->json));
	call->shown.code = arena_str(t->req->arena, buf_str(&live->text));
	call->arguments = is_whole ? call->shown.input_raw : STR(""); /* half of it must not run */
	show_input(t);
	if (live->shown == call)
		t->client->reply_code_run(t->reply, &call->shown);
	live->open = NULL;
}

void
turn_live_block(struct turn *t, const struct turn_event *ev)
{
	if (t->live.shown != NULL)
		hold_event(t, ev);
	else
		turn_show_block(t, ev);
}

void
turn_live_result(struct turn *t, const struct code_record *rec)
{
	t->client->reply_code(t->reply, rec);
	t->live.shown = NULL;
	show_held(t);
	turn_flush(t);
}

void
turn_live_settle(struct turn *t, bool is_broken)
{
	struct turn_live *live = &t->live;
	turn_live_end(t);
	if (is_broken)
		live->held = NULL;
	while (live->shown != NULL) {
		struct code_record rec = live->shown->shown;
		rec.error_code =
		    live->shown->arguments.len > 0 ? STR("unavailable") : STR("invalid_tool_input");
		turn_live_result(t, &rec);
	}
}
