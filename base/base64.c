#include "base/base64.h"

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

/* Six bits and one, so that 0 is no digit; the last two digits are the alphabet's. */
static const unsigned char DIGITS[256] = {
    ['A'] = 1,
    ['B'] = 2,
    ['C'] = 3,
    ['D'] = 4,
    ['E'] = 5,
    ['F'] = 6,
    ['G'] = 7,
    ['H'] = 8,
    ['I'] = 9,
    ['J'] = 10,
    ['K'] = 11,
    ['L'] = 12,
    ['M'] = 13,
    ['N'] = 14,
    ['O'] = 15,
    ['P'] = 16,
    ['Q'] = 17,
    ['R'] = 18,
    ['S'] = 19,
    ['T'] = 20,
    ['U'] = 21,
    ['V'] = 22,
    ['W'] = 23,
    ['X'] = 24,
    ['Y'] = 25,
    ['Z'] = 26,
    ['a'] = 27,
    ['b'] = 28,
    ['c'] = 29,
    ['d'] = 30,
    ['e'] = 31,
    ['f'] = 32,
    ['g'] = 33,
    ['h'] = 34,
    ['i'] = 35,
    ['j'] = 36,
    ['k'] = 37,
    ['l'] = 38,
    ['m'] = 39,
    ['n'] = 40,
    ['o'] = 41,
    ['p'] = 42,
    ['q'] = 43,
    ['r'] = 44,
    ['s'] = 45,
    ['t'] = 46,
    ['u'] = 47,
    ['v'] = 48,
    ['w'] = 49,
    ['x'] = 50,
    ['y'] = 51,
    ['z'] = 52,
    ['0'] = 53,
    ['1'] = 54,
    ['2'] = 55,
    ['3'] = 56,
    ['4'] = 57,
    ['5'] = 58,
    ['6'] = 59,
    ['7'] = 60,
    ['8'] = 61,
    ['9'] = 62,
};

/* 64: it is none. */
static inline unsigned
value_of(char c, const char *alphabet)
{
	unsigned v = DIGITS[(unsigned char)c];
	if (v != 0)
		return v - 1;
	return c == alphabet[62] ? 62 : c == alphabet[63] ? 63 : 64;
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
		unsigned v = value_of(src.ptr[i], alphabet);
		if (v == 64)
			return false;
		acc = acc << 6 | v;
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
