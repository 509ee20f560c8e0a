/* An execution in Messages' own blocks: a pair, adjacent (otari-behaviour §4.1). In a stream the
 * call comes as a start with empty input and one input delta: accumulators of clients expect it so.
 */
#include "worker/dialect/messages.h"
#include "worker/dialect/messages_reply.h"

static void
write_use(struct jw *w, const struct code_record *rec, bool with_input)
{
	jw_object(w);
	jw_kcstr(w, "type", "server_tool_use");
	jw_kstr(w, "id", rec->id);
	jw_kstr(w, "name", rec->tool);
	jw_key(w, "input");
	jw_object(w);
	if (with_input)
		jw_kstr(w, "code", rec->code);
	jw_end_object(w);
	jw_end_object(w);
}

static void
write_outputs(struct jw *w, const struct code_record *rec)
{
	jw_kcstr(w, "type", "code_execution_result");
	jw_kstr(w, "stdout", rec->out);
	jw_kstr(w, "stderr", rec->err);
	jw_ki64(w, "return_code", rec->return_code);
	jw_key(w, "content");
	jw_array(w);
	for (size_t i = 0; i < rec->file_count; i++) {
		jw_object(w);
		jw_kcstr(w, "type", "code_execution_output");
		jw_kstr(w, "file_id", rec->file_ids[i]);
		jw_end_object(w);
	}
	jw_end_array(w);
}

static void
write_result(struct jw *w, const struct code_record *rec)
{
	jw_object(w);
	jw_kcstr(w, "type", "code_execution_tool_result");
	jw_kstr(w, "tool_use_id", rec->id);
	jw_key(w, "content");
	jw_object(w);
	if (rec->ran) {
		write_outputs(w, rec);
	} else {
		jw_kcstr(w, "type", "code_execution_tool_result_error");
		jw_kstr(w, "error_code",
		    rec->error_code.len > 0 ? rec->error_code : STR("unavailable"));
	}
	jw_end_object(w);
	jw_end_object(w);
}

static void
write_whole(struct messages_reply *m, const struct code_record *rec)
{
	struct jw w;
	if (m->content->len > 0)
		buf_addc(m->content, ',');
	jw_init(&w, m->content);
	write_use(&w, rec, true);
	write_result(&w, rec);
}

static struct jw
open_indexed(struct messages_reply *m, const char *name)
{
	struct jw w = messages_open_frame(m, name);
	jw_ki64(&w, "index", m->index);
	return w;
}

static void
input_frame(struct messages_reply *m, struct str code)
{
	struct buf b = BUF_INIT(6 * code.len + 64);
	struct jw inner;
	jw_init(&inner, &b);
	jw_object(&inner);
	jw_kstr(&inner, "code", code);
	jw_end_object(&inner);
	struct jw w = open_indexed(m, "content_block_delta");
	jw_key(&w, "delta");
	jw_object(&w);
	jw_kcstr(&w, "type", "input_json_delta");
	jw_kstr(&w, "partial_json", buf_str(&b));
	jw_end_object(&w);
	messages_close_frame(m, &w);
	buf_done(&b);
}

void
messages_reply_code(struct reply *r, const struct code_record *rec)
{
	struct messages_reply *m = (struct messages_reply *)r;
	if (r == NULL || !r->opt.native_code || r->over || r->open)
		return;
	m->executions++;
	if (!r->opt.stream) {
		write_whole(m, rec);
		return;
	}
	struct jw w = open_indexed(m, "content_block_start");
	jw_key(&w, "content_block");
	write_use(&w, rec, false);
	messages_close_frame(m, &w);
	input_frame(m, rec->code);
	messages_stop_frame(m);
	w = open_indexed(m, "content_block_start");
	jw_key(&w, "content_block");
	write_result(&w, rec);
	messages_close_frame(m, &w);
	messages_stop_frame(m);
}
