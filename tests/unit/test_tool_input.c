/* What a model may call our tools with. Anything else must not run, and say why. */
#include <criterion/criterion.h>

#include "worker/turn/tool_input.h"

TestSuite(tool_input, .timeout = 10);

#define IS(s, lit) cr_expect(str_eq((s), STR(lit)), "got: %.*s", STR_FMT(s))

Test(tool_input, programs_are_one_string)
{
	struct arena *a = arena_new(1 << 16);
	struct tool_input in;

	tool_input_read(a, CODE_TOOL_PYTHON, STR(" {\"code\":\"print(1)\\n\"}\n"), &in);
	IS(in.code, "print(1)\n");
	IS(in.raw, "{\"code\":\"print(1)\\n\"}");
	IS(in.wrong, "");
	tool_input_read(a, CODE_TOOL_PYTHON, STR("{\"x\":1,\"code\":\"\"}"), &in);
	IS(in.wrong, "");
	tool_input_read(a, CODE_TOOL_BASH, STR("{\"command\":\"ls\",\"timeout\":9}"), &in);
	IS(in.code, "ls");
	IS(in.wrong, "");
	arena_free(&a);
}

Test(tool_input, what_is_cut_or_of_another_shape_does_not_run)
{
	static const struct {
		enum code_tool tool;
		const char *arguments, *says;
	} rows[] = {
	    {CODE_TOOL_PYTHON, "", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "{", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "{\"code\":\"pri", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "[]", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "\"code\"", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "{\"code\":\"x\"} tail", "not a JSON object"},
	    {CODE_TOOL_PYTHON, "{\"code\":1}", "code must be a string"},
	    {CODE_TOOL_PYTHON, "{\"Code\":\"x\"}", "code must be a string"},
	    {CODE_TOOL_BASH, "{\"restart\":true}", "command must be a string"},
	    {CODE_TOOL_BASH, "{\"code\":\"ls\"}", "command must be a string"},
	    {CODE_TOOL_BASH, "{\"command\":\"rm a\\u0000b\"}", "command must be a string"},
	    {CODE_TOOL_EDITOR, "{\"path\":\"a\"}", "command must be"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"insert\",\"path\":\"a\"}", "command must be"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\"}", "path must be"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\",\"path\":\"\"}", "path must be"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\",\"path\":\"a\\u0000\"}", "path must be"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[0,3]}",
		"view_range"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[3,2]}",
		"view_range"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[1]}",
		"view_range"},
	    {CODE_TOOL_EDITOR,
		"{\"command\":\"view\",\"path\":\"a\",\"view_range\":[1,99999999999]}",
		"view_range"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"create\",\"path\":\"a\"}", "file_text"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"str_replace\",\"path\":\"a\",\"new_str\":\"\"}",
		"old_str"},
	    {CODE_TOOL_EDITOR,
		"{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"\",\"new_str\":\"\"}",
		"old_str"},
	    {CODE_TOOL_EDITOR, "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"b\"}",
		"new_str"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena *a = arena_new(1 << 16);
		struct tool_input in;
		tool_input_read(a, rows[i].tool, str_c(rows[i].arguments), &in);
		cr_expect(str_find(in.wrong, str_c(rows[i].says)) != SIZE_MAX, "%s: %.*s",
		    rows[i].arguments, STR_FMT(in.wrong));
		cr_expect(in.raw.len >= 2 && in.raw.ptr[0] == '{');
		cr_expect_not_null(in.code.ptr);
		arena_free(&a);
	}
}

Test(tool_input, the_editors_commands)
{
	struct arena *a = arena_new(1 << 16);
	struct tool_input in;

	tool_input_read(a, CODE_TOOL_EDITOR,
	    STR("{\"command\":\"view\",\"path\":\"d/a.py\",\"view_range\":[3,-1]}"), &in);
	IS(in.wrong, "");
	cr_expect_eq(in.edit.command, CODE_EDIT_VIEW);
	IS(in.edit.path, "d/a.py");
	cr_expect_eq(in.edit.first_line, 3);
	cr_expect_eq(in.edit.last_line, -1);
	tool_input_read(a, CODE_TOOL_EDITOR,
	    STR("{\"command\":\"view\",\"path\":\"a\",\"view_range\":null,\"old_str\":null}"), &in);
	IS(in.wrong, "");
	cr_expect_eq(in.edit.first_line, 0);
	cr_expect_eq(in.edit.last_line, 0);
	tool_input_read(a, CODE_TOOL_EDITOR,
	    STR("{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"\"}"), &in);
	IS(in.wrong, "");
	cr_expect_eq(in.edit.command, CODE_EDIT_CREATE);
	IS(in.edit.text, "");
	tool_input_read(a, CODE_TOOL_EDITOR,
	    STR("{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"b\\n\",\"new_str\":"
		"\"c\"}"),
	    &in);
	IS(in.wrong, "");
	cr_expect_eq(in.edit.command, CODE_EDIT_STR_REPLACE);
	IS(in.edit.old, "b\n");
	IS(in.edit.text, "c");
	IS(in.code, "");
	arena_free(&a);
}
