/* Annotations of a text, in the words of Responses (openai-wire §3.3, §10.2). */
#include "worker/dialect/responses_reply.h"

void
responses_annotation(struct responses_reply *m, const struct turn_event *ev)
{
	if (!m->base.open || m->base.kind != BLOCK_TEXT || ev->raw.len == 0)
		return;
	struct responses_note_raw *n = ARENA_NEW(m->base.arena, struct responses_note_raw);
	if (n == NULL)
		return;
	n->raw = arena_str(m->base.arena, ev->raw);
	n->wire = ev->raw_wire;
	if (m->note_tail != NULL)
		m->note_tail->next = n;
	else
		m->note_list = n;
	m->note_tail = n;
}

static int64_t
characters(struct str s)
{
	int64_t n = 0;
	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
	return n;
}

static void
write_url(struct responses_reply *m, struct jw *w, struct jval url, struct jval title,
    int64_t first, int64_t behind)
{
	struct arena *a = m->base.arena;
	jw_object(w);
	jw_kcstr(w, "type", "url_citation");
	jw_ki64(w, "start_index", first);
	jw_ki64(w, "end_index", behind);
	jw_kstr(w, "title", jv_is(title, JT_STRING) ? jv_str(a, title) : STR(""));
	jw_kstr(w, "url", jv_str(a, url));
	jw_end_object(w);
}

/* Chat: the same members, one level down. */
static bool
note_of_chat(struct responses_reply *m, struct jw *w, struct jval v)
{
	struct jval u = jv_get(v, "url_citation");
	if (!jv_is(jv_get(u, "url"), JT_STRING))
		return false;
	write_url(m, w, jv_get(u, "url"), jv_get(u, "title"),
	    jv_i64_or(jv_get(u, "start_index"), 0), jv_i64_or(jv_get(u, "end_index"), 0));
	return true;
}

/* Messages: a citation stands for the whole block it comes with. */
static bool
note_of_messages(struct responses_reply *m, struct jw *w, struct jval v)
{
	struct arena *a = m->base.arena;
	struct jval url = jv_get(v, "url"), file = jv_get(v, "file_id");
	int64_t behind = characters(buf_str(m->text));
	if (!jv_is(url, JT_STRING) && str_starts(jv_str(a, jv_get(v, "source")), STR("http")))
		url = jv_get(v, "source");
	if (jv_is(url, JT_STRING)) {
		write_url(m, w, url, jv_get(v, "title"), 0, behind);
		return true;
	}
	if (!jv_is(file, JT_STRING))
		return false;
	jw_object(w);
	jw_kcstr(w, "type", "file_citation");
	jw_kstr(w, "file_id", jv_str(a, file));
	jw_kstr(w, "filename", jv_str(a, jv_get(v, "document_title")));
	jw_ki64(w, "index", behind);
	jw_end_object(w);
	return true;
}

static bool
write_note(struct responses_reply *m, struct jw *w, const struct responses_note_raw *n)
{
	struct jval v;
	if (n->wire == WIRE_RESPONSES) {
		jw_raw(w, n->raw);
		return true;
	}
	if (jdoc_parse(m->base.arena, n->raw, &v, NULL) != ERR_OK)
		return false;
	return n->wire == WIRE_CHAT ? note_of_chat(m, w, v) : note_of_messages(m, w, v);
}

void
responses_write_notes(struct responses_reply *m)
{
	int64_t count = 0;
	struct jw w, list;
	buf_clear(m->notes);
	jw_init(&list, m->notes);
	for (const struct responses_note_raw *n = m->note_list; n != NULL; n = n->next) {
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
