#include "base/buf.h"
#include "worker/code/protocol.h"

#define LINES_MAX_BYTES (4u << 20)

static const char *const error_codes[] = {
    [CODE_EDIT_OK] = "",
    [CODE_EDIT_NOT_FOUND] = "file_not_found",
    [CODE_EDIT_INVALID] = "invalid_tool_input",
    [CODE_EDIT_NO_MATCH] = "string_not_found",
    [CODE_EDIT_MANY_MATCHES] = "string_not_unique",
    [CODE_EDIT_NOT_TEXT] = "not_text",
    [CODE_EDIT_TOO_LARGE] = "file_too_large",
    [CODE_EDIT_FAILED] = "unavailable",
};

const char *
protocol_edit_error(enum code_edit_error e)
{
	return error_codes[e];
}

static enum code_edit_error
error_of(struct jval code)
{
	for (size_t i = CODE_EDIT_OK + 1; i < ARRAY_LEN(error_codes); i++)
		if (jv_str_is(code, error_codes[i]))
			return (enum code_edit_error)i;
	return CODE_EDIT_FAILED;
}

static struct str
joined_lines(struct arena *a, struct jval list)
{
	struct buf b = BUF_INIT(LINES_MAX_BYTES);
	struct jiter it = {0};
	while (jv_is(list, JT_ARRAY) && jv_next(list, &it)) {
		buf_add(&b, protocol_text(a, it.value));
		buf_addc(&b, '\n');
	}
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

void
protocol_read_edit(struct arena *a, struct jval content, struct protocol_result *r)
{
	struct code_edit_result *e = &r->edit;
	r->has_edit = true;
	if (jv_present(jv_get(content, "error_code"))) {
		e->error = error_of(jv_get(content, "error_code"));
		r->return_code = 1;
		r->err = protocol_text(a, jv_get(content, "error_message"));
		return;
	}
	e->is_update = jv_bool(jv_get(content, "is_file_update"), false);
	e->line_count = protocol_count(jv_get(content, "num_lines"));
	e->first_line = protocol_count(jv_get(content, "start_line"));
	e->total_lines = protocol_count(jv_get(content, "total_lines"));
	e->is_directory = jv_is(jv_get(content, "content"), JT_STRING) &&
			  !jv_present(jv_get(content, "total_lines"));
	e->old_start = protocol_count(jv_get(content, "old_start"));
	e->old_lines = protocol_count(jv_get(content, "old_lines"));
	e->new_start = protocol_count(jv_get(content, "new_start"));
	e->new_lines = protocol_count(jv_get(content, "new_lines"));
	r->out = jv_is(jv_get(content, "lines"), JT_ARRAY)
		     ? joined_lines(a, jv_get(content, "lines"))
		     : protocol_text(a, jv_get(content, "content"));
}
