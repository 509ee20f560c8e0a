/* base64.h - strict base64 (RFC 4648), standard alphabet with padding and url-safe without. Pure.
 */
#ifndef OTARI_BASE_BASE64_H
#define OTARI_BASE_BASE64_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define BASE64_LEN(n) (((n) + 2) / 3 * 4)

void base64_encode(struct str src, struct buf *dst);
/* Refuses white space, wrong padding and non-zero left-over bits. */
bool base64_decode(struct str src, struct buf *dst);
/* Writes ceil(n*4/3) characters, no padding, no NUL; returns the count. */
size_t base64url_encode(struct str src, char *dst);
bool base64url_decode(struct str src, struct buf *dst);

#endif
