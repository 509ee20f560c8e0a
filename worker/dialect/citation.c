#include "worker/dialect/citation.h"

void
citation_keep(struct arena *a, struct citation_list *list, const struct turn_event *ev)
{
	struct citation_note *n = ARENA_NEW(a, struct citation_note);
	if (n == NULL)
		return;
	n->raw = arena_str(a, ev->raw);
	n->wire = ev->raw_wire;
	if (list->last != NULL)
		list->last->next = n;
	else
		list->first = n;
	list->last = n;
}

int64_t
citation_chars(struct str s)
{
	int64_t n = 0;
	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
	return n;
}

/* Responses has them in the annotation, Chat one level down. */
static void
read_openai(struct arena *a, struct jval v, struct citation *c)
{
	c->url = jv_str(a, jv_get(v, "url"));
	c->title = jv_str(a, jv_get(v, "title"));
	c->first = jv_i64_or(jv_get(v, "start_index"), 0);
	c->behind = jv_i64_or(jv_get(v, "end_index"), 0);
}

static void
read_messages(struct arena *a, struct jval v, int64_t block_chars, struct citation *c)
{
	struct str source = jv_str(a, jv_get(v, "source"));
	c->url = jv_str(a, jv_get(v, "url"));
	if (c->url.len == 0 && str_starts(source, STR("http")))
		c->url = source;
	c->title = jv_str(a, jv_get(v, "title"));
	c->behind = block_chars;
}

bool
citation_read(
    struct arena *a, enum wire w, struct jval v, int64_t block_chars, struct citation *ret)
{
	*ret = (struct citation){.url = STR_NULL};
	switch (w) {
	case WIRE_CHAT:
		read_openai(a, jv_get(v, "url_citation"), ret);
		break;
	case WIRE_RESPONSES:
		read_openai(a, v, ret);
		break;
	case WIRE_MESSAGES:
		read_messages(a, v, block_chars, ret);
		break;
	}
	if (ret->first < 0 || ret->behind < ret->first)
		ret->first = ret->behind = 0;
	return ret->url.len > 0;
}
