/* disposition.h - Content-Disposition of a download (RFC 6266, RFC 8187)
 *
 * Process: any; pure. The name is a stranger's: nothing of it can end the header or the quotes.
 */
#ifndef OTARI_WORKER_HTTP_DISPOSITION_H
#define OTARI_WORKER_HTTP_DISPOSITION_H

#include "base/str.h"

struct arena;
struct buf;

/* attachment; filename="<ascii>"; filename*=UTF-8''<percent-encoded>
 * The ascii form keeps printable ASCII without '"' and '\', and is "download" when nothing is left.
 * In the arena; empty when it is full. */
struct str disposition_attachment(struct arena *a, struct str filename);

/* Appends a name between the quotes of a form's part, as browsers write it (WHATWG HTML,
 * multipart/form-data). */
void disposition_form_name(struct buf *dst, struct str name);

#endif
