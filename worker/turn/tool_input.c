#include "worker/turn/tool_input.h"

#include "base/json.h"

/* A member that must be a string; a NUL is refused where what is behind it would be lost. */
static bool
read_text(struct arena *a, struct jval o, const char *name, bool nul_ok, struct str *ret)
{
	*ret = jv_str(a, jv_get(o, name));
	return ret->ptr != NULL && (nul_ok || str_chr(*ret, '\0') == SIZE_MAX);
}

static bool
read_line(struct jval v, int32_t *ret)
{
	int64_t n;
	if (!jv_i64(v, &n) || n < -1 || n > INT32_MAX)
		return false;
	*ret = (int32_t)n;
	return true;
}

static bool
read_range(struct jval range, struct code_edit *e)
{
	if (!jv_present(range))
		return true;
	return jv_is(range, JT_ARRAY) && jv_count(range) == 2 &&
	       read_line(jv_at(range, 0), &e->first_line) &&
	       read_line(jv_at(range, 1), &e->last_line) && e->first_line >= 1 &&
	       (e->last_line == -1 || e->last_line >= e->first_line);
}

/* What is wrong with the members of the command, or empty. */
static struct str
read_command(struct arena *a, struct jval o, struct code_edit *e)
{
	struct jval command = jv_get(o, "command");
	if (jv_str_is(command, "view")) {
		e->command = CODE_EDIT_VIEW;
		return read_range(jv_get(o, "view_range"), e)
			   ? STR("")
			   : STR("view_range must be two line numbers, [first, last], counted from "
				 "1; -1 as the last means to the end");
	}
	if (jv_str_is(command, "create")) {
		e->command = CODE_EDIT_CREATE;
		return read_text(a, o, "file_text", true, &e->text)
			   ? STR("")
			   : STR("create needs file_text, a string: the whole text of the file");
	}
	if (!jv_str_is(command, "str_replace"))
		return STR("command must be \"view\", \"create\" or \"str_replace\"");
	e->command = CODE_EDIT_STR_REPLACE;
	if (!read_text(a, o, "old_str", true, &e->old) || e->old.len == 0)
		return STR("str_replace needs old_str, a string that is not empty");
	return read_text(a, o, "new_str", true, &e->text)
		   ? STR("")
		   : STR("str_replace needs new_str, a string; \"\" deletes old_str");
}

static struct str
read_edit(struct arena *a, struct jval o, struct code_edit *e)
{
	struct str wrong = read_command(a, o, e);
	if (wrong.len > 0)
		return wrong;
	if (!read_text(a, o, "path", false, &e->path) || e->path.len == 0 ||
	    e->path.len > CODE_EDIT_PATH_MAX)
		return STR("path must be a string: a path in the working directory");
	return STR("");
}

void
tool_input_read(struct arena *a, enum code_tool tool, struct str arguments, struct tool_input *ret)
{
	struct jval o;
	*ret = (struct tool_input){.tool = tool, .raw = STR("{}"), .code = STR("")};
	if (jdoc_parse(a, arguments, &o, NULL) != ERR_OK || !jv_is(o, JT_OBJECT)) {
		ret->wrong = STR("the arguments are not a JSON object");
		return;
	}
	ret->raw = jv_raw(o);
	switch (tool) {
	case CODE_TOOL_PYTHON:
		if (!read_text(a, o, "code", true, &ret->code))
			ret->wrong = STR("code must be a string: the program to run");
		break;
	case CODE_TOOL_BASH:
		if (!read_text(a, o, "command", false, &ret->code))
			ret->wrong = STR("command must be a string: the command to run");
		break;
	case CODE_TOOL_EDITOR:
		ret->wrong = read_edit(a, o, &ret->edit);
		break;
	case CODE_TOOL_COUNT:
		ret->wrong = STR("there is no such tool");
		break;
	}
	if (ret->code.ptr == NULL)
		ret->code = STR("");
}
