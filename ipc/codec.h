/* codec.h - packs and unpacks the payloads of our own messages
 *
 * Process: any; pure. Numbers are little-endian and fixed in size; a string is its length (32 bits)
 * and its bytes, the length UINT32_MAX meaning absent (STR_NULL).
 * Limits:  writing goes into a struct buf with its own maximum (test buf.overflowed once); reading
 * never passes the end: the first get that would marks the reader as failed, it and all later ones
 * give 0 or STR_NULL. Read everything, then ask codec_end once.
 */
#ifndef OTARI_IPC_CODEC_H
#define OTARI_IPC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

void codec_put_u8(struct buf *b, uint8_t v);
void codec_put_u32(struct buf *b, uint32_t v);
void codec_put_u64(struct buf *b, uint64_t v);
void codec_put_i64(struct buf *b, int64_t v);
void codec_put_bool(struct buf *b, bool v);
void codec_put_str(struct buf *b, struct str s);
/* Exactly n bytes, without a length. */
void codec_put_bytes(struct buf *b, const void *p, size_t n);

struct codec_reader {
	struct str rest; /* what is not read yet; borrowed */
	bool failed;
};

struct codec_reader codec_reader(struct str payload);
uint8_t codec_get_u8(struct codec_reader *r);
uint32_t codec_get_u32(struct codec_reader *r);
uint64_t codec_get_u64(struct codec_reader *r);
int64_t codec_get_i64(struct codec_reader *r);
bool codec_get_bool(struct codec_reader *r); /* anything but 0 and 1 fails */
/* Points into the payload. */
struct str codec_get_str(struct codec_reader *r);
void codec_get_bytes(struct codec_reader *r, void *dst, size_t n); /* zeroes dst on failure */
/* A count of things that follow, each at least min_bytes long; more than can follow fails. */
uint32_t codec_get_count(struct codec_reader *r, size_t min_bytes);
/* ERR_PROTO when a get failed or bytes are left over; what names the message for the operator. */
MUST_CHECK enum err_code codec_end(
    const struct codec_reader *r, const char *what, struct err *reterr);

#endif
