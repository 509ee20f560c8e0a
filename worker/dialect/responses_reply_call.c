/* Tool calls of a Responses answer: of functions, and of custom tools, whose one argument is free
 * text that came as {"input": …}. */
#include "worker/dialect/arguments.h"
#include "worker/dialect/names.h"
#include "worker/dialect/responses_reply.h"

static bool
is_custom_tool(const struct responses_reply *m, struct str name)
{
	const struct conversation *c = m->base.opt.request;
	for (const struct tool *t = c != NULL ? c->tools : NULL; t != NULL; t = t->next)
		if (t->raw_wire == WIRE_RESPONSES && str_eq(t->type, STR("custom")) &&
		    str_eq(t->name, name))
			return true;
	return false;
}

void
responses_call_write(struct responses_reply *m, struct jw *w, const char *status)
{
	jw_object(w);
	jw_kstr(w, "id", m->item_id);
	jw_kcstr(w, "type", m->custom ? "custom_tool_call" : "function_call");
	jw_kcstr(w, "status", status);
	jw_kstr(w, m->custom ? "input" : "arguments", buf_str(m->arguments));
	jw_kstr(w, "call_id", m->call_id);
	jw_kstr(w, "name", m->call_name);
	responses_write_extra(m, w, m->extra_raw);
	jw_end_object(w);
}

/* The provider's item id, where it is one for this kind of item: the service refuses others. */
static struct str
call_item_id(struct responses_reply *m)
{
	struct jval v;
	const char *prefix = m->custom ? "ctc_" : "fc_";
	if (m->extra_raw.len > 0 && jdoc_parse(m->base.arena, m->extra_raw, &v, NULL) == ERR_OK) {
		struct str id = jv_str(m->base.arena, jv_get(v, "id"));
		if (id.len > 0 && str_starts(id, m->custom ? STR("ct") : STR("fc")))
			return id;
	}
	return responses_item_id(m, prefix);
}

void
responses_call_start(struct responses_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	struct jw w;
	responses_close_item(m, "completed");
	m->item = OPEN_CALL;
	m->call_id = arena_str(a, ev->id);
	m->call_name = name_from_chat(a, m->base.opt.request, arena_str(a, ev->name));
	m->custom = is_custom_tool(m, m->call_name);
	buf_clear(m->arguments);
	buf_clear(m->wrapped);
	buf_clear(m->input);
	buf_clear(m->object);
	live_input_init(&m->unwrap, STR("input"), m->wrapped->max);
	m->args_begun = false;
	m->extra_raw = m->block_extra;
	m->item_id = call_item_id(m);
	if (responses_added(m, &w)) {
		responses_call_write(m, &w, "in_progress");
		responses_close(m, &w);
	}
}

static void
delta_event(struct responses_reply *m, struct str text)
{
	struct jw w;
	const char *name = m->custom ? "response.custom_tool_call_input.delta"
				     : "response.function_call_arguments.delta";
	if (text.len == 0 || !responses_open_item(m, name, &w))
		return;
	jw_kstr(&w, "delta", text);
	responses_close(m, &w);
}

/* A custom tool's text, as far as it is certain. */
static void
custom_delta(struct responses_reply *m, struct str text)
{
	size_t from = m->input->len;
	buf_add(m->wrapped, text);
	live_input_feed(&m->unwrap, text, m->object, m->input);
	delta_event(m, str_from(buf_str(m->input), from));
}

void
responses_call_delta(struct responses_reply *m, struct str text)
{
	if (m->custom) {
		custom_delta(m, text);
		return;
	}
	if (m->arguments->len == 0)
		text = arguments_begin(text);
	buf_add(m->arguments, text);
	if (m->args_begun) {
		delta_event(m, text);
		return;
	}
	struct str all = buf_str(m->arguments);
	if (all.len == 0 || (all.ptr[0] == 'n' && all.len <= 4))
		return; /* blank and null are settled at the end */
	m->args_begun = true;
	delta_event(m, all);
}

/* What is not wrapped as it should be is passed on as it is, unless some of it is out already. */
static void
custom_stop(struct responses_reply *m)
{
	struct str have = buf_str(m->input);
	struct str all = arguments_input(m->base.arena, buf_str(m->wrapped));
	if (!str_starts(all, have))
		all = have;
	buf_add(m->arguments, all);
	delta_event(m, str_from(all, have.len));
}

void
responses_call_stop(struct responses_reply *m)
{
	struct jw w;
	if (m->custom) {
		custom_stop(m);
	} else if (!m->args_begun) {
		struct str text = arguments_text(buf_str(m->arguments));
		struct str kept = arena_str(m->base.arena, text);
		buf_clear(m->arguments);
		buf_add(m->arguments, kept);
		delta_event(m, kept);
	}
	const char *name = m->custom ? "response.custom_tool_call_input.done"
				     : "response.function_call_arguments.done";
	if (responses_open_item(m, name, &w)) {
		jw_kstr(&w, m->custom ? "input" : "arguments", buf_str(m->arguments));
		responses_close(m, &w);
	}
}
