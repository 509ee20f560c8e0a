/* What an execution gave, as Messages' result block of its kind (anthropic-wire §5.3). */
#include "worker/dialect/messages_reply.h"

static const struct {
	const char *block, *result, *file, *error;
} words[CODE_TOOL_COUNT] = {
    [CODE_TOOL_PYTHON] = {"code_execution_tool_result", "code_execution_result",
	"code_execution_output", "code_execution_tool_result_error"},
    [CODE_TOOL_BASH] = {"bash_code_execution_tool_result", "bash_code_execution_result",
	"bash_code_execution_output", "bash_code_execution_tool_result_error"},
    [CODE_TOOL_EDITOR] = {"text_editor_code_execution_tool_result", NULL, NULL,
	"text_editor_code_execution_tool_result_error"},
};

static void
write_output(struct jw *w, const struct code_record *rec)
{
	jw_kcstr(w, "type", words[rec->tool].result);
	jw_kstr(w, "stdout", rec->out);
	jw_kstr(w, "stderr", rec->err);
	jw_ki64(w, "return_code", rec->return_code);
	jw_key(w, "content");
	jw_array(w);
	for (size_t i = 0; i < rec->file_count; i++) {
		jw_object(w);
		jw_kcstr(w, "type", words[rec->tool].file);
		jw_kstr(w, "file_id", rec->file_ids[i]);
		jw_end_object(w);
	}
	jw_end_array(w);
}

static void
write_view(struct jw *w, const struct code_record *rec)
{
	const struct edit_record *e = &rec->edit;
	jw_kcstr(w, "type", "text_editor_code_execution_view_result");
	jw_kcstr(w, "file_type", "text");
	jw_kstr(w, "content", rec->out);
	if (e->is_directory) {
		jw_knull(w, "num_lines");
		jw_knull(w, "start_line");
		jw_knull(w, "total_lines");
		return;
	}
	jw_ki64(w, "num_lines", e->line_count);
	jw_ki64(w, "start_line", e->first_line);
	jw_ki64(w, "total_lines", e->total_lines);
}

static void
write_replacement(struct jw *w, const struct code_record *rec)
{
	const struct edit_record *e = &rec->edit;
	struct str rest = rec->out;
	jw_kcstr(w, "type", "text_editor_code_execution_str_replace_result");
	jw_ki64(w, "old_start", e->old_start);
	jw_ki64(w, "old_lines", e->old_lines);
	jw_ki64(w, "new_start", e->new_start);
	jw_ki64(w, "new_lines", e->new_lines);
	if (e->is_cut) {
		jw_knull(w, "lines");
		return;
	}
	jw_key(w, "lines");
	jw_array(w);
	while (rest.len > 0) {
		size_t end = str_chr(rest, '\n');
		jw_str(w, str_sub(rest, 0, end));
		rest = end < rest.len ? str_from(rest, end + 1) : STR("");
	}
	jw_end_array(w);
}

static void
write_edit(struct jw *w, const struct code_record *rec)
{
	switch (rec->edit.answer) {
	case EDIT_ANSWER_VIEW:
		write_view(w, rec);
		break;
	case EDIT_ANSWER_CREATE:
		jw_kcstr(w, "type", "text_editor_code_execution_create_result");
		jw_kbool(w, "is_file_update", rec->edit.is_update);
		break;
	case EDIT_ANSWER_REPLACE:
		write_replacement(w, rec);
		break;
	}
}

static void
write_error(struct jw *w, const struct code_record *rec)
{
	jw_kcstr(w, "type", words[rec->tool].error);
	jw_kstr(w, "error_code", rec->error_code.len > 0 ? rec->error_code : STR("unavailable"));
	if (rec->tool != CODE_TOOL_EDITOR)
		return;
	if (rec->error_message.len > 0)
		jw_kstr(w, "error_message", rec->error_message);
	else
		jw_knull(w, "error_message");
}

void
messages_write_code_result(struct jw *w, const struct code_record *rec)
{
	jw_object(w);
	jw_kcstr(w, "type", words[rec->tool].block);
	jw_kstr(w, "tool_use_id", rec->id);
	jw_key(w, "content");
	jw_object(w);
	if (!rec->ran)
		write_error(w, rec);
	else if (rec->tool == CODE_TOOL_EDITOR)
		write_edit(w, rec);
	else
		write_output(w, rec);
	jw_end_object(w);
	jw_end_object(w);
}
