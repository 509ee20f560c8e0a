/* sse.h - server-sent-events reader. Pure: bytes in at any split, events out.
 *
 * Line ends LF, CRLF and CR; comments; several data lines joined with LF; a BOM at the start; an
 * event that the end of the stream cuts is dropped (WHATWG HTML, "Interpreting an event stream").
 */
#ifndef OTARI_BASE_SSE_H
#define OTARI_BASE_SSE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* name is "" when the event has no event line; both borrowed until return. Returning anything but
 * ERR_OK stops the reader and is passed on. */
typedef enum err_code sse_on_event(void *arg, struct str name, struct str data);

struct sse_reader {
	struct buf line, data, name;
	bool has_data, last_cr, started;
	unsigned bom;
};

void sse_init(struct sse_reader *r, size_t max_event_bytes);
void sse_done(struct sse_reader *r);
/* ERR_TOOLARGE for an event over the maximum, or what on_event returned. */
MUST_CHECK enum err_code sse_feed(
    struct sse_reader *r, struct str bytes, sse_on_event *on_event, void *arg, struct err *reterr);

#endif
