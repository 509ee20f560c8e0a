/* Items of a Responses answer: announced, in pieces, closed (openai-wire §3.4, §4.2). */
#include "worker/dialect/responses_events.h"

/* Members that the events or the writer's own words stand for. The item's id is kept where the
 * block's id is another one. */
static const char *const known_message[] = {"id", "type", "status", "content", "role", NULL};
static const char *const known_reasoning[] = {
    "id", "type", "status", "summary", "content", "encrypted_content", NULL};
static const char *const known_call[] = {
    "type", "status", "call_id", "name", "arguments", "input", NULL};
static const char *const *const known[] = {
    [ITEM_MESSAGE] = known_message,
    [ITEM_REASONING] = known_reasoning,
    [ITEM_CALL] = known_call,
    [ITEM_CUSTOM] = known_call,
};

static struct str
extra_of(struct responses_events *r, struct jval item, const char *const *skipped)
{
	struct buf b = BUF_INIT(65536);
	struct jiter it = {0};
	while (jv_next(item, &it)) {
		bool skip = jv_is(it.value, JT_NULL);
		for (const char *const *k = skipped; *k != NULL && !skip; k++)
			skip = jv_str_is(it.key, *k);
		if (skip)
			continue;
		buf_addc(&b, b.len > 0 ? ',' : '{');
		buf_add(&b, jv_raw(it.key));
		buf_addc(&b, ':');
		buf_add(&b, jv_raw(it.value));
	}
	if (b.len > 0)
		buf_addc(&b, '}');
	struct str s = b.overflowed ? STR("") : arena_str(r->base.arena, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
keep(struct responses_events *r, struct str *into, struct jval v)
{
	if (into->len == 0 && jv_is(v, JT_STRING))
		*into = arena_str(r->base.arena, jv_str(r->base.scratch, v));
}

/* What is known of an item before its content. */
static void
read_head(struct responses_events *r, struct responses_item *it, struct jval v)
{
	if (!it->announced && it->kind != ITEM_OPAQUE)
		it->extra_raw = extra_of(r, v, known[it->kind]);
	it->announced = true;
	keep(r, &it->id, jv_get(v, "id"));
	keep(r, &it->call_id, jv_get(v, "call_id"));
	keep(r, &it->name, jv_get(v, "name"));
	if (it->kind == ITEM_OPAQUE)
		it->raw = arena_str(r->base.arena, jv_raw(v));
	/* The one that comes last counts: it differs from the first. */
	struct str encrypted = jv_str(r->base.scratch, jv_get(v, "encrypted_content"));
	if (it->kind == ITEM_REASONING && encrypted.len > 0)
		it->encrypted = arena_str(r->base.arena, encrypted);
}

/* --- content --- */

static void
whole_part(struct responses_events *r, struct responses_item *it, enum responses_part_kind kind,
    int64_t index, struct jval text)
{
	struct arena *a = r->base.scratch;
	struct responses_part *p = responses_part_of(&r->queue, it, kind, index);
	if (p == NULL)
		return;
	if (jv_is(text, JT_STRING))
		responses_feed_whole(&r->queue, p, jv_str(a, text));
	else if (jv_is(text, JT_OBJECT))
		responses_feed_whole(&r->queue, p, jv_raw(text));
	p->closed = true;
}

static void
whole_notes(struct responses_events *r, struct responses_item *it, int64_t index, struct jval list)
{
	struct responses_part *p = responses_part_of(&r->queue, it, RPART_TEXT, index);
	struct jiter n = {0};
	for (uint32_t i = 0; p != NULL && jv_is(list, JT_ARRAY) && jv_next(list, &n); i++)
		if (i >= p->note_count)
			responses_feed_note(&r->queue, p, jv_raw(n.value));
}

static void
whole_message(struct responses_events *r, struct responses_item *it, struct jval content)
{
	struct jiter c = {0};
	if (jv_is(content, JT_STRING))
		whole_part(r, it, RPART_TEXT, 0, content);
	if (!jv_is(content, JT_ARRAY))
		return;
	for (int64_t i = 0; jv_next(content, &c); i++) {
		struct jval type = jv_get(c.value, "type");
		if (jv_str_is(type, "refusal")) {
			whole_part(r, it, RPART_REFUSAL, i, jv_get(c.value, "refusal"));
		} else if (jv_is(jv_get(c.value, "text"), JT_STRING)) {
			whole_part(r, it, RPART_TEXT, i, jv_get(c.value, "text"));
			whole_notes(r, it, i, jv_get(c.value, "annotations"));
		}
	}
}

/* Some servers stream reasoning as one kind of part and repeat it as the other. */
static bool
is_repeated(const struct responses_item *it, enum responses_part_kind kind, struct str text)
{
	for (const struct responses_part *p = it->parts; p != NULL; p = p->next)
		if (p->kind != kind && p->fed_bytes == text.len &&
		    responses_hash(text) == p->fed_hash)
			return true;
	return false;
}

static void
whole_reasoning(struct responses_events *r, struct responses_item *it,
    enum responses_part_kind kind, struct jval list)
{
	struct jiter s = {0};
	if (!jv_is(list, JT_ARRAY))
		return;
	for (int64_t i = 0; jv_next(list, &s); i++) {
		struct jval text = jv_get(s.value, "text");
		struct str decoded = jv_str(r->base.scratch, text);
		if (decoded.len > 0 && !is_repeated(it, kind, decoded))
			whole_part(r, it, kind, i, text);
	}
}

static void
read_content(struct responses_events *r, struct responses_item *it, struct jval v)
{
	switch (it->kind) {
	case ITEM_MESSAGE:
		whole_message(r, it, jv_get(v, "content"));
		break;
	case ITEM_REASONING:
		whole_reasoning(r, it, RPART_SUMMARY, jv_get(v, "summary"));
		whole_reasoning(r, it, RPART_REASONING, jv_get(v, "content"));
		break;
	case ITEM_CALL:
		whole_part(r, it, RPART_CALL, 0, jv_get(v, "arguments"));
		break;
	case ITEM_CUSTOM:
		whole_part(r, it, RPART_CALL, 0, jv_get(v, "input"));
		break;
	case ITEM_OPAQUE:
		break;
	}
}

/* --- items --- */

static struct str
id_of(struct responses_events *r, struct jval v)
{
	return jv_str(r->base.scratch, jv_get(v, "id"));
}

/* Some servers number everything 0, or give every item the same id. */
static bool
is_another(struct responses_events *r, const struct responses_item *it, struct jval v)
{
	struct str id = id_of(r, v), call_id = jv_str(r->base.scratch, jv_get(v, "call_id"));
	if (id.len > 0 && it->id.len > 0 && !str_eq(id, it->id))
		return true;
	return call_id.len > 0 && it->call_id.len > 0 && !str_eq(call_id, it->call_id);
}

void
responses_item_added(struct responses_events *r, int64_t index, struct jval v)
{
	enum responses_kind kind = responses_kind_of(v);
	struct str id = id_of(r, v);
	struct responses_item *it = responses_find(&r->queue, index, id, kind);
	if (!jv_is(v, JT_OBJECT))
		return;
	/* Another item under a number or an id that was used; not one that a delta began. */
	if (it != NULL && it->announced && (it->done || is_another(r, it, v) || id.len == 0))
		it = NULL;
	if (it == NULL)
		it = responses_add(&r->queue, index, id, kind);
	if (it == NULL)
		return;
	r->has_items = true;
	read_head(r, it, v);
}

void
responses_item_done(struct responses_events *r, int64_t index, struct jval v)
{
	enum responses_kind kind = responses_kind_of(v);
	if (!jv_is(v, JT_OBJECT))
		return;
	struct responses_item *it = responses_find(&r->queue, index, id_of(r, v), kind);
	if (it != NULL && it->done && is_another(r, it, v))
		it = NULL;
	if (it == NULL)
		it = responses_add(&r->queue, index, id_of(r, v), kind);
	if (it == NULL || it->done)
		return;
	r->has_items = true;
	read_head(r, it, v);
	read_content(r, it, v);
	it->done = true;
}

/* Ids and numbers of the final list may differ from those of the events: then the third call there
 * is the third call here. */
static struct responses_item *
nth_or_id(struct responses_queue *q, enum responses_kind kind, uint32_t n, struct str id)
{
	struct responses_item *nth = NULL;
	for (struct responses_item *it = q->first; it != NULL && nth == NULL; it = it->next)
		if (it->kind == kind && n-- == 0)
			nth = it;
	if (nth != NULL && str_eq(nth->id, id))
		return nth;
	struct responses_item *by_id = responses_find_id(q, id, kind);
	return by_id != NULL ? by_id : nth;
}

void
responses_output(struct responses_events *r, struct jval output)
{
	struct jiter o = {0};
	uint32_t seen[ITEM_OPAQUE + 1] = {0};
	bool is_first = !r->has_items;
	if (!jv_is(output, JT_ARRAY))
		return;
	for (int64_t i = 0; jv_next(output, &o); i++) {
		if (!jv_is(o.value, JT_OBJECT))
			continue;
		enum responses_kind kind = responses_kind_of(o.value);
		struct responses_item *it = NULL;
		if (!is_first)
			it = nth_or_id(&r->queue, kind, seen[kind]++, id_of(r, o.value));
		if (it == NULL)
			it = responses_add(&r->queue, i, id_of(r, o.value), kind);
		if (it == NULL || it->done)
			continue;
		r->has_items = true;
		read_head(r, it, o.value);
		read_content(r, it, o.value);
		it->done = true;
	}
}

/* --- events --- */

enum step { STEP_DELTA, STEP_WHOLE, STEP_NOTE };

static const struct {
	const char *type;
	enum step step;
	enum responses_kind item;
	enum responses_part_kind part;
	const char *member, *index;
} steps[] = {
    {"response.output_text.delta", STEP_DELTA, ITEM_MESSAGE, RPART_TEXT, "delta", "content_index"},
    {"response.output_text.done", STEP_WHOLE, ITEM_MESSAGE, RPART_TEXT, "text", "content_index"},
    {"response.output_text.annotation.added", STEP_NOTE, ITEM_MESSAGE, RPART_TEXT, "annotation",
	"content_index"},
    {"response.refusal.delta", STEP_DELTA, ITEM_MESSAGE, RPART_REFUSAL, "delta", "content_index"},
    {"response.refusal.done", STEP_WHOLE, ITEM_MESSAGE, RPART_REFUSAL, "refusal", "content_index"},
    {"response.reasoning_summary_text.delta", STEP_DELTA, ITEM_REASONING, RPART_SUMMARY, "delta",
	"summary_index"},
    {"response.reasoning_summary_text.done", STEP_WHOLE, ITEM_REASONING, RPART_SUMMARY, "text",
	"summary_index"},
    {"response.reasoning_text.delta", STEP_DELTA, ITEM_REASONING, RPART_REASONING, "delta",
	"content_index"},
    {"response.reasoning_text.done", STEP_WHOLE, ITEM_REASONING, RPART_REASONING, "text",
	"content_index"},
    {"response.function_call_arguments.delta", STEP_DELTA, ITEM_CALL, RPART_CALL, "delta", NULL},
    {"response.function_call_arguments.done", STEP_WHOLE, ITEM_CALL, RPART_CALL, "arguments", NULL},
    {"response.custom_tool_call_input.delta", STEP_DELTA, ITEM_CUSTOM, RPART_CALL, "delta", NULL},
    {"response.custom_tool_call_input.done", STEP_WHOLE, ITEM_CUSTOM, RPART_CALL, "input", NULL},
};

static void
take_step(struct responses_events *r, size_t i, struct responses_item *it, struct jval v)
{
	int64_t index = steps[i].index != NULL ? jv_i64_or(jv_get(v, steps[i].index), -1) : 0;
	struct jval value = jv_get(v, steps[i].member);
	struct responses_part *p = responses_part_of(&r->queue, it, steps[i].part, index);
	if (p == NULL)
		return;
	switch (steps[i].step) {
	case STEP_DELTA:
		responses_feed(&r->queue, p, jv_str(r->base.scratch, value));
		break;
	case STEP_WHOLE:
		whole_part(r, it, steps[i].part, p->index, value);
		break;
	case STEP_NOTE:
		responses_feed_note(&r->queue, p, jv_raw(value));
		break;
	}
}

enum err_code
responses_item_event(struct responses_events *r, struct str type, struct jval v, struct err *reterr)
{
	struct str id = jv_str(r->base.scratch, jv_get(v, "item_id"));
	int64_t index = jv_i64_or(jv_get(v, "output_index"), -1);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (!str_eq(type, str_c(steps[i].type)))
			continue;
		if (steps[i].step == STEP_DELTA && !jv_is(jv_get(v, "delta"), JT_STRING))
			return err_set(reterr, ERR_PROTO, "%s without a delta", steps[i].type);
		struct responses_item *it = responses_find(&r->queue, index, id, steps[i].item);
		if (it == NULL)
			it = responses_add(&r->queue, index, id, steps[i].item);
		if (it != NULL) {
			r->has_items = true;
			take_step(r, i, it, v);
		}
		return ERR_OK;
	}
	return ERR_OK; /* progress of hosted tools, and events to come */
}
