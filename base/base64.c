#include "base/base64.h"

#include <string.h>

static const char STD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char URL[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t
encode(struct str src, const char *alphabet, bool pad, char *dst)
{
	const unsigned char *s = (const unsigned char *)src.ptr;
	size_t n = src.len, at = 0;
	for (; n >= 3; n -= 3, s += 3) {
		dst[at++] = alphabet[s[0] >> 2];
		dst[at++] = alphabet[(s[0] & 3) << 4 | s[1] >> 4];
		dst[at++] = alphabet[(s[1] & 15) << 2 | s[2] >> 6];
		dst[at++] = alphabet[s[2] & 63];
	}
	if (n > 0) {
		unsigned second = n == 2 ? s[1] : 0;
		dst[at++] = alphabet[s[0] >> 2];
		dst[at++] = alphabet[(s[0] & 3u) << 4 | second >> 4];
		if (n == 2)
			dst[at++] = alphabet[(second & 15) << 2];
		for (size_t i = n; pad && i < 3; i++)
			dst[at++] = '=';
	}
	return at;
}

static bool
decode(struct str src, const char *alphabet, bool pad, struct buf *dst)
{
	size_t n = src.len;
	if (pad) {
		if (n % 4 != 0)
			return false;
		for (int i = 0; i < 2 && n > 0 && src.ptr[n - 1] == '='; i++)
			n--;
	}
	if (n % 4 == 1)
		return false;
	char *out = buf_reserve(dst, n / 4 * 3 + 2);
	if (out == NULL)
		return false;
	unsigned acc = 0, bits = 0;
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		const char *p = memchr(alphabet, src.ptr[i], 64);
		if (p == NULL)
			return false;
		acc = acc << 6 | (unsigned)(p - alphabet);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[at++] = (char)(acc >> bits & 255);
		}
		acc &= (1u << bits) - 1;
	}
	if (acc != 0)
		return false;
	buf_commit(dst, at);
	return true;
}

void
base64_encode(struct str src, struct buf *dst)
{
	char *out = buf_reserve(dst, BASE64_LEN(src.len));
	if (out != NULL)
		buf_commit(dst, encode(src, STD, true, out));
}

bool
base64_decode(struct str src, struct buf *dst)
{
	return decode(src, STD, true, dst);
}

size_t
base64url_encode(struct str src, char *dst)
{
	return encode(src, URL, false, dst);
}

bool
base64url_decode(struct str src, struct buf *dst)
{
	return decode(src, URL, false, dst);
}
