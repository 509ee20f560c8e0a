/* Parts of a message as Messages' content blocks (openai-wire §10.2, 10.4). */
#include "worker/dialect/arguments.h"
#include "worker/dialect/messages_out.h"
#include "worker/dialect/names.h"
#include "worker/dialect/stand_in.h"

bool
messages_part_is_sendable(struct messages_writer *mw, const struct part *p)
{
	if (messages_has_raw(p))
		return true;
	switch (p->kind) {
	case PART_TEXT:
	case PART_REFUSAL:
		return p->text.len > 0;
	case PART_IMAGE:
	case PART_DOCUMENT:
		return p->media.source != MEDIA_NONE;
	case PART_UPLOAD:
		return mw->conv->wire == WIRE_MESSAGES;
	case PART_REASONING: /* only with a signature of this wire, or its encrypted form */
		return p->raw_wire == WIRE_MESSAGES &&
		       (p->signature.len > 0 || p->encrypted.len > 0);
	case PART_CALL:
	case PART_RESULT:
		return true;
	case PART_AUDIO:
		if (mw->refused == NULL)
			mw->refused = p;
		return false;
	case PART_OPAQUE:
		break;
	}
	return stand_in_opaque(mw->conv, &mw->fold, p).len > 0;
}

static void
write_source(struct jw *w, const struct part *p)
{
	static const char *const types[] = {[MEDIA_BASE64] = "base64",
	    [MEDIA_URL] = "url",
	    [MEDIA_FILE_ID] = "file",
	    [MEDIA_TEXT] = "text"};
	const struct media *m = &p->media;
	const char *type = p->kind == PART_IMAGE ? "image/png" : "application/pdf";
	jw_key(w, "source");
	jw_object(w);
	jw_kcstr(w, "type", types[m->source]);
	if (m->source == MEDIA_TEXT)
		type = "text/plain";
	if (m->source == MEDIA_TEXT)
		jw_kcstr(w, "media_type", type);
	else if (m->source == MEDIA_BASE64)
		jw_kstr(w, "media_type", m->media_type.len > 0 ? m->media_type : str_c(type));
	if (m->source == MEDIA_FILE_ID)
		jw_kstr(w, "file_id", m->file_id);
	else
		jw_kstr(w, m->source == MEDIA_URL ? "url" : "data", m->data);
	jw_end_object(w);
}

static void
write_media(struct jw *w, const struct part *p)
{
	jw_kcstr(w, "type", p->kind == PART_IMAGE ? "image" : "document");
	write_source(w, p);
	if (p->kind != PART_DOCUMENT)
		return;
	if (p->media.filename.len > 0)
		jw_kstr(w, "title", p->media.filename);
	if (p->text.len > 0)
		jw_kstr(w, "context", p->text);
}

static void
write_reasoning(struct jw *w, const struct part *p)
{
	if (p->encrypted.len > 0) {
		jw_kcstr(w, "type", "redacted_thinking");
		jw_kstr(w, "data", p->encrypted);
		return;
	}
	jw_kcstr(w, "type", "thinking");
	jw_kstr(w, "thinking", p->text);
	jw_kstr(w, "signature", p->signature);
}

static void
write_call(struct messages_writer *mw, const struct part *p)
{
	struct arena *a = mw->conv->arena;
	jw_kcstr(&mw->w, "type", "tool_use");
	jw_kstr(&mw->w, "id", id_for_messages(a, p->id));
	jw_kstr(&mw->w, "name", p->name);
	jw_kraw(&mw->w, "input", arguments_object(a, p->arguments));
}

static void
write_result(struct messages_writer *mw, const struct part *p)
{
	struct jw *w = &mw->w;
	jw_kcstr(w, "type", "tool_result");
	jw_kstr(w, "tool_use_id", id_for_messages(mw->conv->arena, p->id));
	bool any = false;
	for (const struct part *c = p->content; c != NULL; c = c->next) {
		if (!messages_part_is_sendable(mw, c))
			continue;
		if (!any) {
			jw_key(w, "content");
			jw_array(w);
		}
		any = true;
		messages_write_block(mw, c);
	}
	if (any)
		jw_end_array(w);
	if (p->is_error)
		jw_kbool(w, "is_error", true);
}

void
messages_write_block(struct messages_writer *mw, const struct part *p)
{
	struct jw *w = &mw->w;
	if (messages_has_raw(p)) {
		jw_raw(w, p->raw);
		return;
	}
	jw_object(w);
	switch (p->kind) {
	case PART_TEXT:
	case PART_REFUSAL:
		jw_kcstr(w, "type", "text");
		jw_kstr(w, "text", p->text);
		break;
	case PART_IMAGE:
	case PART_DOCUMENT:
		write_media(w, p);
		break;
	case PART_UPLOAD:
		jw_kcstr(w, "type", "container_upload");
		jw_kstr(w, "file_id", p->media.file_id);
		break;
	case PART_REASONING:
		write_reasoning(w, p);
		break;
	case PART_CALL:
		write_call(mw, p);
		break;
	case PART_RESULT:
		write_result(mw, p);
		break;
	case PART_OPAQUE:
		jw_kcstr(w, "type", "text");
		jw_kstr(w, "text", stand_in_opaque(mw->conv, &mw->fold, p));
		break;
	case PART_AUDIO:
		break;
	}
	if (p->cache_control_raw.len > 0 && p->kind != PART_REASONING)
		jw_kraw(w, "cache_control", p->cache_control_raw);
	jw_end_object(w);
}
