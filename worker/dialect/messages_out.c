/* Conversation → Messages request. The same wire gets back what it sent, byte for byte; the other
 * is translated after openai-wire §10. */
#include "worker/dialect/messages_out.h"

#include <stdlib.h>

#include "worker/dialect/drop.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/messages.h"
#include "worker/dialect/read.h"

#define DEFAULT_MAX_TOKENS 4096

const struct dialect dialect_messages = {
    .wire = WIRE_MESSAGES,
    .name = "messages",
    .path = "/messages",
    .decode = messages_decode,
    .encode = messages_encode,
    .events_new = messages_events_new,
    .events_sse = messages_events_sse,
    .events_whole = messages_events_whole,
    .events_end = messages_events_end,
    .reply_new = messages_reply_new,
    .reply_event = messages_reply_event,
    .reply_code_begin = messages_reply_code_begin,
    .reply_code_input = messages_reply_code_input,
    .reply_code_run = messages_reply_code_run,
    .reply_code = messages_reply_code,
    .reply_ping = messages_reply_ping,
};

/* --- tools --- */

static bool
is_sendable(const struct tool *t)
{
	return (t->kind == TOOL_FUNCTION && !t->is_excluded) ||
	       (t->raw.ptr != NULL && t->raw_wire == WIRE_MESSAGES);
}

/* The wire wants "type":"object" there; other wires let it be left out. */
static struct str
object_schema(struct arena *a, struct str raw)
{
	struct jval v;
	if (raw.ptr == NULL)
		return STR("{\"type\":\"object\",\"properties\":{}}");
	if (jdoc_parse(a, raw, &v, NULL) != ERR_OK || jv_present(jv_get(v, "type")))
		return raw;
	return arena_printf(a, "{\"type\":\"object\"%s%.*s", jv_count(v) > 0 ? "," : "",
	    STR_FMT(str_from(raw_without(a, v, "type"), 1)));
}

static void
write_tool(struct messages_writer *mw, const struct tool *t)
{
	struct jw *w = &mw->w;
	if (!is_sendable(t)) {
		if (!t->is_excluded)
			drop_named(mw->conv, "tools", t->type);
		return;
	}
	if (t->raw.ptr != NULL && t->raw_wire == WIRE_MESSAGES) {
		jw_raw(w, t->raw);
		return;
	}
	jw_object(w);
	jw_kstr(w, "name", t->name);
	if (t->description.len > 0)
		jw_kstr(w, "description", t->description);
	jw_kraw(w, "input_schema", object_schema(mw->conv->arena, t->schema_raw));
	if (t->strict == 1)
		jw_kbool(w, "strict", true);
	if (t->cache_control_raw.len > 0)
		jw_kraw(w, "cache_control", t->cache_control_raw);
	jw_end_object(w);
}

static void
write_choice(struct messages_writer *mw)
{
	const struct tool_choice *c = &mw->conv->choice;
	struct jw *w = &mw->w;
	const char *type = NULL;
	switch (c->kind) {
	case CHOICE_UNSET:
		type = c->parallel == 0 ? "auto" : NULL;
		break;
	case CHOICE_AUTO:
		type = "auto";
		break;
	case CHOICE_NONE:
		type = "none";
		break;
	case CHOICE_REQUIRED:
		type = "any";
		break;
	case CHOICE_NAMED:
		type = "tool";
		break;
	case CHOICE_OPAQUE:
		drop_named(mw->conv, "tool_choice", c->type);
		break;
	}
	if (type == NULL)
		return;
	jw_key(w, "tool_choice");
	jw_object(w);
	jw_kcstr(w, "type", type);
	if (c->kind == CHOICE_NAMED)
		jw_kstr(w, "name", c->name);
	if (c->parallel == 0 && c->kind != CHOICE_NONE)
		jw_kbool(w, "disable_parallel_tool_use", true);
	jw_end_object(w);
}

static void
write_tools(struct messages_writer *mw)
{
	const struct conversation *c = mw->conv;
	bool any = false;
	for (const struct tool *t = c->tools; t != NULL; t = t->next)
		any = any || is_sendable(t);
	if (any) {
		jw_key(&mw->w, "tools");
		jw_array(&mw->w);
	}
	for (const struct tool *t = c->tools; t != NULL; t = t->next)
		write_tool(mw, t);
	if (any)
		jw_end_array(&mw->w);
	if (c->wire == WIRE_MESSAGES && c->choice.raw.ptr != NULL && (any || c->tools == NULL))
		jw_kraw(&mw->w, "tool_choice", c->choice.raw);
	else if (any)
		write_choice(mw);
}

/* --- settings --- */

/* The other wires allow 0..2, Messages 0..1. */
static void
write_temperature(struct messages_writer *mw)
{
	struct str raw = mw->conv->temperature_raw;
	char text[64];
	if (raw.ptr == NULL)
		return;
	bool over = str_copy(text, sizeof(text), raw) && strtod(text, NULL) > 1.0;
	jw_kraw(&mw->w, "temperature", over ? STR("1") : raw);
}

static void
write_stop(struct messages_writer *mw)
{
	const struct conversation *c = mw->conv;
	bool any = false;
	for (size_t i = 0; i < c->stop_count; i++) {
		if (str_trim(c->stop[i]).len == 0) { /* refused there */
			drop_named(mw->conv, "stop", STR_NULL);
			continue;
		}
		if (!any) {
			jw_key(&mw->w, "stop_sequences");
			jw_array(&mw->w);
		}
		any = true;
		jw_str(&mw->w, c->stop[i]);
	}
	if (any)
		jw_end_array(&mw->w);
}

static void
write_output_config(struct messages_writer *mw)
{
	const struct conversation *c = mw->conv;
	struct jw *w = &mw->w;
	bool forced = c->choice.kind == CHOICE_REQUIRED || c->choice.kind == CHOICE_NAMED;
	bool effort = c->effort.len > 0 && effort_known(c->effort) &&
		      !str_eq(c->effort, STR("none")) &&
		      !forced; /* thinking refuses a forced choice */
	bool schema = c->format.kind == FORMAT_JSON_SCHEMA && c->format.schema_raw.ptr != NULL;
	if (c->format.kind == FORMAT_JSON_OBJECT)
		drop_named(mw->conv, c->wire == WIRE_CHAT ? "response_format" : "text.format",
		    STR("json_object"));
	drop_verbosity(mw->conv);
	if (effort) {
		jw_key(w, "thinking");
		jw_object(w);
		jw_kcstr(w, "type", "adaptive");
		if (c->reasoning_summary.len > 0) /* newer models leave the text out unasked */
			jw_kcstr(w, "display", "summarized");
		jw_end_object(w);
	}
	if (!effort && !schema)
		return;
	jw_key(w, "output_config");
	jw_object(w);
	if (effort)
		jw_kstr(w, "effort", str_eq(c->effort, STR("minimal")) ? STR("low") : c->effort);
	if (schema) {
		jw_key(w, "format");
		jw_object(w);
		jw_kcstr(w, "type", "json_schema");
		jw_kraw(w, "schema", c->format.schema_raw);
		jw_end_object(w);
	}
	jw_end_object(w);
}

/* OpenAI's settings in Messages' words. */
static void
write_mapped_settings(struct messages_writer *mw)
{
	const struct conversation *c = mw->conv;
	struct jw *w = &mw->w;
	int64_t max =
	    mw->opt->default_max_tokens > 0 ? mw->opt->default_max_tokens : DEFAULT_MAX_TOKENS;
	if (c->max_tokens_raw.ptr != NULL)
		jw_kraw(w, "max_tokens", c->max_tokens_raw);
	else
		jw_ki64(w, "max_tokens", max);
	write_temperature(mw);
	if (c->top_p_raw.ptr != NULL)
		jw_kraw(w, "top_p", c->top_p_raw);
	write_stop(mw);
	write_output_config(mw);
	if (c->user.len > 0) {
		jw_key(w, "metadata");
		jw_object(w);
		jw_kstr(w, "user_id", c->user);
		jw_end_object(w);
	}
	drop_unmapped_members(mw->conv);
}

/* What would give another answer than the one asked for, if it were left out. */
static enum err_code
refuse(const struct messages_writer *mw, struct err *reterr)
{
	const struct conversation *c = mw->conv;
	if (mw->refused != NULL)
		return err_set(reterr, ERR_INPUT, "input_audio: this model takes no audio");
	enum err_code e = refuse_kept_elsewhere(c, reterr);
	if (e != ERR_OK)
		return e;
	if (c->wire == WIRE_CHAT && c->n_raw.ptr != NULL && !str_eq(c->n_raw, STR("1")))
		return err_set(reterr, ERR_INPUT, "n: this model gives one choice");
	for (const struct field *f = c->extra; f != NULL && c->wire == WIRE_CHAT; f = f->next)
		if (str_eq(f->key, STR("logprobs")) && str_eq(f->raw, STR("true")))
			return err_set(reterr, ERR_INPUT, "logprobs: this model gives none");
	return ERR_OK;
}

enum err_code
messages_encode(struct conversation *conv, const struct encode_options *opt, struct buf *out,
    struct err *reterr)
{
	struct messages_writer mw = {.conv = conv, .opt = opt, .fold = {.arena = conv->arena}};
	struct jw *w = &mw.w;
	jw_init(w, out);
	jw_object(w);
	jw_kstr(w, "model", opt->model);
	messages_write_messages(&mw);
	if (conv->wire == WIRE_MESSAGES) {
		for (const struct field *f = conv->extra; f != NULL; f = f->next) {
			jw_key_str(w, f->key);
			jw_raw(w, f->raw);
		}
	} else {
		write_mapped_settings(&mw);
	}
	if (opt->stream)
		jw_kbool(w, "stream", true);
	write_tools(&mw);
	jw_end_object(w);
	enum err_code e = refuse(&mw, reterr);
	if (e == ERR_OK && (out->overflowed || arena_overflowed(conv->arena)))
		e = err_set(reterr, ERR_TOOLARGE, "the request is too large for its provider");
	return e;
}
