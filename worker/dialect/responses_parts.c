/* Content parts of a Responses message or tool output (openai-wire §3.3). */
#include "worker/dialect/read.h"
#include "worker/dialect/responses_in.h"

static enum err_code
read_image(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval image = jv_get(v, "image_url");
	struct str url = STR_NULL;
	enum err_code e;
	if (jv_is(image, JT_OBJECT)) { /* Chat's form, which some clients send */
		e = read_str(c->arena, image, "url", REQUIRED, &url, reterr);
		if (e != ERR_OK)
			read_path(reterr, "image_url");
	} else {
		e = read_str(c->arena, v, "image_url", OPTIONAL, &url, reterr);
	}
	if (e == ERR_OK)
		e = read_str(c->arena, v, "detail", OPTIONAL, &p->media.detail, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "file_id", OPTIONAL, &p->media.file_id, reterr);
	if (e != ERR_OK)
		return e;
	if (url.len > 0)
		read_data_url(url, &p->media);
	else if (p->media.file_id.len > 0)
		p->media.source = MEDIA_FILE_ID;
	else
		return err_set(reterr, ERR_INPUT, "One of image_url and file_id is required");
	return ERR_OK;
}

static enum err_code
read_file(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct media *m = &p->media;
	struct str data = STR_NULL, url = STR_NULL;
	enum err_code e = read_str(c->arena, v, "file_id", OPTIONAL, &m->file_id, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "file_data", OPTIONAL, &data, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "file_url", OPTIONAL, &url, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, v, "filename", OPTIONAL, &m->filename, reterr);
	if (e != ERR_OK)
		return e;
	if (data.len > 0) {
		read_data_url(data, m);
		m->source = MEDIA_BASE64; /* with or without data: in front */
		if (str_starts_nocase(m->media_type, STR("image/")))
			p->kind = PART_IMAGE; /* other wires want to be told */
	} else if (m->file_id.len > 0) {
		m->source = MEDIA_FILE_ID;
	} else if (url.len > 0) {
		m->source = MEDIA_URL;
		m->data = url;
	} else {
		return err_set(
		    reterr, ERR_INPUT, "One of file_id, file_data and file_url is required");
	}
	return ERR_OK;
}

static enum err_code
read_audio(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval audio;
	struct str format = STR_NULL;
	enum err_code e = read_typed(v, "input_audio", JT_OBJECT, REQUIRED, &audio, reterr);
	if (e != ERR_OK)
		return e;
	e = read_str(c->arena, audio, "data", REQUIRED, &p->media.data, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, audio, "format", REQUIRED, &format, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "input_audio");
		return e;
	}
	p->media.source = MEDIA_BASE64;
	p->media.media_type = arena_printf(
	    c->arena, "audio/%.*s", (int)(format.len < 32 ? format.len : 32), format.ptr);
	return ERR_OK;
}

static enum err_code
read_text(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval annotations = jv_get(v, "annotations");
	if (jv_count(annotations) > 0)
		p->citations_raw = jv_raw(annotations);
	return read_str(c->arena, v, "text", REQUIRED, &p->text, reterr);
}

static enum err_code
read_refusal(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	return read_str(c->arena, v, "refusal", REQUIRED, &p->text, reterr);
}

static const struct {
	const char *type;
	enum part_kind kind;
	bool input;
	enum err_code (*read)(struct conversation *, struct jval, struct part *, struct err *);
} kinds[] = {
    {"input_text", PART_TEXT, true, read_text},
    {"input_image", PART_IMAGE, true, read_image},
    {"input_file", PART_DOCUMENT, true, read_file},
    {"input_audio", PART_AUDIO, true, read_audio},
    {"output_text", PART_TEXT, false, read_text},
    {"text", PART_TEXT, false, read_text}, /* Chat's word, which some clients send */
    {"refusal", PART_REFUSAL, false, read_refusal},
};

bool
responses_is_input_part(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i].input && str_eq(type, str_c(kinds[i].type)))
			return true;
	return false;
}

enum err_code
responses_read_part(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct str type = STR_NULL;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_str(c->arena, v, "type", REQUIRED, &type, reterr);
	if (e != ERR_OK)
		return e;
	p->raw = jv_raw(v);
	p->raw_wire = WIRE_RESPONSES;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_eq(type, str_c(kinds[i].type)))
			continue;
		p->kind = kinds[i].kind;
		return kinds[i].read(c, v, p, reterr);
	}
	p->kind = PART_OPAQUE;
	p->name = type;
	return ERR_OK;
}
