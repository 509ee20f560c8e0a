#include "base/str.h"

#include <string.h>

static unsigned char
lower(char c)
{
	unsigned char u = (unsigned char)c;
	return u >= 'A' && u <= 'Z' ? (unsigned char)(u + 32) : u;
}

static bool
is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str
str_c(const char *s)
{
	return s == NULL ? STR_NULL : (struct str){s, strlen(s)};
}

bool
str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool
str_eq_nocase(struct str a, struct str b)
{
	return a.len == b.len && str_starts_nocase(a, b);
}

int
str_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;
	return c != 0 ? c : (a.len > b.len) - (a.len < b.len);
}

bool
str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool
str_starts_nocase(struct str s, struct str prefix)
{
	if (s.len < prefix.len)
		return false;
	for (size_t i = 0; i < prefix.len; i++)
		if (lower(s.ptr[i]) != lower(prefix.ptr[i]))
			return false;
	return true;
}

bool
str_ends(struct str s, struct str suffix)
{
	return s.len >= suffix.len && str_eq(str_from(s, s.len - suffix.len), suffix);
}

struct str
str_from(struct str s, size_t from)
{
	if (from >= s.len)
		return (struct str){s.len > 0 ? s.ptr + s.len : s.ptr, 0};
	return (struct str){s.ptr + from, s.len - from};
}

struct str
str_sub(struct str s, size_t from, size_t len)
{
	struct str r = str_from(s, from);
	if (r.len > len)
		r.len = len;
	return r;
}

struct str
str_trim(struct str s)
{
	while (s.len > 0 && is_space(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

size_t
str_find(struct str s, struct str needle)
{
	if (needle.len == 0)
		return 0;
	if (s.len < needle.len)
		return SIZE_MAX;
	const char *p = memmem(s.ptr, s.len, needle.ptr, needle.len);
	return p != NULL ? (size_t)(p - s.ptr) : SIZE_MAX;
}

size_t
str_chr(struct str s, char c)
{
	const char *p = s.len > 0 ? memchr(s.ptr, c, s.len) : NULL;
	return p != NULL ? (size_t)(p - s.ptr) : SIZE_MAX;
}

size_t
str_rchr(struct str s, char c)
{
	const char *p = s.len > 0 ? memrchr(s.ptr, c, s.len) : NULL;
	return p != NULL ? (size_t)(p - s.ptr) : SIZE_MAX;
}

bool
str_split(struct str *rest, char sep, struct str *ret_piece)
{
	if (rest->ptr == NULL)
		return false;
	size_t at = str_chr(*rest, sep);
	if (at == SIZE_MAX) {
		*ret_piece = *rest;
		*rest = STR_NULL;
	} else {
		*ret_piece = (struct str){rest->ptr, at};
		*rest = (struct str){rest->ptr + at + 1, rest->len - at - 1};
	}
	return true;
}

bool
str_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;
	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return true;
}

bool
str_i64(struct str s, int64_t *ret)
{
	bool negative = s.len > 0 && s.ptr[0] == '-';
	uint64_t v;
	if (!str_u64(negative ? str_from(s, 1) : s, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return false;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool
str_copy(char *dst, size_t dst_size, struct str s)
{
	if (dst_size == 0 || s.len >= dst_size || str_chr(s, '\0') != SIZE_MAX) {
		if (dst_size > 0)
			dst[0] = '\0';
		return false;
	}
	if (s.len > 0)
		memcpy(dst, s.ptr, s.len);
	dst[s.len] = '\0';
	return true;
}
