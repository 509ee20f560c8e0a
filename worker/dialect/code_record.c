#include "worker/dialect/code_record.h"

#include "base/err.h"

static const struct str names[CODE_TOOL_COUNT] = {
    [CODE_TOOL_PYTHON] = STR_INIT("code_execution"),
    [CODE_TOOL_BASH] = STR_INIT("bash_code_execution"),
    [CODE_TOOL_EDITOR] = STR_INIT("text_editor_code_execution"),
};

struct str
code_tool_name(enum code_tool t)
{
	return names[t];
}

bool
code_tool_of(struct str name, enum code_tool *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!str_eq(name, names[i]))
			continue;
		*ret = (enum code_tool)i;
		return true;
	}
	return false;
}
