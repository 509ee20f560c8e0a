#include "worker/turn/extract_plan.h"

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
	size_t compared;
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

/* Changes nothing that anybody reads. */
static bool
collect_part(void *arg, struct part *p)
{
	struct collecting *c = arg;
	enum code_extractor kind;
	if (p->kind != PART_DOCUMENT || p->media.source != MEDIA_BASE64 ||
	    !document_kind(p->media.media_type, p->media.filename, p->media.data, &kind) ||
	    (c->reads & DOCUMENT_BIT(kind)) != 0)
		return false;
	struct extract_document **end = &c->plan->first;
	for (; *end != NULL; end = &(*end)->next)
		if ((*end)->extractor == kind && is_same(c, (*end)->data, p->media.data)) {
			p->media.data = (*end)->data;
			return false;
		}
	struct extract_document *d = c->plan->count < EXTRACT_DOCUMENTS_MAX
					 ? ARENA_NEW(c->arena, struct extract_document)
					 : NULL;
	if (d == NULL)
		return false;
	d->data = p->media.data;
	d->extractor = kind;
	*end = d;
	c->plan->count++;
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
