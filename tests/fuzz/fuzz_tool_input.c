/* Arguments that a model calls a tool with: byte 1 the kind, then the text. What may run has the
 * members of its kind, and what is shown to the caller is always an object. */
#include <stdint.h>

#include "base/check.h"
#include "base/json.h"
#include "worker/turn/tool_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_edit(const struct code_edit *e)
{
	CHECK(e->path.len > 0 && e->path.len <= CODE_EDIT_PATH_MAX);
	CHECK(str_chr(e->path, '\0') == SIZE_MAX);
	CHECK(e->first_line >= 0 && e->last_line >= -1);
	CHECK(e->last_line <= 0 || e->first_line <= e->last_line);
	CHECK(e->command == CODE_EDIT_VIEW || e->text.ptr != NULL);
	CHECK(e->command != CODE_EDIT_STR_REPLACE || e->old.len > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct arena *a = arena_new(64u << 20);
	enum code_tool tool = (enum code_tool)(data[0] % CODE_TOOL_COUNT);
	struct tool_input in;
	struct jval shown;
	tool_input_read(a, tool, str_n(data + 1, size - 1), &in);
	CHECK(in.tool == tool && in.code.ptr != NULL);
	CHECK(jdoc_parse(a, in.raw, &shown, NULL) == ERR_OK && jv_is(shown, JT_OBJECT));
	if (in.wrong.len == 0 && tool == CODE_TOOL_EDITOR)
		check_edit(&in.edit);
	if (tool == CODE_TOOL_BASH)
		CHECK(in.wrong.len > 0 || str_chr(in.code, '\0') == SIZE_MAX);
	arena_free(&a);
	return 0;
}
