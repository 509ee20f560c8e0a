#include "worker/turn/extract_plan.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "worker/turn/attach_plan.h"
#include "worker/turn/result_text.h"

/* Bytes that are compared to find the same document again: documents that differ in their last byte
 * alone must not cost the loop more. */
#define COMPARED_MAX (32u << 20)

struct collecting {
	struct arena *arena;
	uint32_t reads;
	struct extract_plan *plan;
	size_t compared, decoded;
};

static bool
is_same(struct collecting *c, struct str a, struct str b)
{
	if (a.ptr == b.ptr || a.len != b.len)
		return a.ptr == b.ptr && a.len == b.len;
	if (a.len > COMPARED_MAX - c->compared)
		return false;
	c->compared += a.len;
	return str_eq(a, b);
}

/* STR_NULL: it is no text. */
static struct str
text_of(struct collecting *c, struct str base64)
{
	struct str text = STR_NULL;
	struct buf bytes = BUF_INIT(EXTRACT_TEXT_FILES_MAX + 4);
	if (base64.len > BASE64_LEN(EXTRACT_TEXT_FILES_MAX) - c->decoded)
		return text;
	c->decoded += base64.len;
	if (base64_decode(base64, &bytes) && utf8_valid(buf_str(&bytes)) &&
	    str_chr(buf_str(&bytes), '\0') == SIZE_MAX)
		text = arena_str(c->arena, buf_str(&bytes));
	buf_done(&bytes);
	return text;
}

/* True: it is to become text. */
static bool
is_wanted(const struct collecting *c, const struct part *p, struct extract_document *ret)
{
	const struct media *m = &p->media;
	if (p->kind != PART_DOCUMENT || m->source != MEDIA_BASE64)
		return false;
	*ret = (struct extract_document){.data = m->data};
	if (document_kind(m->media_type, m->filename, m->data, &ret->extractor))
		return (c->reads & DOCUMENT_BIT(ret->extractor)) == 0;
	ret->is_text_file = document_is_text(m->media_type, m->filename);
	return ret->is_text_file && (c->reads & DOCUMENT_TEXT) == 0;
}

/* Changes nothing that anybody reads. */
static bool
collect_part(void *arg, struct part *p)
{
	struct collecting *c = arg;
	struct extract_document found;
	if (!is_wanted(c, p, &found))
		return false;
	struct extract_document **end = &c->plan->first;
	for (; *end != NULL; end = &(*end)->next)
		if ((*end)->extractor == found.extractor &&
		    (*end)->is_text_file == found.is_text_file &&
		    is_same(c, (*end)->data, found.data)) {
			p->media.data = (*end)->data;
			return false;
		}
	if (found.is_text_file)
		found.text = text_of(c, found.data);
	if (c->plan->count == EXTRACT_DOCUMENTS_MAX ||
	    (found.is_text_file && found.text.ptr == NULL))
		return false;
	struct extract_document *d = ARENA_NEW(c->arena, struct extract_document);
	if (d == NULL)
		return false;
	*d = found;
	*end = d;
	c->plan->count++;
	c->plan->unread += found.is_text_file ? 0 : 1;
	return false;
}

void
extract_collect(struct conversation *conv, uint32_t reads, struct extract_plan *ret)
{
	*ret = (struct extract_plan){0};
	struct collecting c = {.arena = conv->arena, .reads = reads, .plan = ret};
	if (reads != DOCUMENTS_ALL)
		conversation_rewrite(conv, collect_part, &c);
}

bool
extract_is_needed(struct conversation *conv, uint32_t reads)
{
	struct extract_plan plan;
	extract_collect(conv, reads, &plan);
	return plan.count > 0;
}

struct str
extract_text(struct arena *a, struct str out, uint64_t total, size_t max)
{
	struct buf valid = BUF_INIT(3 * out.len + 8), plain = BUF_INIT(3 * max + 8);
	utf8_mend(out, &valid);
	for (size_t i = 0; i < valid.len; i++) /* pdftotext ends pages so */
		if (valid.ptr[i] == '\f')
			valid.ptr[i] = '\n';
	struct str first = utf8_cut(buf_str(&valid), max), text = STR_NULL;
	result_plain(first, &plain);
	struct str kept = utf8_cut(buf_str(&plain), max);
	bool is_cut = kept.len < plain.len || first.len < valid.len || total > out.len;
	if (str_trim(kept).len > 0 && is_cut)
		text = arena_printf(a,
		    "%.*s\n[text cut: the document holds %llu bytes of text, the first %zu are "
		    "here]",
		    STR_FMT(kept), (unsigned long long)total, kept.len);
	else if (str_trim(kept).len > 0)
		text = arena_str(a, kept);
	buf_done(&valid);
	buf_done(&plain);
	return text;
}

struct rewriting {
	struct arena *arena;
	const struct extract_plan *plan;
};

static bool
rewrite_part(void *arg, struct part *p)
{
	const struct rewriting *r = arg;
	if (p->kind != PART_DOCUMENT || p->media.source != MEDIA_BASE64)
		return false;
	for (const struct extract_document *d = r->plan->first; d != NULL; d = d->next)
		if (d->text.ptr != NULL && d->data.ptr == p->media.data.ptr) {
			struct str name = attach_last_segment(p->media.filename);
			struct str text = attach_text(r->arena, name, d->text);
			if (p->text.len > 0) /* what its sender says of it */
				text = arena_printf(
				    r->arena, "%.*s\n%.*s", STR_FMT(p->text), STR_FMT(text));
			part_become_text(p, text);
			return true;
		}
	return false;
}

void
extract_rewrite(struct conversation *conv, const struct extract_plan *plan)
{
	struct rewriting r = {conv->arena, plan};
	conversation_rewrite(conv, rewrite_part, &r);
}
