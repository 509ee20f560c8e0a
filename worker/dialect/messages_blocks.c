#include "worker/dialect/messages_blocks.h"

#include "worker/dialect/origin.h"
#include "worker/dialect/read.h"

#define CONTENT_DEPTH 3 /* message > tool_result or document > text, image */

static enum err_code read_blocks(struct messages_reader *r, struct jval list, unsigned depth,
    struct part **end, struct err *reterr);

static struct part *
new_part(struct messages_reader *r, enum part_kind kind, struct jval raw)
{
	struct part *p = ARENA_NEW(r->conv->arena, struct part);
	if (p == NULL)
		return NULL;
	p->kind = kind;
	p->raw = jv_raw(raw);
	p->raw_wire = WIRE_MESSAGES;
	p->cache_control_raw = jv_raw(jv_get(raw, "cache_control"));
	return p;
}

/* The text blocks of a list, one under the other; for sources that only a text can stand for. */
static struct str
joined_text(struct arena *a, struct jval list)
{
	struct buf b = BUF_INIT(64u << 20);
	struct jiter it = {0};
	while (jv_next(list, &it)) {
		struct str s = jv_str(a, jv_get(it.value, "text"));
		if (s.len == 0)
			continue;
		if (b.len > 0)
			buf_addc(&b, '\n');
		buf_add(&b, s);
	}
	struct str ret = arena_str(a, buf_str(&b));
	buf_done(&b);
	return ret;
}

/* --- sources --- */

static enum err_code
read_content_source(struct messages_reader *r, struct jval source, unsigned depth, struct part *p,
    struct err *reterr)
{
	struct jval content = jv_get(source, "content");
	p->media.source = MEDIA_TEXT;
	if (jv_is(content, JT_STRING)) {
		p->media.data = jv_str(r->conv->arena, content);
		return ERR_OK;
	}
	if (!jv_is(content, JT_ARRAY))
		return err_set(
		    reterr, ERR_INPUT, "content: Input should be a string or an array of blocks");
	p->media.data = joined_text(r->conv->arena, content);
	enum err_code e = read_blocks(r, content, depth + 1, &p->content, reterr);
	if (e != ERR_OK)
		read_path(reterr, "content");
	return e;
}

static enum err_code
read_source(struct messages_reader *r, struct jval source, unsigned depth, struct part *p,
    struct err *reterr)
{
	struct arena *a = r->conv->arena;
	struct media *m = &p->media;
	struct str type;
	enum err_code e = read_str(a, source, "type", REQUIRED, &type, reterr);
	if (e != ERR_OK)
		return e;
	if (str_eq(type, STR("base64")) || str_eq(type, STR("text"))) {
		m->source = str_eq(type, STR("text")) ? MEDIA_TEXT : MEDIA_BASE64;
		e = read_str(a, source, "data", REQUIRED, &m->data, reterr);
		if (e == ERR_OK)
			e = read_str(a, source, "media_type",
			    m->source == MEDIA_BASE64 ? REQUIRED : OPTIONAL, &m->media_type,
			    reterr);
		return e;
	}
	if (str_eq(type, STR("url"))) {
		m->source = MEDIA_URL;
		return read_str(a, source, "url", REQUIRED, &m->data, reterr);
	}
	if (str_eq(type, STR("file"))) {
		m->source = MEDIA_FILE_ID;
		return read_str(a, source, "file_id", REQUIRED, &m->file_id, reterr);
	}
	if (str_eq(type, STR("content")))
		return read_content_source(r, source, depth, p, reterr);
	return err_set(reterr, ERR_INPUT, "type: unknown source '%.*s'",
	    (int)(type.len < 64 ? type.len : 64), type.ptr);
}

static enum err_code
read_media(
    struct messages_reader *r, struct jval b, unsigned depth, struct part *p, struct err *reterr)
{
	struct jval source;
	enum err_code e = read_typed(b, "source", JT_OBJECT, REQUIRED, &source, reterr);
	if (e != ERR_OK)
		return e;
	e = read_source(r, source, depth, p, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "source");
		return e;
	}
	if (p->kind != PART_DOCUMENT)
		return ERR_OK;
	e = read_str(r->conv->arena, b, "title", OPTIONAL, &p->media.filename, reterr);
	if (e == ERR_OK)
		e = read_str(r->conv->arena, b, "context", OPTIONAL, &p->text, reterr);
	return e;
}

static enum err_code
read_search_result(struct messages_reader *r, struct jval b, struct part *p, struct err *reterr)
{
	struct jval content;
	enum err_code e = read_typed(b, "content", JT_ARRAY, REQUIRED, &content, reterr);
	if (e == ERR_OK)
		e = read_str(r->conv->arena, b, "title", OPTIONAL, &p->media.filename, reterr);
	if (e != ERR_OK)
		return e;
	p->media.source = MEDIA_TEXT;
	p->media.data = joined_text(r->conv->arena, content);
	return ERR_OK;
}

/* --- calls, results, reasoning --- */

static enum err_code
read_tool_use(struct messages_reader *r, struct jval b, struct part *p, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	struct jval input;
	enum err_code e = read_str(a, b, "id", REQUIRED, &p->id, reterr);
	if (e == ERR_OK)
		e = read_str(a, b, "name", REQUIRED, &p->name, reterr);
	if (e == ERR_OK)
		e = read_typed(b, "input", JT_OBJECT, REQUIRED, &input, reterr);
	if (e == ERR_OK)
		p->arguments = jv_raw(input);
	return e;
}

static enum err_code
read_tool_result(
    struct messages_reader *r, struct jval b, unsigned depth, struct part *p, struct err *reterr)
{
	int is_error;
	enum err_code e = read_str(r->conv->arena, b, "tool_use_id", REQUIRED, &p->id, reterr);
	if (e == ERR_OK)
		e = read_bool(b, "is_error", &is_error, reterr);
	if (e != ERR_OK)
		return e;
	p->is_error = is_error == 1;
	struct jval content = jv_get(b, "content");
	if (!jv_present(content))
		return ERR_OK;
	if (jv_is(content, JT_STRING)) {
		struct part *text = new_part(r, PART_TEXT, JV_ABSENT);
		if (text != NULL)
			text->text = jv_str(r->conv->arena, content);
		p->content = text;
		return ERR_OK;
	}
	if (!jv_is(content, JT_ARRAY))
		return err_set(
		    reterr, ERR_INPUT, "content: Input should be a string or an array of blocks");
	e = read_blocks(r, content, depth + 1, &p->content, reterr);
	if (e != ERR_OK)
		read_path(reterr, "content");
	return e;
}

static enum err_code
read_redacted(struct messages_reader *r, struct jval b, struct part *p, struct err *reterr)
{
	enum err_code e = read_str(r->conv->arena, b, "data", REQUIRED, &p->encrypted, reterr);
	if (e == ERR_OK && origin_restore(p, p->encrypted))
		r->folded = true;
	return e;
}

static enum err_code
read_thinking(struct messages_reader *r, struct jval b, struct part *p, struct err *reterr)
{
	struct arena *a = r->conv->arena;
	enum err_code e = read_str(a, b, "thinking", REQUIRED, &p->text, reterr);
	if (e == ERR_OK)
		e = read_str(a, b, "signature", OPTIONAL, &p->signature, reterr);
	if (e != ERR_OK)
		return e;
	if (origin_restore(p, p->signature)) /* another wire's, shown by us */
		r->folded = true;
	return ERR_OK;
}

/* --- one block --- */

static const struct {
	const char *type;
	enum part_kind kind;
} block_kinds[] = {
    {"text", PART_TEXT},
    {"image", PART_IMAGE},
    {"document", PART_DOCUMENT},
    {"search_result", PART_DOCUMENT},
    {"container_upload", PART_UPLOAD},
    {"tool_use", PART_CALL},
    {"tool_result", PART_RESULT},
    {"thinking", PART_REASONING},
    {"redacted_thinking", PART_REASONING},
};

static enum part_kind
kind_of(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(block_kinds); i++)
		if (str_eq(type, str_c(block_kinds[i].type)))
			return block_kinds[i].kind;
	return PART_OPAQUE;
}

static enum err_code
fill_part(struct messages_reader *r, struct jval b, struct str type, unsigned depth, struct part *p,
    struct err *reterr)
{
	struct arena *a = r->conv->arena;
	switch (p->kind) {
	case PART_TEXT:
		p->citations_raw =
		    jv_present(jv_get(b, "citations")) ? jv_raw(jv_get(b, "citations")) : STR_NULL;
		return read_str(a, b, "text", REQUIRED, &p->text, reterr);
	case PART_IMAGE:
		return read_media(r, b, depth, p, reterr);
	case PART_DOCUMENT:
		return str_eq(type, STR("search_result")) ? read_search_result(r, b, p, reterr)
							  : read_media(r, b, depth, p, reterr);
	case PART_UPLOAD:
		p->media.source = MEDIA_FILE_ID;
		return read_str(a, b, "file_id", REQUIRED, &p->media.file_id, reterr);
	case PART_CALL:
		return read_tool_use(r, b, p, reterr);
	case PART_RESULT:
		return read_tool_result(r, b, depth, p, reterr);
	case PART_REASONING:
		return str_eq(type, STR("thinking")) ? read_thinking(r, b, p, reterr)
						     : read_redacted(r, b, p, reterr);
	case PART_AUDIO:
	case PART_REFUSAL:
	case PART_OPAQUE:
		break;
	}
	p->name = type;
	return ERR_OK;
}

static enum err_code
read_block(
    struct messages_reader *r, struct jval b, unsigned depth, struct part **ret, struct err *reterr)
{
	struct str type, text = STR_NULL;
	*ret = NULL;
	if (!jv_is(b, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_str(r->conv->arena, b, "type", REQUIRED, &type, reterr);
	if (e != ERR_OK)
		return e;
	enum fold_action fold = fold_block(&r->fold, b, true, &text);
	r->folded = r->folded || fold != FOLD_KEEP;
	if (fold == FOLD_REMOVE)
		return ERR_OK;
	struct part *p = new_part(r, fold == FOLD_TEXT ? PART_TEXT : kind_of(type), b);
	if (p == NULL)
		return err_set(reterr, ERR_NOMEM, "Over the memory budget");
	*ret = p;
	if (fold == FOLD_TEXT) {
		p->raw = STR_NULL;
		p->id = jv_str(r->conv->arena, jv_get(b, "tool_use_id"));
		p->text = text;
		return ERR_OK;
	}
	return fill_part(r, b, type, depth, p, reterr);
}

static enum err_code
read_blocks(struct messages_reader *r, struct jval list, unsigned depth, struct part **end,
    struct err *reterr)
{
	struct jiter it = {0};
	if (depth >= CONTENT_DEPTH)
		return err_set(reterr, ERR_INPUT, "Nested too deep");
	for (uint32_t i = 0; jv_next(list, &it); i++) {
		struct part *p;
		enum err_code e = read_block(r, it.value, depth, &p, reterr);
		if (e != ERR_OK) {
			read_path(reterr, "[%u]", i);
			return e;
		}
		if (p == NULL)
			continue;
		*end = p;
		end = &p->next;
	}
	return ERR_OK;
}

enum err_code
messages_read_content(
    struct messages_reader *r, struct jval content, struct part **end, struct err *reterr)
{
	if (jv_is(content, JT_STRING)) {
		struct part *p = new_part(r, PART_TEXT, JV_ABSENT);
		if (p == NULL)
			return err_set(reterr, ERR_NOMEM, "Over the memory budget");
		p->text = jv_str(r->conv->arena, content);
		*end = p;
		return ERR_OK;
	}
	if (!jv_is(content, JT_ARRAY))
		return err_set(reterr, ERR_INPUT,
		    jv_present(content) ? "Input should be a string or an array of blocks"
					: "Field required");
	return read_blocks(r, content, 0, end, reterr);
}
