#include "base/id.h"

#include <sys/random.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/digest.h"

void
id_random(void *dst, size_t n)
{
	char *p = dst;
	while (n > 0) {
		ssize_t got = getrandom(p, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		CHECK(got > 0);
		p += got;
		n -= (size_t)got;
	}
}

void
id_make(const char *prefix, char dst[ID_SIZE])
{
	unsigned char raw[16];
	char hex[33];
	id_random(raw, sizeof(raw));
	hex_encode(raw, sizeof(raw), hex);
	int n = snprintf(dst, ID_SIZE, "%s%s", prefix, hex);
	CHECK(n > 0 && n < ID_SIZE);
}

void
id_make_uuid(char dst[ID_UUID_SIZE])
{
	unsigned char raw[16];
	char hex[33];
	id_random(raw, sizeof(raw));
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80);
	hex_encode(raw, sizeof(raw), hex);
	int n = snprintf(dst, ID_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
	    hex + 16, hex + 20);
	CHECK(n == ID_UUID_SIZE - 1);
}

void
id_make_token(const char *prefix, char *dst, size_t dst_size)
{
	unsigned char raw[48];
	size_t plen = strlen(prefix);
	CHECK(dst_size >= plen + 65);
	id_random(raw, sizeof(raw));
	memcpy(dst, prefix, plen);
	base64url_encode(str_n(raw, sizeof(raw)), dst + plen);
	dst[plen + 64] = '\0';
}
