/* Blocks of a turn → items of a Responses answer: messages with their parts, reasoning; calls and
 * hosted tools have files of their own. */
#include "worker/dialect/origin.h"
#include "worker/dialect/responses_reply.h"

/* --- messages --- */

static void
write_message(struct responses_reply *m, struct jw *w, const char *status)
{
	jw_object(w);
	jw_kstr(w, "id", m->item_id);
	jw_kcstr(w, "type", "message");
	jw_kcstr(w, "status", status);
	jw_key(w, "content");
	jw_array(w);
	if (m->content->len > 0)
		jw_raw(w, buf_str(m->content));
	jw_end_array(w);
	jw_kcstr(w, "role", "assistant");
	responses_write_extra(m, w, m->extra_raw);
	jw_end_object(w);
}

/* The message that the open block is a part of: the one that is open, unless the block names
 * another. */
static void
need_message(struct responses_reply *m)
{
	struct jw w;
	if (m->item == OPEN_MESSAGE && (m->block_id.len == 0 || str_eq(m->block_id, m->item_id)))
		return;
	responses_close_item(m, "completed");
	m->item = OPEN_MESSAGE;
	m->item_id = m->block_id.len > 0 ? m->block_id : responses_item_id(m, "msg_");
	m->extra_raw = m->block_extra;
	m->parts = 0;
	buf_clear(m->content);
	if (responses_added(m, &w)) {
		write_message(m, &w, "in_progress");
		responses_close(m, &w);
	}
}

static bool
is_refusal(const struct responses_reply *m)
{
	return m->base.kind == BLOCK_REFUSAL;
}

static void
write_part(struct responses_reply *m, struct jw *w, struct str text, struct str notes)
{
	jw_object(w);
	if (is_refusal(m)) {
		jw_kcstr(w, "type", "refusal");
		jw_kstr(w, "refusal", text);
	} else {
		jw_kcstr(w, "type", "output_text");
		jw_key(w, "annotations");
		jw_array(w);
		if (notes.len > 0)
			jw_raw(w, notes);
		jw_end_array(w);
		jw_key(w, "logprobs");
		jw_array(w);
		jw_end_array(w);
		jw_kstr(w, "text", text);
	}
	jw_end_object(w);
}

/* An event of the open part: {"type",…,"content_index":N */
static bool
open_part_event(struct responses_reply *m, const char *name, struct jw *w)
{
	if (!responses_open_item(m, name, w))
		return false;
	jw_ki64(w, "content_index", m->parts);
	return true;
}

static void
write_logprobs(struct responses_reply *m, struct jw *w)
{
	if (is_refusal(m))
		return;
	jw_key(w, "logprobs");
	jw_array(w);
	jw_end_array(w);
}

/* A part is shown with its first content: no message item for an answer without any. */
static void
show_part(struct responses_reply *m)
{
	struct jw w;
	if (m->base.shown)
		return;
	m->base.shown = true;
	need_message(m);
	m->has_refusal = m->has_refusal || is_refusal(m);
	if (open_part_event(m, "response.content_part.added", &w)) {
		jw_key(&w, "part");
		write_part(m, &w, STR(""), STR(""));
		responses_close(m, &w);
	}
}

static void
part_delta(struct responses_reply *m, struct str text)
{
	struct jw w;
	if (text.len == 0)
		return;
	show_part(m);
	buf_add(m->text, text);
	const char *name = is_refusal(m) ? "response.refusal.delta" : "response.output_text.delta";
	if (open_part_event(m, name, &w)) {
		jw_kstr(&w, "delta", text);
		write_logprobs(m, &w);
		responses_close(m, &w);
	}
}

static void
part_stop(struct responses_reply *m)
{
	struct jw w;
	if (m->notes_kept.first != NULL)
		show_part(m);
	if (!m->base.shown)
		return;
	responses_write_notes(m);
	const char *name = is_refusal(m) ? "response.refusal.done" : "response.output_text.done";
	if (open_part_event(m, name, &w)) {
		jw_kstr(&w, is_refusal(m) ? "refusal" : "text", buf_str(m->text));
		write_logprobs(m, &w);
		responses_close(m, &w);
	}
	if (m->content->len > 0)
		buf_addc(m->content, ',');
	size_t from = m->content->len;
	jw_init(&w, m->content);
	write_part(m, &w, buf_str(m->text), buf_str(m->notes));
	if (open_part_event(m, "response.content_part.done", &w)) {
		jw_kraw(&w, "part", str_from(buf_str(m->content), from));
		responses_close(m, &w);
	}
	m->parts++;
}

/* --- reasoning --- */

/* What a client keeps for the model's provider: its own where it speaks this wire, else a mark that
 * brings it back there. Empty: nothing. */
static struct str
kept_secret(struct responses_reply *m)
{
	struct arena *a = m->base.arena;
	bool has_text = m->summary_parts + m->reasoning_parts > 0;
	switch (m->from) {
	case WIRE_RESPONSES:
		return m->encrypted;
	case WIRE_CHAT:
		return has_text ? origin_mark(a, WIRE_CHAT, m->name, STR(""), STR(""), false)
				: STR("");
	case WIRE_MESSAGES:
		if (m->signature.len > 0)
			return origin_mark(a, WIRE_MESSAGES, STR(""), STR(""), m->signature, false);
		if (m->encrypted.len > 0)
			return origin_mark(a, WIRE_MESSAGES, STR(""), STR(""), m->encrypted, true);
		break;
	}
	return STR("");
}

static void
write_reasoning(struct responses_reply *m, struct jw *w, struct str secret)
{
	jw_object(w);
	jw_kstr(w, "id", m->item_id);
	jw_kcstr(w, "type", "reasoning");
	jw_key(w, "summary");
	jw_array(w);
	if (m->summary->len > 0)
		jw_raw(w, buf_str(m->summary));
	jw_end_array(w);
	if (m->reasoning->len > 0) {
		jw_key(w, "content");
		jw_array(w);
		jw_raw(w, buf_str(m->reasoning));
		jw_end_array(w);
	}
	if (secret.len > 0)
		jw_kstr(w, "encrypted_content", secret);
	responses_write_extra(m, w, m->extra_raw);
	jw_end_object(w);
}

static void
show_reasoning(struct responses_reply *m)
{
	struct jw w;
	if (m->base.shown)
		return;
	m->base.shown = true;
	responses_close_item(m, "completed");
	m->item_id = m->block_id.len > 0 ? m->block_id : responses_item_id(m, "rs_");
	m->extra_raw = m->block_extra;
	if (responses_added(m, &w)) {
		write_reasoning(m, &w, STR(""));
		responses_close(m, &w);
	}
}

static void
write_reasoning_part(struct responses_reply *m, struct jw *w, struct str text)
{
	jw_object(w);
	jw_kcstr(w, "type", m->is_content ? "reasoning_text" : "summary_text");
	jw_kstr(w, "text", text);
	jw_end_object(w);
}

static bool
open_reasoning_event(
    struct responses_reply *m, const char *of_summary, const char *of_content, struct jw *w)
{
	if (!responses_open_item(m, m->is_content ? of_content : of_summary, w))
		return false;
	if (m->is_content)
		jw_ki64(w, "content_index", m->reasoning_parts);
	else
		jw_ki64(w, "summary_index", m->summary_parts);
	return true;
}

static void
reasoning_part_stop(struct responses_reply *m)
{
	struct jw w;
	struct buf *into = m->is_content ? m->reasoning : m->summary;
	if (!m->part_open)
		return;
	m->part_open = false;
	if (open_reasoning_event(
		m, "response.reasoning_summary_text.done", "response.reasoning_text.done", &w)) {
		jw_kstr(&w, "text", buf_str(m->text));
		responses_close(m, &w);
	}
	if (into->len > 0)
		buf_addc(into, ',');
	size_t from = into->len;
	jw_init(&w, into);
	write_reasoning_part(m, &w, buf_str(m->text));
	if (open_reasoning_event(
		m, "response.reasoning_summary_part.done", "response.content_part.done", &w)) {
		jw_kraw(&w, "part", str_from(buf_str(into), from));
		responses_close(m, &w);
	}
	if (m->is_content)
		m->reasoning_parts++;
	else
		m->summary_parts++;
	buf_clear(m->text);
}

static void
reasoning_text(struct responses_reply *m, const struct turn_event *ev)
{
	struct jw w;
	if (ev->raw.len > 0 && ev->raw_wire == WIRE_RESPONSES) { /* a border, see the reader */
		reasoning_part_stop(m);
		m->is_content = str_eq(ev->raw, STR("\"reasoning_text\""));
		return;
	}
	if (ev->text.len == 0)
		return;
	show_reasoning(m);
	if (!m->part_open && open_reasoning_event(m, "response.reasoning_summary_part.added",
				 "response.content_part.added", &w)) {
		jw_key(&w, "part");
		write_reasoning_part(m, &w, STR(""));
		responses_close(m, &w);
	}
	m->part_open = true;
	buf_add(m->text, ev->text);
	if (open_reasoning_event(
		m, "response.reasoning_summary_text.delta", "response.reasoning_text.delta", &w)) {
		jw_kstr(&w, "delta", ev->text);
		responses_close(m, &w);
	}
}

static void
reasoning_stop(struct responses_reply *m)
{
	reasoning_part_stop(m);
	struct str secret = kept_secret(m);
	if (secret.len > 0)
		show_reasoning(m);
	if (!m->base.shown)
		return;
	struct jw w = responses_item_begin(m);
	size_t from = m->output->len;
	write_reasoning(m, &w, secret);
	responses_item_done_event(m, from);
}

/* --- blocks --- */

void
responses_close_item(struct responses_reply *m, const char *status)
{
	if (m->item == OPEN_NONE)
		return;
	struct jw w = responses_item_begin(m);
	size_t from = m->output->len;
	if (m->item == OPEN_MESSAGE)
		write_message(m, &w, status);
	else
		responses_call_write(m, &w, status);
	m->item = OPEN_NONE;
	responses_item_done_event(m, from);
}

void
responses_block_start(struct responses_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	bool is_ours = ev->raw_wire == WIRE_RESPONSES;
	responses_block_stop(m);
	if (ev->kind == BLOCK_AUDIO || (ev->kind == BLOCK_OPAQUE && !is_ours))
		return; /* this wire has no words for it */
	m->base.open = true;
	m->base.shown = false;
	m->base.kind = ev->kind;
	m->from = ev->raw_wire;
	m->block_id = is_ours ? arena_str(a, ev->id) : STR("");
	m->block_extra = is_ours && ev->kind != BLOCK_OPAQUE ? arena_str(a, ev->raw) : STR("");
	m->name = arena_str(a, ev->name);
	m->signature = m->encrypted = STR("");
	buf_clear(m->text);
	m->notes_kept = (struct citation_list){NULL, NULL};
	switch (ev->kind) {
	case BLOCK_REASONING:
		buf_clear(m->reasoning);
		buf_clear(m->summary);
		m->part_open = m->is_content = false;
		m->summary_parts = m->reasoning_parts = 0;
		if (m->block_id.len > 0)
			show_reasoning(m);
		break;
	case BLOCK_CALL:
		responses_call_start(m, ev);
		break;
	case BLOCK_OPAQUE:
		responses_close_item(m, "completed");
		responses_hosted_item(m, ev->raw);
		break;
	case BLOCK_TEXT:
	case BLOCK_REFUSAL:
	case BLOCK_AUDIO:
		break;
	}
}

void
responses_block_delta(struct responses_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	if (!m->base.open)
		return;
	switch (ev->field) {
	case DELTA_TEXT:
		if (m->base.kind == BLOCK_REASONING)
			reasoning_text(m, ev);
		else if (m->base.kind == BLOCK_CALL)
			responses_call_delta(m, ev->text);
		else if (m->base.kind != BLOCK_OPAQUE)
			part_delta(m, ev->text);
		break;
	case DELTA_SIGNATURE:
		if (ev->text.len > 0)
			m->signature = arena_str(a, ev->text);
		break;
	case DELTA_ENCRYPTED:
		m->encrypted = arena_str(a, ev->text);
		break;
	case DELTA_RAW: /* other wires' alone */
		break;
	}
}

void
responses_block_stop(struct responses_reply *m)
{
	if (!m->base.open)
		return;
	m->base.open = false;
	switch (m->base.kind) {
	case BLOCK_TEXT:
	case BLOCK_REFUSAL:
		part_stop(m);
		break;
	case BLOCK_REASONING:
		reasoning_stop(m);
		break;
	case BLOCK_CALL:
		responses_call_stop(m);
		break;
	case BLOCK_OPAQUE:
	case BLOCK_AUDIO:
		break;
	}
}
