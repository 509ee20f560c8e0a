/* digest.h - SHA-256, CRC-32, hex and constant-time compare. Any thread. */
#ifndef OTARI_BASE_DIGEST_H
#define OTARI_BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define SHA256_BYTES 32
#define SHA256_HEX   64

struct sha256; /* streaming state */

void sha256_of(struct str bytes, unsigned char out[SHA256_BYTES]);
void hmac_sha256(struct str key, struct str bytes, unsigned char out[SHA256_BYTES]);
struct sha256 *sha256_new(void); /* returns owned; sha256_free */
void sha256_add(struct sha256 *s, struct str bytes);
void sha256_end(struct sha256 *s, unsigned char out[SHA256_BYTES]);
void sha256_free(struct sha256 **s);
/* Lower-case; dst has 2*n+1 bytes. */
void hex_encode(const unsigned char *src, size_t n, char *dst);
/* Exactly 2*n hex digits, or false. */
bool hex_decode(struct str hex, unsigned char *dst, size_t n);
bool bytes_equal_ct(struct str a, struct str b); /* length is not hidden */
uint32_t crc32_of(struct str bytes);             /* IEEE, as zlib */

#endif
