/* Tools and the choice among them of a Responses request (openai-wire §3.5, 3.6). */
#include "worker/dialect/mapping.h"
#include "worker/dialect/read.h"
#include "worker/dialect/responses_in.h"

static enum err_code
read_function(struct conversation *c, struct jval t, struct tool *tool, struct err *reterr)
{
	struct jval schema;
	tool->kind = TOOL_FUNCTION;
	enum err_code e = read_str(c->arena, t, "name", REQUIRED, &tool->name, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, t, "description", OPTIONAL, &tool->description, reterr);
	if (e == ERR_OK)
		e = read_bool(t, "strict", &tool->strict, reterr);
	if (e == ERR_OK)
		e = read_typed(t, "parameters", JT_OBJECT, OPTIONAL, &schema, reterr);
	if (e != ERR_OK || !jv_present(schema))
		return e;
	/* Codex writes "required":null, which many servers refuse. */
	tool->schema_raw = jv_is(jv_get(schema, "required"), JT_NULL)
			       ? raw_without(c->arena, schema, "required")
			       : jv_raw(schema);
	return ERR_OK;
}

static enum err_code
read_custom(struct conversation *c, struct jval t, struct tool *tool, struct err *reterr)
{
	tool->kind = TOOL_FUNCTION;
	tool->schema_raw =
	    STR("{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},"
		"\"required\":[\"input\"]}");
	enum err_code e = read_str(c->arena, t, "name", REQUIRED, &tool->name, reterr);
	return e == ERR_OK
		   ? read_str(c->arena, t, "description", OPTIONAL, &tool->description, reterr)
		   : e;
}

static enum err_code
read_tool(struct responses_reader *r, struct jval t, bool in_input, struct err *reterr)
{
	struct conversation *c = r->conv;
	struct tool *tool = NULL;
	enum err_code e = read_tool_start(c, t, &tool, reterr);
	if (e != ERR_OK)
		return e;
	tool->is_in_input = in_input;
	if (tool->type.len == 0)
		return err_set(reterr, ERR_INPUT, "type: Field required");
	if (str_eq(tool->type, STR("function")))
		return read_function(c, t, tool, reterr);
	if (str_eq(tool->type, STR("custom")))
		return read_custom(c, t, tool, reterr);
	bool code = type_declares_code(tool->type) && !in_input;
	tool->kind = code ? TOOL_CODE : TOOL_OPAQUE;
	e = read_str(c->arena, t, "name", OPTIONAL, &tool->name, reterr);
	return e == ERR_OK && code ? read_container_files(c->arena, t, tool, reterr) : e;
}

enum err_code
responses_read_tools(
    struct responses_reader *r, struct jval object, bool in_input, struct err *reterr)
{
	struct jval list;
	struct jiter it = {0};
	enum err_code e = read_typed(object, "tools", JT_ARRAY, OPTIONAL, &list, reterr);
	if (e != ERR_OK)
		return e;
	r->tools += jv_count(list);
	if (r->tools > RESPONSES_TOOLS_MAX)
		return err_set(reterr, ERR_INPUT, "tools: at most %u", RESPONSES_TOOLS_MAX);
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		e = read_tool(r, it.value, in_input, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "tools[%u]", i);
			return e;
		}
	}
	return ERR_OK;
}

/* --- tool choice --- */

static enum choice_kind
choice_of_word(struct str word)
{
	if (str_eq(word, STR("auto")))
		return CHOICE_AUTO;
	if (str_eq(word, STR("none")))
		return CHOICE_NONE;
	return str_eq(word, STR("required")) ? CHOICE_REQUIRED : CHOICE_OPAQUE;
}

enum err_code
responses_read_choice(struct conversation *c, struct jval root, struct err *reterr)
{
	struct tool_choice *choice = &c->choice;
	struct jval v = jv_get(root, "tool_choice");
	enum err_code e = read_bool(root, "parallel_tool_calls", &choice->parallel, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	choice->raw = jv_raw(v);
	if (jv_is(v, JT_STRING)) {
		choice->kind = choice_of_word(jv_str(c->arena, v));
		return ERR_OK;
	}
	if (!jv_is(v, JT_OBJECT))
		return err_set(
		    reterr, ERR_INPUT, "tool_choice: Input should be a string or an object");
	choice->kind = CHOICE_OPAQUE;
	e = read_str(c->arena, v, "type", REQUIRED, &choice->type, reterr);
	if (e == ERR_OK && str_eq(choice->type, STR("allowed_tools"))) {
		e = read_allowed_tools(c, v, reterr);
	} else if (e == ERR_OK &&
		   (str_eq(choice->type, STR("function")) || str_eq(choice->type, STR("custom")))) {
		choice->kind = CHOICE_NAMED;
		e = read_str(c->arena, v, "name", REQUIRED, &choice->name, reterr);
	}
	if (e != ERR_OK)
		read_path(reterr, "tool_choice");
	return e;
}
