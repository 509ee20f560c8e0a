/* Turn events → Messages answer, streamed (anthropic-wire §4) or whole (§3). */
#include "worker/dialect/messages_reply.h"

#include "worker/dialect/code_list.h"
#include "worker/dialect/error_event.h"
#include "worker/dialect/messages.h"
#include "worker/dialect/names.h"

static struct messages_reply *
self(struct reply *r)
{
	return (struct messages_reply *)r; /* base is its first member */
}

struct reply *
messages_reply_new(struct arena *a, const struct reply_options *opt, struct buf *out)
{
	struct messages_reply *m = ARENA_NEW(a, struct messages_reply);
	if (m == NULL)
		return NULL;
	m->base.arena = a;
	m->base.opt = *opt;
	m->base.out = out;
	m->usage = TOKEN_USAGE_NONE;
	m->finish = (struct turn_event){.type = TURN_FINISH, .reason = FINISH_STOP};
	m->content = reply_buf(a);
	m->text = reply_buf(a);
	m->citations = reply_buf(a);
	return m->content != NULL && m->text != NULL && m->citations != NULL ? &m->base : NULL;
}

/* --- the head --- */

static void
open_message(struct messages_reply *m, struct jw *w)
{
	jw_kstr(w, "id", m->base.id);
	jw_kcstr(w, "type", "message");
	jw_kcstr(w, "role", "assistant");
	jw_kstr(w, "model", m->base.model);
}

static void
start(struct messages_reply *m, const struct turn_event *ev)
{
	if (m->base.started)
		return;
	reply_head(&m->base, ev, "msg_");
	m->usage = ev->usage;
	m->usage.raw = arena_str(m->base.arena, ev->usage.raw);
	m->usage_wire = ev->raw_wire;
	if (!m->base.opt.stream)
		return;
	struct jw w = messages_open_frame(m, "message_start");
	jw_key(&w, "message");
	jw_object(&w);
	open_message(m, &w);
	jw_key(&w, "content");
	jw_array(&w);
	jw_end_array(&w);
	jw_knull(&w, "stop_reason");
	jw_knull(&w, "stop_sequence");
	messages_write_usage(m, &w);
	jw_end_object(&w);
	messages_close_frame(m, &w);
}

static void
need_start(struct messages_reply *m)
{
	start(m, &(struct turn_event){.type = TURN_START, .usage = TOKEN_USAGE_NONE});
}

/* --- a block of a whole answer --- */

static void
whole_delta(struct messages_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	struct jval v;
	switch (ev->field) {
	case DELTA_TEXT:
		buf_add(m->text, ev->text);
		break;
	case DELTA_SIGNATURE:
		if (ev->text.len > 0)
			m->signature = arena_str(a, ev->text);
		break;
	case DELTA_ENCRYPTED:
		m->encrypted = arena_str(a, ev->text);
		break;
	case DELTA_RAW:
		if (m->base.kind == BLOCK_OPAQUE && jdoc_parse(a, ev->raw, &v, NULL) == ERR_OK)
			buf_add(m->text, jv_str(a, jv_get(v, "partial_json")));
		break;
	}
}

static void
whole_stop(struct messages_reply *m)
{
	struct jw w;
	bool empty = m->text->len == 0;
	bool text = m->base.kind == BLOCK_TEXT || m->base.kind == BLOCK_REFUSAL;
	bool reasoning = m->base.kind == BLOCK_REASONING;
	if ((text && empty) || (reasoning && empty && m->signature.len + m->encrypted.len == 0))
		return;
	if (m->content->len > 0)
		buf_addc(m->content, ',');
	jw_init(&w, m->content);
	messages_write_whole_block(m, &w);
}

/* --- events --- */

static void
block_stop(struct messages_reply *m)
{
	if (!m->base.open)
		return;
	m->base.open = false;
	if (m->base.opt.stream)
		messages_stream_stop(m);
	else
		whole_stop(m);
}

/* A call that the provider's code made is opaque to us, and still the client's to answer. */
static bool
is_tool_use(struct arena *a, struct str raw)
{
	struct jval v;
	return raw.len > 0 && jdoc_parse(a, raw, &v, NULL) == ERR_OK &&
	       jv_str_is(jv_get(v, "type"), "tool_use");
}

static void
block_start(struct messages_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	block_stop(m);
	if (ev->kind == BLOCK_AUDIO || (ev->kind == BLOCK_OPAQUE && ev->raw_wire != WIRE_MESSAGES))
		return; /* this wire has no words for it */
	m->base.open = true;
	m->base.shown = m->has_signature = m->args_begun = false;
	m->base.kind = ev->kind;
	m->from = ev->raw_wire;
	m->signature = m->encrypted = STR_NULL;
	buf_clear(m->text);
	buf_clear(m->citations);
	m->reasoning_member = arena_str(a, ev->name);
	m->opaque_raw = arena_str(a, ev->raw);
	m->call_id = arena_str(a, ev->id);
	m->call_name = name_from_chat(a, m->base.opt.request, arena_str(a, ev->name));
	if (ev->kind == BLOCK_CALL || is_tool_use(a, m->opaque_raw))
		m->has_call = true;
	if (m->base.opt.stream && (ev->kind == BLOCK_CALL || ev->kind == BLOCK_OPAQUE))
		messages_stream_show(m);
}

static void
annotation(struct messages_reply *m, const struct turn_event *ev)
{
	if (!m->base.open || m->base.kind != BLOCK_TEXT || ev->raw_wire != WIRE_MESSAGES)
		return;
	if (m->base.opt.stream && m->base.shown) {
		messages_stream_citation(m, ev->raw);
		return;
	}
	if (m->citations->len > 0)
		buf_addc(m->citations, ',');
	buf_add(m->citations, ev->raw);
}

static void
write_stop(struct messages_reply *m, struct jw *w)
{
	bool sequence = m->finish.reason == FINISH_STOP_SEQUENCE && m->finish.stop_sequence.len > 0;
	if (m->finish.reason == FINISH_OTHER && m->finish.raw_wire == WIRE_MESSAGES &&
	    m->finish.reason_raw.len > 0 && !m->has_call)
		jw_kstr(w, "stop_reason", m->finish.reason_raw);
	else
		jw_kcstr(w, "stop_reason", messages_stop_reason(m));
	if (sequence)
		jw_kstr(w, "stop_sequence", m->finish.stop_sequence);
	else
		jw_knull(w, "stop_sequence");
}

static void
end_stream(struct messages_reply *m)
{
	struct jw w = messages_open_frame(m, "message_delta");
	jw_key(&w, "delta");
	jw_object(&w);
	write_stop(m, &w);
	messages_write_extra(m, &w, EXTRA_IN_DELTA);
	jw_end_object(&w);
	messages_write_usage(m, &w);
	messages_write_extra(m, &w, EXTRA_BESIDE);
	code_list_write(m->base.code_list, &w);
	messages_close_frame(m, &w);
	w = messages_open_frame(m, "message_stop");
	messages_close_frame(m, &w);
}

static void
end_whole(struct messages_reply *m)
{
	struct jw w;
	jw_init(&w, m->base.out);
	jw_object(&w);
	open_message(m, &w);
	jw_key(&w, "content");
	jw_array(&w);
	if (m->content->len > 0)
		jw_raw(&w, buf_str(m->content));
	jw_end_array(&w);
	write_stop(m, &w);
	messages_write_extra(m, &w, EXTRA_ALL);
	messages_write_usage(m, &w);
	code_list_write(m->base.code_list, &w);
	jw_end_object(&w);
	if (m->content->overflowed || m->text->overflowed || arena_overflowed(m->base.arena))
		m->base.out->overflowed = true; /* the caller's test before it answers */
}

static void
finish(struct messages_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	if (ev->choice != 0)
		return;
	m->finish = *ev;
	m->finish.reason_raw = arena_str(a, ev->reason_raw);
	m->finish.raw = arena_str(a, ev->raw);
	if (ev->stop_sequence.ptr != NULL)
		m->finish.stop_sequence = arena_str(a, ev->stop_sequence);
}

static void
end(struct messages_reply *m)
{
	block_stop(m);
	need_start(m);
	if (m->base.opt.stream)
		end_stream(m);
	else
		end_whole(m);
	m->base.over = true;
}

static void
fail(struct messages_reply *m, const struct turn_event *ev)
{
	m->base.over = true;
	if (m->base.opt.stream)
		dialect_error_event(WIRE_MESSAGES, ev->status,
		    reply_error_type(&m->base, ev, WIRE_MESSAGES), ev->error_message,
		    m->base.opt.request_id, 0, m->base.out);
}

void
messages_reply_event(struct reply *r, const struct turn_event *ev)
{
	struct messages_reply *m = self(r);
	if (r == NULL || r->over || (ev->choice != 0 && ev->type != TURN_FINISH))
		return;
	if (ev->type != TURN_START && ev->type != TURN_ERROR && ev->type != TURN_PING)
		need_start(m);
	switch (ev->type) {
	case TURN_START:
		start(m, ev);
		break;
	case TURN_BLOCK_START:
		block_start(m, ev);
		break;
	case TURN_BLOCK_DELTA:
		if (!r->open)
			break;
		if (r->opt.stream)
			messages_stream_delta(m, ev);
		else
			whole_delta(m, ev);
		break;
	case TURN_BLOCK_STOP:
		block_stop(m);
		break;
	case TURN_ANNOTATION:
		annotation(m, ev);
		break;
	case TURN_FINISH:
		finish(m, ev);
		break;
	case TURN_USAGE:
		m->usage = ev->usage;
		m->usage.raw = arena_str(r->arena, ev->usage.raw);
		m->usage_wire = ev->raw_wire;
		break;
	case TURN_END:
		end(m);
		break;
	case TURN_ERROR:
		fail(m, ev);
		break;
	case TURN_PING:
		messages_reply_ping(r);
		break;
	}
}

void
messages_reply_ping(struct reply *r)
{
	if (r == NULL || !r->opt.stream || !r->started || r->over)
		return;
	struct jw w = messages_open_frame(self(r), "ping");
	messages_close_frame(self(r), &w);
}
