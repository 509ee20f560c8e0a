/* Annotations of a Chat answer (openai-wire §2.5): its own as they come, pages that other wires
 * cite as url_citation, counted over the whole content. */
#include "worker/dialect/chat_reply.h"

static void
put(struct chat_reply *c, struct chat_answer *ch, struct str raw)
{
	if (c->base.opt.stream) {
		struct jw w = chat_open_delta(c, ch);
		jw_key(&w, "annotations");
		jw_array(&w);
		jw_raw(&w, raw);
		jw_end_array(&w);
		chat_close_delta(c, &w, NULL);
		return;
	}
	if (ch->annotations->len > 0)
		buf_addc(ch->annotations, ',');
	buf_add(ch->annotations, raw);
}

void
chat_annotation(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev)
{
	if (ev->raw_wire == WIRE_CHAT)
		put(c, ch, ev->raw);
	else if (c->base.open && c->base.kind == BLOCK_TEXT)
		citation_keep(c->base.arena, &c->notes, ev);
}

static void
put_page(
    struct chat_reply *c, struct chat_answer *ch, const struct citation *page, int64_t block_at)
{
	struct buf b = BUF_INIT(1u << 20);
	struct jw w;
	jw_init(&w, &b);
	jw_object(&w);
	jw_kcstr(&w, "type", "url_citation");
	jw_key(&w, "url_citation");
	jw_object(&w);
	jw_ki64(&w, "start_index", block_at + page->first);
	jw_ki64(&w, "end_index", block_at + page->behind);
	jw_kstr(&w, "title", page->title);
	jw_kstr(&w, "url", page->url);
	jw_end_object(&w);
	jw_end_object(&w);
	if (!b.overflowed)
		put(c, ch, buf_str(&b));
	buf_done(&b);
}

void
chat_block_notes(struct chat_reply *c, struct chat_answer *ch)
{
	struct arena *a = c->base.arena;
	struct citation page;
	struct jval v;
	for (const struct citation_note *n = c->notes.first; n != NULL; n = n->next)
		if (jdoc_parse(a, n->raw, &v, NULL) == ERR_OK &&
		    citation_read(a, n->wire, v, ch->chars - ch->block_at, &page) &&
		    page.behind <= ch->chars - ch->block_at)
			put_page(c, ch, &page, ch->block_at);
	c->notes = (struct citation_list){NULL, NULL};
}
