#include "worker/dialect/chat_messages.h"

#include "worker/dialect/arguments.h"
#include "worker/dialect/code_list.h"
#include "worker/dialect/read.h"

/* Appends the parts of a message's content. Empty texts are nothing. */
static enum err_code
read_content(struct conversation *c, struct jval content, struct part **end, struct err *reterr)
{
	struct jiter it = {0};
	if (!jv_present(content))
		return ERR_OK;
	if (jv_is(content, JT_STRING)) {
		struct str text = jv_str(c->arena, content);
		struct part *p = text.len > 0 ? ARENA_NEW(c->arena, struct part) : NULL;
		if (p != NULL)
			*p = (struct part){.kind = PART_TEXT, .raw_wire = WIRE_CHAT, .text = text};
		*end = p;
		return ERR_OK;
	}
	if (!jv_is(content, JT_ARRAY))
		return err_set(
		    reterr, ERR_INPUT, "content: Input should be a string or an array of parts");
	for (uint32_t i = 0; jv_next(content, &it); i++) {
		struct part *p = ARENA_NEW(c->arena, struct part);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, "Over the memory budget");
		enum err_code e = chat_read_part(c, it.value, p, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "content[%u]", i);
			return e;
		}
		*end = p;
		end = &p->next;
	}
	return ERR_OK;
}

static struct message *
start_message(struct chat_reader *r, enum message_role role, struct jval v)
{
	struct message *m = conversation_add(r->conv, role);
	r->results = NULL;
	if (m != NULL)
		m->raw = jv_raw(v);
	return m;
}

static enum err_code
read_plain(struct chat_reader *r, enum message_role role, struct jval v, struct err *reterr)
{
	struct message *m = start_message(r, role, v);
	if (m == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	struct jval content = jv_get(v, "content");
	if (!jv_present(content))
		return err_set(reterr, ERR_INPUT, "content: Field required");
	enum err_code e = read_str(r->conv->arena, v, "name", OPTIONAL, &m->name, reterr);
	return e == ERR_OK ? read_content(r->conv, content, &m->parts, reterr) : e;
}

/* --- assistant --- */

/* {"type":"custom","custom":{"name","input"}}: the free text becomes the one argument "input". */
static enum err_code
read_custom_call(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval custom;
	struct str input = STR_NULL;
	enum err_code e = read_typed(v, "custom", JT_OBJECT, REQUIRED, &custom, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, custom, "name", REQUIRED, &p->name, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, custom, "input", REQUIRED, &input, reterr);
	if (e != ERR_OK)
		return e;
	p->arguments = arguments_of_text(c->arena, input);
	return ERR_OK;
}

static enum err_code
read_function(struct conversation *c, struct jval f, struct part *p, struct err *reterr)
{
	enum err_code e = read_str(c->arena, f, "name", REQUIRED, &p->name, reterr);
	struct jval arguments = jv_get(f, "arguments");
	if (e == ERR_OK &&
	    jv_is(arguments, JT_OBJECT)) /* some clients forget to make it a string */
		p->arguments = jv_raw(arguments);
	else if (e == ERR_OK)
		e = read_str(c->arena, f, "arguments", OPTIONAL, &p->arguments, reterr);
	return e;
}

static enum err_code
read_call(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval function;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	p->raw = jv_raw(v);
	p->raw_wire = WIRE_CHAT;
	enum err_code e = read_str(c->arena, v, "id", REQUIRED, &p->id, reterr);
	if (e != ERR_OK)
		return e;
	if (jv_str_is(jv_get(v, "type"), "custom"))
		return read_custom_call(c, v, p, reterr);
	e = read_typed(v, "function", JT_OBJECT, REQUIRED, &function, reterr);
	if (e != ERR_OK)
		return e;
	e = read_function(c, function, p, reterr);
	if (e != ERR_OK)
		read_path(reterr, "function");
	return e;
}

static enum err_code
read_calls(struct conversation *c, struct jval v, struct message *m, struct err *reterr)
{
	struct jval calls;
	struct jiter it = {0};
	enum err_code e = read_typed(v, "tool_calls", JT_ARRAY, OPTIONAL, &calls, reterr);
	for (uint32_t i = 0; e == ERR_OK && jv_next(calls, &it); i++) {
		struct part *p = message_add(c, m, PART_CALL);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, "Over the memory budget");
		e = read_call(c, it.value, p, reterr);
		if (e != ERR_OK)
			read_path(reterr, "tool_calls[%u]", i);
	}
	return e;
}

/* Deprecated function_call: a call without an id; we give it one. */
static enum err_code
read_function_call(struct chat_reader *r, struct jval v, struct message *m, struct err *reterr)
{
	struct jval call;
	enum err_code e = read_typed(v, "function_call", JT_OBJECT, OPTIONAL, &call, reterr);
	if (e != ERR_OK || !jv_present(call))
		return e;
	struct part *p = message_add(r->conv, m, PART_CALL);
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	m->raw = STR_NULL;
	p->id = r->function_id = arena_printf(r->conv->arena, "call_function_%u", r->functions++);
	e = read_function(r->conv, call, p, reterr);
	if (e != ERR_OK)
		read_path(reterr, "function_call");
	return e;
}

static enum err_code
read_reasoning(struct conversation *c, struct jval v, struct message *m, struct err *reterr)
{
	static const char *const members[] = {"reasoning_content", "reasoning"};
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct jval text = jv_get(v, members[i]);
		if (!jv_is(text, JT_STRING))
			continue;
		struct part *p = message_add(c, m, PART_REASONING);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, "Over the memory budget");
		p->text = jv_str(c->arena, text);
		p->name = str_c(members[i]);
		return ERR_OK;
	}
	return ERR_OK;
}

static enum err_code
read_assistant(struct chat_reader *r, struct jval v, struct err *reterr)
{
	struct conversation *c = r->conv;
	struct message *m = start_message(r, MESSAGE_ASSISTANT, v);
	struct str refusal = STR_NULL;
	if (m == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	/* What we told about executions is nothing for a provider. */
	m->raw = raw_without(c->arena, v, CODE_LIST_MEMBER);
	enum err_code e = read_reasoning(c, v, m, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "name", OPTIONAL, &m->name, reterr);
	if (e == ERR_OK)
		e = read_content(
		    c, jv_get(v, "content"), m->tail != NULL ? &m->tail->next : &m->parts, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "refusal", OPTIONAL, &refusal, reterr);
	if (e != ERR_OK)
		return e;
	if (refusal.len > 0) {
		struct part *p = message_add(c, m, PART_REFUSAL);
		if (p != NULL)
			p->text = refusal;
	}
	e = read_calls(c, v, m, reterr);
	return e == ERR_OK ? read_function_call(r, v, m, reterr) : e;
}

/* --- results --- */

static enum err_code
read_result(struct chat_reader *r, struct jval v, bool function, struct err *reterr)
{
	struct conversation *c = r->conv;
	if (r->results == NULL)
		r->results = conversation_add(c, MESSAGE_USER);
	struct part *p = r->results != NULL ? message_add(c, r->results, PART_RESULT) : NULL;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	if (!function) {
		p->raw = jv_raw(v);
		enum err_code e = read_str(c->arena, v, "tool_call_id", REQUIRED, &p->id, reterr);
		if (e != ERR_OK)
			return e;
	} else if (r->function_id.len == 0) {
		return err_set(reterr, ERR_INPUT, "role: no function_call before this message");
	} else {
		p->id = r->function_id;
	}
	return read_content(c, jv_get(v, "content"), &p->content, reterr);
}

enum err_code
chat_read_message(struct chat_reader *r, struct jval v, struct err *reterr)
{
	struct str role = STR_NULL;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_str(r->conv->arena, v, "role", REQUIRED, &role, reterr);
	if (e != ERR_OK)
		return e;
	if (str_eq(role, STR("user")))
		return read_plain(r, MESSAGE_USER, v, reterr);
	if (str_eq(role, STR("assistant")))
		return read_assistant(r, v, reterr);
	if (str_eq(role, STR("tool")) || str_eq(role, STR("function")))
		return read_result(r, v, str_eq(role, STR("function")), reterr);
	if (str_eq(role, STR("system")))
		return read_plain(r, MESSAGE_SYSTEM, v, reterr);
	if (str_eq(role, STR("developer")))
		return read_plain(r, MESSAGE_DEVELOPER, v, reterr);
	return err_set(reterr, ERR_INPUT,
	    "role: Input should be 'system', 'developer', 'user', 'assistant' or 'tool'");
}
