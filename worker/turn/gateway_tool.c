#include "worker/turn/gateway_tool.h"

#include "base/json.h"

#define DEFAULT_HEADER "You have these tools:"
#define DEFAULT_PURPOSE                                                                            \
	"prefer this for exact computation, data analysis and charts. It is Python 3 with the "    \
	"standard library; numpy, pandas and matplotlib may be there. Files that the user "        \
	"attached are in the working directory under their names. A file that you write to the "   \
	"working directory is given back with a file_id; tell the user that file_id."

static bool
name_is_taken(const struct conversation *conv, struct str name)
{
	for (const struct tool *t = conv->tools; t != NULL; t = t->next)
		if (str_eq(t->name, name))
			return true;
	return false;
}

static struct str
free_name(struct conversation *conv)
{
	struct str name = STR("code_execution");
	for (int i = 2; name_is_taken(conv, name) && i < 1000; i++)
		name = arena_printf(conv->arena, "code_execution_%d", i);
	return name;
}

/* A choice that forces the declaration must name the tool that the model sees. */
static void
retarget_choice(struct conversation *conv, const struct tool *claimed, struct str name)
{
	struct tool_choice *c = &conv->choice;
	if (claimed == NULL || (c->kind != CHOICE_NAMED && c->kind != CHOICE_OPAQUE))
		return;
	bool by_name = c->kind == CHOICE_NAMED && c->name.len > 0 && str_eq(c->name, claimed->name);
	if (!by_name && !str_eq(c->type, claimed->type))
		return;
	c->kind = CHOICE_NAMED;
	c->name = name;
	c->type = STR("function");
	c->raw = STR_NULL;
}

/* Into the leading system message, or a new one in front. */
static void
add_system_text(struct conversation *conv, struct str text)
{
	struct part *p = ARENA_NEW(conv->arena, struct part);
	struct message *first = conv->messages;
	if (p == NULL)
		return;
	p->kind = PART_TEXT;
	p->text = text;
	if (first == NULL || (first->role != MESSAGE_SYSTEM && first->role != MESSAGE_DEVELOPER)) {
		first = ARENA_NEW(conv->arena, struct message);
		if (first == NULL)
			return;
		first->role = MESSAGE_SYSTEM;
		first->next = conv->messages;
		conv->messages = first;
		if (conv->last == NULL)
			conv->last = first;
	}
	first->raw = STR_NULL;
	struct part **end = &first->parts;
	while (*end != NULL)
		end = &(*end)->next;
	if (first->parts != NULL)
		p->text = arena_printf(conv->arena, "\n\n%.*s", STR_FMT(text));
	*end = p;
}

struct str
gateway_tool_install(
    struct conversation *conv, const struct tool *claimed, const struct gateway_hints *hints)
{
	struct str name = free_name(conv);
	struct tool *t = ARENA_NEW(conv->arena, struct tool);
	if (t == NULL)
		return name;
	t->kind = TOOL_FUNCTION;
	t->type = STR("function");
	t->name = name;
	t->description = STR(GATEWAY_TOOL_DESCRIPTION);
	t->schema_raw = STR(GATEWAY_TOOL_SCHEMA);
	t->strict = -1;
	t->is_excluded = claimed != NULL && claimed->is_excluded;
	struct tool **end = &conv->tools;
	while (*end != NULL)
		end = &(*end)->next;
	*end = t;
	retarget_choice(conv, claimed, name);
	struct str header = hints->header.len > 0 ? hints->header : STR(DEFAULT_HEADER);
	struct str purpose = hints->purpose.len > 0 ? hints->purpose : STR(DEFAULT_PURPOSE);
	add_system_text(conv, arena_printf(conv->arena, "%.*s\n- %.*s: %.*s", STR_FMT(header),
				  STR_FMT(name), STR_FMT(purpose)));
	return name;
}

struct str
gateway_tool_code(struct arena *a, struct str arguments)
{
	struct jval root;
	if (jdoc_parse(a, arguments, &root, NULL) != ERR_OK)
		return STR_NULL;
	return jv_str(a, jv_get(root, "code"));
}
