/* Items of a provider's own tools, that came whole. In a stream each is told in the events that the
 * service sends while such a tool runs (openai-wire §4.2, §4.3 d). */
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

void
responses_plain_event(struct responses_reply *m, const char *name)
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
	responses_plain_event(m, h->begin);
	if (jv_is(text, JT_STRING)) {
		if (jv_raw(text).len > 2)
			event_with(m, h->text_delta, "delta", text);
		event_with(m, h->text_done, h->text, text);
	}
	responses_plain_event(m, h->running);
	responses_plain_event(m, has_failed ? h->failed : h->completed);
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
