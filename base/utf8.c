#include "base/utf8.h"

/* Length of the sequence at p, 0 if invalid, -1 if cut by the end of the input. */
static int
sequence(const unsigned char *p, size_t n)
{
	static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
	if (p[0] < 0x80)
		return 1;
	int len = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
		  : p[0] >= 0xe0 && p[0] <= 0xef ? 3
		  : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						 : 0;
	if (len == 0)
		return 0;
	uint32_t cp = p[0] & (0x7fu >> len);
	for (int i = 1; i < len; i++) {
		if ((size_t)i >= n)
			return -1;
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
		if (i == 1 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
				  (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
			return 0;
	}
	return cp >= least[len] ? len : 0;
}

size_t
utf8_prefix(struct str s, bool *ret_cut)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t at = 0;
	*ret_cut = false;
	while (at < s.len) {
		int n = sequence(p + at, s.len - at);
		if (n <= 0) {
			*ret_cut = n < 0;
			break;
		}
		at += (size_t)n;
	}
	return at;
}

bool
utf8_valid(struct str s)
{
	bool cut;
	return utf8_prefix(s, &cut) == s.len;
}

void
utf8_mend(struct str s, struct buf *dst)
{
	bool bad = false;
	while (s.len > 0) {
		bool cut;
		size_t good = utf8_prefix(s, &cut);
		if (good > 0) {
			buf_add(dst, str_sub(s, 0, good));
			s = str_from(s, good);
			bad = false;
		}
		if (s.len > 0) {
			if (!bad)
				buf_add(dst, STR("\xef\xbf\xbd"));
			bad = true;
			s = str_from(s, 1);
		}
	}
}

struct str
utf8_cut(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	size_t n = max;
	while (n > 0 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
		n--;
	return str_sub(s, 0, n);
}

void
utf8_put(struct buf *dst, uint32_t cp)
{
	if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		cp = 0xfffd;
	char b[4];
	size_t n;
	if (cp < 0x80) {
		b[0] = (char)cp;
		n = 1;
	} else if (cp < 0x800) {
		b[0] = (char)(0xc0 | cp >> 6);
		b[1] = (char)(0x80 | (cp & 63));
		n = 2;
	} else if (cp < 0x10000) {
		b[0] = (char)(0xe0 | cp >> 12);
		b[1] = (char)(0x80 | (cp >> 6 & 63));
		b[2] = (char)(0x80 | (cp & 63));
		n = 3;
	} else {
		b[0] = (char)(0xf0 | cp >> 18);
		b[1] = (char)(0x80 | (cp >> 12 & 63));
		b[2] = (char)(0x80 | (cp >> 6 & 63));
		b[3] = (char)(0x80 | (cp & 63));
		n = 4;
	}
	buf_addn(dst, b, n);
}
