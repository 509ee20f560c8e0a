/* Tools and the choice among them in Responses' words (openai-wire §10.3). */
#include "worker/dialect/drop.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/names.h"
#include "worker/dialect/responses_out.h"

bool
responses_is_custom(const struct responses_writer *rw, struct str tool_name)
{
	return rw->custom_tools != NULL && map_get(rw->custom_tools, tool_name) != NULL;
}

static bool
is_same_wire(const struct responses_writer *rw)
{
	return rw->conv->wire == WIRE_RESPONSES;
}

/* Not said counts as false: the service would otherwise tighten the schema (openai-wire §3.5). */
static void
write_function(struct jw *w, struct str name, struct str description, struct str schema, int strict)
{
	jw_object(w);
	jw_kcstr(w, "type", "function");
	jw_kstr(w, "name", name);
	if (description.len > 0)
		jw_kstr(w, "description", description);
	jw_kraw(w, "parameters",
	    schema.ptr != NULL ? schema
			       : STR("{\"type\":\"object\",\"properties\":{},\"required\":[],"
				     "\"additionalProperties\":false}"));
	jw_kbool(w, "strict", strict == 1);
	jw_end_object(w);
}

/* Chat nests what Responses has flat: custom.format.grammar. */
static void
write_custom(struct responses_writer *rw, const struct tool *t)
{
	struct jw *w = &rw->w;
	struct jval v, format = JV_ABSENT, grammar;
	if (t->raw.ptr != NULL && jdoc_parse(rw->conv->arena, t->raw, &v, NULL) == ERR_OK)
		format = jv_get(jv_get(v, "custom"), "format");
	jw_object(w);
	jw_kcstr(w, "type", "custom");
	jw_kstr(w, "name", name_for_chat(rw->conv->arena, t->name));
	if (t->description.len > 0)
		jw_kstr(w, "description", t->description);
	grammar = jv_get(format, "grammar");
	if (jv_is(grammar, JT_OBJECT)) {
		struct jiter it = {0};
		jw_key(w, "format");
		jw_object(w);
		jw_kcstr(w, "type", "grammar");
		while (jv_next(grammar, &it)) {
			jw_key_str(w, jv_str(rw->conv->arena, it.key));
			jw_raw(w, jv_raw(it.value));
		}
		jw_end_object(w);
	} else if (jv_is(format, JT_OBJECT)) {
		jw_kraw(w, "format", jv_raw(format));
	}
	jw_end_object(w);
}

static bool
is_sendable(const struct responses_writer *rw, const struct tool *t)
{
	if (t->is_in_input && is_same_wire(rw))
		return false;
	if (t->raw.ptr != NULL && t->raw_wire == WIRE_RESPONSES)
		return true;
	return !t->is_excluded && (t->kind == TOOL_FUNCTION || client_tool_of(t->type) != NULL);
}

static void
write_tool(struct responses_writer *rw, const struct tool *t)
{
	const struct client_tool *known = client_tool_of(t->type);
	if (!is_sendable(rw, t)) {
		if (!t->is_in_input && !t->is_excluded)
			drop_named(rw->conv, "tools", t->type);
	} else if (t->raw.ptr != NULL && t->raw_wire == WIRE_RESPONSES) {
		jw_raw(&rw->w, t->raw);
	} else if (t->kind == TOOL_FUNCTION && responses_is_custom(rw, t->name)) {
		write_custom(rw, t);
	} else if (t->kind == TOOL_FUNCTION) {
		write_function(&rw->w, name_for_chat(rw->conv->arena, t->name), t->description,
		    t->schema_raw, t->strict);
	} else {
		write_function(&rw->w, str_c(known->name), str_c(known->description),
		    str_c(known->schema), -1);
	}
}

/* The list of allowed tools as it is now: the gateway may have put its own in the place of one. */
static void
write_allowed(struct responses_writer *rw)
{
	struct jw *w = &rw->w;
	jw_key(w, "tool_choice");
	jw_object(w);
	jw_kcstr(w, "type", "allowed_tools");
	jw_kcstr(w, "mode", rw->conv->choice.kind == CHOICE_REQUIRED ? "required" : "auto");
	jw_key(w, "tools");
	jw_array(w);
	for (const struct tool *t = rw->conv->tools; t != NULL; t = t->next) {
		if (t->is_excluded || !is_sendable(rw, t))
			continue;
		jw_object(w);
		jw_kstr(w, "type", t->type);
		if (t->kind == TOOL_FUNCTION)
			jw_kstr(w, "name", t->name);
		jw_end_object(w);
	}
	jw_end_array(w);
	jw_end_object(w);
}

static void
write_named(struct responses_writer *rw)
{
	const struct tool_choice *c = &rw->conv->choice;
	struct jw *w = &rw->w;
	jw_key(w, "tool_choice");
	jw_object(w);
	jw_kcstr(w, "type", responses_is_custom(rw, c->name) ? "custom" : "function");
	jw_kstr(w, "name", name_for_chat(rw->conv->arena, c->name));
	jw_end_object(w);
}

static bool
has_tool_of_ours(const struct conversation *c)
{
	for (const struct tool *t = c->tools; t != NULL; t = t->next)
		if (t->raw.ptr == NULL)
			return true;
	return false;
}

static void
write_choice(struct responses_writer *rw)
{
	static const char *const words[] = {
	    [CHOICE_AUTO] = "auto", [CHOICE_NONE] = "none", [CHOICE_REQUIRED] = "required"};
	const struct tool_choice *c = &rw->conv->choice;
	bool allowed = str_eq(c->type, STR("allowed_tools"));
	if (c->raw.ptr != NULL && is_same_wire(rw)) {
		if (allowed && has_tool_of_ours(rw->conv))
			write_allowed(rw);
		else
			jw_kraw(&rw->w, "tool_choice", c->raw);
		return;
	}
	switch (c->kind) {
	case CHOICE_AUTO:
	case CHOICE_NONE:
	case CHOICE_REQUIRED:
		jw_kcstr(&rw->w, "tool_choice", words[c->kind]);
		break;
	case CHOICE_NAMED:
		write_named(rw);
		break;
	case CHOICE_OPAQUE:
		drop_named(rw->conv, "tool_choice", c->type);
		break;
	case CHOICE_UNSET:
		break;
	}
}

void
responses_write_tools(struct responses_writer *rw)
{
	const struct conversation *c = rw->conv;
	bool any = false, declared = false;
	for (const struct tool *t = c->tools; t != NULL; t = t->next) {
		any = any || is_sendable(rw, t);
		declared = declared || !t->is_in_input;
	}
	if (any) {
		jw_key(&rw->w, "tools");
		jw_array(&rw->w);
	}
	for (const struct tool *t = c->tools; t != NULL; t = t->next)
		write_tool(rw, t);
	if (any)
		jw_end_array(&rw->w);
	/* Without tools a choice is refused, unless the client's provider is to say so itself. */
	if (!any && (!is_same_wire(rw) || declared))
		return;
	write_choice(rw);
	if (c->choice.parallel >= 0)
		jw_kbool(&rw->w, "parallel_tool_calls", c->choice.parallel == 1);
}
