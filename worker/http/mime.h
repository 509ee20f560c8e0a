/* mime.h - media type of a file by the end of its name
 *
 * Process: any; pure.
 */
#ifndef OTARI_WORKER_HTTP_MIME_H
#define OTARI_WORKER_HTTP_MIME_H

#include "base/str.h"

/* "report.CSV" gives text/csv; application/octet-stream when the ending says nothing. Static. */
struct str mime_of_name(struct str filename);

#endif
