/* Turn events → Responses answer, streamed (openai-wire §4) or whole (§3.7). */
#include "worker/dialect/responses_reply.h"

#include "base/digest.h"
#include "worker/dialect/mapping.h"
#include "worker/dialect/responses.h"

static struct responses_reply *
self(struct reply *r)
{
	return (struct responses_reply *)r; /* base is its first member */
}

struct reply *
responses_reply_new(struct arena *a, const struct reply_options *opt, struct buf *out)
{
	struct responses_reply *m = ARENA_NEW(a, struct responses_reply);
	if (m == NULL)
		return NULL;
	m->base.arena = a;
	m->base.opt = *opt;
	m->base.out = out;
	m->usage = TOKEN_USAGE_NONE;
	m->finish = (struct turn_event){.type = TURN_FINISH, .reason = FINISH_STOP};
	struct buf **const bufs[] = {&m->output, &m->content, &m->summary, &m->reasoning, &m->text,
	    &m->notes, &m->arguments, &m->wrapped, &m->object, &m->input};
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		if ((*bufs[i] = reply_buf(a)) == NULL)
			return NULL;
	return &m->base;
}

/* --- events --- */

bool
responses_open(struct responses_reply *m, const char *name, struct jw *w)
{
	if (!m->base.opt.stream)
		return false;
	sse_begin(m->base.out, name);
	jw_init(w, m->base.out);
	jw_object(w);
	jw_kcstr(w, "type", name);
	jw_ki64(w, "sequence_number", m->sequence++);
	return true;
}

bool
responses_open_item(struct responses_reply *m, const char *name, struct jw *w)
{
	if (!responses_open(m, name, w))
		return false;
	jw_kstr(w, "item_id", m->item_id);
	jw_ki64(w, "output_index", m->index);
	return true;
}

void
responses_close(struct responses_reply *m, struct jw *w)
{
	jw_end_object(w);
	sse_end(m->base.out);
}

struct str
responses_item_id(struct responses_reply *m, const char *prefix)
{
	unsigned char sum[SHA256_BYTES];
	char hex[2 * 24 + 1];
	sha256_of(
	    arena_printf(m->base.arena, "%.*s/%u", STR_FMT(m->base.id), (unsigned)m->index), sum);
	hex_encode(sum, 24, hex);
	return arena_printf(m->base.arena, "%s%s", prefix, hex);
}

void
responses_write_extra(struct responses_reply *m, struct jw *w, struct str raw)
{
	struct jval v;
	struct jiter it = {0};
	if (raw.len == 0 || jdoc_parse(m->base.arena, raw, &v, NULL) != ERR_OK)
		return;
	while (jv_next(v, &it)) {
		if (jv_str_is(it.key, "id"))
			continue;
		jw_key_str(w, jv_str(m->base.arena, it.key));
		jw_raw(w, jv_raw(it.value));
	}
}

bool
responses_added(struct responses_reply *m, struct jw *w)
{
	if (!responses_open(m, "response.output_item.added", w))
		return false;
	jw_ki64(w, "output_index", m->index);
	jw_key(w, "item");
	return true;
}

struct jw
responses_item_begin(struct responses_reply *m)
{
	struct jw w;
	if (m->output->len > 0)
		buf_addc(m->output, ',');
	jw_init(&w, m->output);
	return w;
}

void
responses_item_done_event(struct responses_reply *m, size_t from)
{
	struct jw w;
	if (responses_open(m, "response.output_item.done", &w)) {
		jw_ki64(&w, "output_index", m->index);
		jw_kraw(&w, "item", str_from(buf_str(m->output), from));
		responses_close(m, &w);
	}
	m->index++;
}

/* --- the answer as a whole --- */

static void
object_event(struct responses_reply *m, const char *name, const char *status)
{
	struct jw w;
	if (!responses_open(m, name, &w))
		return;
	jw_key(&w, "response");
	responses_write_object(m, &w, status);
	responses_close(m, &w);
}

static void
start(struct responses_reply *m, const struct turn_event *ev)
{
	struct turn_event head = *ev;
	if (m->base.started)
		return;
	if (ev->raw_wire != WIRE_RESPONSES)
		head.id = STR_NULL; /* other wires' ids do not look like ours */
	reply_head(&m->base, &head, "resp_");
	object_event(m, "response.created", "in_progress");
	object_event(m, "response.in_progress", "in_progress");
}

void
responses_reply_need_start(struct responses_reply *m)
{
	start(m, &(struct turn_event){.type = TURN_START});
}

/* One event that ends the stream: clients throw at it; nothing may follow. */
static void
fail(struct responses_reply *m, const struct turn_event *ev)
{
	struct jw w;
	m->base.over = true;
	if (!responses_open(m, "error", &w))
		return;
	const char *type = reply_error_type(&m->base, ev, WIRE_RESPONSES);
	if (type == NULL)
		type = error_type_for(WIRE_RESPONSES, ev->status);
	jw_key(&w, "error");
	jw_object(&w);
	jw_kcstr(&w, "type", type);
	jw_kcstr(&w, "code", type); /* some clients want a string there */
	jw_kstr(&w, "message", ev->error_message);
	jw_knull(&w, "param");
	jw_end_object(&w);
	jw_kstr(&w, "detail", ev->error_message);
	responses_close(m, &w);
}

static bool
is_too_large(const struct responses_reply *m)
{
	const struct buf *const bufs[] = {m->output, m->content, m->summary, m->reasoning, m->text,
	    m->notes, m->arguments, m->wrapped, m->object, m->input};
	bool over = arena_overflowed(m->base.arena);
	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		over = over || bufs[i]->overflowed;
	return over;
}

static void
end(struct responses_reply *m)
{
	responses_block_stop(m);
	const char *why = responses_incomplete_reason(m);
	const char *status = why != NULL ? "incomplete" : "completed";
	responses_close_item(m, status);
	if (is_too_large(m)) { /* what would repeat it all cannot */
		m->base.out->overflowed = m->base.out->overflowed || !m->base.opt.stream;
		fail(m, &(struct turn_event){
			    .status = 502, .error_message = STR("the answer is too large")});
		return;
	}
	if (m->base.opt.stream) {
		object_event(m, why != NULL ? "response.incomplete" : "response.completed", status);
	} else {
		struct jw w;
		jw_init(&w, m->base.out);
		responses_write_object(m, &w, status);
	}
	m->base.over = true;
}

static void
finish(struct responses_reply *m, const struct turn_event *ev)
{
	struct arena *a = m->base.arena;
	m->finish = *ev;
	m->finish.reason_raw = arena_str(a, ev->reason_raw);
	m->finish.raw = arena_str(a, ev->raw);
	if (ev->raw_wire != WIRE_RESPONSES || ev->raw.len == 0 ||
	    jdoc_parse(a, m->finish.raw, &m->settings, NULL) != ERR_OK)
		m->settings = JV_ABSENT;
}

void
responses_reply_event(struct reply *r, const struct turn_event *ev)
{
	struct responses_reply *m = self(r);
	if (r == NULL || r->over || ev->choice != 0) /* this wire has one choice */
		return;
	if (ev->type != TURN_START && ev->type != TURN_ERROR && ev->type != TURN_PING)
		responses_reply_need_start(m);
	switch (ev->type) {
	case TURN_START:
		start(m, ev);
		break;
	case TURN_BLOCK_START:
		responses_block_start(m, ev);
		break;
	case TURN_BLOCK_DELTA:
		responses_block_delta(m, ev);
		break;
	case TURN_BLOCK_STOP:
		responses_block_stop(m);
		break;
	case TURN_ANNOTATION:
		responses_annotation(m, ev);
		break;
	case TURN_FINISH:
		finish(m, ev);
		break;
	case TURN_USAGE:
		m->usage = ev->usage;
		m->usage.raw = arena_str(r->arena, ev->usage.raw);
		m->usage_wire = ev->raw_wire;
		break;
	case TURN_END:
		end(m);
		break;
	case TURN_ERROR:
		fail(m, ev);
		break;
	case TURN_PING:
		responses_reply_ping(r);
		break;
	}
}

/* The wire has no event for it, and strict clients throw at unknown ones: a comment. */
void
responses_reply_ping(struct reply *r)
{
	if (r == NULL || !r->opt.stream || !r->started || r->over)
		return;
	buf_add(r->out, STR(": ping\n\n"));
}
