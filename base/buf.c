#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf)BUF_INIT(max_bytes);
}

void
buf_done(struct buf *b)
{
	mem_free(b->ptr);
	buf_init(b, b->max);
}

void
buf_clear(struct buf *b)
{
	b->len = 0;
	b->overflowed = false;
	if (b->ptr != NULL)
		b->ptr[0] = '\0';
}

char *
buf_reserve(struct buf *b, size_t n)
{
	if (b->overflowed || n > b->max || b->len > b->max - n) {
		b->overflowed = true;
		return NULL;
	}
	size_t need = b->len + n + 1;
	if (need > b->cap) {
		size_t cap = b->cap != 0 ? b->cap : 256;
		while (cap < need)
			cap *= 2;
		if (cap > b->max + 1 && need <= b->max + 1)
			cap = b->max + 1;
		b->ptr = mem_grow(b->ptr, cap, 1);
		b->cap = cap;
	}
	return b->ptr + b->len;
}

void
buf_commit(struct buf *b, size_t n)
{
	CHECK(b->len + n < b->cap);
	b->len += n;
	b->ptr[b->len] = '\0';
}

void
buf_addn(struct buf *b, const void *p, size_t n)
{
	char *dst = buf_reserve(b, n);
	if (dst == NULL)
		return;
	if (n > 0)
		memcpy(dst, p, n);
	buf_commit(b, n);
}

void
buf_add(struct buf *b, struct str s)
{
	buf_addn(b, s.ptr, s.len);
}

void
buf_addc(struct buf *b, char c)
{
	buf_addn(b, &c, 1);
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *dst = n >= 0 ? buf_reserve(b, (size_t)n) : NULL;
	if (dst != NULL) {
		(void)vsnprintf(dst, (size_t)n + 1, fmt, again);
		buf_commit(b, (size_t)n);
	}
	va_end(again);
}

void
buf_consume(struct buf *b, size_t n)
{
	CHECK(n <= b->len);
	if (n == 0)
		return;
	memmove(b->ptr, b->ptr + n, b->len - n);
	b->len -= n;
	b->ptr[b->len] = '\0';
}
