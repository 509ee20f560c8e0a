/* uri.h - percent-encoding and query strings (RFC 3986 §2.1; forms: WHATWG URL §5.1)
 *
 * Process: any; pure.
 * Owns:    nothing; decoded text is always in the given arena, also where nothing needed decoding:
 *          the input belongs to a connection, what is made of it to a request.
 * Limits:  none of its own: a query is part of the request target, LIMIT_HTTP_TARGET_BYTES.
 */
#ifndef OTARI_WORKER_HTTP_URI_H
#define OTARI_WORKER_HTTP_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct arena;

/* Strict: false for a '%' that two hex digits do not follow, for %00, and when the arena is full.
 * '+' stays as it is (a path, not a form). */
bool uri_decode(struct arena *a, struct str s, struct str *ret);
/* Appends s with everything but A-Z a-z 0-9 - . _ ~ as %XX. */
void uri_encode(struct str s, struct buf *dst);

/* The decoded value of the first field of this name, empty when it has none, STR_NULL when there is
 * no such field. As forms are read everywhere: '+' is a space, a broken escape stands for itself.
 */
struct str query_get(struct arena *a, struct str query, const char *name);
/* Every value of the fields `name` and `name[]`, in order, at most max; returns how many there are
 * (which may be more than max). */
size_t query_get_all(
    struct arena *a, struct str query, const char *name, struct str *ret, size_t max);

#endif
