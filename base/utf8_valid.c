/* By itself, and needs nothing: otari-init compiles it too. */
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
