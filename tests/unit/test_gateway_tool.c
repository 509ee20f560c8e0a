/* The tools that the model is shown in place of a declaration: names, hints, choices, and what each
 * wire makes of them. */
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"
#include "worker/turn/executor.h"
#include "worker/turn/gateway_tool.h"

TestSuite(gateway_tool, .timeout = 10);

#define R(s)       "{\"model\":\"m\"," s "}"
#define RU(s)      R("\"input\":\"q\"," s)
#define RI(s)      R("\"input\":[" s "]")
#define IS(s, lit) cr_assert(str_eq((s), STR(lit)), "got: %.*s", STR_FMT(s))

static struct tool *
add_tool(struct conversation *c, const char *type, const char *name)
{
	struct tool *t = ARENA_NEW(c->arena, struct tool);
	t->type = str_c(type);
	t->name = str_c(name);
	t->next = c->tools;
	c->tools = t;
	return t;
}

Test(gateway_tool, the_tool_takes_a_free_name_and_a_forced_choice_follows)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation c = {.arena = a};
	(void)add_tool(&c, "function", "code_execution");
	(void)add_tool(&c, "function", "code_execution_2");
	struct tool claimed = {.type = STR("code_interpreter"), .name = STR("")};
	c.choice = (struct tool_choice){
	    .kind = CHOICE_OPAQUE, .type = STR("code_interpreter"), .raw = STR("{}")};
	struct gateway_hints hints = {STR("Tools here:"), STR("count")};
	struct gateway_tools g;
	gateway_tool_install(&c, &claimed, TOOL_MASK_PYTHON, &hints, &g);
	IS(g.names[CODE_TOOL_PYTHON], "code_execution_3");
	cr_assert_eq(c.choice.kind, CHOICE_NAMED);
	IS(c.choice.name, "code_execution_3");
	cr_assert_null(c.choice.raw.ptr);
	cr_assert_eq(c.messages->role, MESSAGE_SYSTEM);
	IS(c.messages->parts->text, "Tools here:\n- code_execution_3: count");
	arena_free(&a);
}

Test(gateway_tool, a_choice_of_the_clients_own_tool_stays)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation c = {.arena = a};
	struct tool claimed = {
	    .type = STR("code_execution_20250825"), .name = STR("code_execution")};
	c.choice = (struct tool_choice){
	    .kind = CHOICE_NAMED, .type = STR("tool"), .name = STR("weather"), .raw = STR("{}")};
	struct gateway_hints hints = {STR(""), STR("")};
	struct gateway_tools g;
	gateway_tool_install(&c, &claimed, TOOL_MASK_ALL, &hints, &g);
	IS(c.choice.name, "weather");
	IS(c.choice.raw, "{}");
	arena_free(&a);
}

Test(gateway_tool, a_forced_choice_holds_until_our_tool_was_called)
{
	static const struct {
		bool has_own; /* the client has a tool too */
		struct tool_choice choice;
		enum choice_kind after;
	} rows[] = {
	    {true, {.kind = CHOICE_NAMED, .name = STR_INIT("code_execution")}, CHOICE_AUTO},
	    {true, {.kind = CHOICE_NAMED, .name = STR_INIT("own")}, CHOICE_NAMED},
	    {true, {.kind = CHOICE_REQUIRED, .raw = STR_INIT("x")}, CHOICE_REQUIRED},
	    {false, {.kind = CHOICE_REQUIRED, .raw = STR_INIT("x")}, CHOICE_AUTO},
	    {false, {.kind = CHOICE_NONE, .raw = STR_INIT("x")}, CHOICE_NONE},
	    {false, {.kind = CHOICE_UNSET}, CHOICE_UNSET},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct conversation c = {.arena = a, .effort = STR("high")};
		struct gateway_hints hints = {STR(""), STR("")};
		struct gateway_tools g;
		if (rows[i].has_own)
			(void)add_tool(&c, "function", "own");
		gateway_tool_install(&c, NULL, TOOL_MASK_ALL, &hints, &g);
		c.choice = rows[i].choice;
		gateway_tool_release_choice(&c, &g, WIRE_MESSAGES);
		cr_expect_eq(c.choice.kind, rows[i].after, "row %zu", i);
		bool is_changed = rows[i].after != rows[i].choice.kind;
		cr_expect_eq(c.choice.raw.ptr == NULL || !is_changed, true, "row %zu", i);
		cr_expect_eq(c.effort.len == 0, is_changed, "row %zu", i);
		arena_free(&a);
	}
}

Test(gateway_tool, every_kind_is_shown_under_a_name_of_its_own)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation c = {.arena = a};
	struct tool claimed = {
	    .type = STR("code_execution_20250825"), .name = STR("code_execution")};
	struct gateway_hints hints = {STR(""), STR("for sums")};
	struct gateway_tools g;
	enum code_tool kind;

	(void)add_tool(&c, "function", "bash_code_execution");
	c.choice = (struct tool_choice){
	    .kind = CHOICE_NAMED, .type = STR("tool"), .name = STR("code_execution")};
	gateway_tool_install(&c, &claimed, TOOL_MASK_ALL, &hints, &g);
	IS(g.names[CODE_TOOL_PYTHON], "code_execution");
	IS(g.names[CODE_TOOL_BASH], "bash_code_execution_2");
	IS(g.names[CODE_TOOL_EDITOR], "text_editor_code_execution");
	IS(c.choice.name, "code_execution");
	cr_expect(gateway_tool_of(&g, STR("bash_code_execution_2"), &kind));
	cr_expect_eq(kind, CODE_TOOL_BASH);
	cr_expect(!gateway_tool_of(&g, STR("bash_code_execution"), &kind), "the client's own");
	cr_expect(!gateway_tool_of(&g, STR(""), &kind));
	struct str text = c.messages->parts->text;
	cr_expect(str_find(text, STR("- code_execution: for sums\n")) != SIZE_MAX, "%s", text.ptr);
	cr_expect(str_find(text, STR("\n- bash_code_execution_2: ")) != SIZE_MAX, "%s", text.ptr);
	cr_expect(
	    str_find(text, STR("\n- text_editor_code_execution: ")) != SIZE_MAX, "%s", text.ptr);
	for (int i = 0; i < CODE_TOOL_COUNT; i++) {
		struct jval schema;
		cr_expect_eq(jdoc_parse(a, gateway_tool_schema((enum code_tool)i), &schema, NULL),
		    ERR_OK, "%d", i);
	}
	arena_free(&a);
}

Test(gateway_tool, only_the_kinds_that_may_run_are_shown)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation c = {.arena = a};
	struct tool claimed = {.type = STR("code_execution_20250825"),
	    .name = STR("code_execution"),
	    .is_excluded = true};
	struct gateway_hints hints = {STR(""), STR("")};
	struct gateway_tools g;

	c.choice = (struct tool_choice){
	    .kind = CHOICE_NAMED, .type = STR("tool"), .name = STR("code_execution")};
	gateway_tool_install(&c, &claimed, TOOL_MASK_BASH | TOOL_MASK_EDITOR, &hints, &g);
	cr_assert_null(g.names[CODE_TOOL_PYTHON].ptr);
	IS(c.tools->name, "bash_code_execution");
	IS(c.tools->next->name, "text_editor_code_execution");
	cr_assert_null(c.tools->next->next);
	cr_expect(c.tools->is_excluded && c.tools->next->is_excluded);
	IS(c.choice.name, "bash_code_execution");
	struct str text = c.messages->parts->text;
	cr_expect(str_find(text, STR("- bash_code_execution: ")) != SIZE_MAX);
	cr_expect(str_find(text, STR("Files that the user attached")) != SIZE_MAX);
	arena_free(&a);
}

/* What the gateway itself changes in a conversation before it goes to a Responses provider. */
Test(gateway_tool, hints_join_the_instructions)
{
	static const struct {
		const char *body, *want;
	} rows[] = {
	    {RU("\"instructions\":\"Be brief.\""), "\"instructions\":\"Be brief.\\n\\nH\\n- "},
	    {RU("\"store\":true"), "\"instructions\":\"H\\n- "},
	    {RI("{\"role\":\"developer\",\"content\":\"d\"},{\"role\":\"user\",\"content\":\"q\"}"),
		"\"instructions\":\"d\\n\\nH\\n- "},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = fix_must_decode(a, WIRE_RESPONSES, rows[i].body);
		struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
		struct gateway_tools g;
		gateway_tool_install(c, NULL, 1, &hints, &g);
		struct str s = fix_encode(a, WIRE_RESPONSES, c, true);
		cr_expect(str_find(s, str_c(rows[i].want)) != SIZE_MAX, "%s", s.ptr);
		cr_expect(str_find(s, STR("\"type\":\"function\",\"name\":\"code_execution\"")) !=
			      SIZE_MAX,
		    "%s", s.ptr);
		arena_free(&a);
	}
}

Test(gateway_tool, each_kind_of_tool_reaches_each_wire_with_its_hint)
{
	static const struct {
		enum wire to;
		const char *system,
		    *tool; /* what is around the system text; in front of a tool's name */
	} rows[] = {
	    {WIRE_CHAT, "{\"role\":\"system\",\"content\":\"S\\n\\nH\\n- code_execution: p\\n- ",
		"\"function\":{"},
	    {WIRE_MESSAGES, "\"text\":\"\\n\\nH\\n- code_execution: p\\n- ", "{"},
	    {WIRE_RESPONSES, "\"instructions\":\"S\\n\\nH\\n- code_execution: p\\n- ",
		"\"type\":\"function\","},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = fix_must_decode(a, WIRE_MESSAGES,
		    R("\"max_tokens\":9,\"system\":\"S\",\"messages\":[{\"role\":\"user\","
		      "\"content\":\"q\"}]"));
		struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
		struct gateway_tools g;
		gateway_tool_install(c, NULL, 7, &hints, &g);
		struct str s = fix_encode(a, rows[i].to, c, false);
		cr_expect(str_find(s, str_c(rows[i].system)) != SIZE_MAX, "%s", s.ptr);
		for (int k = 0; k < CODE_TOOL_COUNT; k++) {
			struct str tool = arena_printf(
			    a, "%s\"name\":\"%.*s\"", rows[i].tool, STR_FMT(g.names[k]));
			struct str hint = arena_printf(a, "\\n- %.*s: ", STR_FMT(g.names[k]));
			cr_expect(str_find(s, tool) != SIZE_MAX, "%s: %s", tool.ptr, s.ptr);
			cr_expect(str_find(s, hint) != SIZE_MAX, "%s: %s", hint.ptr, s.ptr);
		}
		arena_free(&a);
	}
}

Test(gateway_tool, a_choice_of_allowed_tools_names_the_tool_in_the_place_of_code)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES,
	    RU("\"tools\":[{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"function\",\"name\":"
	       "\"g\"},{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}],"
	       "\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\",\"tools\":[{"
	       "\"type\":\"function\",\"name\":\"g\"},{\"type\":\"code_interpreter\"}]}"));
	struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
	struct tool *claimed = c->tools->next->next;
	c->tools->next->next = NULL; /* as executor_apply does */
	struct gateway_tools g;
	gateway_tool_install(c, claimed, 1, &hints, &g);
	struct str s = fix_encode(a, WIRE_RESPONSES, c, true);
	cr_expect(
	    str_find(s, STR("\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\","
			    "\"tools\":[{\"type\":\"function\",\"name\":\"g\"},{\"type\":"
			    "\"function\",\"name\":\"code_execution\"}]}")) != SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}

Test(gateway_tool, a_required_choice_of_allowed_tools_is_for_the_first_call)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_RESPONSES,
	    RU("\"tools\":[{\"type\":\"function\",\"name\":\"f\"},{\"type\":\"code_interpreter\","
	       "\"container\":{\"type\":\"auto\"}}],\"tool_choice\":{\"type\":\"allowed_tools\","
	       "\"mode\":\"required\",\"tools\":[{\"type\":\"code_interpreter\"}]}"));
	struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
	struct tool *claimed = c->tools->next;
	c->tools->next = NULL; /* as executor_apply does */
	struct gateway_tools g;
	gateway_tool_install(c, claimed, 1, &hints, &g);
	gateway_tool_release_choice(c, &g, WIRE_RESPONSES);
	struct str s = fix_encode(a, WIRE_RESPONSES, c, true);
	cr_expect(
	    str_find(s, STR("\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\","
			    "\"tools\":[{\"type\":\"function\",\"name\":\"code_execution\"}]}")) !=
		SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}

Test(gateway_tool, a_choice_of_allowed_tools_does_so_on_chat)
{
	struct arena *a = arena_new(16u << 20);
	struct conversation *c = fix_must_decode(a, WIRE_CHAT,
	    R("\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"tools\":[{\"type\":"
	      "\"function\",\"function\":{\"name\":\"f\"}},{\"type\":\"function\",\"function\":"
	      "{\"name\":\"g\"}},{\"type\":\"code_interpreter\"}],\"tool_choice\":{\"type\":"
	      "\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":[{\"type\":"
	      "\"function\",\"function\":{\"name\":\"g\"}},{\"type\":\"code_interpreter\"}]}}"));
	struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
	struct tool *claimed = c->tools->next->next;
	c->tools->next->next = NULL; /* as executor_apply does */
	struct gateway_tools g;
	gateway_tool_install(c, claimed, 1, &hints, &g);
	struct str s = fix_encode(a, WIRE_CHAT, c, true);
	cr_expect(
	    str_find(s,
		STR("\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":"
		    "\"required\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"g\"}},"
		    "{\"type\":\"function\",\"function\":{\"name\":\"code_execution\"}}]}}")) !=
		SIZE_MAX,
	    "%s", s.ptr);
	arena_free(&a);
}

Test(gateway_tool, tools_that_a_choice_leaves_out_are_not_shown)
{
	static const struct {
		enum wire from;
		const char *body;
	} rows[] = {
	    {WIRE_RESPONSES,
		RU("\"tools\":[{\"type\":\"function\",\"name\":\"a\"},{\"type\":\"function\","
		   "\"name\":\"b\"},{\"type\":\"code_interpreter\"}],\"tool_choice\":{\"type\":"
		   "\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"function\","
		   "\"name\":\"b\"}]}")},
	    {WIRE_CHAT,
		R("\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"tools\":[{\"type\":"
		  "\"function\",\"function\":{\"name\":\"a\"}},{\"type\":\"function\","
		  "\"function\":{\"name\":\"b\"}},{\"type\":\"code_interpreter\"}],\"tool_"
		  "choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"auto\","
		  "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"b\"}}]}}")},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(16u << 20);
		struct conversation *c = fix_must_decode(a, rows[i].from, rows[i].body);
		struct gateway_hints hints = {.header = STR("H"), .purpose = STR("p")};
		struct tool *claimed = c->tools->next->next;
		c->tools->next->next = NULL; /* as executor_apply does */
		struct gateway_tools g;
		gateway_tool_install(c, claimed, 1, &hints, &g);
		struct str s = fix_encode(a, WIRE_MESSAGES, c, false);
		cr_expect(str_find(s, STR("\"tools\":[{\"name\":\"b\",\"input_schema\":{\"type\":"
					  "\"object\",\"properties\":{}}}]")) != SIZE_MAX,
		    "%s", s.ptr);
		cr_expect_eq(fix_dropped(a, c).len, 0);
		arena_free(&a);
	}
}
