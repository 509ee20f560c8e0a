/* Random streams, from a fixed seed, of answers that are known as a whole: items grow side by side,
 * in pieces of any size, with numbers or ids or both, and some closing events are left out. What
 * the reader says is the same as for the whole answer. */
#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"

#define ITEMS_MAX  6
#define EVENTS_MAX 64

struct random {
	uint64_t state;
};

static uint32_t
next(struct random *r, uint32_t below)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)(r->state >> 11) % below;
}

struct item {
	struct str events[EVENTS_MAX]; /* in their order; the first announces it */
	size_t count, told;
	struct str final;
};

struct world {
	struct random *r;
	struct arena *a;
	bool has_numbers, has_ids; /* one of them at least */
	struct item items[ITEMS_MAX];
	uint32_t count;
};

/* "output_index":3,"item_id":"x3", or less */
static struct str
where(struct world *w, uint32_t i)
{
	struct str s = STR("");
	if (w->has_numbers)
		s = arena_printf(w->a, ",\"output_index\":%u", i);
	if (w->has_ids)
		s = arena_printf(w->a, "%.*s,\"item_id\":\"x%u\"", STR_FMT(s), i);
	return s;
}

static void
add(struct world *w, uint32_t i, const char *type, struct str rest)
{
	struct item *it = &w->items[i];
	cr_assert(it->count < EVENTS_MAX);
	it->events[it->count++] =
	    arena_printf(w->a, "data: {\"type\":\"response.%s\"%.*s,%.*s}\n\n", type,
		STR_FMT(where(w, i)), STR_FMT(rest));
}

static void
add_pieces(struct world *w, uint32_t i, const char *type, struct str text, const char *more)
{
	while (text.len > 0) {
		size_t n = 1 + next(w->r, (uint32_t)text.len);
		add(w, i, type,
		    arena_printf(w->a, "\"delta\":\"%.*s\"%s", STR_FMT(str_sub(text, 0, n)), more));
		text = str_from(text, n);
	}
}

static void
add_whole(struct world *w, uint32_t i, const char *type, const char *member, const char *text)
{
	if (next(w->r, 2))
		add(w, i, type, arena_printf(w->a, "\"%s\":\"%s\"", member, text));
}

static struct str
id_of(struct world *w, uint32_t i)
{
	return w->has_ids ? arena_printf(w->a, "\"id\":\"x%u\",", i) : STR("");
}

static void
make_item(struct world *w, uint32_t i)
{
	struct item *it = &w->items[i];
	struct str id = id_of(w, i), head = STR("");
	uint32_t kind = next(w->r, 5);
	const char *name = kind == 2 ? "function_call" : "custom_tool_call";
	const char *text = kind == 2 ? "[1,22,333]" : "free text";
	const char *member = kind == 2 ? "arguments" : "input";
	switch (kind) {
	case 0:
		head = arena_printf(w->a,
		    "%.*s\"type\":\"message\",\"role\":\"assistant\",\"content\":", STR_FMT(id));
		it->final = arena_printf(w->a,
		    "{%.*s[{\"type\":\"output_text\",\"text\":\"some words %u\",\"annotations\":["
		    "{\"n\":%u}]},{\"type\":\"refusal\",\"refusal\":\"no more\"}]}",
		    STR_FMT(head), i, i);
		add(w, i, "output_item.added",
		    arena_printf(w->a, "\"item\":{%.*s[]}", STR_FMT(head)));
		add_pieces(w, i, "output_text.delta", arena_printf(w->a, "some words %u", i),
		    ",\"content_index\":0");
		/* told before the next part begins: a part that was passed on is closed */
		add(w, i, "output_text.annotation.added",
		    arena_printf(w->a,
			"\"content_index\":0,\"annotation_index\":0,\"annotation\":{\"n\":%u}", i));
		add_pieces(w, i, "refusal.delta", STR("no more"), ",\"content_index\":1");
		break;
	case 1:
		head = arena_printf(
		    w->a, "%.*s\"type\":\"reasoning\",\"encrypted_content\":", STR_FMT(id));
		it->final = arena_printf(w->a,
		    "{%.*s\"E%u\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"first\"},"
		    "{\"type\":\"summary_text\",\"text\":\"second\"}]}",
		    STR_FMT(head), i);
		add(w, i, "output_item.added",
		    arena_printf(w->a, "\"item\":{%.*s\"early\",\"summary\":[]}", STR_FMT(head)));
		add_pieces(
		    w, i, "reasoning_summary_text.delta", STR("first"), ",\"summary_index\":0");
		add_pieces(
		    w, i, "reasoning_summary_text.delta", STR("second"), ",\"summary_index\":1");
		break;
	case 2:
	case 3:
		head = arena_printf(w->a,
		    "%.*s\"type\":\"%s\",\"call_id\":\"c%u\",\"name\":\"f\",\"%s\":", STR_FMT(id),
		    name, i, member);
		it->final = arena_printf(w->a, "{%.*s\"%s\"}", STR_FMT(head), text);
		add(w, i, "output_item.added",
		    arena_printf(w->a, "\"item\":{%.*s\"\"}", STR_FMT(head)));
		add_pieces(w, i,
		    kind == 2 ? "function_call_arguments.delta" : "custom_tool_call_input.delta",
		    str_c(text), "");
		add_whole(w, i,
		    kind == 2 ? "function_call_arguments.done" : "custom_tool_call_input.done",
		    member, text);
		break;
	default:
		it->final = arena_printf(
		    w->a, "{%.*s\"type\":\"web_search_call\",\"n\":%u}", STR_FMT(id), i);
		add(w, i, "output_item.added",
		    arena_printf(w->a, "\"item\":{%.*s\"type\":\"web_search_call\"}", STR_FMT(id)));
		add(w, i, "web_search_call.searching", STR("\"n\":1"));
		break;
	}
}

/* All events: items are announced in order, the rest in any; closing events perhaps. */
static struct str
shuffle(struct world *w, bool all_closed)
{
	struct buf b = BUF_INIT(1u << 20);
	uint32_t announced = 0, left = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		if (all_closed || next(w->r, 3) > 0)
			add(w, i, "output_item.done",
			    arena_printf(w->a, "\"item\":%.*s", STR_FMT(w->items[i].final)));
		left += (uint32_t)w->items[i].count;
	}
	while (left > 0) {
		uint32_t i = next(w->r, announced < w->count ? announced + 1 : announced);
		struct item *it = &w->items[i];
		if (it->told == it->count)
			continue;
		announced += i == announced;
		buf_add(&b, it->events[it->told++]);
		left--;
	}
	struct str s = arena_str(w->a, buf_str(&b));
	buf_done(&b);
	return s;
}

static void
check(struct random *r, int round)
{
	struct arena *a = arena_new(64u << 20);
	uint32_t ways = next(r, 3);
	struct world w = {.r = r, .a = a, .has_numbers = ways != 1, .has_ids = ways != 2};
	struct str list = STR("");
	w.count = 1 + next(r, ITEMS_MAX);
	for (uint32_t i = 0; i < w.count; i++) {
		make_item(&w, i);
		list = arena_printf(
		    a, "%.*s%s%.*s", STR_FMT(list), i > 0 ? "," : "", STR_FMT(w.items[i].final));
	}
	bool all_closed = next(r, 2);
	struct str events = shuffle(&w, all_closed);
	struct str response = arena_printf(a,
	    "{\"id\":\"resp_1\",\"model\":\"m\",\"status\":\"completed\",\"output\":[%.*s]}",
	    STR_FMT(list));
	struct str last = response;
	if (all_closed && next(r, 2))
		last = STR("{\"status\":\"completed\",\"output\":[]}");
	struct str sse = arena_printf(a,
	    "data: "
	    "{\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\"}}\n\n"
	    "%.*sdata: {\"type\":\"response.completed\",\"response\":%.*s}\n\n",
	    STR_FMT(events), STR_FMT(last));
	struct fix_way way = {WIRE_RESPONSES, WIRE_RESPONSES, false, false, false, NULL};
	struct fix_answer whole, stream;
	fix_answer(a, &way, response, 0, &whole);
	way.stream_in = true;
	fix_answer(a, &way, sse, 0, &stream);
	cr_assert(str_eq(whole.log, stream.log), "round %d:\n%.*s\nsays\n%.*s\nnot\n%.*s", round,
	    STR_FMT(sse), STR_FMT(stream.log), STR_FMT(whole.log));
	arena_free(&a);
}

Test(dialect_responses_random, streams_say_what_whole_answers_say, .timeout = 60)
{
	struct random r = {0x2545f4914f6cdd1du};
	for (int round = 0; round < 2000; round++)
		check(&r, round);
}
