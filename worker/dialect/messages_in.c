/* Messages request → conversation (anthropic-wire §2). */
#include "worker/dialect/mapping.h"
#include "worker/dialect/messages.h"
#include "worker/dialect/messages_blocks.h"
#include "worker/dialect/minted.h"
#include "worker/dialect/read.h"

#define TOOLS_MAX 4096u

static const char *const decisive[] = {"model", "messages", "system", "stream", "tools",
    "tool_choice", "max_tokens", "thinking", "max_tool_iterations", NULL};

/* --- messages --- */

static enum err_code
read_role(struct conversation *c, struct jval v, enum message_role *ret, struct err *reterr)
{
	struct str role;
	enum err_code e = read_str(c->arena, v, "role", REQUIRED, &role, reterr);
	if (e != ERR_OK)
		return e;
	if (str_eq(role, STR("user")))
		*ret = MESSAGE_USER;
	else if (str_eq(role, STR("assistant")))
		*ret = MESSAGE_ASSISTANT;
	else if (str_eq(role, STR("system")))
		*ret = MESSAGE_SYSTEM;
	else
		return err_set(reterr, ERR_INPUT, "role: Input should be 'user' or 'assistant'");
	return ERR_OK;
}

static enum err_code
read_message(struct messages_reader *r, struct jval v, bool last, struct err *reterr)
{
	struct conversation *c = r->conv;
	enum message_role role = MESSAGE_USER;
	struct part *parts = NULL;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_role(c, v, &role, reterr);
	if (e != ERR_OK)
		return e;
	r->folded = false;
	e = messages_read_content(r, jv_get(v, "content"), &parts, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "content");
		return e;
	}
	if (r->folded && parts == NULL)
		return ERR_OK; /* nothing but what the gateway had shown */
	struct message *m = conversation_add(c, role);
	if (m == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	m->parts = parts;
	m->raw = r->folded ? STR_NULL : jv_raw(v);
	/* A turn that paused for us ends with an execution; few providers continue an assistant
	 * turn, and none a folded one. */
	if (last && r->folded && role == MESSAGE_ASSISTANT) {
		m = conversation_add(c, MESSAGE_USER);
		struct part *p = message_add(c, m, PART_TEXT);
		if (p != NULL)
			p->text = STR("Continue.");
	}
	return ERR_OK;
}

static enum err_code
read_system(struct messages_reader *r, struct jval root, struct err *reterr)
{
	struct jval system = jv_get(root, "system");
	if (!jv_present(system))
		return ERR_OK;
	struct message *m = conversation_add(r->conv, MESSAGE_SYSTEM);
	if (m == NULL)
		return err_set(reterr, ERR_NOMEM, "system: over the memory budget");
	m->raw = jv_raw(system);
	enum err_code e = messages_read_content(r, system, &m->parts, reterr);
	if (e != ERR_OK)
		read_path(reterr, "system");
	return e;
}

static enum err_code
read_messages(struct messages_reader *r, struct jval root, struct err *reterr)
{
	struct jval list;
	struct jiter it = {0};
	enum err_code e = read_typed(root, "messages", JT_ARRAY, REQUIRED, &list, reterr);
	if (e != ERR_OK)
		return e;
	uint32_t n = jv_count(list);
	if (n == 0)
		return err_set(reterr, ERR_INPUT, "messages: at least one message is required");
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		e = read_message(r, it.value, i + 1 == n, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "messages[%u]", i);
			return e;
		}
	}
	return ERR_OK;
}

/* --- tools --- */

static enum err_code
read_client_tool(struct conversation *c, struct jval t, struct tool *tool, struct err *reterr)
{
	struct jval schema;
	enum err_code e = read_str(c->arena, t, "name", REQUIRED, &tool->name, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, t, "description", OPTIONAL, &tool->description, reterr);
	if (e == ERR_OK)
		e = read_bool(t, "strict", &tool->strict, reterr);
	if (e == ERR_OK)
		e = read_typed(t, "input_schema", JT_OBJECT, REQUIRED, &schema, reterr);
	if (e == ERR_OK)
		tool->schema_raw = jv_raw(schema);
	return e;
}

static enum err_code
read_tool(struct conversation *c, struct jval t, struct err *reterr)
{
	struct tool *tool;
	enum err_code e = read_tool_start(c, t, &tool, reterr);
	if (e != ERR_OK)
		return e;
	struct jval cache = jv_get(t, "cache_control");
	tool->cache_control_raw = jv_present(cache) ? jv_raw(cache) : STR_NULL;
	if (tool->type.len == 0 || str_eq(tool->type, STR("custom"))) {
		tool->kind = TOOL_FUNCTION;
		return read_client_tool(c, t, tool, reterr);
	}
	tool->kind = type_declares_code(tool->type) ? TOOL_CODE : TOOL_OPAQUE;
	e = read_str(c->arena, t, "name", OPTIONAL, &tool->name, reterr);
	if (e == ERR_OK && tool->kind == TOOL_CODE)
		e = read_container_files(c->arena, t, tool, reterr);
	return e;
}

static enum err_code
read_tools(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval list;
	struct jiter it = {0};
	enum err_code e = read_typed(root, "tools", JT_ARRAY, OPTIONAL, &list, reterr);
	if (e != ERR_OK)
		return e;
	if (jv_count(list) > TOOLS_MAX)
		return err_set(reterr, ERR_INPUT, "tools: at most %u", TOOLS_MAX);
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		e = read_tool(c, it.value, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "tools[%u]", i);
			return e;
		}
	}
	return ERR_OK;
}

static enum err_code
read_choice(struct conversation *c, struct jval root, struct err *reterr)
{
	static const struct {
		const char *type;
		enum choice_kind kind;
	} kinds[] = {{"auto", CHOICE_AUTO}, {"any", CHOICE_REQUIRED}, {"none", CHOICE_NONE},
	    {"tool", CHOICE_NAMED}};
	struct jval v;
	int no_parallel;
	c->choice.parallel = -1;
	enum err_code e = read_typed(root, "tool_choice", JT_OBJECT, OPTIONAL, &v, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	e = read_str(c->arena, v, "type", REQUIRED, &c->choice.type, reterr);
	if (e == ERR_OK)
		e = read_bool(v, "disable_parallel_tool_use", &no_parallel, reterr);
	c->choice.raw = jv_raw(v);
	c->choice.kind = CHOICE_OPAQUE;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (e == ERR_OK && str_eq(c->choice.type, str_c(kinds[i].type)))
			c->choice.kind = kinds[i].kind;
	if (e == ERR_OK && c->choice.kind == CHOICE_NAMED)
		e = read_str(c->arena, v, "name", REQUIRED, &c->choice.name, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "tool_choice");
		return e;
	}
	if (no_parallel >= 0)
		c->choice.parallel = no_parallel == 0;
	return ERR_OK;
}

/* --- settings --- */

static enum err_code
read_thinking(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v;
	struct str type = STR_NULL;
	enum err_code e = read_typed(root, "thinking", JT_OBJECT, OPTIONAL, &v, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	c->thinking_raw = jv_raw(v);
	e = read_str(c->arena, v, "type", REQUIRED, &type, reterr);
	if (e == ERR_OK)
		e = read_number(v, "budget_tokens", OPTIONAL, &c->budget_raw, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "thinking");
		return e;
	}
	if (str_eq(type, STR("disabled")))
		c->effort = STR("none");
	else if (c->budget_raw.ptr != NULL)
		c->effort = effort_of_budget(jv_i64_or(jv_get(v, "budget_tokens"), 0));
	return ERR_OK;
}

static enum err_code
read_format(struct conversation *c, struct jval format, struct err *reterr)
{
	struct jval schema;
	struct str type;
	if (!jv_present(format))
		return ERR_OK;
	enum err_code e = read_str(c->arena, format, "type", REQUIRED, &type, reterr);
	if (e != ERR_OK || !str_eq(type, STR("json_schema")))
		return e;
	e = read_typed(format, "schema", JT_OBJECT, REQUIRED, &schema, reterr);
	if (e != ERR_OK)
		return e;
	c->format.kind = FORMAT_JSON_SCHEMA;
	c->format.schema_raw = jv_raw(schema);
	c->format.strict = -1;
	return ERR_OK;
}

static enum err_code
read_output_config(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval config, format;
	struct str effort = STR_NULL;
	enum err_code e = read_typed(root, "output_config", JT_OBJECT, OPTIONAL, &config, reterr);
	if (e != ERR_OK)
		return e;
	e = read_str(c->arena, config, "effort", OPTIONAL, &effort, reterr);
	if (e == ERR_OK)
		e = read_typed(config, "format", JT_OBJECT, OPTIONAL, &format, reterr);
	if (e == ERR_OK)
		e = read_format(c, format, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "output_config");
		return e;
	}
	if (effort.len > 0 && !str_eq(c->effort, STR("none")))
		c->effort = effort;
	e = read_typed(root, "output_format", JT_OBJECT, OPTIONAL, &format, reterr);
	return e == ERR_OK ? read_format(c, format, reterr) : e;
}

static enum err_code
read_settings(struct conversation *c, struct jval root, struct err *reterr)
{
	int stream;
	struct jval metadata;
	enum err_code e = read_str(c->arena, root, "model", REQUIRED, &c->model, reterr);
	if (e == ERR_OK)
		e = read_number(root, "max_tokens", REQUIRED, &c->max_tokens_raw, reterr);
	if (e == ERR_OK)
		e = read_bool(root, "stream", &stream, reterr);
	if (e == ERR_OK)
		e = read_number(root, "temperature", OPTIONAL, &c->temperature_raw, reterr);
	if (e == ERR_OK)
		e = read_number(root, "top_p", OPTIONAL, &c->top_p_raw, reterr);
	if (e == ERR_OK)
		e = read_number(root, "top_k", OPTIONAL, &c->top_k_raw, reterr);
	if (e == ERR_OK)
		e = read_strings(
		    c->arena, root, "stop_sequences", &c->stop, &c->stop_count, reterr);
	if (e == ERR_OK)
		e = read_typed(root, "metadata", JT_OBJECT, OPTIONAL, &metadata, reterr);
	if (e == ERR_OK)
		e = read_thinking(c, root, reterr);
	if (e == ERR_OK)
		e = read_output_config(c, root, reterr);
	if (e != ERR_OK)
		return e;
	c->stream = stream == 1;
	c->metadata_raw = jv_raw(metadata);
	e = read_str(c->arena, metadata, "user_id", OPTIONAL, &c->user, reterr);
	if (e != ERR_OK)
		read_path(reterr, "metadata");
	return e;
}

/* Everything that a Messages provider gets back as it came: all but what the writer composes. */
static void
keep_members(struct conversation *c, struct jval root)
{
	static const char *const composed[] = {
	    "model", "messages", "system", "stream", "tools", "tool_choice", "thread"};
	struct jiter it = {0};
	while (jv_next(root, &it)) {
		bool skip = member_use(WIRE_MESSAGES, jv_str(c->arena, it.key)) == MEMBER_GATEWAY;
		for (size_t i = 0; i < ARRAY_LEN(composed); i++)
			skip = skip || jv_str_is(it.key, composed[i]);
		if (skip)
			continue;
		bool is_container = jv_str_is(it.key, "container");
		struct str raw = is_container ? minted_container(c->arena, it.value) : STR_NULL;
		if (is_container && raw.ptr == NULL)
			continue;
		read_extra(c, it.key, it.value);
		if (is_container && c->extra_tail != NULL)
			c->extra_tail->raw = raw;
	}
	c->service_tier_raw = jv_raw(jv_get(root, "service_tier"));
	c->has_thread = jv_present(jv_get(root, "thread"));
}

enum err_code
messages_decode(struct arena *a, struct str body, struct jval root, struct conversation **ret,
    struct err *reterr)
{
	(void)body;
	struct conversation *c = ARENA_NEW(a, struct conversation);
	if (c == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	c->arena = a;
	c->wire = WIRE_MESSAGES;
	struct messages_reader r = {.conv = c, .fold = {.arena = a}};
	enum err_code e = read_root(root, decisive, reterr);
	if (e == ERR_OK)
		e = read_gateway_members(c, root, reterr);
	if (e == ERR_OK)
		e = read_settings(c, root, reterr);
	if (e == ERR_OK)
		e = read_system(&r, root, reterr);
	if (e == ERR_OK)
		e = read_messages(&r, root, reterr);
	if (e == ERR_OK)
		e = read_tools(c, root, reterr);
	if (e == ERR_OK)
		e = read_choice(c, root, reterr);
	if (e != ERR_OK)
		return e;
	keep_members(c, root);
	minted_become_text(c);
	if (arena_overflowed(a))
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	*ret = c;
	return ERR_OK;
}
