/* Turn events → Chat Completions answer, streamed (openai-wire §2.6) or whole (§2.5). */
#include "worker/dialect/chat_reply.h"

#include "worker/dialect/chat.h"
#include "worker/dialect/error_event.h"

static struct chat_reply *
self(struct reply *r)
{
	return (struct chat_reply *)r; /* base is its first member */
}

struct reply *
chat_reply_new(struct arena *a, const struct reply_options *opt, struct buf *out)
{
	struct chat_reply *c = ARENA_NEW(a, struct chat_reply);
	if (c == NULL)
		return NULL;
	c->base.arena = a;
	c->base.opt = *opt;
	c->base.out = out;
	c->usage = TOKEN_USAGE_NONE;
	c->arguments = reply_buf(a);
	const struct tool *t = opt->request != NULL ? opt->request->tools : NULL;
	for (; t != NULL; t = t->next)
		c->legacy = c->legacy || (t->raw_wire == WIRE_CHAT && t->kind == TOOL_FUNCTION &&
					     t->type.len == 0 && t->raw.ptr == NULL);
	return c->arguments != NULL ? &c->base : NULL;
}

static struct chat_answer *
choice_of(struct chat_reply *c, uint32_t number)
{
	struct chat_answer **at = &c->choices;
	while (*at != NULL && (*at)->number < number)
		at = &(*at)->next;
	if (*at != NULL && (*at)->number == number)
		return *at;
	struct chat_answer *n = ARENA_NEW(c->base.arena, struct chat_answer);
	if (n == NULL)
		return NULL;
	struct buf **bufs[] = {
	    &n->content, &n->reasoning, &n->refusal, &n->tool_calls, &n->annotations};
	for (size_t i = 0; i < ARRAY_LEN(bufs) && !c->base.opt.stream; i++) {
		*bufs[i] = reply_buf(c->base.arena);
		if (*bufs[i] == NULL)
			return NULL;
	}
	n->number = number;
	n->next = *at;
	*at = n;
	return n;
}

static void
start(struct chat_reply *c, const struct turn_event *ev)
{
	if (c->base.started)
		return;
	reply_head(&c->base, ev, "chatcmpl-");
	c->current = choice_of(c, 0);
	if (c->current != NULL)
		chat_need_role(c, c->current);
}

static void
need_start(struct chat_reply *c)
{
	start(c, &(struct turn_event){.type = TURN_START});
}

/* --- text --- */

static const char *
reasoning_member(const struct chat_reply *c)
{
	return str_eq(c->block_name, STR("reasoning")) ? "reasoning" : "reasoning_content";
}

static void
text(struct chat_reply *c, struct chat_answer *ch, struct str s)
{
	const char *member = "content";
	struct buf *whole = ch->content;
	if (c->base.kind == BLOCK_REASONING) {
		member = ch->reasoning_member = reasoning_member(c);
		whole = ch->reasoning;
	} else if (c->base.kind == BLOCK_REFUSAL) {
		member = "refusal";
		whole = ch->refusal;
		ch->has_refusal = true;
	} else {
		ch->chars += citation_chars(s);
	}
	if (!c->base.opt.stream) {
		jw_escape(whole, s);
		return;
	}
	struct jw w = chat_open_delta(c, ch);
	jw_kstr(&w, member, s);
	chat_close_delta(c, &w, NULL);
}

/* "I will compute that." is not to run into what the model says of the result. */
static void
part_from_before(struct chat_reply *c, struct chat_answer *ch, struct str s)
{
	bool is_text = c->base.kind == BLOCK_TEXT && ch->number == 0;
	if (!c->ran || !is_text)
		return;
	c->ran = false;
	if (ch->chars == 0 || s.ptr[0] == '\n')
		return;
	text(c, ch, STR("\n\n"));
	ch->block_at = ch->chars;
}

static void
stream_audio(struct chat_reply *c, struct chat_answer *ch, struct str raw)
{
	struct jw w = chat_open_delta(c, ch);
	jw_kraw(&w, "audio", raw);
	chat_close_delta(c, &w, NULL);
}

/* --- blocks --- */

static void
block_stop(struct chat_reply *c)
{
	if (!c->base.open)
		return;
	c->base.open = false;
	if (c->base.kind == BLOCK_CALL && c->current != NULL)
		chat_call_stop(c, c->current);
	else if (c->current != NULL)
		chat_block_notes(c, c->current);
}

static void
block_start(struct chat_reply *c, const struct turn_event *ev)
{
	block_stop(c);
	c->current = choice_of(c, ev->choice);
	c->block_name = arena_str(c->base.arena, ev->name);
	if (c->current == NULL || ev->kind == BLOCK_OPAQUE)
		return; /* no words for it on this wire */
	c->base.open = true;
	c->base.kind = ev->kind;
	c->current->block_at = c->current->chars;
	chat_need_role(c, c->current);
	if (ev->kind == BLOCK_CALL)
		chat_call_start(c, c->current, ev);
}

static void
block_delta(struct chat_reply *c, const struct turn_event *ev)
{
	struct chat_answer *ch = c->current;
	if (!c->base.open || ch == NULL)
		return;
	if (c->base.kind == BLOCK_CALL) {
		chat_call_delta(c, ch, ev);
	} else if (c->base.kind == BLOCK_AUDIO) {
		if (ev->raw_wire == WIRE_CHAT && c->base.opt.stream)
			stream_audio(c, ch, ev->raw);
		else if (ev->raw_wire == WIRE_CHAT)
			ch->audio_raw = arena_str(c->base.arena, ev->raw);
	} else if (ev->field == DELTA_TEXT && ev->text.len > 0) {
		part_from_before(c, ch, ev->text);
		text(c, ch, ev->text);
	}
}

static void
finish(struct chat_reply *c, const struct turn_event *ev)
{
	struct chat_answer *ch = choice_of(c, ev->choice);
	if (ch == NULL)
		return;
	ch->has_finish = true;
	ch->finish = *ev;
	ch->finish.reason_raw = arena_str(c->base.arena, ev->reason_raw);
}

void
chat_reply_event(struct reply *r, const struct turn_event *ev)
{
	struct chat_reply *c = self(r);
	if (r == NULL || r->over)
		return;
	if (ev->type != TURN_START && ev->type != TURN_ERROR && ev->type != TURN_PING)
		need_start(c);
	switch (ev->type) {
	case TURN_START:
		start(c, ev);
		break;
	case TURN_BLOCK_START:
		block_start(c, ev);
		break;
	case TURN_BLOCK_DELTA:
		block_delta(c, ev);
		break;
	case TURN_BLOCK_STOP:
		block_stop(c);
		break;
	case TURN_ANNOTATION:
		if (c->base.open && c->current != NULL)
			chat_annotation(c, c->current, ev);
		break;
	case TURN_FINISH:
		finish(c, ev);
		break;
	case TURN_USAGE:
		c->usage = ev->usage;
		break;
	case TURN_END:
		block_stop(c);
		r->over = true;
		if (r->opt.stream)
			chat_end_stream(c);
		else
			chat_end_whole(c);
		break;
	case TURN_ERROR:
		r->over = true;
		if (r->opt.stream)
			dialect_error_event(WIRE_CHAT, ev->status,
			    reply_error_type(r, ev, WIRE_CHAT), ev->error_message,
			    r->opt.request_id, 0, r->out);
		break;
	case TURN_PING:
		chat_reply_ping(r);
		break;
	}
}

/* The wire has no blocks for executions (otari-behaviour §6): they are listed at the end. */
void
chat_reply_code_begin(struct reply *r, const struct code_record *rec)
{
	(void)r;
	(void)rec;
}

void
chat_reply_code_input(struct reply *r, struct str json, struct str text)
{
	(void)r;
	(void)json;
	(void)text;
}

void
chat_reply_code_run(struct reply *r, const struct code_record *rec)
{
	(void)r;
	(void)rec;
}

void
chat_reply_code(struct reply *r, const struct code_record *rec)
{
	if (r != NULL)
		self(r)->ran = true;
	reply_list_code(r, rec);
}

void
chat_reply_ping(struct reply *r)
{
	if (r != NULL && r->opt.stream && !r->over)
		buf_add(r->out, STR(": ping\n\n"));
}
