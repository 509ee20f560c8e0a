#include "base/digest.h"

#include <zlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"
#include "base/mem.h"

struct sha256 {
	EVP_MD_CTX *ctx;
};

struct sha256 *
sha256_new(void)
{
	struct sha256 *s = MEM_NEW(struct sha256);
	s->ctx = EVP_MD_CTX_new();
	CHECK(s->ctx != NULL);
	CHECK(EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL) == 1);
	return s;
}

void
sha256_add(struct sha256 *s, struct str bytes)
{
	CHECK(EVP_DigestUpdate(s->ctx, bytes.ptr, bytes.len) == 1);
}

void
sha256_end(struct sha256 *s, unsigned char out[SHA256_BYTES])
{
	CHECK(EVP_DigestFinal_ex(s->ctx, out, NULL) == 1);
}

void
sha256_free(struct sha256 **sp)
{
	if (*sp == NULL)
		return;
	EVP_MD_CTX_free((*sp)->ctx);
	mem_free(*sp);
	*sp = NULL;
}

void
sha256_of(struct str bytes, unsigned char out[SHA256_BYTES])
{
	CHECK(EVP_Digest(bytes.ptr, bytes.len, out, NULL, EVP_sha256(), NULL) == 1);
}

void
hmac_sha256(struct str key, struct str bytes, unsigned char out[SHA256_BYTES])
{
	unsigned int n = SHA256_BYTES;
	CHECK(HMAC(EVP_sha256(), key.ptr, (int)key.len, (const unsigned char *)bytes.ptr, bytes.len,
		  out, &n) != NULL);
}

void
hex_encode(const unsigned char *src, size_t n, char *dst)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		dst[2 * i] = digits[src[i] >> 4];
		dst[2 * i + 1] = digits[src[i] & 15];
	}
	dst[2 * n] = '\0';
}

static int
nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
hex_decode(struct str hex, unsigned char *dst, size_t n)
{
	if (hex.len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int hi = nibble(hex.ptr[2 * i]), lo = nibble(hex.ptr[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return false;
		dst[i] = (unsigned char)(hi * 16 + lo);
	}
	return true;
}

bool
bytes_equal_ct(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}

uint32_t
crc32_of(struct str bytes)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const unsigned char *)bytes.ptr, bytes.len);
}
