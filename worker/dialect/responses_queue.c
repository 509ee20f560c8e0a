#include "worker/dialect/responses_queue.h"

#include "base/digest.h"
#include "base/id.h"
#include "base/json_write.h"
#include "base/limits.h"

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static uint64_t
hash_more(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * FNV_PRIME;
	return h;
}

uint64_t
responses_hash(struct str s)
{
	return hash_more(FNV_START, s);
}

/* --- items --- */

enum responses_kind
responses_kind_of(struct jval item)
{
	static const struct {
		const char *type;
		enum responses_kind kind;
	} kinds[] = {
	    {"message", ITEM_MESSAGE},
	    {"reasoning", ITEM_REASONING},
	    {"function_call", ITEM_CALL},
	    {"custom_tool_call", ITEM_CUSTOM},
	};
	struct jval type = jv_get(item, "type");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (jv_str_is(type, kinds[i].type))
			return kinds[i].kind;
	return !jv_present(type) && jv_present(jv_get(item, "role")) ? ITEM_MESSAGE : ITEM_OPAQUE;
}

struct responses_item *
responses_find_id(struct responses_queue *q, struct str id, enum responses_kind kind)
{
	struct responses_item *found = NULL;
	for (struct responses_item *it = q->first; it != NULL && id.len > 0; it = it->next)
		if (it->kind == kind && str_eq(it->id, id) &&
		    (found == NULL || found->done || !it->done))
			found = it; /* the latest open one: some servers repeat ids */
	return found;
}

struct responses_item *
responses_find(struct responses_queue *q, int64_t index, struct str id, enum responses_kind kind)
{
	struct responses_item *by_index = NULL, *last = NULL;
	for (struct responses_item *it = q->first; it != NULL; it = it->next) {
		if (it->kind != kind)
			continue;
		if (index >= 0 && it->index == index) {
			by_index = it;
			if (id.len > 0 && str_eq(it->id, id) && !it->done)
				return it;
		}
		if (!it->done)
			last = it;
	}
	struct responses_item *by_id = responses_find_id(q, id, kind);
	if (by_id != NULL)
		return by_id;
	return index >= 0 ? by_index : last;
}

struct responses_item *
responses_add(struct responses_queue *q, int64_t index, struct str id, enum responses_kind kind)
{
	struct arena *a = q->events->arena;
	struct responses_item *it = NULL, **at = &q->first;
	if (q->parts < RESPONSES_PARTS_MAX)
		it = ARENA_NEW(a, struct responses_item);
	if (it == NULL) {
		q->overflowed = true;
		return NULL;
	}
	q->parts++;
	it->kind = kind;
	it->id = arena_str(a, id);
	while (*at != NULL && ((*at)->gone || (*at)->shown))
		at = &(*at)->next;
	while (*at != NULL && (index < 0 || (*at)->index <= index)) {
		if (index < 0 && (*at)->next == NULL)
			it->index = (*at)->index + 1;
		at = &(*at)->next;
	}
	if (index >= 0)
		it->index = index;
	it->next = *at;
	*at = it;
	if (q->live == NULL || q->live == it->next)
		q->live = it;
	return it;
}

/* --- parts --- */

static void
free_pending(void *arg)
{
	struct responses_part *p = arg;
	buf_done(&p->pending);
}

struct responses_part *
responses_part_of(struct responses_queue *q, struct responses_item *it,
    enum responses_part_kind kind, int64_t index)
{
	struct responses_part *same = NULL;
	for (struct responses_part *p = it->parts; p != NULL; p = p->next) {
		if (p->kind != kind)
			continue;
		same = p;
		if (p->index == index)
			return p;
	}
	if (same != NULL && index < 0)
		return same;
	struct responses_part *p = NULL;
	if (q->parts < RESPONSES_PARTS_MAX)
		p = ARENA_NEW(q->events->arena, struct responses_part);
	if (p == NULL) {
		q->overflowed = true;
		return NULL;
	}
	q->parts++;
	p->kind = kind;
	p->index = index < 0 ? 0 : index;
	p->fed_hash = FNV_START;
	buf_init(&p->pending, LIMIT_UPSTREAM_WHOLE_BYTES);
	arena_defer(q->events->arena, free_pending, p);
	if (it->last != NULL)
		it->last->next = p;
	else
		it->parts = p;
	it->last = p;
	if (it->live == NULL)
		it->live = p;
	return p;
}

static void
hold(struct responses_queue *q, size_t n)
{
	q->held_bytes += n;
	if (q->held_bytes > LIMIT_UPSTREAM_WHOLE_BYTES)
		q->overflowed = true;
}

void
responses_feed(struct responses_queue *q, struct responses_part *p, struct str s)
{
	if (q->overflowed)
		return;
	buf_add(&p->pending, s);
	hold(q, s.len);
	p->fed_bytes += s.len;
	p->fed_hash = hash_more(p->fed_hash, s);
}

void
responses_feed_whole(struct responses_queue *q, struct responses_part *p, struct str s)
{
	if (s.len <= p->fed_bytes)
		return;
	if (responses_hash(str_sub(s, 0, p->fed_bytes)) == p->fed_hash)
		responses_feed(q, p, str_from(s, p->fed_bytes));
}

void
responses_feed_note(struct responses_queue *q, struct responses_part *p, struct str raw)
{
	struct responses_note *n =
	    q->overflowed ? NULL : ARENA_NEW(q->events->arena, struct responses_note);
	if (n == NULL || raw.len == 0)
		return;
	n->raw = arena_str(q->events->arena, raw);
	if (p->notes_tail != NULL)
		p->notes_tail->next = n;
	else
		p->notes = n;
	p->notes_tail = n;
	p->note_count++;
	hold(q, raw.len);
}

/* --- passing on --- */

/* For servers that give a call no id at all: the same for the same answer, different in each. */
static struct str
make_id(struct responses_queue *q)
{
	struct arena *a = q->events->arena;
	unsigned char sum[SHA256_BYTES];
	char hex[2 * 12 + 1];
	if (q->events->id.len == 0)
		id_random(sum, sizeof(sum));
	else
		sha256_of(arena_printf(a, "%.*s/%u", STR_FMT(q->events->id), q->calls), sum);
	hex_encode(sum, 12, hex);
	return arena_printf(a, "call_%s", hex);
}

static void
start_block(struct responses_queue *q, struct responses_item *it, enum block_kind kind)
{
	struct turn_event ev = {.kind = kind, .id = it->id, .raw = it->extra_raw};
	if (kind == BLOCK_CALL) {
		if (it->call_id.len == 0)
			it->call_id = it->id.len > 0 ? it->id : make_id(q);
		ev.id = it->call_id;
		ev.name = it->name;
		q->calls++;
		q->has_call = true;
	}
	q->has_refusal = q->has_refusal || kind == BLOCK_REFUSAL;
	it->started = it->shown = true;
	events_block_start(q->events, &ev);
}

static void
stop_block(struct responses_queue *q, struct responses_item *it)
{
	if (it->started)
		events_block_stop(q->events);
	it->started = false;
}

static void
send_pending(struct responses_queue *q, struct responses_part *p)
{
	if (p->pending.len == 0)
		return;
	events_delta(q->events, DELTA_TEXT, buf_str(&p->pending), STR_NULL);
	q->held_bytes -= p->pending.len;
	buf_clear(&p->pending);
}

static void
send_notes(struct responses_queue *q, struct responses_part *p)
{
	for (const struct responses_note *n = p->notes; n != NULL; n = n->next) {
		events_annotation(q->events, n->raw);
		q->held_bytes -= n->raw.len;
	}
	p->notes = p->notes_tail = NULL;
}

/* One block for each part that holds something. */
static void
pump_message(struct responses_queue *q, struct responses_item *it, bool finished)
{
	while (it->live != NULL) {
		struct responses_part *p = it->live;
		if (!it->started && (p->pending.len > 0 || p->notes != NULL))
			start_block(q, it, p->kind == RPART_REFUSAL ? BLOCK_REFUSAL : BLOCK_TEXT);
		if (it->started) {
			send_pending(q, p);
			send_notes(q, p);
		}
		if (!finished && p->next == NULL)
			return; /* annotations may still come */
		stop_block(q, it);
		it->live = p->next;
	}
}

/* A border: the blank line is for writers that know no parts, raw for those that do. */
static void
begin_reasoning_part(struct responses_queue *q, struct responses_item *it, struct responses_part *p)
{
	bool is_first = true;
	for (const struct responses_part *o = it->parts; o != p; o = o->next)
		is_first = is_first && !o->begun;
	p->begun = true;
	if (is_first && p->kind == RPART_SUMMARY)
		return;
	events_delta(q->events, DELTA_TEXT, is_first ? STR("") : STR("\n\n"),
	    p->kind == RPART_SUMMARY ? STR("\"summary_text\"") : STR("\"reasoning_text\""));
}

static void
pump_reasoning(struct responses_queue *q, struct responses_item *it, bool finished)
{
	for (; it->live != NULL; it->live = it->live->next) {
		struct responses_part *p = it->live;
		if (p->pending.len > 0) {
			if (!it->started)
				start_block(q, it, BLOCK_REASONING);
			if (!p->begun)
				begin_reasoning_part(q, it, p);
			send_pending(q, p);
		}
		if (!finished && p->next == NULL)
			break;
	}
	if (!finished)
		return;
	if (!it->started && !it->shown)
		start_block(q, it, BLOCK_REASONING);
	if (it->started && it->encrypted.len > 0)
		events_delta(q->events, DELTA_ENCRYPTED, it->encrypted, STR_NULL);
	stop_block(q, it);
}

static void
send_custom(struct responses_queue *q, struct responses_part *p, bool finished)
{
	struct buf b = BUF_INIT(6 * LIMIT_UPSTREAM_WHOLE_BYTES);
	if (!p->begun)
		buf_add(&b, STR("{\"input\":\""));
	jw_escape(&b, buf_str(&p->pending));
	if (finished)
		buf_add(&b, STR("\"}"));
	p->begun = true;
	if (b.len > 0)
		events_delta(q->events, DELTA_TEXT, buf_str(&b), STR_NULL);
	q->held_bytes -= p->pending.len;
	buf_clear(&p->pending);
	buf_done(&b);
}

static void
pump_call(struct responses_queue *q, struct responses_item *it, bool finished)
{
	struct responses_part *p = it->live;
	if (!it->started && !it->shown && (it->name.len > 0 || finished))
		start_block(q, it, BLOCK_CALL);
	if (!it->started)
		return;
	if (p != NULL && it->kind == ITEM_CUSTOM)
		send_custom(q, p, finished);
	else if (p != NULL)
		send_pending(q, p);
	if (finished)
		stop_block(q, it);
}

static void
pump_item(struct responses_queue *q, struct responses_item *it, bool finished)
{
	switch (it->kind) {
	case ITEM_MESSAGE:
		pump_message(q, it, finished);
		break;
	case ITEM_REASONING:
		pump_reasoning(q, it, finished);
		break;
	case ITEM_CALL:
	case ITEM_CUSTOM:
		pump_call(q, it, finished);
		break;
	case ITEM_OPAQUE:
		if (!finished || it->shown || it->raw.len == 0)
			break;
		it->shown = true;
		events_block_start(
		    q->events, &(struct turn_event){.kind = BLOCK_OPAQUE, .raw = it->raw});
		events_block_stop(q->events);
		break;
	}
}

/* Nothing more is to be expected, although the wire did not say so. */
static bool
is_over(const struct responses_item *it)
{
	bool over = it->parts != NULL && it->kind != ITEM_REASONING;
	for (const struct responses_part *p = it->parts; p != NULL; p = p->next)
		over = over && p->closed;
	return over;
}

void
responses_pump(struct responses_queue *q, bool all)
{
	while (q->live != NULL && !q->events->over) {
		struct responses_item *it = q->live;
		bool finished = all || it->done || (it->next != NULL && is_over(it));
		pump_item(q, it, finished);
		if (!finished)
			return;
		it->gone = true;
		q->live = it->next;
	}
	if (!all) /* and text that came for what was left behind */
		return;
	for (struct responses_item *it = q->first; it != NULL; it = it->next) {
		bool late = false;
		for (const struct responses_part *p = it->parts; p != NULL; p = p->next)
			late = late || p->pending.len > 0;
		if (it->kind != ITEM_MESSAGE || !late)
			continue;
		it->live = it->parts;
		pump_message(q, it, true);
	}
}
