#include "worker/dialect/error_event.h"

#include "worker/dialect/dialect.h"

void
dialect_error_event(enum wire w, int status, const char *type, struct str message,
    const char *request_id, struct buf *out)
{
	if (w != WIRE_CHAT)
		buf_add(out, STR("event: error\n"));
	buf_add(out, STR("data: "));
	dialect_error_body(w, status, type, message, STR_NULL, request_id, out);
	buf_add(out, STR("\n\n"));
	if (w == WIRE_CHAT)
		buf_add(out, STR("data: [DONE]\n\n"));
}
