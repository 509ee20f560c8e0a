/* range.h - the Range header of a download (RFC 9110 §14), one range only
 *
 * Process: any; pure.
 */
#ifndef OTARI_WORKER_HTTP_RANGE_H
#define OTARI_WORKER_HTTP_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum range_kind {
	RANGE_WHOLE, /* absent, another unit, malformed, or several: answer 200, all of it */
	RANGE_PART,  /* answer 206 with the part */
	RANGE_UNSATISFIABLE, /* answer 416; Content-Range is "bytes", space, star, slash, size */
};

/* header: the value, or STR_NULL. The part is cut to the size. Outputs only for RANGE_PART, in
 * bytes; length is at least 1. */
enum range_kind range_parse(
    struct str header, uint64_t size, uint64_t *ret_first, uint64_t *ret_length);
/* Whether If-Range (STR_NULL: absent) lets the range stand: it names this strong entity tag. A date
 * never does. */
bool range_if_matches(struct str if_range, struct str etag);

#endif
