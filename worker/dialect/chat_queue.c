#include "worker/dialect/chat_queue.h"

#include "base/digest.h"
#include "base/id.h"
#include "base/json_write.h"
#include "base/limits.h"

/* Called for valid JSON only to find its end: brackets are not matched by kind. */
static void
progress_feed(struct json_progress *p, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (p->in_string) {
			if (p->escaped)
				p->escaped = false;
			else if (c == '\\')
				p->escaped = true;
			else if (c == '"')
				p->in_string = false;
		} else if (c == '"') {
			p->in_string = true;
		} else if (c == '{' || c == '[') {
			p->depth++;
			p->begun = true;
		} else if ((c == '}' || c == ']') && p->depth > 0) {
			p->depth--;
		}
	}
	p->complete = p->begun && p->depth == 0 && !p->in_string;
}

struct chat_choice *
chat_queue_choice(struct chat_queue *q, uint32_t number)
{
	struct chat_choice **at = &q->choices;
	while (*at != NULL && (*at)->number < number)
		at = &(*at)->next;
	if (*at != NULL && (*at)->number == number)
		return *at;
	struct chat_choice *c = ARENA_NEW(q->events->arena, struct chat_choice);
	if (c == NULL)
		return NULL;
	c->number = number;
	c->next = *at;
	*at = c;
	if (q->current == NULL || number < q->current->number)
		q->current =
		    q->current != NULL && q->current->live != NULL && q->current->live->started
			? q->current
			: c;
	return c;
}

static void
free_block(void *arg)
{
	struct chat_block *b = arg;
	buf_done(&b->pending);
}

static bool
is_call(const struct chat_block *b)
{
	return b->kind == BLOCK_CALL;
}

struct chat_block *
chat_queue_open(struct chat_queue *q, struct chat_choice *c, enum block_kind kind)
{
	struct arena *a = q->events->arena;
	struct chat_block *b = c->count < CHAT_BLOCKS_MAX ? ARENA_NEW(a, struct chat_block) : NULL;
	if (b == NULL) {
		q->overflowed = true;
		return NULL;
	}
	c->count++;
	b->kind = kind;
	b->index = -1;
	buf_init(&b->pending, LIMIT_UPSTREAM_WHOLE_BYTES);
	arena_defer(a, free_block, b);
	if (c->last != NULL) {
		c->last->next = b;
		if (!is_call(c->last) || c->last->progress.complete)
			c->last->over = true;
	}
	if (c->first == NULL)
		c->first = b;
	if (c->live == NULL)
		c->live = b;
	c->last = b;
	if (is_call(b)) {
		c->calls_last = b;
		c->has_call = true;
	}
	c->has_refusal = c->has_refusal || kind == BLOCK_REFUSAL;
	return b;
}

static bool
is_live(const struct chat_queue *q, const struct chat_choice *c, const struct chat_block *b)
{
	return c == q->current && b == c->live && b->started;
}

static void
hold(struct chat_queue *q, size_t n)
{
	q->held_bytes += n;
	if (q->held_bytes > LIMIT_UPSTREAM_WHOLE_BYTES)
		q->overflowed = true;
}

void
chat_queue_text(struct chat_queue *q, struct chat_choice *c, struct chat_block *b, struct str s)
{
	b->had_any = true;
	if (s.len == 0)
		return;
	b->has_text = true;
	if (is_call(b) && !b->custom)
		progress_feed(&b->progress, s);
	if (b->gone) /* white space behind arguments that were complete */
		return;
	if (is_live(q, c, b) && !b->custom) {
		events_delta(q->events, DELTA_TEXT, s, STR_NULL);
	} else {
		buf_add(&b->pending, s);
		hold(q, s.len);
	}
}

static void
emit_raw(struct chat_queue *q, const struct chat_block *b, struct str raw)
{
	if (b->kind == BLOCK_TEXT)
		events_annotation(q->events, raw);
	else
		events_delta(q->events, DELTA_RAW, STR_NULL, raw);
}

void
chat_queue_raw(struct chat_queue *q, struct chat_choice *c, struct chat_block *b, struct str raw)
{
	if (is_live(q, c, b)) {
		emit_raw(q, b, raw);
		return;
	}
	struct chat_raw *r = ARENA_NEW(q->events->arena, struct chat_raw);
	if (r == NULL)
		return;
	r->raw = arena_str(q->events->arena, raw);
	if (b->raws_tail != NULL)
		b->raws_tail->next = r;
	else
		b->raws = r;
	b->raws_tail = r;
	hold(q, raw.len);
}

/* --- passing on --- */

/* For servers that give a call no id: the same for the same answer, different in each. */
static struct str
make_id(struct chat_queue *q)
{
	struct arena *a = q->events->arena;
	unsigned char sum[SHA256_BYTES];
	char hex[2 * 12 + 1];
	struct str seed = arena_printf(a, "%.*s/%u", STR_FMT(q->events->id), q->calls);
	if (q->events->id.len == 0)
		id_random(sum, sizeof(sum));
	else
		sha256_of(seed, sum);
	hex_encode(sum, 12, hex);
	return arena_printf(a, "call_%s", hex);
}

static bool
can_start(const struct chat_block *b)
{
	if (!is_call(b))
		return b->has_text || b->raws != NULL;
	if (b->name.len == 0)
		return b->over;
	return b->id.len > 0 || b->has_text || b->over;
}

static void
start_block(struct chat_queue *q, struct chat_choice *c, struct chat_block *b)
{
	if (is_call(b) && b->id.len == 0)
		b->id = make_id(q);
	q->calls += is_call(b);
	b->started = true;
	events_block_start(
	    q->events, &(struct turn_event){
			   .kind = b->kind, .choice = c->number, .id = b->id, .name = b->name});
	if (b->pending.len > 0 && !b->custom) {
		events_delta(q->events, DELTA_TEXT, buf_str(&b->pending), STR_NULL);
		q->held_bytes -= b->pending.len;
		buf_done(&b->pending);
	}
	for (const struct chat_raw *r = b->raws; r != NULL; r = r->next)
		emit_raw(q, b, r->raw);
	b->raws = NULL;
}

static void
stop_block(struct chat_queue *q, struct chat_block *b)
{
	if (b->custom) {
		struct buf out = BUF_INIT(6 * b->pending.len + 64);
		struct jw w;
		jw_init(&w, &out);
		jw_object(&w);
		jw_kstr(&w, "input", buf_str(&b->pending));
		jw_end_object(&w);
		events_delta(q->events, DELTA_TEXT, buf_str(&out), STR_NULL);
		buf_done(&out);
		buf_done(&b->pending);
	}
	events_block_stop(q->events);
}

/* True when the live block is done and was taken off. */
static bool
pump_block(struct chat_queue *q, struct chat_choice *c, bool all)
{
	struct chat_block *b = c->live;
	bool done = all || b->over || c->has_finish;
	if (done)
		b->over = true;
	if (!b->started && can_start(b))
		start_block(q, c, b);
	if (!done && b->next != NULL && (!is_call(b) || b->progress.complete))
		done = b->over = true;
	if (!done)
		return false;
	if (b->started)
		stop_block(q, b);
	b->gone = true;
	c->live = b->next;
	return true;
}

static void
pump_choice(struct chat_queue *q, struct chat_choice *c, bool all)
{
	q->current = c;
	while (c->live != NULL && !q->events->over && pump_block(q, c, all))
		;
}

void
chat_queue_pump(struct chat_queue *q, bool all)
{
	while (q->current != NULL) {
		struct chat_choice *c = q->current;
		pump_choice(q, c, all);
		if (c->live != NULL || !(all || c->has_finish) || c->next == NULL)
			break;
		q->current = c->next;
	}
	if (all) /* and those that came late */
		for (struct chat_choice *c = q->choices; c != NULL; c = c->next)
			pump_choice(q, c, true);
}
