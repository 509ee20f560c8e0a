/* Answers of a Chat server → turn events (openai-wire §2.5–2.7 and the deviations of §8). */
#include "base/limits.h"
#include "worker/dialect/chat.h"
#include "worker/dialect/chat_queue.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/usage.h"

#define CHOICES_MAX 128

struct chat_events {
	struct events base;
	struct chat_queue queue;
	bool done; /* [DONE] came, or the whole answer */
};

static struct chat_events *
self(struct events *e)
{
	return (struct chat_events *)e; /* base is its first member */
}

struct events *
chat_events_new(struct arena *a, turn_on_event *on_event, void *arg)
{
	struct chat_events *ce = ARENA_NEW(a, struct chat_events);
	if (ce == NULL)
		return NULL;
	events_init(&ce->base, a, WIRE_CHAT, on_event, arg);
	ce->queue.events = &ce->base;
	return &ce->base;
}

/* --- text, reasoning, refusal --- */

static void
add_text(struct chat_events *ce, struct chat_choice *c, enum block_kind kind, struct str text,
    const char *member)
{
	if (text.len == 0)
		return;
	struct chat_block *b = c->last;
	if (b == NULL || b->kind != kind || b->over)
		b = chat_queue_open(&ce->queue, c, kind);
	if (b == NULL)
		return;
	if (kind == BLOCK_REASONING)
		b->name = str_c(member); /* where the server wants it back */
	chat_queue_text(&ce->queue, c, b, text);
}

/* Some servers answer a list of parts: text, and thinking with a list of its own. */
static void
add_content(struct chat_events *ce, struct chat_choice *c, struct jval content)
{
	struct arena *a = ce->base.scratch;
	struct jiter it = {0};
	if (jv_is(content, JT_STRING))
		add_text(ce, c, BLOCK_TEXT, jv_str(a, content), NULL);
	if (!jv_is(content, JT_ARRAY))
		return;
	while (jv_next(content, &it)) {
		struct jval type = jv_get(it.value, "type"),
			    thinking = jv_get(it.value, "thinking");
		if (jv_str_is(type, "text")) {
			add_text(ce, c, BLOCK_TEXT, jv_str(a, jv_get(it.value, "text")), NULL);
		} else if (jv_str_is(type, "refusal")) {
			add_text(
			    ce, c, BLOCK_REFUSAL, jv_str(a, jv_get(it.value, "refusal")), NULL);
		} else if (jv_is(thinking, JT_STRING)) {
			add_text(ce, c, BLOCK_REASONING, jv_str(a, thinking), "reasoning_content");
		} else {
			struct jiter t = {0};
			while (jv_next(thinking, &t))
				add_text(ce, c, BLOCK_REASONING, jv_str(a, jv_get(t.value, "text")),
				    "reasoning_content");
		}
	}
}

static void
add_reasoning(struct chat_events *ce, struct chat_choice *c, struct jval delta)
{
	static const char *const members[] = {"reasoning_content", "reasoning"};
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct str s = jv_str(ce->base.scratch, jv_get(delta, members[i]));
		if (s.len == 0)
			continue;
		add_text(ce, c, BLOCK_REASONING, s, members[i]);
		return; /* some send the same text in both */
	}
}

static void
add_annotations(struct chat_events *ce, struct chat_choice *c, struct jval list)
{
	struct jiter it = {0};
	if (c->last == NULL || c->last->kind != BLOCK_TEXT)
		return;
	while (jv_next(list, &it))
		chat_queue_raw(&ce->queue, c, c->last, jv_raw(it.value));
}

static void
add_audio(struct chat_events *ce, struct chat_choice *c, struct jval audio)
{
	if (!jv_is(audio, JT_OBJECT))
		return;
	struct chat_block *b = c->last;
	if (b == NULL || b->kind != BLOCK_AUDIO)
		b = chat_queue_open(&ce->queue, c, BLOCK_AUDIO);
	if (b != NULL)
		chat_queue_raw(&ce->queue, c, b, jv_raw(audio));
}

/* --- calls --- */

struct call_delta {
	struct str id, name, arguments;
	int64_t index;  /* -1: not said */
	uint32_t place; /* in the chunk's list */
	bool custom;
};

/* The block that a piece of a call belongs to; NULL: a new one. Servers disagree on what identifies
 * a call (openai-wire §8, rule 5): a new id, else the index, else the order. */
static struct chat_block *
find_call(const struct chat_choice *c, const struct call_delta *d)
{
	struct chat_block *by_index = NULL, *last = c->calls_last;
	for (struct chat_block *b = c->first; b != NULL; b = b->next) {
		if (b->kind != BLOCK_CALL)
			continue;
		bool elsewhere = d->index >= 0 && b->index >= 0 && d->index != b->index;
		if (d->id.len > 0 && str_eq(b->id, d->id) && !elsewhere)
			return b;
		if (d->index >= 0 && b->index == d->index)
			by_index = b;
	}
	struct chat_block *b = d->index >= 0 ? by_index : last;
	if (b == NULL)
		return NULL;
	if (d->index < 0 && d->name.len > 0 && d->place > 0)
		return NULL;
	bool other_id = d->id.len > 0 && b->id.len > 0;
	if (d->name.len > 0 && b->name.len > 0 && (other_id || b->progress.complete))
		return NULL; /* another call under the same index */
	return b;
}

static void
add_call(
    struct chat_events *ce, struct chat_choice *c, const struct call_delta *d, struct jval extra)
{
	struct arena *a = ce->base.arena;
	struct chat_block *b = find_call(c, d);
	if (b == NULL) {
		if (d->id.len == 0 && d->name.len == 0 && d->arguments.len == 0)
			return;
		b = chat_queue_open(&ce->queue, c, BLOCK_CALL);
		if (b == NULL)
			return;
		b->index = d->index;
		b->custom = d->custom;
	}
	if (b->id.len == 0 && d->id.len > 0)
		b->id = arena_str(a, d->id);
	if (b->name.len == 0 && d->name.len > 0)
		b->name = arena_str(a, d->name);
	if (jv_is(extra, JT_OBJECT))
		chat_queue_raw(&ce->queue, c, b, jv_raw(extra));
	chat_queue_text(&ce->queue, c, b, d->arguments);
}

static struct str
arguments_of(struct arena *a, struct jval v)
{
	if (jv_is(v, JT_STRING))
		return jv_str(a, v);
	return jv_is(v, JT_OBJECT) ? jv_raw(v) : STR("");
}

static void
add_calls(struct chat_events *ce, struct chat_choice *c, struct jval delta)
{
	struct arena *a = ce->base.scratch;
	struct jiter it = {0};
	struct jval list = jv_get(delta, "tool_calls"), legacy = jv_get(delta, "function_call");
	for (uint32_t i = 0; jv_is(list, JT_ARRAY) && jv_next(list, &it); i++) {
		struct jval f = jv_get(it.value, "function"), custom = jv_get(it.value, "custom");
		bool is_custom = jv_is(custom, JT_OBJECT);
		if (is_custom)
			f = custom;
		struct call_delta d = {
		    .id = jv_str(a, jv_get(it.value, "id")),
		    .name = jv_str(a, jv_get(f, "name")),
		    .arguments = arguments_of(a, jv_get(f, is_custom ? "input" : "arguments")),
		    .index = jv_i64_or(jv_get(it.value, "index"), -1),
		    .place = i,
		    .custom = is_custom,
		};
		add_call(ce, c, &d, jv_get(it.value, "extra_content"));
	}
	if (jv_is(legacy, JT_OBJECT)) {
		struct call_delta d = {.index = 0,
		    .name = jv_str(a, jv_get(legacy, "name")),
		    .arguments = arguments_of(a, jv_get(legacy, "arguments"))};
		add_call(ce, c, &d, JV_ABSENT);
	}
}

/* --- chunks --- */

static void
read_choice(struct chat_events *ce, struct jval choice, const char *member)
{
	int64_t number = jv_i64_or(jv_get(choice, "index"), 0);
	if (number < 0 || number >= CHOICES_MAX)
		return;
	struct chat_choice *c = chat_queue_choice(&ce->queue, (uint32_t)number);
	struct jval delta = jv_get(choice, member);
	if (c == NULL)
		return;
	if (!jv_is(delta, JT_OBJECT)) /* a whole message in a stream, or the other way round */
		delta = jv_get(choice, member[0] == 'd' ? "message" : "delta");
	add_reasoning(ce, c, delta);
	add_content(ce, c, jv_get(delta, "content"));
	add_text(ce, c, BLOCK_REFUSAL, jv_str(ce->base.scratch, jv_get(delta, "refusal")), NULL);
	add_annotations(ce, c, jv_get(delta, "annotations"));
	add_audio(ce, c, jv_get(delta, "audio"));
	add_calls(ce, c, delta);
	struct str reason = jv_str(ce->base.scratch, jv_get(choice, "finish_reason"));
	if (reason.len > 0) {
		c->has_finish = true;
		c->reason_raw = arena_str(ce->base.arena, reason);
	}
}

static void
read_usage(struct chat_events *ce, struct jval v)
{
	struct jval usage = jv_get(v, "usage");
	struct token_usage later;
	if (!jv_is(usage, JT_OBJECT))
		usage = jv_get(jv_get(v, "x_groq"), "usage");
	if (!jv_is(usage, JT_OBJECT))
		return;
	usage_read(WIRE_CHAT, usage, &later);
	events_count(&ce->base, later);
}

static void
read_head(struct chat_events *ce, struct jval v)
{
	struct events *e = &ce->base;
	struct str id = jv_str(e->scratch, jv_get(v, "id"));
	struct str model = jv_str(e->scratch, jv_get(v, "model"));
	if (e->id.len == 0 && id.len > 0)
		e->id = arena_str(e->arena, id);
	if (e->model.len == 0 && model.len > 0)
		e->model = arena_str(e->arena, model);
}

static enum err_code
read_chunk(struct chat_events *ce, struct jval v, const char *member, struct err *reterr)
{
	struct jiter it = {0};
	if (!jv_is(v, JT_OBJECT) && !jv_is(v, JT_ARRAY))
		return err_set(reterr, ERR_PROTO, "the answer is no completion");
	if (events_error_object(&ce->base, v))
		return ERR_OK;
	read_head(ce, v);
	read_usage(ce, v);
	while (jv_next(jv_get(v, "choices"), &it))
		read_choice(ce, it.value, member);
	chat_queue_pump(&ce->queue, false);
	if (ce->queue.overflowed)
		return err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	return ERR_OK;
}

enum err_code
chat_events_sse(struct events *e, struct str name, struct str data, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct chat_events *ce = self(e);
	struct jval v;
	(void)name;
	if (e->over || data.len == 0)
		return ERR_OK;
	if (str_starts(data, STR("[DONE]"))) {
		ce->done = true;
		return chat_events_end(e, reterr);
	}
	enum err_code code = events_parse(e, data, &v, reterr);
	return code == ERR_OK ? read_chunk(ce, v, "delta", reterr) : code;
}

enum err_code
chat_events_whole(struct events *e, struct str body, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct chat_events *ce = self(e);
	struct jval v;
	enum err_code code = events_parse(e, body, &v, reterr);
	if (code == ERR_OK)
		code = read_chunk(ce, v, "message", reterr);
	if (code != ERR_OK || e->over)
		return code;
	if (ce->queue.choices == NULL)
		return err_set(reterr, ERR_PROTO, "the answer has no choices");
	ce->done = true;
	return chat_events_end(e, reterr);
}

/* --- the end --- */

/* What the answer ended for. Servers say "stop" although they call a tool; a cut or a filter stays
 * what it is, for then the call may be half. */
static enum finish_reason
reason_of(const struct chat_choice *c)
{
	enum finish_reason r = c->reason_raw.len > 0 ? finish_of_chat(c->reason_raw) : FINISH_STOP;
	if (c->has_call && (r == FINISH_STOP || r == FINISH_OTHER))
		return FINISH_TOOL;
	if (!c->has_call && r == FINISH_TOOL)
		return FINISH_STOP;
	return r == FINISH_STOP && c->has_refusal ? FINISH_REFUSAL : r;
}

enum err_code
chat_events_end(struct events *e, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct chat_events *ce = self(e);
	bool complete = ce->queue.choices != NULL;
	if (e->over)
		return ERR_OK;
	chat_queue_pump(&ce->queue, true);
	for (const struct chat_choice *c = ce->queue.choices; c != NULL; c = c->next) {
		complete = complete && (c->has_finish || ce->done);
		if (str_eq(c->reason_raw, STR("error")))
			complete = false;
	}
	if (!complete) {
		events_error(e, 502, STR("api_error"), STR("the provider's answer was cut off"));
		return ERR_OK;
	}
	for (const struct chat_choice *c = ce->queue.choices; c != NULL; c = c->next)
		events_finish(e, &(struct turn_event){
				     .choice = c->number,
				     .reason = reason_of(c),
				     .reason_raw = c->reason_raw,
				 });
	events_usage(e);
	events_end(e);
	return ERR_OK;
}
