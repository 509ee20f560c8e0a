/* The parser: one pass, no recursion, a flat table of 16-byte tokens in document order. */
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/json_token.h"
#include "base/limits.h"

enum expect { WANT_VALUE, WANT_VALUE_OR_END, WANT_KEY, WANT_KEY_OR_END, WANT_COMMA_OR_END, DONE };

struct parser {
	struct arena *arena;
	struct jdoc *doc;
	const unsigned char *start, *p, *end;
	uint32_t cap;
	uint32_t stack[LIMIT_JSON_DEPTH]; /* open containers, as token numbers */
	unsigned depth;
	const char *what; /* what is wrong at p */
};

static bool
fail(struct parser *ps, const char *what)
{
	ps->what = what;
	return false;
}

static bool
grow(struct parser *ps)
{
	if (ps->cap >= LIMIT_JSON_TOKENS)
		return fail(ps, "too many values");
	uint32_t cap = ps->cap * 2;
	struct jtok *t = ARENA_NEW_ARRAY(ps->arena, struct jtok, cap);
	if (t == NULL)
		return fail(ps, NULL);
	memcpy(t, ps->doc->tok, ps->doc->count * sizeof(*t));
	ps->doc->tok = t;
	ps->cap = cap;
	return true;
}

static bool
push(struct parser *ps, enum jtype type, const unsigned char *from, uint32_t flags)
{
	struct jdoc *d = ps->doc;
	if (d->count == ps->cap && !grow(ps))
		return false;
	d->tok[d->count] = (struct jtok){.off = (uint32_t)(from - ps->start),
	    .len = (uint32_t)(ps->p - from),
	    .next = d->count + 1,
	    .info = (uint32_t)type | flags};
	d->count++;
	return true;
}

/* Length of the UTF-8 sequence at p, or 0. */
static unsigned
utf8_sequence(const unsigned char *p, const unsigned char *end)
{
	size_t n = (size_t)(end - p);
	if (p[0] < 0xc2 || p[0] > 0xf4 || n < 2 || (p[1] & 0xc0) != 0x80)
		return 0;
	if (p[0] < 0xe0)
		return 2;
	if (n < 3 || (p[2] & 0xc0) != 0x80)
		return 0;
	if (p[0] < 0xf0)
		return (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ? 0 : 3;
	if (n < 4 || (p[3] & 0xc0) != 0x80)
		return 0;
	return (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f) ? 0 : 4;
}

static bool
is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* p stands behind the backslash. Surrogates are not paired here: a lone one is legal JSON. */
static bool
skip_escape(struct parser *ps)
{
	if (ps->p == ps->end)
		return fail(ps, "unfinished string");
	unsigned char c = *ps->p;
	if (c == 'u') {
		for (int i = 1; i <= 4; i++)
			if (ps->end - ps->p <= i || !is_hex(ps->p[i]))
				return fail(ps, "bad \\u escape");
		ps->p += 5;
		return true;
	}
	if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL)
		return fail(ps, "bad escape");
	ps->p++;
	return true;
}

static bool
string(struct parser *ps)
{
	const unsigned char *from = ps->p++;
	uint32_t flags = 0;
	for (;;) {
		ps->p = json_skip_plain(ps->p, ps->end);
		if (ps->p == ps->end)
			return fail(ps, "unfinished string");
		unsigned char c = *ps->p;
		if (c == '"') {
			ps->p++;
			return push(ps, JT_STRING, from, flags);
		}
		if (c == '\\') {
			flags = JTOK_ESCAPED;
			ps->p++;
			if (!skip_escape(ps))
				return false;
		} else if (c < 0x20) {
			return fail(ps, "control character in a string");
		} else {
			unsigned n = utf8_sequence(ps->p, ps->end);
			if (n == 0)
				return fail(ps, "invalid UTF-8");
			ps->p += n;
		}
	}
}

static bool
digits(struct parser *ps)
{
	const unsigned char *from = ps->p;
	while (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9')
		ps->p++;
	return ps->p > from ? true : fail(ps, "bad number");
}

static bool
at(const struct parser *ps, char a, char b)
{
	return ps->p < ps->end && (*ps->p == (unsigned char)a || *ps->p == (unsigned char)b);
}

static bool
number(struct parser *ps)
{
	const unsigned char *from = ps->p;
	if (at(ps, '-', '-'))
		ps->p++;
	if (at(ps, '0', '0'))
		ps->p++;
	else if (!digits(ps))
		return false;
	if (at(ps, '.', '.')) {
		ps->p++;
		if (!digits(ps))
			return false;
	}
	if (at(ps, 'e', 'E')) {
		ps->p++;
		if (at(ps, '+', '-'))
			ps->p++;
		if (!digits(ps))
			return false;
	}
	return push(ps, JT_NUMBER, from, 0);
}

static bool
literal(struct parser *ps, const char *word, size_t n, enum jtype type)
{
	const unsigned char *from = ps->p;
	if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
		return fail(ps, "unknown literal");
	ps->p += n;
	return push(ps, type, from, 0);
}

static bool
open_container(struct parser *ps, enum jtype type)
{
	if (ps->depth == LIMIT_JSON_DEPTH)
		return fail(ps, "nested too deep");
	const unsigned char *from = ps->p++;
	uint32_t number_of_token = ps->doc->count;
	if (!push(ps, type, from, 0))
		return false;
	ps->stack[ps->depth++] = number_of_token;
	return true;
}

/* A value inside a container counts once; keys do not count. */
static void
count_value(struct parser *ps)
{
	if (ps->depth > 0)
		ps->doc->tok[ps->stack[ps->depth - 1]].info += JTOK_COUNT_ONE;
}

static bool
value(struct parser *ps, enum expect *next)
{
	count_value(ps);
	*next = WANT_COMMA_OR_END;
	switch (*ps->p) {
	case '"':
		return string(ps);
	case '{':
		*next = WANT_KEY_OR_END;
		return open_container(ps, JT_OBJECT);
	case '[':
		*next = WANT_VALUE_OR_END;
		return open_container(ps, JT_ARRAY);
	case 't':
		return literal(ps, "true", 4, JT_TRUE);
	case 'f':
		return literal(ps, "false", 5, JT_FALSE);
	case 'n':
		return literal(ps, "null", 4, JT_NULL);
	default:
		if (*ps->p == '-' || (*ps->p >= '0' && *ps->p <= '9'))
			return number(ps);
		return fail(ps, "a value is expected");
	}
}

static void
close_container(struct parser *ps)
{
	ps->p++;
	struct jtok *t = &ps->doc->tok[ps->stack[--ps->depth]];
	t->next = ps->doc->count;
	t->len = (uint32_t)(ps->p - ps->start) - t->off;
}

static void
skip_space(struct parser *ps)
{
	while (ps->p < ps->end &&
	       (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\r' || *ps->p == '\t'))
		ps->p++;
}

static bool
key(struct parser *ps, enum expect *next)
{
	if (*ps->p != '"')
		return fail(ps, "a member name is expected");
	if (!string(ps))
		return false;
	skip_space(ps);
	if (!at(ps, ':', ':'))
		return fail(ps, "':' is expected");
	ps->p++;
	*next = WANT_VALUE;
	return true;
}

static bool
comma_or_end(struct parser *ps, enum expect *next)
{
	bool object = (ps->doc->tok[ps->stack[ps->depth - 1]].info & JTOK_TYPE) == JT_OBJECT;
	if (*ps->p == ',') {
		ps->p++;
		*next = object ? WANT_KEY : WANT_VALUE;
		return true;
	}
	if (*ps->p != (object ? '}' : ']'))
		return fail(ps, object ? "',' or '}' is expected" : "',' or ']' is expected");
	close_container(ps);
	return true;
}

static bool
step(struct parser *ps, enum expect *state)
{
	switch (*state) {
	case WANT_VALUE_OR_END:
		if (*ps->p == ']') {
			close_container(ps);
			*state = WANT_COMMA_OR_END;
			return true;
		}
		return value(ps, state);
	case WANT_VALUE:
		return value(ps, state);
	case WANT_KEY_OR_END:
		if (*ps->p == '}') {
			close_container(ps);
			*state = WANT_COMMA_OR_END;
			return true;
		}
		return key(ps, state);
	case WANT_KEY:
		return key(ps, state);
	case WANT_COMMA_OR_END:
		return comma_or_end(ps, state);
	case DONE:
		return fail(ps, "more than one value");
	}
	return false;
}

static bool
run(struct parser *ps)
{
	enum expect state = WANT_VALUE;
	for (;;) {
		skip_space(ps);
		if (ps->p == ps->end)
			return state == DONE ? true : fail(ps, "unexpected end");
		if (!step(ps, &state))
			return false;
		if (ps->depth == 0 && state == WANT_COMMA_OR_END)
			state = DONE;
	}
}

enum err_code
jdoc_parse(struct arena *a, struct str text, struct jval *ret_root, struct err *reterr)
{
	if (text.len >= UINT32_MAX)
		return err_set(reterr, ERR_TOOLARGE, "JSON: text of %zu bytes", text.len);
	struct parser ps = {.arena = a, .doc = ARENA_NEW(a, struct jdoc)};
	/* Doubled on demand; the first guess suits small events and does not trust big ones. */
	ps.cap = text.len / 6 < 16 ? 16 : text.len / 6 > 512 ? 512 : (uint32_t)(text.len / 6);
	struct jtok *first = ARENA_NEW_ARRAY(a, struct jtok, ps.cap);
	if (ps.doc == NULL || first == NULL)
		return err_set(reterr, ERR_NOMEM, "JSON: over the memory budget");
	ps.doc->text = text.len > 0 ? text.ptr : "";
	ps.doc->tok = first;
	ps.start = ps.p = (const unsigned char *)ps.doc->text;
	ps.end = ps.start + text.len;
	if (!run(&ps)) {
		if (ps.what == NULL)
			return err_set(reterr, ERR_NOMEM, "JSON: over the memory budget");
		return err_set(reterr, ERR_INPUT, "invalid JSON at byte %zu: %s",
		    (size_t)(ps.p - ps.start), ps.what);
	}
	*ret_root = (struct jval){ps.doc, 0};
	return ERR_OK;
}
