#include "tests/unit/dialectfix.h"

#include <jansson.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "base/sse.h"

struct conversation *
fix_decode(struct arena *a, enum wire w, struct str body, struct err *err)
{
	struct jval root;
	struct conversation *c = NULL;
	if (jdoc_parse(a, body, &root, err) != ERR_OK)
		return NULL;
	return dialect_of(w)->decode(a, body, root, &c, err) == ERR_OK ? c : NULL;
}

struct str
fix_translate_with(
    struct arena *a, enum wire from, enum wire to, struct str body, struct encode_options opt)
{
	struct err err = {0};
	struct conversation *c = fix_decode(a, from, body, &err);
	if (c == NULL)
		return arena_printf(a, "error: %s", err.msg);
	struct buf out = BUF_INIT(64u << 20);
	struct str ret;
	opt.model = STR("m");
	opt.stream = c->stream;
	if (dialect_of(to)->encode(c, &opt, &out, &err) != ERR_OK)
		ret = arena_printf(a, "error: %s", err.msg);
	else
		ret = arena_str(a, buf_str(&out));
	buf_done(&out);
	return ret;
}

struct str
fix_translate(struct arena *a, enum wire from, enum wire to, struct str body)
{
	return fix_translate_with(a, from, to, body, (struct encode_options){.stream = false});
}

struct str
fix_translate_native(struct arena *a, enum wire from, enum wire to, struct str body)
{
	return fix_translate_with(
	    a, from, to, body, (struct encode_options){.native_openai = true});
}

struct str
fix_dropped(struct arena *a, const struct conversation *c)
{
	struct str s = STR("");
	for (const struct dropped *d = c->dropped; d != NULL; d = d->next)
		s = arena_printf(
		    a, "%.*s%s%.*s", STR_FMT(s), s.len > 0 ? "," : "", STR_FMT(d->what));
	return s;
}

/* --- answers --- */

struct run {
	struct arena *arena;
	const struct dialect *from, *to;
	struct events *events;
	struct reply *reply;
	struct buf log, out;
	struct fix_answer *ret;
	bool open;
};

static void
log_event(struct run *r, const struct turn_event *ev)
{
	static const char *const kinds[] = {
	    "text", "reasoning", "call", "refusal", "audio", "opaque"};
	static const char *const reasons[] = {"stop", "length", "tool", "stop_sequence", "refusal",
	    "content_filter", "pause", "context", "other"};
	struct buf *b = &r->log;
	switch (ev->type) {
	case TURN_START:
		buf_printf(b, "start %.*s %.*s\n", STR_FMT(ev->id), STR_FMT(ev->name));
		break;
	case TURN_BLOCK_START:
		buf_printf(b, "%s", kinds[ev->kind]);
		if (ev->kind == BLOCK_CALL)
			buf_printf(b, " %.*s %.*s", STR_FMT(ev->id), STR_FMT(ev->name));
		if (ev->choice > 0)
			buf_printf(b, " @%u", ev->choice);
		buf_addc(b, ':');
		break;
	case TURN_BLOCK_DELTA:
		if (ev->field == DELTA_TEXT)
			buf_add(b, ev->text);
		else
			buf_printf(
			    b, "<%d %.*s%.*s>", ev->field, STR_FMT(ev->text), STR_FMT(ev->raw));
		break;
	case TURN_BLOCK_STOP:
		buf_addc(b, '\n');
		break;
	case TURN_ANNOTATION:
		buf_printf(b, "<note %.*s>", STR_FMT(ev->raw));
		break;
	case TURN_FINISH:
		buf_printf(b, "finish %s\n", reasons[ev->reason]);
		break;
	case TURN_USAGE:
		buf_printf(b, "usage %lld %lld\n", (long long)ev->usage.input,
		    (long long)ev->usage.output);
		break;
	case TURN_END:
		buf_add(b, STR("end\n"));
		break;
	case TURN_ERROR:
		buf_printf(b, "error %d %.*s: %.*s\n", ev->status, STR_FMT(ev->error_type),
		    STR_FMT(ev->error_message));
		break;
	case TURN_PING:
		break;
	}
}

static bool
on_event(void *arg, const struct turn_event *ev)
{
	struct run *r = arg;
	cr_assert(!r->ret->ended && !r->ret->failed, "an event after the end");
	if (ev->type == TURN_BLOCK_START) {
		cr_assert(!r->open, "two blocks open");
		r->open = true;
		r->ret->calls += ev->kind == BLOCK_CALL;
	} else if (ev->type == TURN_BLOCK_STOP) {
		cr_assert(r->open, "stop without start");
		r->open = false;
	} else if (ev->type == TURN_BLOCK_DELTA || ev->type == TURN_ANNOTATION) {
		cr_assert(r->open, "a delta outside");
	} else if (ev->type != TURN_PING) {
		cr_assert(!r->open, "a block stayed open");
	}
	if (ev->type == TURN_USAGE) {
		r->ret->usage = ev->usage;
		r->ret->usage.raw = arena_str(r->arena, ev->usage.raw);
	}
	r->ret->ended = r->ret->ended || ev->type == TURN_END;
	r->ret->failed = r->ret->failed || ev->type == TURN_ERROR;
	log_event(r, ev);
	r->to->reply_event(r->reply, ev);
	return true;
}

static enum err_code
on_sse(void *arg, struct str name, struct str data)
{
	struct run *r = arg;
	/* exactly as long as it is, so that the sanitizer sees a read behind it */
	char *tight = mem_alloc(data.len > 0 ? data.len : 1);
	memcpy(tight, data.ptr, data.len);
	enum err_code e = r->from->events_sse(r->events, name, str_n(tight, data.len), NULL);
	mem_free(tight);
	return e;
}

static enum err_code
feed(struct run *r, struct str in, size_t step)
{
	struct sse_reader sse;
	enum err_code e = ERR_OK;
	sse_init(&sse, 16u << 20);
	if (step == 0)
		step = in.len > 0 ? in.len : 1;
	for (size_t at = 0; at < in.len && e == ERR_OK; at += step)
		e = sse_feed(&sse, str_sub(in, at, step), on_sse, r, NULL);
	sse_done(&sse);
	if (e == ERR_OK)
		e = r->from->events_end(r->events, NULL);
	return e;
}

void
fix_answer(
    struct arena *a, const struct fix_way *way, struct str in, size_t step, struct fix_answer *ret)
{
	*ret = (struct fix_answer){.usage = TOKEN_USAGE_NONE};
	struct run r = {
	    .arena = a, .from = dialect_of(way->from), .to = dialect_of(way->to), .ret = ret};
	struct reply_options opt = {.stream = way->stream_out,
	    .include_usage = way->include_usage,
	    .fallback_id = "0123",
	    .created_s = 1700000000,
	    .native_code = true,
	    .request = way->request};
	buf_init(&r.log, 64u << 20);
	buf_init(&r.out, 128u << 20);
	r.reply = r.to->reply_new(a, &opt, &r.out);
	r.events = r.from->events_new(a, on_event, &r);
	ret->code = way->stream_in ? feed(&r, in, step) : r.from->events_whole(r.events, in, NULL);
	ret->log = arena_str(a, buf_str(&r.log));
	ret->bytes = arena_str(a, buf_str(&r.out));
	cr_assert(!arena_overflowed(a));
	buf_done(&r.log);
	buf_done(&r.out);
}

struct str
fix_frames(struct arena *a, enum wire w, struct str lines)
{
	struct buf b = BUF_INIT(64u << 20);
	struct str line;
	while (str_split(&lines, '\n', &line)) {
		struct jval v;
		if (str_trim(line).len == 0)
			continue;
		if (w != WIRE_CHAT && jdoc_parse(a, line, &v, NULL) == ERR_OK) {
			struct str type = jv_str(a, jv_get(v, "type"));
			buf_printf(&b, "event: %.*s\n", STR_FMT(type));
		}
		buf_add(&b, STR("data: "));
		buf_add(&b, line);
		buf_add(&b, STR("\n\n"));
	}
	if (w == WIRE_CHAT)
		buf_add(&b, STR("data: [DONE]\n\n"));
	struct str s = arena_str(a, buf_str(&b));
	buf_done(&b);
	return s;
}

bool
fix_json_eq(struct str a, struct str b)
{
	json_t *x = json_loadb(a.ptr, a.len, JSON_ALLOW_NUL, NULL);
	json_t *y = json_loadb(b.ptr, b.len, JSON_ALLOW_NUL, NULL);
	bool eq = x != NULL && y != NULL && json_equal(x, y) == 1;
	json_decref(x);
	json_decref(y);
	return eq;
}

struct conversation *
fix_must_decode(struct arena *a, enum wire w, const char *body)
{
	struct err e = {0};
	struct conversation *c = fix_decode(a, w, str_c(body), &e);
	cr_assert(c != NULL, "%s: %s", body, e.msg);
	return c;
}

struct str
fix_encode(struct arena *a, enum wire to, struct conversation *c, bool is_openai)
{
	struct encode_options opt = {.model = STR("m"), .native_openai = is_openai};
	struct buf out = BUF_INIT(1u << 20);
	struct err e = {0};
	struct str ret;
	if (dialect_of(to)->encode(c, &opt, &out, &e) == ERR_OK)
		ret = arena_str(a, buf_str(&out));
	else
		ret = arena_printf(a, "error: %s", e.msg);
	buf_done(&out);
	return ret;
}
