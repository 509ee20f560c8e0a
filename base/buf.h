/* buf.h - growable byte buffer with a hard maximum
 *
 * Over the maximum the buffer stops growing and stays "overflowed": add freely, test once.
 * Owns its memory; the contents are always followed by a NUL that is not counted.
 */
#ifndef OTARI_BASE_BUF_H
#define OTARI_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct buf {
	char *ptr;
	size_t len, cap, max;
	bool overflowed;
};

#define BUF_INIT(max_bytes)                                                                        \
	{                                                                                          \
		NULL, 0, 0, (max_bytes), false                                                     \
	}

void buf_init(struct buf *b, size_t max_bytes);
void buf_done(struct buf *b);  /* frees; the buffer can be used again */
void buf_clear(struct buf *b); /* keeps the memory, forgets an overflow */
void buf_add(struct buf *b, struct str s);
void buf_addn(struct buf *b, const void *p, size_t n);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* Room for n more bytes at the end, or NULL; then count them in with buf_commit. */
char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */
static inline struct str
buf_str(const struct buf *b)
{
	return (struct str){b->ptr != NULL ? b->ptr : "", b->len};
}

#endif
