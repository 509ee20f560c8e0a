/* json_scan.h - the inner loop of reading and writing JSON strings; private to base/json* */
#ifndef OTARI_BASE_JSON_SCAN_H
#define OTARI_BASE_JSON_SCAN_H

#include <stdint.h>
#include <string.h>

/* Bytes that a string may hold as they are: not a quote, backslash, control or non-ASCII byte. The
 * sum tricks below look at eight at once; they may stop early, never late. */
static inline const unsigned char *
json_skip_plain(const unsigned char *p, const unsigned char *end)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
	while (end - p >= 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
		uint64_t bad = w | (w - ones * 0x20) | (quote - ones) | (slash - ones);
		if ((bad & high) != 0)
			break;
		p += 8;
	}
	while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return p;
}

#endif
