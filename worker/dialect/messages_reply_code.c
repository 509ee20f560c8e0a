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
	jw_kstr(w, "name", code_tool_name(rec->tool));
	jw_kraw(w, "input", with_input ? rec->input_raw : STR("{}"));
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
	messages_write_code_result(&w, rec);
}

static struct jw
open_indexed(struct messages_reply *m, const char *name)
{
	struct jw w = messages_open_frame(m, name);
	jw_ki64(&w, "index", m->index);
	return w;
}

static void
input_frame(struct messages_reply *m, struct str input)
{
	struct jw w = open_indexed(m, "content_block_delta");
	jw_key(&w, "delta");
	jw_object(&w);
	jw_kcstr(&w, "type", "input_json_delta");
	jw_kstr(&w, "partial_json", input);
	jw_end_object(&w);
	messages_close_frame(m, &w);
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
	input_frame(m, rec->input_raw);
	messages_stop_frame(m);
	w = open_indexed(m, "content_block_start");
	jw_key(&w, "content_block");
	messages_write_code_result(&w, rec);
	messages_close_frame(m, &w);
	messages_stop_frame(m);
}
