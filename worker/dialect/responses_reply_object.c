/* The response object (openai-wire §3.7): every member that the service sends, for
 * accumulators of clients throw at missing ones. What the client asked for is repeated as it was
 * sent. */
#include "worker/dialect/code_list.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/responses_reply.h"

const char *
responses_incomplete_reason(const struct responses_reply *m)
{
	enum finish_reason r = m->finish.reason;
	if (r == FINISH_REFUSAL && !m->has_refusal)
		r = FINISH_CONTENT_FILTER;
	if (r == FINISH_OTHER && m->finish.raw_wire == WIRE_RESPONSES &&
	    m->finish.reason_raw.len > 0)
		return arena_cstr(m->base.arena, m->finish.reason_raw);
	return finish_to_responses(r);
}

/* --- members that repeat the request --- */

/* A client's body may have line ends between tokens; in a stream they would end the event. */
static void
write_raw(struct jw *w, const char *key, struct str raw)
{
	jw_key(w, key);
	jw_raw(w, STR(""));
	while (raw.len > 0) {
		size_t n = 0;
		while (n < raw.len && raw.ptr[n] != '\n' && raw.ptr[n] != '\r')
			n++;
		buf_add(w->out, str_sub(raw, 0, n));
		raw = str_from(raw, n + 1);
	}
}

static struct str
extra_field(const struct conversation *c, const char *key)
{
	for (const struct field *f = c != NULL ? c->extra : NULL; f != NULL; f = f->next)
		if (str_eq(f->key, str_c(key)))
			return f->raw;
	return STR_NULL;
}

/* What the provider says it used, else what the client asked for, else the wire's default. */
static void
write_setting(
    struct responses_reply *m, struct jw *w, const char *key, struct str asked, struct str dflt)
{
	struct jval v = jv_get(m->settings, key);
	if (jv_present(v))
		jw_kraw(w, key, jv_raw(v));
	else
		write_raw(w, key, asked.len > 0 ? asked : dflt);
}

static void
write_asked(struct jw *w, const char *key, struct str asked, struct str dflt)
{
	write_raw(w, key, asked.len > 0 ? asked : dflt);
}

static void
write_text(struct jw *w, const char *key, struct str s)
{
	if (s.len > 0)
		jw_kstr(w, key, s);
	else
		jw_knull(w, key);
}

static void
write_request(struct responses_reply *m, struct jw *w, const struct conversation *c)
{
	static const struct conversation none = {.store = -1, .choice.parallel = -1};
	if (c == NULL)
		c = &none;
	write_asked(w, "instructions", c->instructions_raw, STR("null"));
	write_setting(m, w, "max_output_tokens", c->max_tokens_raw, STR("null"));
	write_setting(m, w, "max_tool_calls", extra_field(c, "max_tool_calls"), STR("null"));
	jw_kbool(w, "parallel_tool_calls", c->choice.parallel != 0);
	write_text(w, "previous_response_id",
	    c->continued_id.len > 0 ? c->continued_id : c->previous_response_id);
	write_asked(w, "conversation", extra_field(c, "conversation"), STR("null"));
	write_asked(w, "prompt_cache_key", extra_field(c, "prompt_cache_key"), STR("null"));
	write_setting(
	    m, w, "reasoning", c->reasoning_raw, STR("{\"effort\":null,\"summary\":null}"));
	write_asked(w, "safety_identifier", extra_field(c, "safety_identifier"), STR("null"));
	write_setting(m, w, "service_tier", c->service_tier_raw, STR("\"default\""));
	jw_kbool(w, "store", c->store != 0);
	write_setting(m, w, "temperature", c->temperature_raw, STR("1.0"));
	write_asked(w, "text", c->text_raw,
	    STR("{\"format\":{\"type\":\"text\"},\"verbosity\":\"medium\"}"));
	write_asked(w, "tool_choice", c->tool_choice_raw, STR("\"auto\""));
	write_asked(w, "tools", c->tools_raw, STR("[]"));
	write_setting(m, w, "top_logprobs", extra_field(c, "top_logprobs"), STR("0"));
	write_setting(m, w, "top_p", c->top_p_raw, STR("1.0"));
	write_setting(m, w, "truncation", extra_field(c, "truncation"), STR("\"disabled\""));
}

/* --- usage --- */

static int64_t
or_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

/* What the provider's own object holds beside the counts. */
static void
copy_other_usage(struct responses_reply *m, struct jw *w)
{
	static const char *const known[] = {"input_tokens", "input_tokens_details", "output_tokens",
	    "output_tokens_details", "total_tokens"};
	struct jval v;
	struct jiter it = {0};
	if (m->usage_wire != WIRE_RESPONSES || m->usage.raw.len == 0 ||
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
write_usage(struct responses_reply *m, struct jw *w)
{
	const struct token_usage *u = &m->usage;
	int64_t total;
	if (__builtin_add_overflow(or_zero(u->input), or_zero(u->output), &total))
		total = INT64_MAX;
	jw_key(w, "usage");
	jw_object(w);
	jw_ki64(w, "input_tokens", or_zero(u->input));
	jw_key(w, "input_tokens_details");
	jw_object(w);
	jw_ki64(w, "cached_tokens", or_zero(u->cache_read));
	jw_ki64(w, "cache_write_tokens", or_zero(u->cache_write));
	jw_end_object(w);
	jw_ki64(w, "output_tokens", or_zero(u->output));
	jw_key(w, "output_tokens_details");
	jw_object(w);
	jw_ki64(w, "reasoning_tokens", or_zero(u->reasoning));
	jw_end_object(w);
	jw_ki64(w, "total_tokens", total);
	copy_other_usage(m, w);
	jw_end_object(w);
}

/* --- the object --- */

static void
write_output(struct responses_reply *m, struct jw *w, bool is_final)
{
	jw_key(w, "output");
	jw_array(w);
	if (is_final && m->output->len > 0)
		jw_raw(w, buf_str(m->output));
	jw_end_array(w);
}

void
responses_write_object(struct responses_reply *m, struct jw *w, const char *status)
{
	const struct conversation *c = m->base.opt.request;
	bool is_final = status[0] != 'i' || status[2] != '_'; /* not in_progress */
	const char *why = is_final ? responses_incomplete_reason(m) : NULL;
	jw_object(w);
	jw_kstr(w, "id", m->base.id);
	jw_kcstr(w, "object", "response");
	jw_ki64(w, "created_at", m->base.opt.created_s);
	jw_kcstr(w, "status", status);
	jw_kbool(w, "background", false);
	jw_knull(w, "completed_at");
	jw_knull(w, "error");
	jw_key(w, "incomplete_details");
	if (why != NULL) {
		jw_object(w);
		jw_kcstr(w, "reason", why);
		jw_end_object(w);
	} else {
		jw_null(w);
	}
	jw_kstr(w, "model", m->base.model);
	write_output(m, w, is_final);
	write_request(m, w, c);
	if (is_final)
		write_usage(m, w);
	else
		jw_knull(w, "usage");
	write_asked(w, "user", extra_field(c, "user"), STR("null"));
	write_asked(w, "metadata", c != NULL ? c->metadata_raw : STR_NULL, STR("{}"));
	if (is_final)
		code_list_write(m->base.code_list, w);
	jw_end_object(w);
}
