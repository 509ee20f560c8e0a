#include "worker/dialect/arguments.h"
#include "worker/dialect/fold.h"
#include "worker/dialect/origin.h"
#include "worker/dialect/read.h"
#include "worker/dialect/responses_in.h"

static const char over_budget[] = "Over the memory budget";

static struct message *
start_item(struct responses_reader *r, enum message_role role, struct jval v)
{
	struct message *m = conversation_add(r->conv, role);
	r->results = r->bare = NULL;
	if (m != NULL)
		m->raw = jv_raw(v);
	return m;
}

/* An item that is one part: a call, reasoning, an opaque item. */
static struct part *
start_part_item(
    struct responses_reader *r, enum message_role role, enum part_kind kind, struct jval v)
{
	struct message *m = start_item(r, role, v);
	struct part *p = m != NULL ? message_add(r->conv, m, kind) : NULL;
	if (p != NULL)
		p->raw = jv_raw(v);
	return p;
}

/* --- messages --- */

/* A string or a list of parts; `what` names the member. */
static enum err_code
read_content(
    struct conversation *c, struct jval v, const char *what, struct part **end, struct err *reterr)
{
	struct jiter it = {0};
	if (jv_is(v, JT_STRING)) {
		struct part *p = ARENA_NEW(c->arena, struct part);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, over_budget);
		*p = (struct part){.kind = PART_TEXT, .raw_wire = WIRE_RESPONSES};
		p->text = jv_str(c->arena, v);
		*end = p;
		return ERR_OK;
	}
	if (!jv_is(v, JT_ARRAY))
		return err_set(reterr, ERR_INPUT, "%s: %s", what,
		    jv_present(v) ? "Input should be a string or an array of parts"
				  : "Field required");
	for (uint32_t i = 0; jv_next(v, &it); i++) {
		struct part *p = ARENA_NEW(c->arena, struct part);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, over_budget);
		enum err_code e = responses_read_part(c, it.value, p, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "%s[%u]", what, i);
			return e;
		}
		*end = p;
		end = &p->next;
	}
	return ERR_OK;
}

static enum err_code
read_message(struct responses_reader *r, struct jval v, struct err *reterr)
{
	static const struct {
		const char *word;
		enum message_role role;
	} roles[] = {{"user", MESSAGE_USER}, {"assistant", MESSAGE_ASSISTANT},
	    {"system", MESSAGE_SYSTEM}, {"developer", MESSAGE_DEVELOPER}};
	struct str role = STR_NULL;
	enum err_code e = read_str(r->conv->arena, v, "role", REQUIRED, &role, reterr);
	if (e != ERR_OK)
		return e;
	for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
		if (!str_eq(role, str_c(roles[i].word)))
			continue;
		struct message *m = start_item(r, roles[i].role, v);
		if (m == NULL)
			return err_set(reterr, ERR_NOMEM, over_budget);
		return read_content(r->conv, jv_get(v, "content"), "content", &m->parts, reterr);
	}
	return err_set(reterr, ERR_INPUT,
	    "role: Input should be 'assistant', 'system', 'developer' or 'user'");
}

/* A content part where an item should stand: the user's. */
static enum err_code
read_bare_part(struct responses_reader *r, struct jval v, struct err *reterr)
{
	if (r->bare == NULL) {
		r->bare = conversation_add(r->conv, MESSAGE_USER);
		r->results = NULL;
	}
	struct part *p = r->bare != NULL ? message_add(r->conv, r->bare, PART_TEXT) : NULL;
	return p != NULL ? responses_read_part(r->conv, v, p, reterr)
			 : err_set(reterr, ERR_NOMEM, over_budget);
}

/* --- calls and outputs --- */

static enum err_code
read_call_id(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	enum err_code e = read_str(c->arena, v, "call_id", REQUIRED, &p->id, reterr);
	if (e == ERR_OK && p->id.len == 0)
		e = err_set(reterr, ERR_INPUT, "call_id: Input should not be empty");
	return e;
}

static enum err_code
read_call(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	struct part *p = start_part_item(r, MESSAGE_ASSISTANT, PART_CALL, v);
	struct jval arguments = jv_get(v, "arguments");
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	enum err_code e = read_call_id(r->conv, v, p, reterr);
	if (e == ERR_OK)
		e = read_str(a, v, "name", REQUIRED, &p->name, reterr);
	if (e == ERR_OK && jv_is(arguments, JT_OBJECT)) /* some forget to make it a string */
		p->arguments = jv_raw(arguments);
	else if (e == ERR_OK)
		e = read_str(a, v, "arguments", OPTIONAL, &p->arguments, reterr);
	return e;
}

/* The free text becomes the one argument "input". */
static enum err_code
read_custom_call(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	struct part *p = start_part_item(r, MESSAGE_ASSISTANT, PART_CALL, v);
	struct str input = STR_NULL;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	enum err_code e = read_call_id(r->conv, v, p, reterr);
	if (e == ERR_OK)
		e = read_str(a, v, "name", REQUIRED, &p->name, reterr);
	if (e == ERR_OK)
		e = read_str(a, v, "input", REQUIRED, &input, reterr);
	if (e == ERR_OK)
		p->arguments = arguments_of_text(a, input);
	return e;
}

static enum err_code
read_output(struct responses_reader *r, struct jval v, struct err *reterr)
{
	if (r->results == NULL) {
		r->results = conversation_add(r->conv, MESSAGE_USER);
		r->bare = NULL;
	}
	struct part *p = r->results != NULL ? message_add(r->conv, r->results, PART_RESULT) : NULL;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	p->raw = jv_raw(v);
	enum err_code e = read_call_id(r->conv, v, p, reterr);
	return e == ERR_OK
		   ? read_content(r->conv, jv_get(v, "output"), "output", &p->content, reterr)
		   : e;
}

/* --- reasoning --- */

static void
add_texts(struct arena *a, struct jval list, struct buf *b)
{
	struct jiter it = {0};
	while (jv_next(list, &it)) {
		struct str s = jv_str(a, jv_get(it.value, "text"));
		if (s.len > 0 && b->len > 0)
			buf_add(b, STR("\n\n"));
		buf_add(b, s);
	}
}

static enum err_code
read_reasoning(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	struct part *p = start_part_item(r, MESSAGE_ASSISTANT, PART_REASONING, v);
	struct jval summary, content;
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	enum err_code e = read_str(a, v, "id", OPTIONAL, &p->id, reterr);
	if (e == ERR_OK)
		e = read_str(a, v, "encrypted_content", OPTIONAL, &p->encrypted, reterr);
	if (e == ERR_OK)
		e = read_typed(v, "summary", JT_ARRAY, OPTIONAL, &summary, reterr);
	if (e == ERR_OK)
		e = read_typed(v, "content", JT_ARRAY, OPTIONAL, &content, reterr);
	if (e != ERR_OK)
		return e;
	struct buf b = BUF_INIT(jv_raw(v).len + 1);
	add_texts(a, summary, &b);
	if (b.len == 0)
		add_texts(a, content, &b);
	p->text = arena_str(a, buf_str(&b));
	buf_done(&b);
	if (origin_restore(p, p->encrypted)) /* another wire's, shown by us */
		r->conv->last->raw = STR_NULL;
	return ERR_OK;
}

/* --- other items --- */

static enum err_code
read_code_call(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	bool ours = str_starts(jv_str(a, jv_get(v, "id")), STR("otari_ci_"));
	struct part *p = start_part_item(r, MESSAGE_ASSISTANT, ours ? PART_TEXT : PART_OPAQUE, v);
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	p->name = STR("code_interpreter_call");
	if (ours) {
		p->raw = r->conv->last->raw = p->name = STR_NULL;
		p->id = jv_str(a, jv_get(v, "id"));
		p->text = fold_code_item(a, v);
		r->ends_folded = true;
	}
	return ERR_OK;
}

static enum err_code
read_additional_tools(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct part *p = start_part_item(r, MESSAGE_DEVELOPER, PART_OPAQUE, v);
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	p->name = STR("additional_tools");
	return responses_read_tools(r, v, true, reterr);
}

static enum err_code
refuse_reference(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct str id = STR_NULL;
	enum err_code e = read_str(r->conv->arena, v, "id", REQUIRED, &id, reterr);
	if (e != ERR_OK)
		return e;
	return err_set(reterr, ERR_NOTFOUND,
	    "Item with id '%.*s' not found. Items are not persisted when `store` is set to false. "
	    "Try again with `store` set to true, or remove this item from your input.",
	    (int)(id.len < 80 ? id.len : 80), id.ptr);
}

static bool
is_from_user(struct str type)
{
	return str_ends(type, STR("_output")) || str_ends(type, STR("_response")) ||
	       str_eq(type, STR("compaction_trigger"));
}

/* What only its own wire understands. What the gateway showed in place of a search is in the text
 * that follows it. */
static enum err_code
read_opaque(struct responses_reader *r, struct jval v, struct str type, struct err *reterr)
{
	if (str_starts(jv_str(r->conv->arena, jv_get(v, "id")), STR("otari_")))
		return ERR_OK;
	enum message_role role = is_from_user(type) ? MESSAGE_USER : MESSAGE_ASSISTANT;
	struct part *p = start_part_item(r, role, PART_OPAQUE, v);
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, over_budget);
	p->name = type;
	return ERR_OK;
}

static const struct {
	const char *type;
	enum err_code (*read)(struct responses_reader *, struct jval, struct err *);
} items[] = {
    {"message", read_message},
    {"function_call", read_call},
    {"function_call_output", read_output},
    {"custom_tool_call", read_custom_call},
    {"custom_tool_call_output", read_output},
    {"reasoning", read_reasoning},
    {"code_interpreter_call", read_code_call},
    {"additional_tools", read_additional_tools},
    {"item_reference", refuse_reference},
};

enum err_code
responses_read_item(struct responses_reader *r, struct jval v, struct err *reterr)
{
	struct str type = STR_NULL;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_str(r->conv->arena, v, "type", OPTIONAL, &type, reterr);
	r->ends_folded = false;
	if (e != ERR_OK)
		return e;
	if (type.len == 0 && jv_present(jv_get(v, "role")))
		return read_message(r, v, reterr);
	if (type.len == 0 && jv_present(jv_get(v, "id")))
		return refuse_reference(r, v, reterr);
	if (type.len == 0)
		return err_set(reterr, ERR_INPUT, "type: Field required");
	for (size_t i = 0; i < ARRAY_LEN(items); i++)
		if (str_eq(type, str_c(items[i].type)))
			return items[i].read(r, v, reterr);
	return responses_is_input_part(type) ? read_bare_part(r, v, reterr)
					     : read_opaque(r, v, type, reterr);
}
