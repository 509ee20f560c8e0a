#include "ipc/codec.h"

#include <string.h>

#define ABSENT UINT32_MAX

void
codec_put_u8(struct buf *b, uint8_t v)
{
	buf_addn(b, &v, 1);
}

static void
put_le(struct buf *b, uint64_t v, size_t n)
{
	unsigned char bytes[8];
	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(v >> (8 * i));
	buf_addn(b, bytes, n);
}

void
codec_put_u32(struct buf *b, uint32_t v)
{
	put_le(b, v, 4);
}

void
codec_put_u64(struct buf *b, uint64_t v)
{
	put_le(b, v, 8);
}

void
codec_put_i64(struct buf *b, int64_t v)
{
	put_le(b, (uint64_t)v, 8);
}

void
codec_put_bool(struct buf *b, bool v)
{
	codec_put_u8(b, v ? 1 : 0);
}

void
codec_put_str(struct buf *b, struct str s)
{
	if (s.ptr == NULL) {
		codec_put_u32(b, ABSENT);
		return;
	}
	if (s.len >= ABSENT) {
		b->overflowed = true;
		return;
	}
	codec_put_u32(b, (uint32_t)s.len);
	buf_add(b, s);
}

void
codec_put_bytes(struct buf *b, const void *p, size_t n)
{
	buf_addn(b, p, n);
}

struct codec_reader
codec_reader(struct str payload)
{
	return (struct codec_reader){payload, false};
}

/* The next n bytes, or NULL and a failed reader. */
static const unsigned char *
take(struct codec_reader *r, size_t n)
{
	if (r->failed || r->rest.len < n) {
		r->failed = true;
		return NULL;
	}
	const unsigned char *p = (const unsigned char *)r->rest.ptr;
	r->rest = str_n(r->rest.ptr + n, r->rest.len - n);
	return p;
}

static uint64_t
get_le(struct codec_reader *r, size_t n)
{
	const unsigned char *p = take(r, n);
	uint64_t v = 0;
	for (size_t i = 0; p != NULL && i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t
codec_get_u8(struct codec_reader *r)
{
	return (uint8_t)get_le(r, 1);
}

uint32_t
codec_get_u32(struct codec_reader *r)
{
	return (uint32_t)get_le(r, 4);
}

uint64_t
codec_get_u64(struct codec_reader *r)
{
	return get_le(r, 8);
}

int64_t
codec_get_i64(struct codec_reader *r)
{
	return (int64_t)get_le(r, 8);
}

bool
codec_get_bool(struct codec_reader *r)
{
	uint8_t v = codec_get_u8(r);
	if (v > 1)
		r->failed = true;
	return v == 1;
}

struct str
codec_get_str(struct codec_reader *r)
{
	uint32_t n = codec_get_u32(r);
	if (r->failed || n == ABSENT)
		return STR_NULL;
	if (n == 0)
		return STR("");
	const unsigned char *p = take(r, n);
	return p != NULL ? str_n(p, n) : STR_NULL;
}

void
codec_get_bytes(struct codec_reader *r, void *dst, size_t n)
{
	const unsigned char *p = take(r, n);
	if (n == 0)
		return;
	if (p != NULL)
		memcpy(dst, p, n);
	else
		memset(dst, 0, n);
}

uint32_t
codec_get_count(struct codec_reader *r, size_t min_bytes)
{
	uint32_t n = codec_get_u32(r);
	if (n != 0 && (min_bytes == 0 || n > r->rest.len / min_bytes)) {
		r->failed = true;
		return 0;
	}
	return n;
}

enum err_code
codec_end(const struct codec_reader *r, const char *what, struct err *reterr)
{
	if (r->failed)
		return err_set(reterr, ERR_PROTO, "%s: the payload is cut or malformed", what);
	if (r->rest.len != 0)
		return err_set(reterr, ERR_PROTO, "%s: %zu bytes too many", what, r->rest.len);
	return ERR_OK;
}
