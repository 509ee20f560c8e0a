/* multipart.h - multipart/form-data reader (RFC 7578, RFC 2046 §5.1): bytes in, parts out
 *
 * Process: worker; pure. Fits http_body_stream(): on_body feeds and returns !multipart_is_paused().
 * Owns:    the head of the part being read, and while paused the rest of the piece that was fed.
 * Limits:  LIMIT_MULTIPART_PARTS parts, LIMIT_MULTIPART_HEAD_BYTES of headers a part (and of text
 *          before the first), LIMIT_MULTIPART_FIELD_BYTES in a part without a filename. File parts
 *          have none here and are never buffered.
 * Rules:   CRLF only; exactly one Content-Disposition: form-data with a name; encoded parts
 *          (base64, quoted-printable) are refused, because passing them on as they are would
 *          store the wrong bytes; nested multipart is opaque data.
 */
#ifndef OTARI_WORKER_HTTP_MULTIPART_H
#define OTARI_WORKER_HTTP_MULTIPART_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct multipart;

struct multipart_part {          /* borrowed until part_end returned */
	struct str name;         /* UTF-8, mended */
	struct str filename;     /* UTF-8, mended, last path component only; may be empty */
	struct str content_type; /* as sent, or STR_NULL */
	bool has_filename;       /* it is a file */
};

/* Each may return false to be paused there: nothing more is called until multipart_resume(). The
 * bytes of part_data are taken all the same. The reader must not be freed inside. */
struct multipart_ops {
	bool (*part_begin)(void *arg, const struct multipart_part *p);
	bool (*part_data)(void *arg, struct str bytes);
	bool (*part_end)(void *arg);
};

/* content_type: of the request. ERR_UNSUPPORTED when it is not multipart/form-data, ERR_INPUT
 * without a valid boundary. ops and arg are borrowed. */
MUST_CHECK enum err_code multipart_new(struct str content_type, const struct multipart_ops *ops,
    void *arg, struct multipart **ret, struct err *reterr);
void multipart_free(struct multipart **m); /* NULL allowed */
/* Takes all bytes. ERR_INPUT (malformed) or ERR_TOOLARGE; the error stays. Not while paused. */
MUST_CHECK enum err_code multipart_feed(struct multipart *m, struct str bytes, struct err *reterr);
bool multipart_is_paused(const struct multipart *m);
/* Goes on with what was kept; may pause again or fail as multipart_feed. */
MUST_CHECK enum err_code multipart_resume(struct multipart *m, struct err *reterr);
/* No more callbacks; further bytes are swallowed. For a handler that has answered already; also
 * inside callbacks. */
void multipart_stop(struct multipart *m);
/* The body has ended: ERR_INPUT when the last boundary was missing. Not while paused. */
MUST_CHECK enum err_code multipart_end(struct multipart *m, struct err *reterr);

#endif
