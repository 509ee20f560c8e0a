/* Annotations of a text, in the words of Responses (openai-wire §3.3, §10.2). */
#include "worker/dialect/responses_reply.h"

void
responses_annotation(struct responses_reply *m, const struct turn_event *ev)
{
	if (m->base.open && m->base.kind == BLOCK_TEXT && ev->raw.len > 0)
		citation_keep(m->base.arena, &m->notes_kept, ev);
}

/* A file that Messages cites stands for the whole block. */
static bool
write_file(struct responses_reply *m, struct jw *w, struct jval v, int64_t block_chars)
{
	struct arena *a = m->base.arena;
	struct jval file = jv_get(v, "file_id");
	if (!jv_is(file, JT_STRING))
		return false;
	jw_object(w);
	jw_kcstr(w, "type", "file_citation");
	jw_kstr(w, "file_id", jv_str(a, file));
	jw_kstr(w, "filename", jv_str(a, jv_get(v, "document_title")));
	jw_ki64(w, "index", block_chars);
	jw_end_object(w);
	return true;
}

static bool
write_note(struct responses_reply *m, struct jw *w, const struct citation_note *n)
{
	struct jval v;
	struct citation page;
	int64_t chars = citation_chars(buf_str(m->text));
	if (n->wire == WIRE_RESPONSES) {
		jw_raw(w, n->raw);
		return true;
	}
	if (jdoc_parse(m->base.arena, n->raw, &v, NULL) != ERR_OK)
		return false;
	if (!citation_read(m->base.arena, n->wire, v, chars, &page))
		return n->wire == WIRE_MESSAGES && write_file(m, w, v, chars);
	jw_object(w);
	jw_kcstr(w, "type", "url_citation");
	jw_ki64(w, "start_index", page.first);
	jw_ki64(w, "end_index", page.behind);
	jw_kstr(w, "title", page.title);
	jw_kstr(w, "url", page.url);
	jw_end_object(w);
	return true;
}

void
responses_write_notes(struct responses_reply *m)
{
	int64_t count = 0;
	struct jw w, list;
	buf_clear(m->notes);
	jw_init(&list, m->notes);
	for (const struct citation_note *n = m->notes_kept.first; n != NULL; n = n->next) {
		size_t from = m->notes->len;
		if (!write_note(m, &list, n))
			continue;
		from += count > 0; /* the comma */
		if (responses_open_item(m, "response.output_text.annotation.added", &w)) {
			jw_ki64(&w, "content_index", m->parts);
			jw_ki64(&w, "annotation_index", count);
			jw_kraw(&w, "annotation", str_from(buf_str(m->notes), from));
			responses_close(m, &w);
		}
		count++;
	}
}
