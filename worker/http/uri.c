#include "worker/http/uri.h"

#include "base/arena.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of the escape at s[i], or -1. */
static int
escape_at(struct str s, size_t i)
{
	if (s.ptr[i] != '%' || s.len - i < 3)
		return -1;
	int hi = hex_value(s.ptr[i + 1]), lo = hex_value(s.ptr[i + 2]);
	return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

bool
uri_decode(struct arena *a, struct str s, struct str *ret)
{
	char *p = arena_alloc(a, s.len + 1);
	if (p == NULL)
		return false;
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] != '%') {
			p[n++] = s.ptr[i];
			continue;
		}
		int c = escape_at(s, i);
		if (c <= 0)
			return false;
		p[n++] = (char)c;
		i += 2;
	}
	*ret = str_n(p, n);
	return true;
}

void
uri_encode(struct str s, struct buf *dst)
{
	static const char digits[] = "0123456789ABCDEF";
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    c == '-' || c == '.' || c == '_' || c == '~') {
			buf_addc(dst, (char)c);
		} else {
			const char esc[3] = {'%', digits[c >> 4], digits[c & 15]};
			buf_addn(dst, esc, sizeof(esc));
		}
	}
}

static struct str
form_decode(struct arena *a, struct str s)
{
	if (str_chr(s, '%') == SIZE_MAX && str_chr(s, '+') == SIZE_MAX)
		return s;
	char *p = arena_alloc(a, s.len + 1);
	if (p == NULL)
		return STR("");
	size_t n = 0;
	for (size_t i = 0; i < s.len; i++) {
		int c = escape_at(s, i);
		if (c >= 0) {
			p[n++] = (char)c;
			i += 2;
		} else {
			p[n++] = s.ptr[i] == '+' ? ' ' : s.ptr[i];
		}
	}
	return str_n(p, n);
}

/* Cuts the next non-empty field off *rest. */
static bool
next_field(struct arena *a, struct str *rest, struct str *ret_name, struct str *ret_value)
{
	struct str piece;
	while (str_split(rest, '&', &piece)) {
		if (piece.len == 0)
			continue;
		size_t eq = str_chr(piece, '=');
		*ret_name = form_decode(a, eq == SIZE_MAX ? piece : str_sub(piece, 0, eq));
		*ret_value = eq == SIZE_MAX ? STR("") : str_from(piece, eq + 1);
		return true;
	}
	return false;
}

/* A value may be read by a thread when the connection and its head are gone. */
static struct str
copied(struct arena *a, struct str decoded, struct str source)
{
	return decoded.ptr == source.ptr ? arena_str(a, decoded) : decoded;
}

struct str
query_get(struct arena *a, struct str query, const char *name)
{
	struct str k, v, want = str_c(name);
	while (next_field(a, &query, &k, &v))
		if (str_eq(k, want))
			return copied(a, form_decode(a, v), v);
	return STR_NULL;
}

size_t
query_get_all(struct arena *a, struct str query, const char *name, struct str *ret, size_t max)
{
	struct str k, v, want = str_c(name);
	size_t n = 0;
	while (next_field(a, &query, &k, &v)) {
		if (k.len == want.len + 2 && str_ends(k, STR("[]")))
			k.len -= 2;
		if (!str_eq(k, want))
			continue;
		if (n < max)
			ret[n] = copied(a, form_decode(a, v), v);
		n++;
	}
	return n;
}
