/* Chat Completions request → conversation (openai-wire §2.1–2.4). */
#include "worker/dialect/chat.h"
#include "worker/dialect/chat_messages.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/minted.h"
#include "worker/dialect/read.h"

#define TOOLS_MAX   4096u
#define CHOICES_MAX 128

static const char *const decisive[] = {"model", "messages", "stream", "tools", "tool_choice",
    "max_tokens", "max_completion_tokens", "n", "max_tool_iterations", NULL};

static enum err_code
read_messages(struct conversation *c, struct jval root, struct err *reterr)
{
	struct chat_reader r = {.conv = c};
	struct jval list;
	struct jiter it = {0};
	enum err_code e = read_typed(root, "messages", JT_ARRAY, REQUIRED, &list, reterr);
	if (e != ERR_OK)
		return e;
	if (jv_count(list) == 0)
		return err_set(reterr, ERR_INPUT, "messages: at least one message is required");
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		e = chat_read_message(&r, it.value, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "messages[%u]", i);
			return e;
		}
	}
	return ERR_OK;
}

/* --- tools --- */

static enum err_code
read_function(struct conversation *c, struct jval f, struct tool *tool, struct err *reterr)
{
	struct jval schema;
	tool->kind = TOOL_FUNCTION;
	enum err_code e = read_str(c->arena, f, "name", REQUIRED, &tool->name, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, f, "description", OPTIONAL, &tool->description, reterr);
	if (e == ERR_OK)
		e = read_bool(f, "strict", &tool->strict, reterr);
	if (e == ERR_OK)
		e = read_typed(f, "parameters", JT_OBJECT, OPTIONAL, &schema, reterr);
	if (e == ERR_OK && jv_present(schema))
		tool->schema_raw = jv_raw(schema);
	return e;
}

static enum err_code
read_custom(struct conversation *c, struct jval custom, struct tool *tool, struct err *reterr)
{
	tool->kind = TOOL_FUNCTION;
	tool->schema_raw =
	    STR("{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},"
		"\"required\":[\"input\"]}");
	enum err_code e = read_str(c->arena, custom, "name", REQUIRED, &tool->name, reterr);
	return e == ERR_OK
		   ? read_str(c->arena, custom, "description", OPTIONAL, &tool->description, reterr)
		   : e;
}

static enum err_code
read_tool(struct conversation *c, struct jval t, struct err *reterr)
{
	struct tool *tool = NULL;
	struct jval inner;
	enum err_code e = read_tool_start(c, t, &tool, reterr);
	if (e != ERR_OK)
		return e;
	if (tool->type.len == 0)
		tool->type = STR("function");
	bool custom = str_eq(tool->type, STR("custom"));
	if (custom || str_eq(tool->type, STR("function"))) {
		const char *key = custom ? "custom" : "function";
		e = read_typed(t, key, JT_OBJECT, REQUIRED, &inner, reterr);
		if (e != ERR_OK)
			return e;
		e = custom ? read_custom(c, inner, tool, reterr)
			   : read_function(c, inner, tool, reterr);
		if (e != ERR_OK)
			read_path(reterr, "%s", key);
		return e;
	}
	tool->kind = type_declares_code(tool->type) ? TOOL_CODE : TOOL_OPAQUE;
	e = read_str(c->arena, t, "name", OPTIONAL, &tool->name, reterr);
	if (e == ERR_OK && tool->kind == TOOL_CODE)
		e = read_container_files(c->arena, t, tool, reterr);
	return e;
}

/* Deprecated `functions`: tools without a type, which the reply then answers in the old form. */
static enum err_code
read_legacy_function(struct conversation *c, struct jval f, struct err *reterr)
{
	struct tool *tool = NULL;
	enum err_code e = read_tool_start(c, f, &tool, reterr);
	if (e != ERR_OK)
		return e;
	tool->raw = STR_NULL;
	tool->type = STR_NULL;
	return read_function(c, f, tool, reterr);
}

static enum err_code
read_tool_list(struct conversation *c, struct jval root, const char *key,
    enum err_code (*read)(struct conversation *, struct jval, struct err *), struct err *reterr)
{
	struct jval list;
	struct jiter it = {0};
	enum err_code e = read_typed(root, key, JT_ARRAY, OPTIONAL, &list, reterr);
	if (e != ERR_OK)
		return e;
	if (jv_count(list) > TOOLS_MAX)
		return err_set(reterr, ERR_INPUT, "%s: at most %u", key, TOOLS_MAX);
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		e = read(c, it.value, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "%s[%u]", key, i);
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
	if (str_eq(word, STR("required")) || str_eq(word, STR("any")))
		return CHOICE_REQUIRED;
	return CHOICE_OPAQUE;
}

static enum err_code
read_choice(struct conversation *c, struct jval root, struct err *reterr)
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
		e = read_allowed_tools(c, jv_get(v, "allowed_tools"), reterr);
		if (e != ERR_OK)
			read_path(reterr, "allowed_tools");
	}
	if (e == ERR_OK &&
	    (str_eq(choice->type, STR("function")) || str_eq(choice->type, STR("custom")))) {
		const char *key = str_eq(choice->type, STR("function")) ? "function" : "custom";
		choice->kind = CHOICE_NAMED;
		struct jval inner;
		e = read_typed(v, key, JT_OBJECT, REQUIRED, &inner, reterr);
		if (e == ERR_OK)
			e = read_str(c->arena, inner, "name", REQUIRED, &choice->name, reterr);
	}
	if (e != ERR_OK)
		read_path(reterr, "tool_choice");
	return e;
}

/* Deprecated function_call: "none", "auto" or {"name"}. */
static enum err_code
read_legacy_choice(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v = jv_get(root, "function_call");
	if (!jv_present(v) || c->choice.kind != CHOICE_UNSET)
		return ERR_OK;
	if (jv_is(v, JT_STRING)) {
		c->choice.kind = choice_of_word(jv_str(c->arena, v));
		return ERR_OK;
	}
	enum err_code e = read_str(c->arena, v, "name", REQUIRED, &c->choice.name, reterr);
	if (e != ERR_OK)
		read_path(reterr, "function_call");
	c->choice.kind = CHOICE_NAMED;
	return e;
}

/* --- settings --- */

static enum err_code
read_format(struct conversation *c, struct jval root, struct err *reterr)
{
	struct jval v, schema, json;
	struct str type = STR_NULL;
	struct output_format *f = &c->format;
	enum err_code e = read_typed(root, "response_format", JT_OBJECT, OPTIONAL, &v, reterr);
	if (e != ERR_OK || !jv_present(v))
		return e;
	e = read_str(c->arena, v, "type", REQUIRED, &type, reterr);
	if (str_eq(type, STR("text")))
		f->kind = FORMAT_TEXT;
	else if (str_eq(type, STR("json_object")))
		f->kind = FORMAT_JSON_OBJECT;
	if (e == ERR_OK && str_eq(type, STR("json_schema"))) {
		f->kind = FORMAT_JSON_SCHEMA;
		e = read_typed(v, "json_schema", JT_OBJECT, REQUIRED, &json, reterr);
		if (e == ERR_OK)
			e = read_str(c->arena, json, "name", OPTIONAL, &f->name, reterr);
		if (e == ERR_OK)
			e = read_str(
			    c->arena, json, "description", OPTIONAL, &f->description, reterr);
		if (e == ERR_OK)
			e = read_bool(json, "strict", &f->strict, reterr);
		if (e == ERR_OK)
			e = read_typed(json, "schema", JT_OBJECT, OPTIONAL, &schema, reterr);
		if (e == ERR_OK && jv_present(schema))
			f->schema_raw = jv_raw(schema);
	}
	if (e != ERR_OK)
		read_path(reterr, "response_format");
	return e;
}

static enum err_code
read_n(struct conversation *c, struct jval root, struct err *reterr)
{
	int64_t n = 1;
	enum err_code e = read_number(root, "n", OPTIONAL, &c->n_raw, reterr);
	if (e == ERR_OK && c->n_raw.ptr != NULL &&
	    (!jv_i64(jv_get(root, "n"), &n) || n < 1 || n > CHOICES_MAX))
		return err_set(
		    reterr, ERR_INPUT, "n: Input should be an integer from 1 to %d", CHOICES_MAX);
	return e;
}

static enum err_code
read_numbers(struct conversation *c, struct jval root, struct err *reterr)
{
	struct {
		const char *key;
		struct str *ret;
	} numbers[] = {{"max_completion_tokens", &c->max_tokens_raw},
	    {"temperature", &c->temperature_raw}, {"top_p", &c->top_p_raw},
	    {"top_k", &c->top_k_raw}, {"seed", &c->seed_raw},
	    {"presence_penalty", &c->presence_penalty_raw},
	    {"frequency_penalty", &c->frequency_penalty_raw}};
	enum err_code e = read_n(c, root, reterr);
	for (size_t i = 0; e == ERR_OK && i < ARRAY_LEN(numbers); i++)
		e = read_number(root, numbers[i].key, OPTIONAL, numbers[i].ret, reterr);
	struct str max = STR_NULL;
	if (e == ERR_OK)
		e = read_number(root, "max_tokens", OPTIONAL, &max, reterr);
	if (e == ERR_OK && c->max_tokens_raw.ptr == NULL)
		c->max_tokens_raw = max;
	return e;
}

static enum err_code
read_settings(struct conversation *c, struct jval root, struct err *reterr)
{
	int stream = -1, usage = -1;
	struct jval options = JV_ABSENT;
	enum err_code e = read_str(c->arena, root, "model", REQUIRED, &c->model, reterr);
	if (e == ERR_OK)
		e = read_bool(root, "stream", &stream, reterr);
	if (e == ERR_OK)
		e = read_typed(root, "stream_options", JT_OBJECT, OPTIONAL, &options, reterr);
	if (e == ERR_OK) {
		e = read_bool(options, "include_usage", &usage, reterr);
		if (e != ERR_OK)
			read_path(reterr, "stream_options");
	}
	if (e == ERR_OK)
		e = read_numbers(c, root, reterr);
	if (e == ERR_OK)
		e = read_strings(c->arena, root, "stop", &c->stop, &c->stop_count, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, root, "reasoning_effort", OPTIONAL, &c->effort, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, root, "verbosity", OPTIONAL, &c->verbosity, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, root, "user", OPTIONAL, &c->user, reterr);
	if (e == ERR_OK)
		e = read_format(c, root, reterr);
	c->stream = stream == 1;
	c->include_usage = usage == 1;
	return e;
}

/* Everything that a Chat provider gets back as it came: all but what the writer composes. */
static void
keep_members(struct conversation *c, struct jval root)
{
	static const char *const composed[] = {"model", "messages", "stream", "tools",
	    "tool_choice", "functions", "function_call", "parallel_tool_calls"};
	struct jiter it = {0};
	while (jv_next(root, &it)) {
		bool skip = member_use(WIRE_CHAT, jv_str(c->arena, it.key)) == MEMBER_GATEWAY;
		for (size_t i = 0; i < ARRAY_LEN(composed); i++)
			skip = skip || jv_str_is(it.key, composed[i]);
		if (!skip)
			read_extra(c, it.key, it.value);
	}
	struct jval metadata = jv_get(root, "metadata"), tier = jv_get(root, "service_tier");
	c->metadata_raw = jv_present(metadata) ? jv_raw(metadata) : STR_NULL;
	c->service_tier_raw = jv_present(tier) ? jv_raw(tier) : STR_NULL;
	c->has_thread = jv_present(jv_get(root, "thread"));
}

enum err_code
chat_decode(struct arena *a, struct str body, struct jval root, struct conversation **ret,
    struct err *reterr)
{
	(void)body;
	struct conversation *c = ARENA_NEW(a, struct conversation);
	if (c == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	c->arena = a;
	c->wire = WIRE_CHAT;
	c->format.strict = -1;
	enum err_code e = read_root(root, decisive, reterr);
	if (e == ERR_OK)
		e = read_gateway_members(c, root, reterr);
	if (e == ERR_OK)
		e = read_settings(c, root, reterr);
	if (e == ERR_OK)
		e = read_messages(c, root, reterr);
	if (e == ERR_OK)
		e = read_tool_list(c, root, "tools", read_tool, reterr);
	if (e == ERR_OK)
		e = read_tool_list(c, root, "functions", read_legacy_function, reterr);
	if (e == ERR_OK)
		e = read_choice(c, root, reterr);
	if (e == ERR_OK)
		e = read_legacy_choice(c, root, reterr);
	if (e != ERR_OK)
		return e;
	keep_members(c, root);
	minted_become_text(c);
	if (arena_overflowed(a))
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	*ret = c;
	return ERR_OK;
}
