#include "base/utf8.h"

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
