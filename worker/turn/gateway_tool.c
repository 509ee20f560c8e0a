#include "worker/turn/gateway_tool.h"

#include "base/buf.h"
#include "base/map.h"

#define DEFAULT_HEADER "You have these tools:"

/* What the built-in hint of the first tool ends with. */
#define ABOUT_FILES                                                                                \
	" Files that the user attached are in the working directory under their names. A file "    \
	"that you write to the working directory is given back with a file_id; tell the user "     \
	"that file_id."

/* --- Python --- */
#define PYTHON_DOES                                                                                \
	"Runs Python in a sandboxed interpreter and returns its stdout, stderr "                   \
	"and the files that it made. Variables, imports and files are kept "                       \
	"between calls of the same request."
#define PYTHON_TAKES                                                                               \
	"{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\","                      \
	"\"description\":\"The Python code to run.\"}},\"required\":[\"code\"]}"
#define PYTHON_IS_FOR                                                                              \
	"prefer this for exact computation, data analysis and charts. It is "                      \
	"Python 3 with the standard library; numpy, pandas and matplotlib may be "                 \
	"there."

/* --- bash --- */
#define BASH_DOES                                                                                  \
	"Runs a command with bash in the sandbox and returns its stdout, stderr, "                 \
	"return code and the files that it made. Each call is a new shell that "                   \
	"starts in the working directory: files are kept between calls of the same "               \
	"request, shell variables and background programs are not."
#define BASH_TAKES                                                                                 \
	"{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\","                   \
	"\"description\":\"The command or script to run with bash.\"}},"                           \
	"\"required\":[\"command\"]}"
#define BASH_IS_FOR                                                                                \
	"for shell commands and for running programs and scripts, in the same "                    \
	"sandbox and working directory as the other tools. There is no network."

/* --- text editor --- */
#define EDITOR_DOES                                                                                \
	"Views, creates and edits text files in the sandbox. view shows a file "                   \
	"or lists a directory; create writes a whole file; str_replace puts "                      \
	"new_str in the place of old_str, which must occur exactly once."
#define EDITOR_TAKES                                                                               \
	"{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\","                   \
	"\"enum\":[\"view\",\"create\",\"str_replace\"]},\"path\":{\"type\":"                      \
	"\"string\",\"description\":\"A path relative to the working "                             \
	"directory.\"},\"file_text\":{\"type\":\"string\",\"description\":"                        \
	"\"create: the whole text of the file.\"},\"old_str\":{\"type\":"                          \
	"\"string\",\"description\":\"str_replace: the text to replace, with "                     \
	"enough around it to be found once.\"},\"new_str\":{\"type\":\"string\","                  \
	"\"description\":\"str_replace: what takes its place; empty to delete "                    \
	"it.\"},\"view_range\":{\"type\":\"array\",\"items\":{\"type\":"                           \
	"\"integer\"},\"description\":\"view: the first and the last line, from "                  \
	"1; -1 as the last means to the end.\"}},\"required\":[\"command\","                       \
	"\"path\"]}"
#define EDITOR_IS_FOR                                                                              \
	"for looking at text files and for writing and changing them, in the "                     \
	"same sandbox and working directory as the other tools."

static const struct {
	struct str description, schema, purpose;
} kinds_of_tool[CODE_TOOL_COUNT] = {
    [CODE_TOOL_PYTHON] = {STR_INIT(PYTHON_DOES), STR_INIT(PYTHON_TAKES), STR_INIT(PYTHON_IS_FOR)},
    [CODE_TOOL_BASH] = {STR_INIT(BASH_DOES), STR_INIT(BASH_TAKES), STR_INIT(BASH_IS_FOR)},
    [CODE_TOOL_EDITOR] = {STR_INIT(EDITOR_DOES), STR_INIT(EDITOR_TAKES), STR_INIT(EDITOR_IS_FOR)},
};

struct str
gateway_tool_description(enum code_tool t)
{
	return kinds_of_tool[t].description;
}

struct str
gateway_tool_schema(enum code_tool t)
{
	return kinds_of_tool[t].schema;
}

bool
gateway_tool_of(const struct gateway_tools *g, struct str name, enum code_tool *ret)
{
	for (int i = 0; i < CODE_TOOL_COUNT; i++) {
		if (g->names[i].len == 0 || !str_eq(g->names[i], name))
			continue;
		*ret = (enum code_tool)i;
		return true;
	}
	return false;
}

static struct map *
names_of(const struct conversation *conv)
{
	struct map *names = map_new();
	for (const struct tool *t = conv->tools; t != NULL; t = t->next)
		if (t->name.len > 0)
			map_put(names, t->name, names);
	return names;
}

static struct str
free_name(struct conversation *conv, const struct map *taken, struct str wanted)
{
	struct str name = wanted;
	for (int i = 2; map_get(taken, name) != NULL && i < 1000; i++)
		name = arena_printf(conv->arena, "%.*s_%d", STR_FMT(wanted), i);
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

static bool
has_only_ours(const struct conversation *conv, const struct gateway_tools *g)
{
	enum code_tool kind;
	for (const struct tool *t = conv->tools; t != NULL; t = t->next)
		if (!t->is_excluded && !gateway_tool_of(g, t->name, &kind))
			return false;
	return true;
}

void
gateway_tool_release_choice(
    struct conversation *conv, const struct gateway_tools *g, enum wire provider)
{
	struct tool_choice *c = &conv->choice;
	enum code_tool kind;
	bool is_ours = c->kind == CHOICE_NAMED && gateway_tool_of(g, c->name, &kind);
	bool is_any = c->kind == CHOICE_REQUIRED && has_only_ours(conv, g);
	if (!is_ours && !is_any)
		return;
	c->kind = CHOICE_AUTO;
	if (!str_eq(c->type, STR("allowed_tools"))) /* which goes on to leave tools out */
		c->raw = c->type = STR_NULL;
	/* There a forced choice keeps the model from thinking, and a turn that began so may not go
	 * on with thoughts. */
	if (provider == WIRE_MESSAGES && conv->wire != WIRE_MESSAGES)
		conv->effort = STR("");
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

static void
add_tool(struct conversation *conv, enum code_tool kind, struct str name, bool is_excluded)
{
	struct tool *t = ARENA_NEW(conv->arena, struct tool);
	struct tool **end = &conv->tools;
	if (t == NULL)
		return;
	t->kind = TOOL_FUNCTION;
	t->type = STR("function");
	t->name = name;
	t->description = gateway_tool_description(kind);
	t->schema_raw = gateway_tool_schema(kind);
	t->strict = -1;
	t->is_excluded = is_excluded;
	while (*end != NULL)
		end = &(*end)->next;
	*end = t;
}

void
gateway_tool_install(struct conversation *conv, const struct tool *claimed, uint32_t kinds,
    const struct gateway_hints *hints, struct gateway_tools *ret)
{
	struct buf text = BUF_INIT(64u * 1024u);
	struct map *taken = names_of(conv);
	bool is_first = true;
	*ret = (struct gateway_tools){0};
	buf_add(&text, hints->header.len > 0 ? hints->header : STR(DEFAULT_HEADER));
	for (int i = 0; i < CODE_TOOL_COUNT; i++) {
		enum code_tool kind = (enum code_tool)i;
		if ((kinds & 1u << i) == 0)
			continue;
		struct str name = free_name(conv, taken, code_tool_name(kind));
		add_tool(conv, kind, name, claimed != NULL && claimed->is_excluded);
		ret->names[i] = name;
		buf_printf(&text, "\n- %.*s: ", STR_FMT(name));
		if (is_first && hints->purpose.len > 0) {
			buf_add(&text, hints->purpose);
		} else {
			buf_add(&text, kinds_of_tool[i].purpose);
			buf_add(&text, is_first ? STR(ABOUT_FILES) : STR(""));
		}
		if (is_first)
			retarget_choice(conv, claimed, name);
		is_first = false;
	}
	add_system_text(conv, arena_str(conv->arena, buf_str(&text)));
	buf_done(&text);
	map_free(&taken);
}
