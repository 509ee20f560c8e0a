/* Conversation → Responses request. The same wire gets back what it sent, byte for byte; the others
 * are translated after openai-wire §10. */
#include "worker/dialect/responses_out.h"

#include "worker/dialect/drop.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/read.h"
#include "worker/dialect/responses.h"

#define MAX_TOKENS_LEAST 16 /* fewer are refused */
#define SAFETY_ID_MAX    64

const struct dialect dialect_responses = {
    .wire = WIRE_RESPONSES,
    .name = "responses",
    .path = "/responses",
    .decode = responses_decode,
    .encode = responses_encode,
    .events_new = responses_events_new,
    .events_sse = responses_events_sse,
    .events_whole = responses_events_whole,
    .events_end = responses_events_end,
    .reply_new = responses_reply_new,
    .reply_event = responses_reply_event,
    .reply_code_begin = responses_reply_code_begin,
    .reply_code_input = responses_reply_code_input,
    .reply_code_run = responses_reply_code_run,
    .reply_code = responses_reply_code,
    .reply_ping = responses_reply_ping,
};

static void
write_kraw_if(struct jw *w, const char *key, struct str raw)
{
	if (raw.ptr != NULL)
		jw_kraw(w, key, raw);
}

/* --- settings of other wires --- */

static void
write_max_tokens(struct responses_writer *rw)
{
	struct str raw = rw->conv->max_tokens_raw;
	int64_t n;
	if (raw.ptr == NULL)
		return;
	bool few = str_i64(raw, &n) && n < MAX_TOKENS_LEAST;
	if (few)
		jw_ki64(&rw->w, "max_output_tokens", MAX_TOKENS_LEAST);
	else
		jw_kraw(&rw->w, "max_output_tokens", raw);
}

static bool
wants_reasoning(const struct conversation *c)
{
	return c->effort.len > 0 && !str_eq(c->effort, STR("none")) && effort_known(c->effort);
}

/* Messages' adaptive thinking names no effort: the model's own default. */
static bool
is_thinking(const struct conversation *c)
{
	return c->thinking_raw.ptr != NULL && !str_eq(c->effort, STR("none"));
}

/* A Messages client that thinks is shown the thoughts; without a summary there would be none. The
 * encrypted form lets the next request bring them back. */
static void
write_reasoning(struct responses_writer *rw)
{
	const struct conversation *c = rw->conv;
	struct jw *w = &rw->w;
	/* On Messages "none" is the everyday "disabled"; on Chat the client chose it. */
	bool none = str_eq(c->effort, STR("none")) && c->wire == WIRE_CHAT;
	bool effort = wants_reasoning(c) || (none && rw->opt->native_openai);
	bool thinking = is_thinking(c);
	if (!effort && !thinking)
		return;
	jw_key(w, "reasoning");
	jw_object(w);
	if (effort)
		jw_kstr(w, "effort", rw->opt->native_openai ? c->effort : effort_common(c->effort));
	if (thinking)
		jw_kcstr(w, "summary", "auto");
	jw_end_object(w);
}

static void
write_format(struct responses_writer *rw)
{
	const struct output_format *f = &rw->conv->format;
	struct jw *w = &rw->w;
	jw_key(w, "format");
	jw_object(w);
	if (f->kind == FORMAT_JSON_OBJECT) {
		jw_kcstr(w, "type", "json_object");
	} else {
		jw_kcstr(w, "type", "json_schema");
		jw_kstr(w, "name", f->name.len > 0 ? f->name : STR("response"));
		if (f->description.len > 0)
			jw_kstr(w, "description", f->description);
		jw_kraw(w, "schema",
		    f->schema_raw.ptr != NULL ? f->schema_raw : STR("{\"type\":\"object\"}"));
		jw_kbool(w, "strict", f->strict == 1);
	}
	jw_end_object(w);
}

static void
write_text(struct responses_writer *rw)
{
	struct conversation *c = rw->conv;
	bool format = c->format.kind == FORMAT_JSON_OBJECT || c->format.kind == FORMAT_JSON_SCHEMA;
	bool verbosity = c->verbosity.len > 0 && rw->opt->native_openai;
	if (!verbosity)
		drop_verbosity(c);
	if (!format && !verbosity)
		return;
	jw_key(&rw->w, "text");
	jw_object(&rw->w);
	if (format)
		write_format(rw);
	if (verbosity)
		jw_kstr(&rw->w, "verbosity", c->verbosity);
	jw_end_object(&rw->w);
}

static void
write_user(struct responses_writer *rw)
{
	const struct conversation *c = rw->conv;
	bool chat = c->wire == WIRE_CHAT;
	if (c->user.len == 0)
		return;
	if (rw->opt->native_openai && (chat || c->user.len <= SAFETY_ID_MAX))
		jw_kstr(&rw->w, chat ? "user" : "safety_identifier", c->user);
	else if (chat)
		drop_named(rw->conv, "user", STR_NULL);
	else
		drop_named(rw->conv, "metadata", STR("user_id"));
}

/* Members that both of OpenAI's own wires have under one name. */
static void
write_shared_members(struct responses_writer *rw)
{
	static const char *const shared[] = {"metadata", "service_tier", "safety_identifier",
	    "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"};
	const struct conversation *c = rw->conv;
	if (!rw->opt->native_openai)
		return;
	if (c->wire == WIRE_MESSAGES && str_eq(c->service_tier_raw, STR("\"standard_only\"")))
		jw_kcstr(&rw->w, "service_tier", "default");
	for (size_t i = 0; c->wire == WIRE_CHAT && i < ARRAY_LEN(shared); i++) {
		const struct field *f = extra_find(c, shared[i]);
		if (f != NULL && !str_eq(f->raw, STR("null")))
			jw_kraw(&rw->w, shared[i], f->raw);
	}
}

static void
write_mapped_settings(struct responses_writer *rw)
{
	struct conversation *c = rw->conv;
	struct jw *w = &rw->w;
	write_max_tokens(rw);
	write_kraw_if(w, "temperature", c->temperature_raw);
	write_kraw_if(w, "top_p", c->top_p_raw);
	if (c->stop_count > 0)
		drop_named(c, c->wire == WIRE_CHAT ? "stop" : "stop_sequences", STR_NULL);
	write_reasoning(rw);
	write_text(rw);
	write_user(rw);
	write_shared_members(rw);
	jw_kbool(w, "store", false); /* nothing stays at the provider */
	if (wants_reasoning(c) || is_thinking(c))
		jw_kraw(w, "include", STR("[\"reasoning.encrypted_content\"]"));
	drop_unmapped_members(c);
}

/* --- settings of the same wire --- */

static void
write_settings_as_sent(struct responses_writer *rw)
{
	const struct conversation *c = rw->conv;
	for (const struct field *f = c->extra; f != NULL; f = f->next) {
		if (str_eq(f->key, STR("stream_options")) && !rw->opt->stream)
			continue;
		jw_key_str(&rw->w, f->key);
		jw_raw(&rw->w, f->raw);
	}
	if (c->previous_response_id.len > 0)
		jw_kstr(&rw->w, "previous_response_id", c->previous_response_id);
}

/* What would give another answer than the one asked for, if it were left out. */
static enum err_code
refuse(const struct conversation *c, struct err *reterr)
{
	if (c->wire != WIRE_CHAT)
		return ERR_OK;
	if (c->n_raw.ptr != NULL && !str_eq(c->n_raw, STR("1")))
		return err_set(reterr, ERR_INPUT, "n: this model gives one choice");
	const struct field *logprobs = extra_find(c, "logprobs");
	if (logprobs != NULL && str_eq(logprobs->raw, STR("true")))
		return err_set(reterr, ERR_INPUT, "logprobs: this model gives none");
	return ERR_OK;
}

/* Other servers know functions alone: a Chat client's custom tool is one with a single argument
 * there. */
static bool
is_custom_here(const struct responses_writer *rw, const struct tool *t)
{
	bool known =
	    t->raw_wire == WIRE_RESPONSES || (t->raw_wire == WIRE_CHAT && rw->opt->native_openai);
	return known && t->kind == TOOL_FUNCTION && str_eq(t->type, STR("custom"));
}

static void
find_custom_tools(struct responses_writer *rw)
{
	for (const struct tool *t = rw->conv->tools; t != NULL; t = t->next) {
		if (!is_custom_here(rw, t))
			continue;
		if (rw->custom_tools == NULL)
			rw->custom_tools = map_new();
		map_put(rw->custom_tools, t->name, rw);
	}
}

enum err_code
responses_encode(struct conversation *conv, const struct encode_options *opt, struct buf *out,
    struct err *reterr)
{
	struct responses_writer rw = {.conv = conv, .opt = opt, .fold = {.arena = conv->arena}};
	struct jw *w = &rw.w;
	find_custom_tools(&rw);
	jw_init(w, out);
	jw_object(w);
	jw_kstr(w, "model", opt->model);
	responses_write_input(&rw);
	if (conv->wire == WIRE_RESPONSES)
		write_settings_as_sent(&rw);
	else
		write_mapped_settings(&rw);
	if (opt->stream)
		jw_kbool(w, "stream", true);
	responses_write_tools(&rw);
	jw_end_object(w);
	map_free(&rw.custom_tools);
	map_free(&rw.custom_calls);
	enum err_code e = refuse(conv, reterr);
	if (e == ERR_OK && (out->overflowed || arena_overflowed(conv->arena)))
		e = err_set(reterr, ERR_TOOLARGE, "the request is too large for its provider");
	return e;
}
