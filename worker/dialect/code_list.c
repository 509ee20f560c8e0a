#include "worker/dialect/code_list.h"

static void
write_files(struct jw *w, const struct code_record *rec)
{
	jw_key(w, "files");
	jw_array(w);
	for (size_t i = 0; i < rec->file_count; i++) {
		jw_object(w);
		jw_kstr(w, "file_id", rec->file_ids[i]);
		jw_kstr(w, "filename", rec->file_names[i]);
		jw_end_object(w);
	}
	jw_end_array(w);
}

void
code_list_add(struct buf *list, const struct code_record *rec)
{
	bool is_full =
	    list->len + rec->input_raw.len + rec->out.len + rec->err.len > CODE_LIST_FULL_BYTES;
	struct jw w;
	if (list->len > 0)
		buf_addc(list, ',');
	jw_init(&w, list);
	jw_object(&w);
	jw_kstr(&w, "id", rec->id);
	jw_kstr(&w, "tool", code_tool_name(rec->tool));
	jw_kraw(&w, "input", is_full ? STR("{}") : rec->input_raw);
	jw_kstr(&w, "stdout", is_full ? STR("") : rec->out);
	jw_kstr(&w, "stderr", is_full ? STR("") : rec->err);
	jw_ki64(&w, "return_code", rec->return_code);
	write_files(&w, rec);
	if (rec->ran)
		jw_knull(&w, "error_code");
	else
		jw_kstr(&w, "error_code",
		    rec->error_code.len > 0 ? rec->error_code : STR("unavailable"));
	if (!rec->ran && rec->tool == CODE_TOOL_EDITOR)
		jw_kstr(&w, "error_message", rec->error_message);
	if (is_full)
		jw_kbool(&w, "truncated", true);
	jw_end_object(&w);
}

void
code_list_write(const struct buf *list, struct jw *w)
{
	if (list == NULL || list->len == 0 || list->overflowed)
		return;
	jw_key(w, CODE_LIST_MEMBER);
	jw_array(w);
	jw_raw(w, buf_str(list));
	jw_end_array(w);
}
