#include "worker/dialect/dialect.h"

#include "base/json_write.h"
#include "worker/dialect/mapping.h"

const struct dialect *
dialect_of(enum wire w)
{
	switch (w) {
	case WIRE_CHAT:
		return &dialect_chat;
	case WIRE_MESSAGES:
		return &dialect_messages;
	case WIRE_RESPONSES:
		return &dialect_responses;
	}
	return NULL;
}

/* Anthropic's {"type":"error","error":{…}} members, into an object that is open. */
static void
messages_envelope(struct jw *w, const char *type, struct str message, struct str details_raw)
{
	jw_kcstr(w, "type", "error");
	jw_key(w, "error");
	jw_object(w);
	jw_kcstr(w, "type", type);
	jw_kstr(w, "message", message);
	if (details_raw.ptr != NULL)
		jw_kraw(w, "details", details_raw);
	jw_end_object(w);
}

/* OpenAI's {"error":{…}}, and upstream's text; into an object that is open. NULL param, code: null.
 */
static void
openai_envelope(struct jw *w, const char *type, struct str message, const char *param,
    const char *code, struct str details_raw)
{
	jw_key(w, "error");
	jw_object(w);
	jw_kstr(w, "message", message);
	jw_kcstr(w, "type", type);
	jw_kcstr(w, "param", param);
	jw_kcstr(w, "code", code);
	if (details_raw.ptr != NULL)
		jw_kraw(w, "details", details_raw);
	jw_end_object(w);
	jw_kstr(w, "detail", message);
}

void
dialect_error_body(enum wire wire, int status, const char *type, struct str message,
    struct str details_raw, const char *request_id, struct buf *out)
{
	struct jw w;
	if (type == NULL)
		type = error_type_for(wire, status);
	jw_init(&w, out);
	jw_object(&w);
	if (wire == WIRE_MESSAGES) {
		messages_envelope(&w, type, message, details_raw);
		jw_kcstr(&w, "request_id", request_id);
		jw_key(&w, "detail");
		jw_object(&w);
		messages_envelope(&w, error_type_upstream(status), message, STR_NULL);
		jw_end_object(&w);
	} else {
		openai_envelope(&w, type, message, NULL, NULL, details_raw);
	}
	jw_end_object(&w);
}

void
dialect_error_body_coded(
    int status, struct str message, const char *param, const char *code, struct buf *out)
{
	struct jw w;
	jw_init(&w, out);
	jw_object(&w);
	openai_envelope(&w, error_type_for(WIRE_RESPONSES, status), message, param, code, STR_NULL);
	jw_end_object(&w);
}
