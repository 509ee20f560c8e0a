/* Content parts of a Chat message (openai-wire §2.2). */
#include "worker/dialect/chat_messages.h"
#include "worker/dialect/read.h"

static enum err_code
read_image(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval image = jv_get(v, "image_url");
	struct str url = STR_NULL;
	if (jv_is(image, JT_STRING)) { /* some clients leave the object out */
		read_data_url(jv_str(c->arena, image), &p->media);
		return ERR_OK;
	}
	enum err_code e = read_typed(v, "image_url", JT_OBJECT, REQUIRED, &image, reterr);
	if (e != ERR_OK)
		return e;
	e = read_str(c->arena, image, "url", REQUIRED, &url, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, image, "detail", OPTIONAL, &p->media.detail, reterr);
	if (e != ERR_OK) {
		read_path(reterr, "image_url");
		return e;
	}
	read_data_url(url, &p->media);
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
read_file(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct jval file;
	struct str data = STR_NULL;
	enum err_code e = read_typed(v, "file", JT_OBJECT, REQUIRED, &file, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, file, "file_id", OPTIONAL, &p->media.file_id, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, file, "file_data", OPTIONAL, &data, reterr);
	if (e == ERR_OK)
		e = read_str(c->arena, file, "filename", OPTIONAL, &p->media.filename, reterr);
	if (e != ERR_OK)
		return e;
	if (data.len > 0) {
		read_data_url(data, &p->media);
		if (p->media.source == MEDIA_URL) /* plain base64: no data: in front */
			p->media.source = MEDIA_BASE64;
		if (str_starts_nocase(p->media.media_type, STR("image/")))
			p->kind = PART_IMAGE; /* other wires want to be told */
	} else if (p->media.file_id.len > 0) {
		p->media.source = MEDIA_FILE_ID;
	} else {
		return err_set(reterr, ERR_INPUT, "file: file_id or file_data is required");
	}
	return ERR_OK;
}

enum err_code
chat_read_part(struct conversation *c, struct jval v, struct part *p, struct err *reterr)
{
	struct str type = STR_NULL;
	if (!jv_is(v, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "Input should be an object");
	enum err_code e = read_str(c->arena, v, "type", REQUIRED, &type, reterr);
	if (e != ERR_OK)
		return e;
	p->raw = jv_raw(v);
	p->raw_wire = WIRE_CHAT;
	if (str_eq(type, STR("text"))) {
		p->kind = PART_TEXT;
		return read_str(c->arena, v, "text", REQUIRED, &p->text, reterr);
	}
	if (str_eq(type, STR("refusal"))) {
		p->kind = PART_REFUSAL;
		return read_str(c->arena, v, "refusal", REQUIRED, &p->text, reterr);
	}
	if (str_eq(type, STR("image_url"))) {
		p->kind = PART_IMAGE;
		return read_image(c, v, p, reterr);
	}
	if (str_eq(type, STR("input_audio"))) {
		p->kind = PART_AUDIO;
		return read_audio(c, v, p, reterr);
	}
	if (str_eq(type, STR("file"))) {
		p->kind = PART_DOCUMENT;
		return read_file(c, v, p, reterr);
	}
	p->kind = PART_OPAQUE;
	p->name = type;
	return ERR_OK;
}
