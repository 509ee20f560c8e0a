#include "worker/dialect/stand_in.h"

#include "base/buf.h"
#include "base/json.h"
#include "worker/dialect/drop.h"

/* Where a dropped part stood, in the words of the client's wire. */
static const char *
place_of(const struct conversation *c)
{
	return c->wire == WIRE_RESPONSES ? "input" : "content";
}

struct str
stand_in_document(struct conversation *c, const struct part *p)
{
	const struct media *m = &p->media;
	struct buf b = BUF_INIT(m->data.len + m->filename.len + p->text.len + 64);
	if (m->filename.len > 0) {
		buf_add(&b, STR("Document: "));
		buf_add(&b, m->filename);
		buf_addc(&b, '\n');
	}
	if (p->text.len > 0) {
		buf_add(&b, p->text);
		buf_addc(&b, '\n');
	}
	if (m->source == MEDIA_URL)
		buf_add(&b, STR("Document at "));
	buf_add(&b, m->data);
	struct str ret = arena_str(c->arena, buf_str(&b));
	buf_done(&b);
	return ret;
}

struct str
stand_in_file(struct conversation *c, const struct part *p, const char *what)
{
	drop_named(c, place_of(c), str_c(what));
	return arena_printf(c->arena, "[%s %.*s cannot be shown to this model]", what,
	    (int)(p->media.file_id.len < 128 ? p->media.file_id.len : 128), p->media.file_id.ptr);
}

struct str
stand_in_opaque(struct conversation *c, struct fold *fold, const struct part *p)
{
	struct jval v;
	struct str text = STR("");
	bool readable = p->raw.ptr != NULL && jdoc_parse(c->arena, p->raw, &v, NULL) == ERR_OK;
	if (readable && p->raw_wire == WIRE_RESPONSES &&
	    jv_str_is(jv_get(v, "type"), "code_interpreter_call"))
		return fold_code_item(c->arena, v);
	if (readable && p->raw_wire == WIRE_MESSAGES &&
	    fold_block(fold, v, false, &text) != FOLD_KEEP)
		return text;
	if (!str_eq(p->name, STR("additional_tools"))) /* those became tools */
		drop_named(c, place_of(c), p->name);
	return STR("");
}
