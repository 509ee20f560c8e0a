/* Content parts in Responses' words (openai-wire §3.3, 10.2). */
#include "worker/dialect/chat_out.h"
#include "worker/dialect/responses_out.h"
#include "worker/dialect/stand_in.h"

/* The text that stands for a part; STR_NULL when it has a form of its own here, empty when nothing
 * is to be sent. */
static struct str
part_text(struct responses_writer *rw, const struct part *p)
{
	bool held = rw->opt->native_openai && p->media.source == MEDIA_FILE_ID;
	switch (p->kind) {
	case PART_TEXT:
		return p->text.ptr != NULL ? p->text : STR("");
	case PART_REFUSAL:
	case PART_AUDIO:
		return STR_NULL;
	case PART_IMAGE:
		return p->media.source == MEDIA_FILE_ID && !held
			   ? stand_in_file(rw->conv, p, "image")
			   : STR_NULL;
	case PART_DOCUMENT:
		if (p->media.source == MEDIA_TEXT)
			return stand_in_document(rw->conv, p);
		return p->media.source == MEDIA_FILE_ID && !held
			   ? stand_in_file(rw->conv, p, "document")
			   : STR_NULL;
	case PART_OPAQUE:
		return stand_in_opaque(rw->conv, &rw->fold, p);
	case PART_UPLOAD: /* is in the code's working directory, if anywhere */
	case PART_REASONING:
	case PART_CALL:
	case PART_RESULT:
		break;
	}
	return STR("");
}

bool
responses_part_is_sendable(struct responses_writer *rw, const struct part *p)
{
	if (responses_has_raw(p))
		return true;
	if (p->kind == PART_REFUSAL)
		return p->text.len > 0;
	struct str text = part_text(rw, p);
	return text.ptr == NULL || text.len > 0;
}

static void
write_image(struct jw *w, const struct media *m)
{
	jw_kcstr(w, "type", "input_image");
	jw_kstr(w, "detail", m->detail.len > 0 ? m->detail : STR("auto"));
	if (m->source == MEDIA_FILE_ID) {
		jw_kstr(w, "file_id", m->file_id);
		return;
	}
	jw_key(w, "image_url");
	if (m->source == MEDIA_BASE64)
		chat_write_data_url(w, m, "image/png");
	else
		jw_str(w, m->data);
}

static void
write_file(struct jw *w, const struct media *m)
{
	jw_kcstr(w, "type", "input_file");
	if (m->source == MEDIA_FILE_ID) {
		jw_kstr(w, "file_id", m->file_id);
	} else if (m->source == MEDIA_URL) {
		jw_kstr(w, "file_url", m->data);
	} else {
		jw_kstr(w, "filename", m->filename.len > 0 ? m->filename : STR("document.pdf"));
		jw_key(w, "file_data");
		chat_write_data_url(w, m, "application/pdf");
	}
}

static void
write_audio(struct jw *w, const struct media *m)
{
	size_t slash = str_chr(m->media_type, '/');
	jw_kcstr(w, "type", "input_audio");
	jw_key(w, "input_audio");
	jw_object(w);
	jw_kstr(w, "data", m->data);
	jw_kstr(w, "format", slash == SIZE_MAX ? STR("wav") : str_from(m->media_type, slash + 1));
	jw_end_object(w);
}

void
responses_write_part(struct responses_writer *rw, const struct part *p, bool assistant)
{
	struct jw *w = &rw->w;
	if (responses_has_raw(p)) {
		jw_raw(w, p->raw);
		return;
	}
	jw_object(w);
	struct str text = p->kind == PART_REFUSAL ? p->text : part_text(rw, p);
	if (p->kind == PART_REFUSAL && assistant) {
		jw_kcstr(w, "type", "refusal");
		jw_kstr(w, "refusal", text);
	} else if (text.ptr != NULL) {
		jw_kcstr(w, "type", assistant ? "output_text" : "input_text");
		jw_kstr(w, "text", text);
	} else if (p->kind == PART_IMAGE) {
		write_image(w, &p->media);
	} else if (p->kind == PART_AUDIO) {
		write_audio(w, &p->media);
	} else {
		write_file(w, &p->media);
	}
	jw_end_object(w);
}
