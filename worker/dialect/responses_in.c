/* Responses request → conversation (openai-wire §3.1–3.6). */
#include "worker/dialect/responses_in.h"

#include "worker/dialect/mapping.h"
#include "worker/dialect/minted.h"
#include "worker/dialect/read.h"
#include "worker/dialect/responses.h"

static const char *const decisive[] = {"model", "input", "instructions", "stream", "tools",
    "tool_choice", "max_output_tokens", "store", "previous_response_id", "background",
    "max_tool_iterations", NULL};

/* --- input --- */

static enum err_code
read_instructions(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v;
	enum err_code e = read_typed(root, "instructions", JT_STRING, OPTIONAL, &v, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	struct message *m = conversation_add(c, MESSAGE_SYSTEM);
	struct part *p = m != NULL ? message_add(c, m, PART_TEXT) : NULL;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, "instructions: over the memory budget");
	m->is_instructions = true;
	m->raw = c->instructions_raw = jv_raw(v);
	p->text = jv_str(c->arena, v);
	return ERR_OK;
}

static enum err_code
read_text_input(struct conversation *c, struct jval v, struct err *reterr)
{
	struct message *m = conversation_add(c, MESSAGE_USER);
	struct part *p = m != NULL ? message_add(c, m, PART_TEXT) : NULL;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, "input: over the memory budget");
	m->raw = jv_raw(v);
	p->text = jv_str(c->arena, v);
	return ERR_OK;
}

static enum err_code
read_input(struct responses_reader *r, struct jval root, struct err *reterr)
{
	struct jval v = jv_get(root, "input");
	struct jiter it = {0};
	if (jv_is(v, JT_STRING))
		return read_text_input(r->conv, v, reterr);
	if (!jv_present(v) && r->conv->previous_response_id.len > 0)
		return ERR_OK;
	if (!jv_is(v, JT_ARRAY))
		return err_set(reterr, ERR_INPUT, "input: %s",
		    jv_present(v) ? "Input should be a string or an array of items"
				  : "Field required");
	if (jv_count(v) == 0 && r->conv->previous_response_id.len == 0)
		return err_set(reterr, ERR_INPUT, "input: at least one item is required");
	for (uint32_t i = 0; jv_next(v, &it); i++) {
		enum err_code e = responses_read_item(r, it.value, reterr);
		if (e != ERR_OK) {
			if (e == ERR_INPUT)
				read_path(reterr, "input[%u]", i);
			return e;
		}
	}
	/* A response that was cut between rounds ends with an execution; few providers continue an
	 * assistant turn, and none a folded one. */
	struct message *m = r->ends_folded ? conversation_add(r->conv, MESSAGE_USER) : NULL;
	struct part *p = m != NULL ? message_add(r->conv, m, PART_TEXT) : NULL;
	if (p != NULL)
		p->text = STR("Continue.");
	return ERR_OK;
}

/* --- settings --- */

static enum err_code
read_format(struct conversation *c, struct jval v, struct err *reterr)
{
	struct output_format *f = &c->format;
	struct jval schema;
	struct str type = STR_NULL;
	if (!jv_present(v))
		return ERR_OK;
	enum err_code e = read_str(c->arena, v, "type", REQUIRED, &type, reterr);
	if (str_eq(type, STR("text")))
		f->kind = FORMAT_TEXT;
	else if (str_eq(type, STR("json_object")))
		f->kind = FORMAT_JSON_OBJECT;
	if (e != ERR_OK || !str_eq(type, STR("json_schema")))
		return e;
	f->kind = FORMAT_JSON_SCHEMA;
	e = read_str(c->arena, v, "name", OPTIONAL, &f->name, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "description", OPTIONAL, &f->description, reterr);
	if (e == ERR_OK)
		e = read_bool(v, "strict", &f->strict, reterr);
	if (e == ERR_OK)
		e = read_typed(v, "schema", JT_OBJECT, OPTIONAL, &schema, reterr);
	if (e == ERR_OK && jv_present(schema))
		f->schema_raw = jv_raw(schema);
	return e;
}

static enum err_code
read_text_settings(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval text, format;
	enum err_code e = read_typed(root, "text", JT_OBJECT, OPTIONAL, &text, reterr);
	if (e != ERR_OK || !jv_present(text))
		return e;
	c->text_raw = jv_raw(text);
	e = read_str(c->arena, text, "verbosity", OPTIONAL, &c->verbosity, reterr);
	if (e == ERR_OK)
		e = read_typed(text, "format", JT_OBJECT, OPTIONAL, &format, reterr);
	if (e == ERR_OK) {
		e = read_format(c, format, reterr);
		if (e != ERR_OK)
			read_path(reterr, "format");
	}
	if (e != ERR_OK)
		read_path(reterr, "text");
	return e;
}

static enum err_code
read_reasoning(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v;
	enum err_code e = read_typed(root, "reasoning", JT_OBJECT, OPTIONAL, &v, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	c->reasoning_raw = jv_raw(v);
	e = read_str(c->arena, v, "effort", OPTIONAL, &c->effort, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "summary", OPTIONAL, &c->reasoning_summary, reterr);
	if (e == ERR_OK && c->reasoning_summary.len == 0) /* its older name */
		e = read_str(
		    c->arena, v, "generate_summary", OPTIONAL, &c->reasoning_summary, reterr);
	if (e != ERR_OK)
		read_path(reterr, "reasoning");
	return e;
}

static enum err_code
read_include(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v = jv_get(root, "include");
	c->include_raw = jv_present(v) ? jv_raw(v) : STR_NULL;
	return read_strings(c->arena, root, "include", &c->include, &c->include_count, reterr);
}

static enum err_code
read_user(struct conversation *c, struct jval root, struct err *reterr)
{
	struct str safety = STR_NULL;
	enum err_code e = read_str(c->arena, root, "user", OPTIONAL, &c->user, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, root, "safety_identifier", OPTIONAL, &safety, reterr);
	if (e == ERR_OK && c->user.len == 0)
		c->user = safety;
	return e;
}

/* What the answer depends on and nobody here does. */
static enum err_code
read_state(struct conversation *c, struct jval root, struct err *reterr)
{
	int background = -1;
	enum err_code e = read_bool(root, "store", &c->store, reterr);
	if (e == ERR_OK)
		e = read_bool(root, "background", &background, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, root, "previous_response_id", OPTIONAL,
		    &c->previous_response_id, reterr);
	if (e == ERR_OK && background == 1)
		return err_set(reterr, ERR_INPUT, "background: not supported");
	if (e == ERR_OK && c->previous_response_id.len > 0 &&
	    jv_present(jv_get(root, "conversation")))
		return err_set(
		    reterr, ERR_INPUT, "previous_response_id: not together with conversation");
	return e;
}

static enum err_code
read_settings(struct conversation *c, struct jval root, struct err *reterr)
{
	int stream = -1;
	struct jval options;
	enum err_code e = read_str(c->arena, root, "model", REQUIRED, &c->model, reterr);
	if (e == ERR_OK)
		e = read_bool(root, "stream", &stream, reterr);
	if (e == ERR_OK)
		e = read_typed(root, "stream_options", JT_OBJECT, OPTIONAL, &options, reterr);
	if (e == ERR_OK)
		e = read_number(root, "max_output_tokens", OPTIONAL, &c->max_tokens_raw, reterr);
	if (e == ERR_OK)
		e = read_number(root, "temperature", OPTIONAL, &c->temperature_raw, reterr);
	if (e == ERR_OK)
		e = read_number(root, "top_p", OPTIONAL, &c->top_p_raw, reterr);
	if (e == ERR_OK)
		e = read_state(c, root, reterr);
	if (e == ERR_OK)
		e = read_reasoning(c, root, reterr);
	if (e == ERR_OK)
		e = read_text_settings(c, root, reterr);
	if (e == ERR_OK)
		e = read_include(c, root, reterr);
	if (e == ERR_OK)
		e = read_user(c, root, reterr);
	c->stream = stream == 1;
	return e;
}

/* Everything that a Responses provider gets back as it came: all but what the writer composes. */
static void
keep_members(struct conversation *c, struct jval root)
{
	static const char *const composed[] = {"model", "input", "instructions", "stream", "tools",
	    "tool_choice", "parallel_tool_calls", "previous_response_id"};
	struct jiter it = {0};
	while (jv_next(root, &it)) {
		bool skip = member_use(WIRE_RESPONSES, jv_str(c->arena, it.key)) == MEMBER_GATEWAY;
		for (size_t i = 0; i < ARRAY_LEN(composed); i++)
			skip = skip || jv_str_is(it.key, composed[i]);
		if (!skip)
			read_extra(c, it.key, it.value);
	}
	struct jval metadata = jv_get(root, "metadata"), tier = jv_get(root, "service_tier");
	c->metadata_raw = jv_present(metadata) ? jv_raw(metadata) : STR_NULL;
	c->service_tier_raw = jv_present(tier) ? jv_raw(tier) : STR_NULL;
	struct jval tools = jv_get(root, "tools"), choice = jv_get(root, "tool_choice");
	c->tools_raw = jv_present(tools) ? jv_raw(tools) : STR_NULL;
	c->tool_choice_raw = jv_present(choice) ? jv_raw(choice) : STR_NULL;
}

enum err_code
responses_decode(struct arena *a, struct str body, struct jval root, struct conversation **ret,
    struct err *reterr)
{
	(void)body;
	struct conversation *c = ARENA_NEW(a, struct conversation);
	if (c == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	c->arena = a;
	c->wire = WIRE_RESPONSES;
	c->format.strict = c->store = -1;
	struct responses_reader r = {.conv = c};
	enum err_code e = read_root(root, decisive, reterr);
	if (e == ERR_OK)
		e = read_gateway_members(c, root, reterr);
	if (e == ERR_OK)
		e = read_settings(c, root, reterr);
	if (e == ERR_OK)
		e = read_instructions(c, root, reterr);
	if (e == ERR_OK)
		e = responses_read_tools(&r, root, false, reterr);
	if (e == ERR_OK)
		e = read_input(&r, root, reterr);
	if (e == ERR_OK)
		e = responses_read_choice(c, root, reterr);
	if (e != ERR_OK)
		return e;
	keep_members(c, root);
	minted_become_text(c);
	if (arena_overflowed(a))
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	*ret = c;
	return ERR_OK;
}
