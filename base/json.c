/* Look-ups in the token table; the parser is in json_parse.c. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_token.h"

#define REPLACEMENT 0xfffdu

static const struct jtok *
tok(struct jval v)
{
	return v.doc != NULL ? &v.doc->tok[v.tok] : NULL;
}

enum jtype
jv_type(struct jval v)
{
	return v.doc != NULL ? (enum jtype)(tok(v)->info & JTOK_TYPE) : JT_ABSENT;
}

bool
jv_is(struct jval v, enum jtype t)
{
	return jv_type(v) == t;
}

bool
jv_present(struct jval v)
{
	return jv_type(v) > JT_NULL;
}

static bool
is_container(struct jval v)
{
	return jv_is(v, JT_ARRAY) || jv_is(v, JT_OBJECT);
}

uint32_t
jv_count(struct jval v)
{
	return is_container(v) ? JTOK_COUNT(tok(v)) : 0;
}

bool
jv_next(struct jval v, struct jiter *it)
{
	if (!is_container(v))
		return false;
	if (!it->started) {
		it->started = true;
		it->pos = v.tok + 1;
	}
	if (it->pos >= tok(v)->next)
		return false;
	it->key = JV_ABSENT;
	if (jv_is(v, JT_OBJECT))
		it->key = (struct jval){v.doc, it->pos++};
	it->value = (struct jval){v.doc, it->pos};
	it->pos = v.doc->tok[it->pos].next;
	return true;
}

struct jval
jv_at(struct jval array, uint32_t i)
{
	struct jiter it = {0};
	if (!jv_is(array, JT_ARRAY) || i >= jv_count(array))
		return JV_ABSENT;
	while (jv_next(array, &it) && i > 0)
		i--;
	return it.value;
}

struct jval
jv_get(struct jval object, const char *key)
{
	struct jval found = JV_ABSENT;
	struct jiter it = {0};
	if (!jv_is(object, JT_OBJECT))
		return found;
	while (jv_next(object, &it))
		if (jv_str_is(it.key, key))
			found = it.value;
	return found;
}

enum err_code
jv_unique(struct jval object, const char *const *keys, struct err *reterr)
{
	if (!jv_is(object, JT_OBJECT))
		return ERR_OK;
	for (; *keys != NULL; keys++) {
		unsigned n = 0;
		struct jiter it = {0};
		while (jv_next(object, &it))
			n += jv_str_is(it.key, *keys);
		if (n > 1)
			return err_set(reterr, ERR_INPUT, "%s: written twice", *keys);
	}
	return ERR_OK;
}

struct str
jv_raw(struct jval v)
{
	return v.doc != NULL ? str_n(v.doc->text + tok(v)->off, tok(v)->len) : STR_NULL;
}

size_t
jv_offset(struct jval v)
{
	return v.doc != NULL ? tok(v)->off : 0;
}

/* --- strings --- */

static unsigned
hex4(const char *p)
{
	unsigned v = 0;
	for (int i = 0; i < 4; i++) {
		unsigned c = (unsigned char)p[i];
		v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return v;
}

/* Decodes the escape at p (behind the backslash) and returns how many bytes it took. A surrogate
 * that has no partner gives U+FFFD. */
static size_t
unescape(const char *p, const char *end, uint32_t *ret_cp)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	if (*p != 'u') {
		const char *at = strchr(from, *p);
		*ret_cp = at != NULL ? (unsigned char)to[at - from] : (unsigned char)*p;
		return 1;
	}
	unsigned hi = hex4(p + 1);
	*ret_cp = hi;
	if (hi < 0xd800 || hi > 0xdfff)
		return 5;
	*ret_cp = REPLACEMENT;
	if (hi >= 0xdc00 || end - p < 11 || p[5] != '\\' || p[6] != 'u')
		return 5;
	unsigned lo = hex4(p + 7);
	if (lo < 0xdc00 || lo > 0xdfff)
		return 5;
	*ret_cp = 0x10000u + ((hi - 0xd800u) << 10) + (lo - 0xdc00u);
	return 11;
}

static size_t
encode_utf8(uint32_t cp, char dst[4])
{
	static const uint32_t mark[5] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--) {
		dst[i] = (char)(0x80u | (cp & 0x3fu));
		cp >>= 6;
	}
	dst[0] = (char)(mark[n] | cp);
	return n;
}

/* The inside of the string, undecoded. */
static struct str
inside(struct jval v)
{
	struct str raw = jv_raw(v);
	return str_n(raw.ptr + 1, raw.len - 2);
}

struct str
jv_str(struct arena *a, struct jval v)
{
	if (!jv_is(v, JT_STRING))
		return STR_NULL;
	struct str s = inside(v);
	if ((tok(v)->info & JTOK_ESCAPED) == 0)
		return s;
	char *dst = arena_alloc(a, s.len + 1); /* decoding never makes it longer */
	if (dst == NULL)
		return STR("");
	size_t n = 0;
	for (const char *p = s.ptr, *end = s.ptr + s.len; p < end;) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		size_t plain = (size_t)((slash != NULL ? slash : end) - p);
		memcpy(dst + n, p, plain);
		n += plain;
		p += plain;
		if (slash == NULL)
			break;
		uint32_t cp;
		p += 1 + unescape(p + 1, end, &cp);
		n += encode_utf8(cp, dst + n);
	}
	return str_n(dst, n);
}

static bool
escaped_is(struct str s, struct str want)
{
	size_t n = 0;
	for (const char *p = s.ptr, *end = s.ptr + s.len; p < end;) {
		char piece[4] = {*p};
		size_t len = 1;
		uint32_t cp;
		if (*p == '\\') {
			p += 1 + unescape(p + 1, end, &cp);
			len = encode_utf8(cp, piece);
		} else {
			p++;
		}
		if (want.len - n < len || memcmp(want.ptr + n, piece, len) != 0)
			return false;
		n += len;
	}
	return n == want.len;
}

bool
jv_str_is(struct jval v, const char *text)
{
	if (!jv_is(v, JT_STRING))
		return false;
	struct str s = inside(v), want = str_c(text);
	return (tok(v)->info & JTOK_ESCAPED) != 0 ? escaped_is(s, want) : str_eq(s, want);
}

/* --- literals and numbers --- */

bool
jv_bool(struct jval v, bool dflt)
{
	enum jtype t = jv_type(v);
	return t == JT_TRUE ? true : t == JT_FALSE ? false : dflt;
}

/* "-12.500e2" → negative, digits "125", exponent 1: value = digits × 10^exponent. */
struct decimal {
	bool negative;
	char digit[20];
	size_t digits, zeros; /* zeros: seen since the last digit that counts */
	int64_t exponent;
	bool too_long;
};

static void
decimal_digit(struct decimal *d, char c)
{
	if (c == '0') {
		d->zeros += d->digits > 0;
		return;
	}
	if (d->digits + d->zeros + 1 > sizeof(d->digit)) {
		d->too_long = true;
		return;
	}
	for (; d->zeros > 0; d->zeros--)
		d->digit[d->digits++] = '0';
	d->digit[d->digits++] = c;
}

static void
decimal_read(struct decimal *d, struct str s)
{
	*d = (struct decimal){0};
	bool fraction = false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		if (c == '-') {
			d->negative = true;
		} else if (c == '.') {
			fraction = true;
		} else if (c == 'e' || c == 'E') {
			int64_t e;
			i += i + 1 < s.len && s.ptr[i + 1] == '+';
			if (!str_i64(str_from(s, i + 1), &e) || e > 1000000 || e < -1000000)
				d->too_long = d->digits > 0;
			else
				d->exponent += e;
			break;
		} else {
			decimal_digit(d, c);
			d->exponent -= fraction;
		}
	}
	d->exponent += (int64_t)d->zeros;
}

bool
jv_i64(struct jval v, int64_t *ret)
{
	if (!jv_is(v, JT_NUMBER))
		return false;
	if (str_i64(jv_raw(v), ret))
		return true;
	struct decimal d;
	decimal_read(&d, jv_raw(v));
	if (d.too_long || (d.digits > 0 && (d.exponent < 0 || d.exponent > 18)))
		return false;
	int64_t n = 0;
	for (size_t i = 0; i < d.digits + (d.digits > 0 ? (size_t)d.exponent : 0); i++) {
		int64_t digit = i < d.digits ? d.digit[i] - '0' : 0;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_sub_overflow(n, digit, &n)) /* downwards: INT64_MIN fits */
			return false;
	}
	if (!d.negative && n == INT64_MIN)
		return false;
	*ret = d.negative ? n : -n;
	return true;
}

int64_t
jv_i64_or(struct jval v, int64_t dflt)
{
	int64_t n;
	return jv_i64(v, &n) ? n : dflt;
}

bool
jv_double(struct jval v, double *ret)
{
	char text[512];
	if (!jv_is(v, JT_NUMBER) || !str_copy(text, sizeof(text), jv_raw(v)))
		return false;
	double d = strtod(text, NULL); /* the locale is never changed from "C" */
	if (!isfinite(d))
		return false;
	*ret = d;
	return true;
}
