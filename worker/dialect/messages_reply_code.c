/* An execution in Messages' own blocks: a pair, adjacent (otari-behaviour §4.1). In a stream the
 * call comes as a start with empty input and its input as deltas (anthropic-wire §4.2); the result
 * comes whole. */
#include "worker/dialect/messages.h"
#include "worker/dialect/messages_reply.h"

static void
write_use(
    const struct messages_reply *m, struct jw *w, const struct code_record *rec, bool with_input)
{
	jw_object(w);
	jw_kcstr(w, "type", "server_tool_use");
	jw_kstr(w, "id", rec->id);
	jw_kstr(w, "name", code_tool_name(rec->tool));
	jw_kraw(w, "input", with_input ? rec->input_raw : STR("{}"));
	if (m->base.opt.names_caller)
		jw_kraw(w, "caller", STR("{\"type\":\"direct\"}"));
	jw_end_object(w);
}

static void
write_whole(struct messages_reply *m, const struct code_record *rec)
{
	struct jw w;
	if (m->content->len > 0)
		buf_addc(m->content, ',');
	jw_init(&w, m->content);
	write_use(m, &w, rec, true);
	messages_write_code_result(&w, rec);
}

static struct jw
open_indexed(struct messages_reply *m, const char *name)
{
	struct jw w = messages_open_frame(m, name);
	jw_ki64(&w, "index", m->index);
	return w;
}

static struct messages_reply *
self(struct reply *r)
{
	return (struct messages_reply *)r; /* base is its first member */
}

void
messages_reply_code_begin(struct reply *r, const struct code_record *rec)
{
	if (!reply_can_begin_code(r))
		return;
	struct jw w = open_indexed(self(r), "content_block_start");
	jw_key(&w, "content_block");
	write_use(self(r), &w, rec, false);
	messages_close_frame(self(r), &w);
	r->code = REPLY_CODE_INPUT;
}

void
messages_reply_code_input(struct reply *r, struct str json, struct str text)
{
	(void)text;
	if (r == NULL || r->code != REPLY_CODE_INPUT || json.len == 0)
		return;
	struct jw w = open_indexed(self(r), "content_block_delta");
	jw_key(&w, "delta");
	jw_object(&w);
	jw_kcstr(&w, "type", "input_json_delta");
	jw_kstr(&w, "partial_json", json);
	jw_end_object(&w);
	messages_close_frame(self(r), &w);
}

void
messages_reply_code_run(struct reply *r, const struct code_record *rec)
{
	(void)rec;
	if (r == NULL || r->code != REPLY_CODE_INPUT)
		return;
	messages_stop_frame(self(r));
	r->code = REPLY_CODE_RUNS;
}

void
messages_reply_code(struct reply *r, const struct code_record *rec)
{
	reply_list_code(r, rec);
	if (!reply_can_show_code(r))
		return;
	self(r)->executions++;
	if (!r->opt.stream) {
		write_whole(self(r), rec);
		return;
	}
	if (r->code == REPLY_CODE_NONE) {
		messages_reply_code_begin(r, rec);
		messages_reply_code_input(r, rec->input_raw, rec->code);
	}
	messages_reply_code_run(r, rec);
	struct jw w = open_indexed(self(r), "content_block_start");
	jw_key(&w, "content_block");
	messages_write_code_result(&w, rec);
	messages_close_frame(self(r), &w);
	messages_stop_frame(self(r));
	r->code = REPLY_CODE_NONE;
}
