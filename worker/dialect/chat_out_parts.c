/* Parts of a message in Chat's words (openai-wire §10.2). */
#include "worker/dialect/chat_out.h"
#include "worker/dialect/drop.h"
#include "worker/dialect/stand_in.h"

void
chat_write_data_url(struct jw *w, const struct media *m, const char *default_type)
{
	jw_raw(w, STR("\"data:"));
	jw_escape(w->out, m->media_type.len > 0 ? m->media_type : str_c(default_type));
	buf_add(w->out, STR(";base64,"));
	jw_escape(w->out, m->data);
	buf_addc(w->out, '"');
}

struct str
chat_part_text(struct chat_writer *cw, const struct part *p)
{
	switch (p->kind) {
	case PART_TEXT:
	case PART_REFUSAL:
		return p->text.ptr != NULL ? p->text : STR("");
	case PART_IMAGE:
		return p->media.source == MEDIA_FILE_ID ? stand_in_file(cw->conv, p, "image")
							: STR_NULL;
	case PART_DOCUMENT:
		if (p->media.source == MEDIA_TEXT)
			return stand_in_document(cw->conv, p);
		if (p->media.source == MEDIA_URL) {
			drop_named(cw->conv, cw->conv->wire == WIRE_RESPONSES ? "input" : "content",
			    STR("document_url"));
			return stand_in_document(cw->conv, p);
		}
		return p->media.source == MEDIA_FILE_ID && !cw->opt->native_openai
			   ? stand_in_file(cw->conv, p, "document")
			   : STR_NULL;
	case PART_AUDIO:
		return STR_NULL;
	case PART_OPAQUE:
		return stand_in_opaque(cw->conv, &cw->fold, p);
	case PART_UPLOAD:    /* is in the code's working directory, if anywhere */
	case PART_REASONING: /* never as visible text */
	case PART_CALL:
	case PART_RESULT:
		break;
	}
	return STR("");
}

static void
write_image(struct jw *w, const struct part *p)
{
	jw_kcstr(w, "type", "image_url");
	jw_key(w, "image_url");
	jw_object(w);
	jw_key(w, "url");
	if (p->media.source == MEDIA_BASE64)
		chat_write_data_url(w, &p->media, "image/png");
	else
		jw_str(w, p->media.data);
	if (p->media.detail.len > 0)
		jw_kstr(w, "detail", p->media.detail);
	jw_end_object(w);
}

static void
write_audio(struct jw *w, const struct part *p)
{
	size_t slash = str_chr(p->media.media_type, '/');
	jw_kcstr(w, "type", "input_audio");
	jw_key(w, "input_audio");
	jw_object(w);
	jw_kstr(w, "data", p->media.data);
	jw_kstr(
	    w, "format", slash == SIZE_MAX ? STR("wav") : str_from(p->media.media_type, slash + 1));
	jw_end_object(w);
}

static void
write_file(struct jw *w, const struct part *p)
{
	jw_kcstr(w, "type", "file");
	jw_key(w, "file");
	jw_object(w);
	if (p->media.source == MEDIA_FILE_ID) {
		jw_kstr(w, "file_id", p->media.file_id);
	} else {
		jw_kstr(w, "filename",
		    p->media.filename.len > 0 ? p->media.filename : STR("document.pdf"));
		jw_key(w, "file_data");
		chat_write_data_url(w, &p->media, "application/pdf");
	}
	jw_end_object(w);
}

void
chat_write_part(struct chat_writer *cw, const struct part *p)
{
	struct jw *w = &cw->w;
	if (chat_has_raw(p)) {
		jw_raw(w, p->raw);
		return;
	}
	struct str text = chat_part_text(cw, p);
	if (text.ptr != NULL && text.len == 0)
		return;
	jw_object(w);
	if (text.ptr != NULL) {
		jw_kcstr(w, "type", "text");
		jw_kstr(w, "text", text);
	} else if (p->kind == PART_IMAGE) {
		write_image(w, p);
	} else if (p->kind == PART_AUDIO) {
		write_audio(w, p);
	} else {
		write_file(w, p);
	}
	jw_end_object(w);
}
