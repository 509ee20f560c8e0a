/* multipart_head.h - header parameters, for multipart.c
 *
 * Process: worker; pure.
 */
#ifndef OTARI_WORKER_HTTP_MULTIPART_HEAD_H
#define OTARI_WORKER_HTTP_MULTIPART_HEAD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "worker/http/multipart.h"

#define MULTIPART_BOUNDARY_MAX 70u /* RFC 2046 §5.1.1 */

/* Appends the boundary of a request's Content-Type. */
MUST_CHECK enum err_code multipart_read_boundary(
    struct str content_type, struct buf *dst, struct err *reterr);
/* Reads the header lines of a part (each with its CRLF, without the empty line). Decoded text is
 * appended to store, which must have the room already: twice head.len + 64 (spans point into it).
 */
MUST_CHECK enum err_code multipart_read_head(
    struct str head, struct buf *store, struct multipart_part *ret, struct err *reterr);

#endif
