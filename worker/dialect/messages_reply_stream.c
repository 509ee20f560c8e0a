/* One block of a streamed Messages answer (anthropic-wire §4.3). */
#include "worker/dialect/arguments.h"
#include "worker/dialect/messages_reply.h"

/* Opens {"type":NAME, …; close_frame ends it. */
struct jw
messages_open_frame(struct messages_reply *m, const char *name)
{
	struct jw w;
	sse_begin(m->base.out, name);
	jw_init(&w, m->base.out);
	jw_object(&w);
	jw_kcstr(&w, "type", name);
	return w;
}

void
messages_close_frame(struct messages_reply *m, struct jw *w)
{
	jw_end_object(w);
	sse_end(m->base.out);
}

static struct jw
open_block_frame(struct messages_reply *m)
{
	struct jw w = messages_open_frame(m, "content_block_start");
	jw_ki64(&w, "index", m->index);
	jw_key(&w, "content_block");
	return w;
}

static struct jw
open_delta(struct messages_reply *m, const char *type)
{
	struct jw w = messages_open_frame(m, "content_block_delta");
	jw_ki64(&w, "index", m->index);
	jw_key(&w, "delta");
	jw_object(&w);
	jw_kcstr(&w, "type", type);
	return w;
}

static void
close_delta(struct messages_reply *m, struct jw *w)
{
	jw_end_object(w);
	messages_close_frame(m, w);
}

static void
delta(struct messages_reply *m, const char *type, const char *member, struct str text)
{
	struct jw w = open_delta(m, type);
	jw_kstr(&w, member, text);
	close_delta(m, &w);
}

void
messages_stop_frame(struct messages_reply *m)
{
	struct jw w = messages_open_frame(m, "content_block_stop");
	jw_ki64(&w, "index", m->index++);
	messages_close_frame(m, &w);
}

void
messages_stream_citation(struct messages_reply *m, struct str raw)
{
	struct jw w = open_delta(m, "citations_delta");
	jw_kraw(&w, "citation", raw);
	close_delta(m, &w);
}

/* Citations that came before the text they belong to. */
static void
held_citations(struct messages_reply *m)
{
	struct arena *a = m->base.arena;
	struct jval v;
	struct jiter it = {0};
	if (m->citations->len == 0)
		return;
	struct str list = arena_printf(a, "[%.*s]", STR_FMT(buf_str(m->citations)));
	if (jdoc_parse(a, list, &v, NULL) == ERR_OK)
		while (jv_next(v, &it))
			messages_stream_citation(m, jv_raw(it.value));
}

/* Blocks are shown with their first content: a client must not send an empty text back. */
void
messages_stream_show(struct messages_reply *m)
{
	if (m->base.shown)
		return;
	m->base.shown = true;
	struct jw w = open_block_frame(m);
	switch (m->base.kind) {
	case BLOCK_TEXT:
	case BLOCK_REFUSAL:
		jw_object(&w);
		jw_kcstr(&w, "type", "text");
		jw_kcstr(&w, "text", "");
		jw_end_object(&w);
		break;
	case BLOCK_REASONING:
		jw_object(&w);
		jw_kcstr(&w, "type", "thinking");
		jw_kcstr(&w, "thinking", "");
		jw_kcstr(&w, "signature", "");
		jw_end_object(&w);
		break;
	case BLOCK_CALL:
		jw_object(&w);
		jw_kcstr(&w, "type", "tool_use");
		jw_kstr(&w, "id", m->call_id);
		jw_kstr(&w, "name", m->call_name);
		jw_kraw(&w, "input", STR("{}"));
		jw_end_object(&w);
		break;
	case BLOCK_OPAQUE:
		jw_raw(&w, m->opaque_raw);
		break;
	case BLOCK_AUDIO:
		jw_null(&w);
		break;
	}
	messages_close_frame(m, &w);
	held_citations(m);
}

static void
stream_arguments(struct messages_reply *m, struct str piece)
{
	if (m->args_begun) {
		delta(m, "input_json_delta", "partial_json", piece);
		return;
	}
	/* blank, null and what is no object are settled at the end */
	buf_add(m->text, m->text->len == 0 ? arguments_begin(piece) : piece);
	struct str so_far = buf_str(m->text);
	if (so_far.len == 0 || so_far.ptr[0] != '{')
		return;
	m->args_begun = true;
	delta(m, "input_json_delta", "partial_json", so_far);
}

void
messages_stream_delta(struct messages_reply *m, const struct turn_event *ev)
{
	if (ev->field == DELTA_RAW) {
		if (m->base.kind != BLOCK_OPAQUE || ev->raw_wire != WIRE_MESSAGES)
			return;
		struct jw w = messages_open_frame(m, "content_block_delta");
		jw_ki64(&w, "index", m->index);
		jw_kraw(&w, "delta", ev->raw);
		messages_close_frame(m, &w);
		return;
	}
	if (ev->text.len == 0)
		return;
	if (ev->field == DELTA_ENCRYPTED) {
		m->encrypted = arena_str(m->base.arena, ev->text);
		return;
	}
	messages_stream_show(m);
	if (ev->field == DELTA_SIGNATURE) {
		m->has_signature = true;
		delta(m, "signature_delta", "signature", ev->text);
	} else if (m->base.kind == BLOCK_REASONING) {
		delta(m, "thinking_delta", "thinking", ev->text);
	} else if (m->base.kind == BLOCK_CALL) {
		stream_arguments(m, ev->text);
	} else {
		delta(m, "text_delta", "text", ev->text);
	}
}

static void
stream_redacted(struct messages_reply *m)
{
	struct jw w = open_block_frame(m);
	jw_object(&w);
	jw_kcstr(&w, "type", "redacted_thinking");
	jw_kstr(&w, "data", messages_redacted_data(m));
	jw_end_object(&w);
	messages_close_frame(m, &w);
	messages_stop_frame(m);
}

void
messages_stream_stop(struct messages_reply *m)
{
	if (m->base.kind == BLOCK_REASONING && !m->base.shown && m->encrypted.len > 0) {
		stream_redacted(m);
		return;
	}
	if (!m->base.shown)
		return;
	if (m->base.kind == BLOCK_REASONING && !m->has_signature)
		delta(m, "signature_delta", "signature", messages_own_signature(m));
	if (m->base.kind == BLOCK_CALL && !m->args_begun) {
		struct str text = buf_str(m->text);
		delta(m, "input_json_delta", "partial_json",
		    arguments_blank(text) ? STR("") : arguments_object(m->base.arena, text));
	}
	messages_stop_frame(m);
}
