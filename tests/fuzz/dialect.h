/* dialect.h - what the dialect fuzz targets share: whatever comes in, what goes out is JSON */
#ifndef OTARI_TESTS_FUZZ_DIALECT_H
#define OTARI_TESTS_FUZZ_DIALECT_H

#include <string.h>

#include "base/check.h"
#include "base/sse.h"
#include "base/utf8.h"
#include "worker/dialect/dialect.h"
#include "worker/turn/extract_plan.h"

/* Our frame around a stranger's value may push it over the depth limit; nothing else may be wrong.
 */
static inline void
check_json(struct str text)
{
	struct arena *a = arena_new(64u << 20);
	struct jval v;
	struct err e = {0};
	if (jdoc_parse(a, text, &v, &e) != ERR_OK)
		CHECK(strstr(e.msg, "too deep") != NULL);
	arena_free(&a);
}

static inline void
fuzz_encode(struct conversation *c)
{
	static const enum wire wires[] = {WIRE_CHAT, WIRE_MESSAGES, WIRE_RESPONSES};
	struct err e;
	for (unsigned i = 0; i < 2 * ARRAY_LEN(wires); i++) {
		struct encode_options opt = {
		    .model = STR("m"), .stream = i & 1, .native_openai = i & 1};
		struct buf out = BUF_INIT(64u << 20);
		if (dialect_of(wires[i / 2])->encode(c, &opt, &out, &e) == ERR_OK)
			check_json(buf_str(&out));
		buf_done(&out);
	}
}

/* Every document becomes text: anything, as its program may write. */
static inline bool
fuzz_documents(struct conversation *c, struct str bytes)
{
	struct extract_plan plan;
	extract_collect(c, DOCUMENTS_NONE, &plan);
	for (struct extract_document *d = plan.first; d != NULL; d = d->next) {
		size_t max = bytes.len / 2 + plan.count;
		d->text = extract_text(c->arena, bytes, bytes.len + plan.count % 2, max);
		CHECK(utf8_valid(d->text) && d->text.len < max + 128);
	}
	extract_rewrite(c, &plan);
	return plan.count > 0;
}

static inline int
fuzz_request(enum wire w, const uint8_t *data, size_t size)
{
	struct arena *a = arena_new(16u << 20);
	struct str body = str_n(data, size);
	struct jval root;
	struct conversation *c;
	struct err e;
	if (jdoc_parse(a, body, &root, NULL) == ERR_OK &&
	    dialect_of(w)->decode(a, body, root, &c, &e) == ERR_OK) {
		fuzz_encode(c);
		if (fuzz_documents(c, body))
			fuzz_encode(c);
	}
	arena_free(&a);
	return 0;
}

struct fuzz_answer {
	const struct dialect *from, *to;
	struct events *events;
	struct reply *reply;
	bool open, over;
};

static inline bool
fuzz_on_event(void *arg, const struct turn_event *ev)
{
	struct fuzz_answer *f = arg;
	CHECK(!f->over);
	if (ev->type == TURN_BLOCK_START) {
		CHECK(!f->open);
		f->open = true;
	} else if (ev->type == TURN_BLOCK_STOP) {
		CHECK(f->open);
		f->open = false;
	} else if (ev->type == TURN_BLOCK_DELTA || ev->type == TURN_ANNOTATION) {
		CHECK(f->open);
	} else if (ev->type != TURN_PING) {
		CHECK(!f->open);
	}
	f->over = ev->type == TURN_END || ev->type == TURN_ERROR;
	f->to->reply_event(f->reply, ev);
	return true;
}

static inline enum err_code
fuzz_on_sse(void *arg, struct str name, struct str data)
{
	struct fuzz_answer *f = arg;
	return f->from->events_sse(f->events, name, data, NULL);
}

static inline enum err_code
fuzz_on_frame(void *arg, struct str name, struct str data)
{
	(void)arg;
	(void)name;
	if (!str_eq(data, STR("[DONE]")))
		check_json(data);
	return ERR_OK;
}

/* The first byte chooses the client and the forms; the rest is what the provider sent. */
static inline int
fuzz_events(enum wire w, const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	bool stream_in = data[0] & 1, stream_out = data[0] & 2;
	struct str in = str_n(data + 1, size - 1);
	struct arena *a = arena_new(64u << 20);
	struct buf out = BUF_INIT(64u << 20);
	enum wire to = data[0] & 4 ? WIRE_CHAT : WIRE_MESSAGES;
	struct fuzz_answer f = {
	    .from = dialect_of(w), .to = dialect_of(data[0] & 16 ? WIRE_RESPONSES : to)};
	struct reply_options opt = {
	    .stream = stream_out, .include_usage = data[0] & 8, .fallback_id = "1"};
	struct sse_reader sse;
	enum err_code e;
	sse_init(&sse, 1u << 20);
	f.reply = f.to->reply_new(a, &opt, &out);
	f.events = f.from->events_new(a, fuzz_on_event, &f);
	if (stream_in) {
		e = sse_feed(&sse, in, fuzz_on_sse, &f, NULL);
		if (e == ERR_OK)
			e = f.from->events_end(f.events, NULL);
	} else {
		e = f.from->events_whole(f.events, in, NULL);
	}
	CHECK(e != ERR_OK || f.over);
	sse_done(&sse);
	sse_init(&sse, 64u << 20);
	if (stream_out)
		CHECK(sse_feed(&sse, buf_str(&out), fuzz_on_frame, NULL, NULL) == ERR_OK);
	else if (out.len > 0)
		check_json(buf_str(&out));
	sse_done(&sse);
	buf_done(&out);
	arena_free(&a);
	return 0;
}

#endif
