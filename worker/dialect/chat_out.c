/* Conversation → Chat Completions request. The same wire gets back what it sent, byte for byte; the
 * other is translated after openai-wire §10. */
#include "worker/dialect/chat_out.h"

#include "worker/dialect/chat.h"
#include "worker/dialect/drop.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/names.h"
#include "worker/dialect/read.h"

#define STOP_MAX 4 /* Chat takes no more sequences */

const struct dialect dialect_chat = {
    .wire = WIRE_CHAT,
    .name = "chat",
    .path = "/chat/completions",
    .decode = chat_decode,
    .encode = chat_encode,
    .events_new = chat_events_new,
    .events_sse = chat_events_sse,
    .events_whole = chat_events_whole,
    .events_end = chat_events_end,
    .reply_new = chat_reply_new,
    .reply_event = chat_reply_event,
    .reply_code_begin = chat_reply_code_begin,
    .reply_code_input = chat_reply_code_input,
    .reply_code_run = chat_reply_code_run,
    .reply_code = chat_reply_code,
    .reply_ping = chat_reply_ping,
};

/* --- tools --- */

static void
write_function(struct jw *w, struct str name, struct str description, struct str schema, int strict)
{
	jw_object(w);
	jw_kcstr(w, "type", "function");
	jw_key(w, "function");
	jw_object(w);
	jw_kstr(w, "name", name);
	if (description.len > 0)
		jw_kstr(w, "description", description);
	if (schema.ptr != NULL)
		jw_kraw(w, "parameters", schema);
	if (strict >= 0)
		jw_kbool(w, "strict", strict == 1);
	jw_end_object(w);
	jw_end_object(w);
}

static bool
is_sendable(const struct tool *t)
{
	if (t->raw_wire == WIRE_CHAT && t->raw.ptr != NULL)
		return true;
	return !t->is_excluded && (t->kind == TOOL_FUNCTION || client_tool_of(t->type) != NULL);
}

static void
write_tool(struct chat_writer *cw, const struct tool *t)
{
	const struct client_tool *known = client_tool_of(t->type);
	if (!is_sendable(t)) {
		if (!t->is_excluded)
			drop_named(cw->conv, "tools", t->type);
	} else if (t->raw.ptr != NULL && t->raw_wire == WIRE_CHAT) {
		jw_raw(&cw->w, t->raw);
	} else if (t->kind == TOOL_FUNCTION) {
		write_function(&cw->w, name_for_chat(cw->conv->arena, t->name), t->description,
		    t->schema_raw, t->strict);
	} else {
		write_function(&cw->w, str_c(known->name), str_c(known->description),
		    str_c(known->schema), -1);
	}
}

static bool
has_tool_of_ours(const struct conversation *c)
{
	for (const struct tool *t = c->tools; t != NULL; t = t->next)
		if (t->raw.ptr == NULL)
			return true;
	return false;
}

/* The list of allowed tools as it is now: the gateway may have put its own in the place of one. */
static void
write_allowed(struct chat_writer *cw)
{
	struct jw *w = &cw->w;
	jw_key(w, "tool_choice");
	jw_object(w);
	jw_kcstr(w, "type", "allowed_tools");
	jw_key(w, "allowed_tools");
	jw_object(w);
	jw_kcstr(w, "mode", cw->conv->choice.kind == CHOICE_REQUIRED ? "required" : "auto");
	jw_key(w, "tools");
	jw_array(w);
	for (const struct tool *t = cw->conv->tools; t != NULL; t = t->next) {
		if (t->is_excluded || !is_sendable(t))
			continue;
		jw_object(w);
		jw_kstr(w, "type", t->type);
		jw_key_str(w, t->type);
		jw_object(w);
		jw_kstr(w, "name", name_for_chat(cw->conv->arena, t->name));
		jw_end_object(w);
		jw_end_object(w);
	}
	jw_end_array(w);
	jw_end_object(w);
	jw_end_object(w);
}

static void
write_choice(struct chat_writer *cw)
{
	static const char *const words[] = {
	    [CHOICE_AUTO] = "auto", [CHOICE_NONE] = "none", [CHOICE_REQUIRED] = "required"};
	const struct tool_choice *c = &cw->conv->choice;
	struct jw *w = &cw->w;
	if (c->raw.ptr != NULL && cw->conv->wire == WIRE_CHAT) {
		if (str_eq(c->type, STR("allowed_tools")) && has_tool_of_ours(cw->conv))
			write_allowed(cw);
		else
			jw_kraw(w, "tool_choice", c->raw);
		return;
	}
	switch (c->kind) {
	case CHOICE_AUTO:
	case CHOICE_NONE:
	case CHOICE_REQUIRED:
		jw_kcstr(w, "tool_choice", words[c->kind]);
		break;
	case CHOICE_NAMED:
		jw_key(w, "tool_choice");
		jw_object(w);
		jw_kcstr(w, "type", "function");
		jw_key(w, "function");
		jw_object(w);
		jw_kstr(w, "name", name_for_chat(cw->conv->arena, c->name));
		jw_end_object(w);
		jw_end_object(w);
		break;
	case CHOICE_OPAQUE:
		drop_named(cw->conv, "tool_choice", c->type);
		break;
	case CHOICE_UNSET:
		break;
	}
}

static void
write_tools(struct chat_writer *cw)
{
	bool any = false;
	for (const struct tool *t = cw->conv->tools; t != NULL; t = t->next)
		any = any || is_sendable(t);
	if (any) {
		jw_key(&cw->w, "tools");
		jw_array(&cw->w);
	}
	for (const struct tool *t = cw->conv->tools; t != NULL; t = t->next)
		write_tool(cw, t);
	if (!any) /* tool_choice without tools is refused */
		return;
	jw_end_array(&cw->w);
	write_choice(cw);
	if (cw->conv->choice.parallel >= 0)
		jw_kbool(&cw->w, "parallel_tool_calls", cw->conv->choice.parallel == 1);
}

/* --- settings --- */

static void
write_stream(struct chat_writer *cw)
{
	struct conversation *c = cw->conv;
	const struct field *sent = c->wire == WIRE_CHAT ? extra_find(c, "stream_options") : NULL;
	struct jval v;
	struct jw *w = &cw->w;
	if (!cw->opt->stream)
		return;
	jw_kbool(w, "stream", true);
	if (cw->opt->is_mistral)
		return;
	jw_key(w, "stream_options");
	jw_object(w);
	jw_kbool(w, "include_usage", true); /* for the books, whatever the client wants to see */
	if (sent != NULL && jdoc_parse(c->arena, sent->raw, &v, NULL) == ERR_OK) {
		struct jiter it = {0};
		while (jv_next(v, &it)) {
			if (jv_str_is(it.key, "include_usage"))
				continue;
			jw_key_str(w, jv_str(c->arena, it.key));
			jw_raw(w, jv_raw(it.value));
		}
	}
	jw_end_object(w);
}

static void
write_kraw_if(struct jw *w, const char *key, struct str raw)
{
	if (raw.ptr != NULL)
		jw_kraw(w, key, raw);
}

static void
write_stop(struct chat_writer *cw)
{
	const struct conversation *c = cw->conv;
	size_t n = c->stop_count < STOP_MAX ? c->stop_count : STOP_MAX;
	if (n == 0)
		return;
	if (c->stop_count > STOP_MAX)
		drop_named(cw->conv, "stop_sequences", STR_NULL);
	jw_key(&cw->w, "stop");
	jw_array(&cw->w);
	for (size_t i = 0; i < n; i++)
		jw_str(&cw->w, c->stop[i]);
	jw_end_array(&cw->w);
}

static void
write_format(struct chat_writer *cw)
{
	const struct output_format *f = &cw->conv->format;
	struct jw *w = &cw->w;
	if (f->kind != FORMAT_JSON_SCHEMA && f->kind != FORMAT_JSON_OBJECT)
		return;
	jw_key(w, "response_format");
	jw_object(w);
	if (f->kind == FORMAT_JSON_OBJECT) {
		jw_kcstr(w, "type", "json_object");
		jw_end_object(w);
		return;
	}
	jw_kcstr(w, "type", "json_schema");
	jw_key(w, "json_schema");
	jw_object(w);
	jw_kstr(w, "name", f->name.len > 0 ? f->name : STR("response"));
	if (f->description.len > 0)
		jw_kstr(w, "description", f->description);
	write_kraw_if(w, "schema", f->schema_raw);
	if (f->strict >= 0)
		jw_kbool(w, "strict", f->strict == 1);
	jw_end_object(w);
	jw_end_object(w);
}

static void
write_user_id(struct chat_writer *cw)
{
	struct conversation *c = cw->conv;
	if (c->user.len == 0)
		return;
	if (cw->opt->native_openai)
		jw_kstr(&cw->w, "user", c->user);
	else if (c->wire == WIRE_MESSAGES) /* strict servers refuse the member */
		drop_named(c, "metadata", STR("user_id"));
	else
		drop_named(c, "user", STR_NULL);
}

static void
write_effort(struct chat_writer *cw)
{
	struct str effort = cw->conv->effort;
	/* On Messages "none" is the everyday "disabled"; on Responses the client chose it. */
	bool none = str_eq(effort, STR("none")) &&
		    !(cw->opt->native_openai && cw->conv->wire == WIRE_RESPONSES);
	if (effort.len == 0 || none || !effort_known(effort))
		return;
	jw_kstr(
	    &cw->w, "reasoning_effort", cw->opt->native_openai ? effort : effort_common(effort));
}

/* What OpenAI has under one name on both of its wires, and other servers not at all. */
static void
write_openai_members(struct chat_writer *cw)
{
	static const char *const shared[] = {"metadata", "service_tier", "prompt_cache_key",
	    "prompt_cache_options", "prompt_cache_retention"};
	struct conversation *c = cw->conv;
	if (!cw->opt->native_openai) {
		drop_verbosity(c);
		return;
	}
	if (c->verbosity.len > 0)
		jw_kstr(&cw->w, "verbosity", c->verbosity);
	if (c->wire == WIRE_MESSAGES && str_eq(c->service_tier_raw, STR("\"standard_only\"")))
		jw_kcstr(&cw->w, "service_tier", "default");
	for (size_t i = 0; c->wire == WIRE_RESPONSES && i < ARRAY_LEN(shared); i++) {
		const struct field *f = extra_find(c, shared[i]);
		if (f != NULL && !str_eq(f->raw, STR("null")))
			jw_kraw(&cw->w, shared[i], f->raw);
	}
}

/* Other wires' settings in Chat's words. */
static void
write_mapped_settings(struct chat_writer *cw)
{
	const struct conversation *c = cw->conv;
	struct jw *w = &cw->w;
	write_kraw_if(
	    w, cw->opt->native_openai ? "max_completion_tokens" : "max_tokens", c->max_tokens_raw);
	write_kraw_if(w, "temperature", c->temperature_raw);
	write_kraw_if(w, "top_p", c->top_p_raw);
	write_stop(cw);
	write_effort(cw);
	write_format(cw);
	write_user_id(cw);
	write_openai_members(cw);
	drop_unmapped_members(cw->conv);
}

static void
write_settings_as_sent(struct chat_writer *cw)
{
	for (const struct field *f = cw->conv->extra; f != NULL; f = f->next) {
		if (str_eq(f->key, STR("stream_options")))
			continue;
		jw_key_str(&cw->w, f->key);
		jw_raw(&cw->w, f->raw);
	}
}

enum err_code
chat_encode(struct conversation *conv, const struct encode_options *opt, struct buf *out,
    struct err *reterr)
{
	struct chat_writer cw = {.conv = conv, .opt = opt, .fold = {.arena = conv->arena}};
	struct jw *w = &cw.w;
	jw_init(w, out);
	jw_object(w);
	jw_kstr(w, "model", opt->model);
	jw_key(w, "messages");
	jw_array(w);
	chat_write_messages(&cw);
	jw_end_array(w);
	if (conv->wire == WIRE_CHAT)
		write_settings_as_sent(&cw);
	else
		write_mapped_settings(&cw);
	write_stream(&cw);
	write_tools(&cw);
	jw_end_object(w);
	enum err_code e = refuse_kept_elsewhere(conv, reterr);
	if (e != ERR_OK)
		return e;
	if (out->overflowed || arena_overflowed(conv->arena))
		return err_set(reterr, ERR_TOOLARGE, "the request is too large for its provider");
	return ERR_OK;
}
