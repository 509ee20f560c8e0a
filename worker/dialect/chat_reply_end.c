/* Frames of a Chat answer and its end: finish reasons, usage, the whole document. */
#include "worker/dialect/chat_reply.h"
#include "worker/dialect/code_list.h"
#include "worker/dialect/mapping.h"

/* --- chunks --- */

struct jw
chat_open_chunk(struct chat_reply *c)
{
	struct jw w;
	sse_begin(c->base.out, NULL);
	jw_init(&w, c->base.out);
	jw_object(&w);
	jw_kstr(&w, "id", c->base.id);
	jw_kcstr(&w, "object", "chat.completion.chunk");
	jw_ki64(&w, "created", c->base.opt.created_s);
	jw_kstr(&w, "model", c->base.model);
	jw_key(&w, "choices");
	jw_array(&w);
	return w;
}

static void
close_chunk(struct chat_reply *c, struct jw *w)
{
	jw_end_array(w);
	if (c->base.opt.include_usage)
		jw_knull(w, "usage");
	jw_end_object(w);
	sse_end(c->base.out);
}

/* … "delta":{ ; close_delta ends it. The first delta of a choice names the role. */
struct jw
chat_open_delta(struct chat_reply *c, struct chat_answer *ch)
{
	struct jw w = chat_open_chunk(c);
	jw_object(&w);
	jw_ki64(&w, "index", ch->number);
	jw_key(&w, "delta");
	jw_object(&w);
	if (!ch->has_role)
		jw_kcstr(&w, "role", "assistant");
	ch->has_role = true;
	return w;
}

void
chat_close_delta(struct chat_reply *c, struct jw *w, const char *finish_reason)
{
	jw_end_object(w);
	jw_knull(w, "logprobs");
	jw_kcstr(w, "finish_reason", finish_reason);
	jw_end_object(w);
	close_chunk(c, w);
}

void
chat_need_role(struct chat_reply *c, struct chat_answer *ch)
{
	if (ch->has_role || !c->base.opt.stream)
		return;
	struct jw w = chat_open_delta(c, ch);
	jw_kcstr(&w, "content", "");
	jw_knull(&w, "refusal");
	chat_close_delta(c, &w, NULL);
}

/* --- the end --- */

static const char *
finish_word(struct chat_reply *c, const struct chat_answer *ch)
{
	const struct turn_event *f = &ch->finish;
	enum finish_reason r = f->reason;
	if (!ch->has_finish && c->choices != NULL && c->choices->has_finish)
		r = c->choices->finish.reason; /* told for all at once */
	if (ch->calls > 0 && (r == FINISH_STOP || r == FINISH_TOOL || r == FINISH_OTHER))
		return c->legacy ? "function_call" : "tool_calls";
	if (r == FINISH_TOOL || (r == FINISH_REFUSAL && ch->has_refusal))
		return "stop";
	if (r == FINISH_OTHER && f->raw_wire == WIRE_CHAT && f->reason_raw.len > 0)
		return arena_cstr(c->base.arena, f->reason_raw);
	return finish_to_chat(r);
}

static int64_t
or_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

static void
write_usage(struct chat_reply *c, struct jw *w)
{
	const struct token_usage *u = &c->usage;
	int64_t total;
	if (__builtin_add_overflow(or_zero(u->input), or_zero(u->output), &total))
		total = INT64_MAX;
	jw_key(w, "usage");
	jw_object(w);
	jw_ki64(w, "prompt_tokens", or_zero(u->input));
	jw_ki64(w, "completion_tokens", or_zero(u->output));
	jw_ki64(w, "total_tokens", total);
	jw_key(w, "prompt_tokens_details");
	jw_object(w);
	jw_ki64(w, "cached_tokens", or_zero(u->cache_read));
	if (u->cache_write > 0)
		jw_ki64(w, "cache_write_tokens", u->cache_write);
	jw_end_object(w);
	jw_key(w, "completion_tokens_details");
	jw_object(w);
	jw_ki64(w, "reasoning_tokens", or_zero(u->reasoning));
	jw_end_object(w);
	jw_end_object(w);
}

void
chat_end_stream(struct chat_reply *c)
{
	struct jw w;
	for (struct chat_answer *ch = c->choices; ch != NULL; ch = ch->next) {
		chat_need_role(c, ch);
		w = chat_open_delta(c, ch);
		if (ch->number == 0)
			code_list_write(c->base.code_list, &w);
		chat_close_delta(c, &w, finish_word(c, ch));
	}
	if (c->base.opt.include_usage) {
		w = chat_open_chunk(c);
		jw_end_array(&w);
		write_usage(c, &w);
		jw_end_object(&w);
		sse_end(c->base.out);
	}
	buf_add(c->base.out, STR("data: [DONE]\n\n"));
}

static void
write_quoted(struct jw *w, const char *key, const struct buf *inside)
{
	jw_key(w, key);
	if (inside->len == 0) {
		jw_null(w);
		return;
	}
	jw_raw(w, STR("\""));
	buf_add(w->out, buf_str(inside));
	buf_addc(w->out, '"');
}

static void
write_list(struct jw *w, const char *key, const struct buf *values)
{
	if (values->len == 0)
		return;
	jw_key(w, key);
	jw_array(w);
	jw_raw(w, buf_str(values));
	jw_end_array(w);
}

static void
write_choice(struct chat_reply *c, struct jw *w, const struct chat_answer *ch)
{
	jw_object(w);
	jw_ki64(w, "index", ch->number);
	jw_key(w, "message");
	jw_object(w);
	jw_kcstr(w, "role", "assistant");
	bool silent = ch->calls > 0 || ch->has_refusal || ch->audio_raw.len > 0;
	if (ch->content->len == 0 && !silent)
		jw_kcstr(w, "content", "");
	else
		write_quoted(w, "content", ch->content);
	write_quoted(w, "refusal", ch->refusal);
	if (ch->reasoning->len > 0)
		write_quoted(w, ch->reasoning_member, ch->reasoning);
	write_list(w, "annotations", ch->annotations);
	if (ch->audio_raw.len > 0)
		jw_kraw(w, "audio", ch->audio_raw);
	if (c->legacy && ch->tool_calls->len > 0)
		jw_kraw(w, "function_call", buf_str(ch->tool_calls));
	else
		write_list(w, "tool_calls", ch->tool_calls);
	if (ch->number == 0)
		code_list_write(c->base.code_list, w);
	jw_end_object(w);
	jw_knull(w, "logprobs");
	jw_kcstr(w, "finish_reason", finish_word(c, ch));
	jw_end_object(w);
}

static bool
any_overflow(const struct chat_reply *c)
{
	bool over = c->arguments->overflowed || arena_overflowed(c->base.arena);
	for (const struct chat_answer *ch = c->choices; ch != NULL; ch = ch->next)
		over = over || ch->content->overflowed || ch->reasoning->overflowed ||
		       ch->refusal->overflowed || ch->tool_calls->overflowed ||
		       ch->annotations->overflowed;
	return over;
}

void
chat_end_whole(struct chat_reply *c)
{
	struct jw w;
	jw_init(&w, c->base.out);
	jw_object(&w);
	jw_kstr(&w, "id", c->base.id);
	jw_kcstr(&w, "object", "chat.completion");
	jw_ki64(&w, "created", c->base.opt.created_s);
	jw_kstr(&w, "model", c->base.model);
	jw_key(&w, "choices");
	jw_array(&w);
	for (const struct chat_answer *ch = c->choices; ch != NULL; ch = ch->next)
		write_choice(c, &w, ch);
	jw_end_array(&w);
	write_usage(c, &w);
	jw_end_object(&w);
	if (any_overflow(c))
		c->base.out->overflowed = true; /* the caller's test before it answers */
}
