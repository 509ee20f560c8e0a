#include "worker/dialect/read.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json_write.h"
#include "base/limits.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/minted.h"

#define ALLOWED_MAX 128u /* tools that a choice allows; OpenAI takes no more either */
#define MEMBERS_MAX 1024u

void
read_path(struct err *e, const char *fmt, ...)
{
	char path[128];
	va_list ap;
	if (e == NULL)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	char first = e->msg[0];
	const char *glue = first >= 'A' && first <= 'Z' ? ": " : first == '[' ? "" : ".";
	err_prefix(e, "%s%s", path, glue);
}

static enum err_code
missing(const char *key, struct err *reterr)
{
	return err_set(reterr, ERR_INPUT, "%s: Field required", key);
}

static const char *
type_words(enum jtype t)
{
	switch (t) {
	case JT_STRING:
		return "a string";
	case JT_NUMBER:
		return "a number";
	case JT_ARRAY:
		return "an array";
	case JT_OBJECT:
		return "an object";
	case JT_ABSENT:
	case JT_NULL:
	case JT_FALSE:
	case JT_TRUE:
		break;
	}
	return "a boolean";
}

enum err_code
read_typed(struct jval object, const char *key, enum jtype type, enum need need, struct jval *ret,
    struct err *reterr)
{
	struct jval v = jv_get(object, key);
	if (!jv_present(v)) {
		if (need == REQUIRED)
			return missing(key, reterr);
		*ret = JV_ABSENT;
		return ERR_OK;
	}
	if (!jv_is(v, type))
		return err_set(reterr, ERR_INPUT, "%s: Input should be %s", key, type_words(type));
	*ret = v;
	return ERR_OK;
}

enum err_code
read_str(struct arena *a, struct jval object, const char *key, enum need need, struct str *ret,
    struct err *reterr)
{
	struct jval v;
	enum err_code e = read_typed(object, key, JT_STRING, need, &v, reterr);
	if (e == ERR_OK)
		*ret = jv_str(a, v);
	return e;
}

enum err_code
read_number(
    struct jval object, const char *key, enum need need, struct str *ret_raw, struct err *reterr)
{
	struct jval v;
	enum err_code e = read_typed(object, key, JT_NUMBER, need, &v, reterr);
	if (e == ERR_OK)
		*ret_raw = jv_raw(v);
	return e;
}

enum err_code
read_bool(struct jval object, const char *key, int *ret, struct err *reterr)
{
	struct jval v = jv_get(object, key);
	if (jv_present(v) && !jv_is(v, JT_TRUE) && !jv_is(v, JT_FALSE))
		return err_set(reterr, ERR_INPUT, "%s: Input should be a boolean", key);
	*ret = jv_present(v) ? jv_is(v, JT_TRUE) : -1;
	return ERR_OK;
}

enum err_code
read_strings(struct arena *a, struct jval object, const char *key, struct str **ret,
    size_t *ret_count, struct err *reterr)
{
	struct jval v = jv_get(object, key);
	bool single = jv_is(v, JT_STRING);
	if (!jv_present(v))
		return ERR_OK;
	if (!single && !jv_is(v, JT_ARRAY))
		return err_set(
		    reterr, ERR_INPUT, "%s: Input should be a string or an array of strings", key);
	uint32_t n = single ? 1 : jv_count(v), i = 0;
	struct str *s = ARENA_NEW_ARRAY(a, struct str, n);
	if (s == NULL)
		return err_set(reterr, ERR_NOMEM, "%s: over the memory budget", key);
	if (single)
		s[0] = jv_str(a, v);
	for (struct jiter it = {0}; !single && jv_next(v, &it); i++) {
		if (!jv_is(it.value, JT_STRING))
			return err_set(
			    reterr, ERR_INPUT, "%s[%u]: Input should be a string", key, i);
		s[i] = jv_str(a, it.value);
	}
	*ret = s;
	*ret_count = n;
	return ERR_OK;
}

void
read_extra(struct conversation *conv, struct jval key, struct jval value)
{
	struct field **end = conv->extra_tail != NULL ? &conv->extra_tail->next : &conv->extra;
	struct field *f = ARENA_NEW(conv->arena, struct field);
	if (f == NULL)
		return;
	f->key = jv_str(conv->arena, key);
	f->raw = jv_raw(value);
	*end = conv->extra_tail = f;
}

const struct field *
extra_find(const struct conversation *conv, const char *key)
{
	const struct field *found = NULL;
	for (const struct field *f = conv->extra; f != NULL; f = f->next)
		if (str_eq(f->key, str_c(key)))
			found = f; /* the last one counts, as for every reader */
	return found;
}

enum err_code
read_root(struct jval root, const char *const *decisive, struct err *reterr)
{
	if (!jv_is(root, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "body: Input should be an object");
	if (jv_count(root) > MEMBERS_MAX)
		return err_set(reterr, ERR_INPUT, "body: more than %u members", MEMBERS_MAX);
	return jv_unique(root, decisive, reterr);
}

enum err_code
read_gateway_members(struct conversation *conv, struct jval root, struct err *reterr)
{
	struct jval rounds = jv_get(root, "max_tool_iterations");
	if (jv_present(rounds)) {
		int64_t n;
		if (!jv_i64(rounds, &n) || n < 1 || n > (int64_t)LIMIT_TOOL_ROUNDS)
			return err_set(reterr, ERR_INPUT,
			    "max_tool_iterations: Input should be an integer from 1 to %u",
			    LIMIT_TOOL_ROUNDS);
		conv->max_tool_iterations = (uint32_t)n;
	}
	enum err_code e =
	    read_str(conv->arena, root, "tools_header", OPTIONAL, &conv->tools_header, reterr);
	if (e == ERR_OK)
		e = read_str(
		    conv->arena, root, "session_label", OPTIONAL, &conv->session_label, reterr);
	conv->has_mcp_server_ids = jv_present(jv_get(root, "mcp_server_ids"));
	return e;
}

struct str
raw_without(struct arena *a, struct jval object, const char *key)
{
	if (jv_is(jv_get(object, key), JT_ABSENT))
		return jv_raw(object);
	struct buf b = BUF_INIT(jv_raw(object).len + 2);
	struct jw w;
	struct jiter it = {0};
	jw_init(&w, &b);
	buf_addc(&b, '{');
	while (jv_next(object, &it)) {
		if (jv_str_is(it.key, key))
			continue;
		if (b.len > 1)
			buf_addc(&b, ',');
		buf_add(&b, jv_raw(it.key));
		buf_addc(&b, ':');
		buf_add(&b, jv_raw(it.value));
	}
	buf_addc(&b, '}');
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}

enum err_code
read_tool_start(struct conversation *conv, struct jval t, struct tool **ret, struct err *reterr)
{
	if (!jv_is(t, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	struct tool *tool = ARENA_NEW(conv->arena, struct tool);
	if (tool == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	enum err_code e = read_str(conv->arena, t, "type", OPTIONAL, &tool->type, reterr);
	if (e == ERR_OK)
		e = read_str(conv->arena, t, "purpose_hint", OPTIONAL, &tool->purpose_hint, reterr);
	if (e != ERR_OK)
		return e;
	tool->raw = raw_without(conv->arena, t, "purpose_hint");
	tool->raw_wire = conv->wire;
	tool->strict = -1;
	struct tool **end = &conv->tools;
	while (*end != NULL)
		end = &(*end)->next;
	*end = tool;
	*ret = tool;
	return ERR_OK;
}

static bool
is_allowed(const struct tool *t, const struct str *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(pairs[2 * i], t->type) &&
		    (t->kind != TOOL_FUNCTION || str_eq(pairs[2 * i + 1], t->name)))
			return true;
	return false;
}

enum err_code
read_allowed_tools(struct conversation *conv, struct jval allowed, struct err *reterr)
{
	struct arena *a = conv->arena;
	struct jval list;
	struct jiter it = {0};
	struct str mode = STR_NULL;
	size_t n = 0;
	enum err_code e = read_str(a, allowed, "mode", OPTIONAL, &mode, reterr);
	if (e == ERR_OK)
		e = read_typed(allowed, "tools", JT_ARRAY, REQUIRED, &list, reterr);
	if (e != ERR_OK)
		return e;
	if (jv_count(list) > ALLOWED_MAX)
		return err_set(reterr, ERR_INPUT, "tools: at most %u", ALLOWED_MAX);
	struct str pairs[2 * ALLOWED_MAX]; /* type, name */
	for (; jv_next(list, &it); n++) {
		struct jval name = jv_get(it.value, "name");
		pairs[2 * n] = jv_str(a, jv_get(it.value, "type"));
		if (!jv_present(name)) /* Chat's way: beside the type, in a member of its name */
			name = jv_get(jv_get(it.value, "function"), "name");
		if (!jv_present(name))
			name = jv_get(jv_get(it.value, "custom"), "name");
		pairs[2 * n + 1] = jv_str(a, name);
	}
	conv->choice.kind = str_eq(mode, STR("required")) ? CHOICE_REQUIRED : CHOICE_AUTO;
	for (struct tool *t = conv->tools; t != NULL; t = t->next)
		t->is_excluded = !is_allowed(t, pairs, n);
	return ERR_OK;
}

void
read_data_url(struct str url, struct media *m)
{
	m->source = MEDIA_URL;
	m->data = url;
	size_t comma = str_chr(url, ',');
	if (!str_starts_nocase(url, STR("data:")) || comma == SIZE_MAX)
		return;
	struct str head = str_sub(url, 5, comma - 5); /* type;parameter;base64 */
	if (!str_ends(head, STR(";base64")))
		return;
	m->source = MEDIA_BASE64;
	m->data = str_from(url, comma + 1);
	m->media_type = str_sub(head, 0, str_chr(head, ';'));
}

/* In the place of one of ours, which its provider does not know. */
static void
give_new_container(struct arena *a, struct tool *tool)
{
	struct jval root;
	if (jdoc_parse(a, tool->raw, &root, NULL) != ERR_OK)
		return;
	struct str rest = raw_without(a, root, "container");
	if (rest.len > 0)
		tool->raw = arena_printf(a, "%.*s,\"container\":{\"type\":\"auto\"}}",
		    STR_FMT(str_sub(rest, 0, rest.len - 1)));
}

enum err_code
read_container_files(struct arena *a, struct jval t, struct tool *tool, struct err *reterr)
{
	struct jval container = jv_get(t, "container");
	enum err_code e = ERR_OK;
	if (jv_is(container, JT_OBJECT))
		e = read_strings(a, container, "file_ids", &tool->container_files,
		    &tool->container_file_count, reterr);
	if (e != ERR_OK)
		read_path(reterr, "container");
	if (jv_is(container, JT_STRING) && minted_container(a, container).ptr == NULL)
		give_new_container(a, tool);
	return e;
}
