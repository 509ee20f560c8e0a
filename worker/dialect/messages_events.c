/* Answers of a Messages provider → turn events (anthropic-wire §3, §4). */
#include "worker/dialect/events.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/messages.h"
#include "worker/dialect/usage.h"

struct messages_events {
	struct events base;
	bool any_delta;       /* of the open block */
	struct str prefilled; /* input that came with the block's start */
	struct buf extra;     /* members of the message that have no event: container, … */
	bool has_reason, stopped;
	struct turn_event finish;
};

static struct messages_events *
self(struct events *e)
{
	return (struct messages_events *)e; /* base is its first member */
}

static void
free_extra(void *arg)
{
	buf_done(arg);
}

struct events *
messages_events_new(struct arena *a, turn_on_event *on_event, void *arg)
{
	struct messages_events *m = ARENA_NEW(a, struct messages_events);
	if (m == NULL)
		return NULL;
	events_init(&m->base, a, WIRE_MESSAGES, on_event, arg);
	buf_init(&m->extra, 1u << 20);
	arena_defer(a, free_extra, &m->extra);
	return &m->base;
}

/* --- usage and the end of the message --- */

/* Later numbers replace earlier ones. A report that repeats only input_tokens leaves the cached
 * parts of the first one in force. */
static void
read_usage(struct messages_events *m, struct jval v)
{
	struct token_usage *have = &m->base.usage, later;
	if (!jv_is(v, JT_OBJECT))
		return;
	usage_read(WIRE_MESSAGES, v, &later);
	if (later.input >= 0 && later.cache_read < 0 && have->cache_read > 0)
		later.input += have->cache_read;
	if (later.input >= 0 && later.cache_write < 0 && have->cache_write > 0)
		later.input += have->cache_write;
	events_count(&m->base, later);
}

static void
keep_extra(struct messages_events *m, struct jval object, const char *const *known)
{
	struct jiter it = {0};
	while (jv_next(object, &it)) {
		bool skip = jv_is(it.value, JT_NULL);
		for (const char *const *k = known; *k != NULL && !skip; k++)
			skip = jv_str_is(it.key, *k);
		if (skip)
			continue;
		if (m->extra.len > 0)
			buf_addc(&m->extra, ',');
		buf_add(&m->extra, jv_raw(it.key));
		buf_addc(&m->extra, ':');
		buf_add(&m->extra, jv_raw(it.value));
	}
}

static void
read_stop(struct messages_events *m, struct jval v)
{
	struct arena *a = m->base.arena;
	struct jval reason = jv_get(v, "stop_reason");
	if (!jv_is(reason, JT_STRING))
		return;
	m->has_reason = true;
	m->finish.reason_raw = arena_str(a, jv_str(m->base.scratch, reason));
	m->finish.reason = finish_of_messages(m->finish.reason_raw);
	struct jval sequence = jv_get(v, "stop_sequence");
	if (jv_is(sequence, JT_STRING))
		m->finish.stop_sequence = arena_str(a, jv_str(m->base.scratch, sequence));
}

static void
finish(struct messages_events *m)
{
	struct events *e = &m->base;
	if (e->finished || e->over)
		return;
	if (m->extra.len > 0 && !m->extra.overflowed) {
		buf_addc(&m->extra, '}');
		m->finish.raw = arena_printf(e->arena, "{%.*s", STR_FMT(buf_str(&m->extra)));
	}
	events_finish(e, &m->finish);
	events_usage(e);
}

/* --- blocks --- */

static const struct {
	const char *type;
	enum block_kind kind;
} kinds[] = {
    {"text", BLOCK_TEXT},
    {"thinking", BLOCK_REASONING},
    {"redacted_thinking", BLOCK_REASONING},
    {"tool_use", BLOCK_CALL},
};

static enum block_kind
kind_of(struct jval block)
{
	/* A call that other code of the provider made is not the client's to take apart. */
	struct jval caller = jv_get(jv_get(block, "caller"), "type");
	bool indirect = jv_is(caller, JT_STRING) && !jv_str_is(caller, "direct");
	for (size_t i = 0; i < ARRAY_LEN(kinds) && !indirect; i++)
		if (jv_str_is(jv_get(block, "type"), kinds[i].type))
			return kinds[i].kind;
	return BLOCK_OPAQUE;
}

static void
delta_if(struct messages_events *m, enum delta_field field, struct jval v)
{
	struct str s = jv_str(m->base.scratch, v);
	if (s.len == 0)
		return;
	m->any_delta = true;
	events_delta(&m->base, field, s, STR_NULL);
}

static void
annotations(struct messages_events *m, struct jval citations)
{
	struct jiter it = {0};
	while (jv_next(citations, &it))
		events_annotation(&m->base, jv_raw(it.value));
}

static void
block_start(struct messages_events *m, struct jval block)
{
	struct events *e = &m->base;
	struct turn_event ev = {.kind = kind_of(block)};
	if (ev.kind == BLOCK_OPAQUE)
		ev.raw = jv_raw(block);
	if (ev.kind == BLOCK_CALL) {
		ev.id = jv_str(e->scratch, jv_get(block, "id"));
		ev.name = jv_str(e->scratch, jv_get(block, "name"));
	}
	events_block_start(e, &ev);
	m->any_delta = false;
	m->prefilled = STR_NULL;
	switch (ev.kind) {
	case BLOCK_TEXT:
		annotations(m, jv_get(block, "citations"));
		delta_if(m, DELTA_TEXT, jv_get(block, "text"));
		break;
	case BLOCK_REASONING:
		delta_if(m, DELTA_TEXT, jv_get(block, "thinking"));
		delta_if(m, DELTA_SIGNATURE, jv_get(block, "signature"));
		delta_if(m, DELTA_ENCRYPTED, jv_get(block, "data"));
		break;
	case BLOCK_CALL:
		if (jv_count(jv_get(block, "input")) > 0)
			m->prefilled = arena_str(e->arena, jv_raw(jv_get(block, "input")));
		break;
	case BLOCK_REFUSAL:
	case BLOCK_AUDIO:
	case BLOCK_OPAQUE:
		break;
	}
}

static void
block_stop(struct messages_events *m)
{
	struct events *e = &m->base;
	if (e->open && e->kind == BLOCK_CALL && !m->any_delta && m->prefilled.len > 0)
		events_delta(e, DELTA_TEXT, m->prefilled, STR_NULL);
	events_block_stop(e);
}

/* Some servers send thinking into a text block, or no block start at all: what a delta is decides.
 */
static void
need_block(struct messages_events *m, enum block_kind kind)
{
	struct events *e = &m->base;
	if (e->open && e->kind == kind)
		return;
	block_stop(m);
	events_block_start(e, &(struct turn_event){.kind = kind});
	m->any_delta = false;
	m->prefilled = STR_NULL;
}

static enum err_code
block_delta(struct messages_events *m, struct jval delta, struct err *reterr)
{
	struct events *e = &m->base;
	struct jval type = jv_get(delta, "type");
	if (!jv_is(delta, JT_OBJECT))
		return err_set(reterr, ERR_PROTO, "content_block_delta without a delta");
	if (e->open && e->kind == BLOCK_OPAQUE) {
		events_delta(e, DELTA_RAW, STR_NULL, jv_raw(delta));
	} else if (jv_str_is(type, "text_delta")) {
		need_block(m, BLOCK_TEXT);
		delta_if(m, DELTA_TEXT, jv_get(delta, "text"));
	} else if (jv_str_is(type, "thinking_delta")) {
		need_block(m, BLOCK_REASONING);
		delta_if(m, DELTA_TEXT, jv_get(delta, "thinking"));
	} else if (jv_str_is(type, "signature_delta")) {
		need_block(m, BLOCK_REASONING);
		delta_if(m, DELTA_SIGNATURE, jv_get(delta, "signature"));
	} else if (jv_str_is(type, "input_json_delta")) {
		if (!e->open || e->kind != BLOCK_CALL)
			return err_set(reterr, ERR_PROTO, "input for a block that is no tool call");
		delta_if(m, DELTA_TEXT, jv_get(delta, "partial_json"));
	} else if (jv_str_is(type, "citations_delta") && e->open && e->kind == BLOCK_TEXT) {
		events_annotation(e, jv_raw(jv_get(delta, "citation")));
	}
	return ERR_OK;
}

/* --- messages --- */

static void
read_message(struct messages_events *m, struct jval message)
{
	static const char *const known[] = {"id", "type", "role", "model", "content", "stop_reason",
	    "stop_sequence", "usage", NULL};
	struct events *e = &m->base;
	struct jiter it = {0};
	e->id = arena_str(e->arena, jv_str(e->scratch, jv_get(message, "id")));
	e->model = arena_str(e->arena, jv_str(e->scratch, jv_get(message, "model")));
	read_usage(m, jv_get(message, "usage"));
	keep_extra(m, message, known);
	read_stop(m, message);
	while (jv_next(jv_get(message, "content"), &it)) {
		if (!jv_is(it.value, JT_OBJECT))
			continue;
		block_start(m, it.value);
		block_stop(m);
	}
}

static void
read_message_delta(struct messages_events *m, struct jval v)
{
	static const char *const in_delta[] = {"stop_reason", "stop_sequence", NULL};
	static const char *const beside[] = {"type", "delta", "usage", NULL};
	block_stop(m);
	read_stop(m, jv_get(v, "delta"));
	keep_extra(m, jv_get(v, "delta"), in_delta);
	keep_extra(m, v, beside);
	read_usage(m, jv_get(v, "usage"));
}

static enum err_code
dispatch(struct messages_events *m, struct jval v, struct err *reterr)
{
	struct events *e = &m->base;
	struct jval type = jv_get(v, "type");
	if (jv_str_is(type, "content_block_delta"))
		return block_delta(m, jv_get(v, "delta"), reterr);
	if (jv_str_is(type, "content_block_start")) {
		if (!jv_is(jv_get(v, "content_block"), JT_OBJECT))
			return err_set(reterr, ERR_PROTO, "content_block_start without a block");
		block_stop(m);
		block_start(m, jv_get(v, "content_block"));
	} else if (jv_str_is(type, "content_block_stop")) {
		block_stop(m);
	} else if (jv_str_is(type, "message_start")) {
		if (e->started || e->id.ptr != NULL)
			return err_set(reterr, ERR_PROTO, "a second message_start");
		read_message(m, jv_get(v, "message"));
	} else if (jv_str_is(type, "message_delta")) {
		read_message_delta(m, v);
	} else if (jv_str_is(type, "message_stop")) {
		m->stopped = true;
		return messages_events_end(e, reterr);
	} else if (jv_str_is(type, "ping")) {
		events_ping(e);
	} else {
		(void)events_error_object(e, v); /* "error"; other events are news to come */
	}
	return ERR_OK;
}

enum err_code
messages_events_sse(struct events *e, struct str name, struct str data, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct messages_events *m = self(e);
	struct jval v;
	(void)name; /* equals data.type */
	if (e->over || str_starts(data, STR("[DONE]")) || data.len == 0)
		return ERR_OK;
	enum err_code code = events_parse(e, data, &v, reterr);
	return code == ERR_OK ? dispatch(m, v, reterr) : code;
}

enum err_code
messages_events_whole(struct events *e, struct str body, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct messages_events *m = self(e);
	struct jval v;
	enum err_code code = events_parse(e, body, &v, reterr);
	if (code != ERR_OK)
		return code;
	if (events_error_object(e, v))
		return ERR_OK;
	if (!jv_is(jv_get(v, "content"), JT_ARRAY))
		return err_set(reterr, ERR_PROTO, "the answer is no message");
	read_message(m, v);
	m->stopped = true;
	return messages_events_end(e, reterr);
}

enum err_code
messages_events_end(struct events *e, struct err *reterr)
{
	if (e == NULL)
		return err_set(reterr, ERR_NOMEM, "over the memory budget");
	struct messages_events *m = self(e);
	if (e->over)
		return ERR_OK;
	block_stop(m);
	if (!m->stopped && !m->has_reason) {
		events_error(e, 502, STR("api_error"), STR("the provider's answer was cut off"));
		return ERR_OK;
	}
	finish(m);
	events_end(e);
	return ERR_OK;
}
