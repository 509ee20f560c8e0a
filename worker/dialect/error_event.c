#include "worker/dialect/error_event.h"

#include "base/json_write.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/mapping.h"

/* As responses_reply.c ends its own streams. */
static void
responses_event(int status, const char *type, struct str message, int64_t sequence, struct buf *out)
{
	struct jw w;
	if (type == NULL)
		type = error_type_for(WIRE_RESPONSES, status);
	jw_init(&w, out);
	jw_object(&w);
	jw_kcstr(&w, "type", "error");
	jw_ki64(&w, "sequence_number", sequence);
	jw_key(&w, "error");
	jw_object(&w);
	jw_kcstr(&w, "type", type);
	jw_kcstr(&w, "code", type);
	jw_kstr(&w, "message", message);
	jw_knull(&w, "param");
	jw_end_object(&w);
	jw_kstr(&w, "detail", message);
	jw_end_object(&w);
}

void
dialect_error_event(enum wire w, int status, const char *type, struct str message,
    const char *request_id, int64_t sequence, struct buf *out)
{
	if (w != WIRE_CHAT)
		buf_add(out, STR("event: error\n"));
	buf_add(out, STR("data: "));
	if (w == WIRE_RESPONSES)
		responses_event(status, type, message, sequence, out);
	else
		dialect_error_body(w, status, type, message, STR_NULL, request_id, out);
	buf_add(out, STR("\n\n"));
	if (w == WIRE_CHAT)
		buf_add(out, STR("data: [DONE]\n\n"));
}
