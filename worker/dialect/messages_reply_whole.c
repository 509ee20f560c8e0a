/* Pieces of a Messages answer that are the same streamed and whole (anthropic-wire §3). */
#include "worker/dialect/arguments.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/messages_reply.h"
#include "worker/dialect/origin.h"

struct str
messages_own_signature(const struct messages_reply *m)
{
	enum wire from = m->from == WIRE_RESPONSES ? WIRE_RESPONSES : WIRE_CHAT;
	return origin_mark(
	    m->base.arena, from, m->reasoning_member, m->call_id, m->encrypted, false);
}

struct str
messages_redacted_data(const struct messages_reply *m)
{
	return m->from == WIRE_MESSAGES ? m->encrypted : messages_own_signature(m);
}

static void
write_reasoning(struct messages_reply *m, struct jw *w)
{
	jw_object(w);
	if (m->text->len == 0 && m->signature.len == 0 && m->encrypted.len > 0) {
		jw_kcstr(w, "type", "redacted_thinking");
		jw_kstr(w, "data", messages_redacted_data(m));
	} else {
		jw_kcstr(w, "type", "thinking");
		jw_kstr(w, "thinking", buf_str(m->text));
		jw_kstr(w, "signature",
		    m->signature.len > 0 ? m->signature : messages_own_signature(m));
	}
	jw_end_object(w);
}

void
messages_write_whole_block(struct messages_reply *m, struct jw *w)
{
	struct arena *a = m->base.arena;
	switch (m->base.kind) {
	case BLOCK_TEXT:
	case BLOCK_REFUSAL:
		jw_object(w);
		jw_kcstr(w, "type", "text");
		jw_kstr(w, "text", buf_str(m->text));
		if (m->citations->len > 0) {
			jw_key(w, "citations");
			jw_array(w);
			jw_raw(w, buf_str(m->citations));
			jw_end_array(w);
		}
		jw_end_object(w);
		break;
	case BLOCK_REASONING:
		write_reasoning(m, w);
		break;
	case BLOCK_CALL:
		jw_object(w);
		jw_kcstr(w, "type", "tool_use");
		jw_kstr(w, "id", m->call_id);
		jw_kstr(w, "name", m->call_name);
		jw_kraw(w, "input", arguments_object(a, buf_str(m->text)));
		jw_end_object(w);
		break;
	case BLOCK_OPAQUE:
		jw_raw(w, block_with_input(a, m->opaque_raw, buf_str(m->text)));
		break;
	case BLOCK_AUDIO:
		break;
	}
}

/* Any call means tool_use, whatever the provider said, unless the answer was cut or refused. */
const char *
messages_stop_reason(const struct messages_reply *m)
{
	enum finish_reason r = m->finish.reason;
	bool plain = r == FINISH_STOP || r == FINISH_TOOL || r == FINISH_OTHER;
	if (plain && m->has_call)
		return "tool_use";
	if (r == FINISH_TOOL)
		return "end_turn";
	return finish_to_messages(r);
}

static int64_t
or_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

/* What the provider's own object holds beside the counts. */
static void
copy_other_usage(struct messages_reply *m, struct jw *w)
{
	static const char *const known[] = {"input_tokens", "output_tokens",
	    "cache_read_input_tokens", "cache_creation_input_tokens", "server_tool_use"};
	struct jval v;
	struct jiter it = {0};
	if (m->usage_wire != WIRE_MESSAGES || m->usage.raw.len == 0 ||
	    jdoc_parse(m->base.arena, m->usage.raw, &v, NULL) != ERR_OK)
		return;
	while (jv_next(v, &it)) {
		bool skip = false;
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			skip = skip || jv_str_is(it.key, known[i]);
		if (skip)
			continue;
		jw_key_str(w, jv_str(m->base.arena, it.key));
		jw_raw(w, jv_raw(it.value));
	}
}

static void
write_server_tool_use(struct messages_reply *m, struct jw *w)
{
	struct jval v, used = JV_ABSENT;
	struct jiter it = {0};
	if (m->usage_wire == WIRE_MESSAGES && m->usage.raw.len > 0 &&
	    jdoc_parse(m->base.arena, m->usage.raw, &v, NULL) == ERR_OK)
		used = jv_get(v, "server_tool_use");
	if (m->executions == 0 && !jv_is(used, JT_OBJECT))
		return;
	jw_key(w, "server_tool_use");
	jw_object(w);
	while (jv_next(used, &it)) {
		if (m->executions > 0 && jv_str_is(it.key, "code_execution_requests"))
			continue;
		jw_key_str(w, jv_str(m->base.arena, it.key));
		jw_raw(w, jv_raw(it.value));
	}
	if (m->executions > 0)
		jw_ki64(w, "code_execution_requests", m->executions);
	jw_end_object(w);
}

void
messages_write_usage(struct messages_reply *m, struct jw *w)
{
	const struct token_usage *u = &m->usage;
	int64_t cached = or_zero(u->cache_read) + or_zero(u->cache_write);
	jw_key(w, "usage");
	jw_object(w);
	jw_ki64(w, "input_tokens", or_zero(or_zero(u->input) - cached));
	jw_ki64(w, "cache_creation_input_tokens", or_zero(u->cache_write));
	jw_ki64(w, "cache_read_input_tokens", or_zero(u->cache_read));
	jw_ki64(w, "output_tokens", or_zero(u->output));
	write_server_tool_use(m, w);
	copy_other_usage(m, w);
	jw_end_object(w);
}

void
messages_write_extra(struct messages_reply *m, struct jw *w, enum extra_place place)
{
	struct jval v;
	struct jiter it = {0};
	if (m->finish.raw_wire != WIRE_MESSAGES || m->finish.raw.len == 0 ||
	    jdoc_parse(m->base.arena, m->finish.raw, &v, NULL) != ERR_OK)
		return;
	while (jv_next(v, &it)) {
		bool delta = jv_str_is(it.key, "container") || jv_str_is(it.key, "stop_details");
		if (place != EXTRA_ALL && delta != (place == EXTRA_IN_DELTA))
			continue;
		jw_key_str(w, jv_str(m->base.arena, it.key));
		jw_raw(w, jv_raw(it.value));
	}
}
