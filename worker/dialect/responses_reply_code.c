/* Our executions as code_interpreter_call items (otari-behaviour §5.1), with the life cycle that
 * the service tells of its own (openai-wire §4.3 d): the code in pieces while the model writes it,
 * the outputs whole. */
#include "worker/dialect/responses.h"
#include "worker/dialect/responses_reply.h"

#define EVENT "response.code_interpreter_call"

static struct responses_reply *
self(struct reply *r)
{
	return (struct responses_reply *)r; /* base is its first member */
}

static bool
is_image(struct str name)
{
	static const char *const suffixes[] = {
	    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp"};
	size_t dot = str_rchr(name, '.');
	for (size_t i = 0; i < ARRAY_LEN(suffixes) && dot != SIZE_MAX; i++)
		if (str_eq_nocase(str_from(name, dot), str_c(suffixes[i])))
			return true;
	return false;
}

static void
write_images(struct responses_reply *m, struct jw *w, const struct code_record *rec)
{
	struct str base = m->base.opt.public_base_url;
	for (size_t i = 0; i < rec->file_count; i++) {
		if (!is_image(rec->file_names[i]))
			continue;
		jw_object(w);
		jw_kcstr(w, "type", "image");
		jw_kstr(w, "url",
		    arena_printf(m->base.arena, "%.*s/api/v1/files/%.*s/content", STR_FMT(base),
			STR_FMT(rec->file_ids[i])));
		jw_end_object(w);
	}
}

static bool
has_image(const struct responses_reply *m, const struct code_record *rec)
{
	for (size_t i = 0; i < rec->file_count && m->base.opt.public_base_url.len > 0; i++)
		if (is_image(rec->file_names[i]))
			return true;
	return false;
}

static void
write_outputs(struct responses_reply *m, struct jw *w, const struct code_record *rec)
{
	bool has_logs = rec->out.len + rec->err.len > 0;
	jw_key(w, "outputs");
	if (!has_logs && !has_image(m, rec)) {
		jw_null(w);
		return;
	}
	jw_array(w);
	if (has_logs) {
		jw_object(w);
		jw_kcstr(w, "type", "logs");
		jw_key(w, "logs");
		jw_raw(w, STR("\""));
		jw_escape(w->out, rec->out);
		jw_escape(w->out, rec->err);
		buf_addc(w->out, '"');
		jw_end_object(w);
	}
	if (m->base.opt.public_base_url.len > 0)
		write_images(m, w, rec);
	jw_end_array(w);
}

/* finished false: as it is before anything has run. */
static void
write_item(struct responses_reply *m, struct jw *w, const struct code_record *rec, bool is_finished)
{
	const char *ended = rec->ran && rec->return_code == 0 ? "completed" : "failed";
	jw_object(w);
	jw_kstr(w, "id", rec->id);
	jw_kcstr(w, "type", "code_interpreter_call");
	jw_kcstr(w, "status", is_finished ? ended : "in_progress");
	jw_kstr(w, "code", is_finished ? rec->code : STR(""));
	jw_kstr(w, "container_id", rec->container_id);
	if (is_finished)
		write_outputs(m, w, rec);
	else
		jw_knull(w, "outputs");
	jw_end_object(w);
}

void
responses_reply_code_begin(struct reply *r, const struct code_record *rec)
{
	struct jw w;
	if (!reply_can_begin_code(r))
		return;
	responses_reply_need_start(self(r));
	responses_close_item(self(r), "completed");
	self(r)->item_id = arena_str(r->arena, rec->id);
	if (responses_added(self(r), &w)) {
		write_item(self(r), &w, rec, false);
		responses_close(self(r), &w);
	}
	responses_plain_event(self(r), EVENT ".in_progress");
	r->code = REPLY_CODE_INPUT;
}

void
responses_reply_code_input(struct reply *r, struct str json, struct str text)
{
	struct jw w;
	(void)json;
	if (r == NULL || r->code != REPLY_CODE_INPUT || text.len == 0 ||
	    !responses_open_item(self(r), EVENT "_code.delta", &w))
		return;
	jw_kstr(&w, "delta", text);
	responses_close(self(r), &w);
}

void
responses_reply_code_run(struct reply *r, const struct code_record *rec)
{
	struct jw w;
	if (r == NULL || r->code != REPLY_CODE_INPUT)
		return;
	if (responses_open_item(self(r), EVENT "_code.done", &w)) {
		jw_kstr(&w, "code", rec->code);
		responses_close(self(r), &w);
	}
	responses_plain_event(self(r), EVENT ".interpreting");
	r->code = REPLY_CODE_RUNS;
}

void
responses_reply_code(struct reply *r, const struct code_record *rec)
{
	struct responses_reply *m = self(r);
	reply_list_code(r, rec);
	if (!reply_can_show_code(r))
		return;
	if (r->opt.stream && r->code == REPLY_CODE_NONE) {
		responses_reply_code_begin(r, rec);
		responses_reply_code_input(r, rec->input_raw, rec->code);
	}
	responses_reply_code_run(r, rec);
	responses_reply_need_start(m);
	responses_close_item(m, "completed");
	responses_plain_event(m, EVENT ".completed");
	struct jw w = responses_item_begin(m);
	size_t from = m->output->len;
	write_item(m, &w, rec, true);
	responses_item_done_event(m, from);
	r->code = REPLY_CODE_NONE;
}
