/* Items of tools that ran elsewhere than at the client: a provider's own, that came whole, and our
 * executions (otari-behaviour §5.1) as code_interpreter_call. In a stream each is told in the
 * events that the service sends while such a tool runs (openai-wire §4.2, §4.3 d). */
#include "worker/dialect/responses.h"
#include "worker/dialect/responses_reply.h"

/* Events of a kind of item, without "response." and in their order. */
struct hosted {
	const char *type;
	const char *begin;                             /* first */
	const char *text, *text_delta, *text_done;     /* the member that comes in pieces */
	const char *running;                           /* behind it */
	const char *completed, *failed;                /* failed NULL: there is none */
	const char *empty_string[2], *null_members[2]; /* what the item begins without */
};

static const struct hosted kinds[] = {
    {"code_interpreter_call", "response.code_interpreter_call.in_progress", "code",
	"response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done",
	"response.code_interpreter_call.interpreting", "response.code_interpreter_call.completed",
	NULL, {"code"}, {"outputs"}},
    {"mcp_call", "response.mcp_call.in_progress", "arguments", "response.mcp_call_arguments.delta",
	"response.mcp_call_arguments.done", NULL, "response.mcp_call.completed",
	"response.mcp_call.failed", {"arguments"}, {"output", "error"}},
    {"mcp_list_tools", "response.mcp_list_tools.in_progress", NULL, NULL, NULL, NULL,
	"response.mcp_list_tools.completed", "response.mcp_list_tools.failed", {NULL}, {NULL}},
    {"web_search_call", "response.web_search_call.in_progress", NULL, NULL, NULL,
	"response.web_search_call.searching", "response.web_search_call.completed", NULL, {NULL},
	{NULL}},
    {"file_search_call", "response.file_search_call.in_progress", NULL, NULL, NULL,
	"response.file_search_call.searching", "response.file_search_call.completed", NULL, {NULL},
	{"results"}},
    {"image_generation_call", "response.image_generation_call.in_progress", NULL, NULL, NULL,
	"response.image_generation_call.generating", "response.image_generation_call.completed",
	NULL, {NULL}, {"result"}},
};

static const struct hosted *
kind_of(struct jval item)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (jv_str_is(jv_get(item, "type"), kinds[i].type))
			return &kinds[i];
	return NULL;
}

static bool
is_among(struct jval key, const char *const list[2])
{
	return (list[0] != NULL && jv_str_is(key, list[0])) ||
	       (list[1] != NULL && jv_str_is(key, list[1]));
}

/* The item as it is before anything has run. */
static void
write_begun(struct responses_reply *m, struct jw *w, const struct hosted *h, struct jval item)
{
	struct jiter it = {0};
	jw_object(w);
	while (jv_next(item, &it)) {
		jw_key_str(w, jv_str(m->base.arena, it.key));
		if (jv_str_is(it.key, "status"))
			jw_cstr(w, "in_progress");
		else if (is_among(it.key, h->empty_string) && jv_is(it.value, JT_STRING))
			jw_cstr(w, "");
		else if (is_among(it.key, h->null_members))
			jw_null(w);
		else
			jw_raw(w, jv_raw(it.value));
	}
	jw_end_object(w);
}

static void
event(struct responses_reply *m, const char *name)
{
	struct jw w;
	if (name != NULL && responses_open_item(m, name, &w))
		responses_close(m, &w);
}

static void
event_with(struct responses_reply *m, const char *name, const char *member, struct jval text)
{
	struct jw w;
	if (!responses_open_item(m, name, &w))
		return;
	jw_kraw(&w, member, jv_raw(text));
	responses_close(m, &w);
}

static void
tell(struct responses_reply *m, const struct hosted *h, struct jval item)
{
	struct jval text = h->text != NULL ? jv_get(item, h->text) : JV_ABSENT;
	bool has_failed = h->failed != NULL && (jv_str_is(jv_get(item, "status"), "failed") ||
						   jv_present(jv_get(item, "error")));
	event(m, h->begin);
	if (jv_is(text, JT_STRING)) {
		if (jv_raw(text).len > 2)
			event_with(m, h->text_delta, "delta", text);
		event_with(m, h->text_done, h->text, text);
	}
	event(m, h->running);
	event(m, has_failed ? h->failed : h->completed);
}

void
responses_hosted_item(struct responses_reply *m, struct str raw)
{
	struct arena *a = m->base.arena;
	struct jval item;
	struct jw w;
	if (jdoc_parse(a, raw, &item, NULL) != ERR_OK)
		return;
	const struct hosted *h = kind_of(item);
	m->item_id = jv_str(a, jv_get(item, "id"));
	if (responses_added(m, &w)) {
		if (h != NULL)
			write_begun(m, &w, h, item);
		else
			jw_raw(&w, raw);
		responses_close(m, &w);
		if (h != NULL)
			tell(m, h, item);
	}
	w = responses_item_begin(m);
	size_t from = m->output->len;
	jw_raw(&w, raw);
	responses_item_done_event(m, from);
}

/* --- our executions --- */

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

void
responses_reply_code(struct reply *r, const struct code_record *rec)
{
	struct responses_reply *m = (struct responses_reply *)r;
	struct buf b = BUF_INIT(16u << 20);
	struct jw w;
	if (r == NULL || !r->opt.native_code || r->over || r->open)
		return;
	responses_reply_need_start(m);
	responses_close_item(m, "completed");
	jw_init(&w, &b);
	jw_object(&w);
	jw_kstr(&w, "id", rec->id);
	jw_kcstr(&w, "type", "code_interpreter_call");
	jw_kcstr(&w, "status", rec->ran && rec->return_code == 0 ? "completed" : "failed");
	jw_kstr(&w, "code", rec->code);
	jw_kstr(&w, "container_id", rec->container_id);
	write_outputs(m, &w, rec);
	jw_end_object(&w);
	responses_hosted_item(m, arena_str(r->arena, buf_str(&b)));
	buf_done(&b);
}
