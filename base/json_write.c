#include "base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/json_scan.h"
#include "base/utf8.h"

void
jw_init(struct jw *w, struct buf *out)
{
	*w = (struct jw){.out = out};
}

/* Every value starts here. */
static void
before_value(struct jw *w)
{
	if (w->need_comma[w->depth])
		buf_addc(w->out, ',');
	w->need_comma[w->depth] = true;
}

static void
open_container(struct jw *w, char c)
{
	CHECK(w->depth < JW_DEPTH);
	before_value(w);
	buf_addc(w->out, c);
	w->need_comma[++w->depth] = false;
}

static void
close_container(struct jw *w, char c)
{
	CHECK(w->depth > 0);
	w->depth--;
	buf_addc(w->out, c);
}

void
jw_object(struct jw *w)
{
	open_container(w, '{');
}

void
jw_array(struct jw *w)
{
	open_container(w, '[');
}

void
jw_end_object(struct jw *w)
{
	close_container(w, '}');
}

void
jw_end_array(struct jw *w)
{
	close_container(w, ']');
}

static void
escape_ascii(struct buf *out, unsigned char c)
{
	switch (c) {
	case '"':
		buf_add(out, STR("\\\""));
		return;
	case '\\':
		buf_add(out, STR("\\\\"));
		return;
	case '\n':
		buf_add(out, STR("\\n"));
		return;
	case '\r':
		buf_add(out, STR("\\r"));
		return;
	case '\t':
		buf_add(out, STR("\\t"));
		return;
	default:
		buf_printf(out, "\\u%04x", c);
	}
}

void
jw_escape(struct buf *out, struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
	while (p < end) {
		const unsigned char *from = p;
		p = json_skip_plain(p, end);
		if (p > from)
			buf_addn(out, from, (size_t)(p - from));
		if (p == end)
			break;
		if (*p < 0x80) {
			escape_ascii(out, *p++);
			continue;
		}
		for (from = p; p < end && *p >= 0x80;)
			p++;
		utf8_mend(str_n(from, (size_t)(p - from)), out);
	}
}

static void
put_string(struct buf *out, struct str s)
{
	buf_addc(out, '"');
	jw_escape(out, s);
	buf_addc(out, '"');
}

void
jw_key_str(struct jw *w, struct str key)
{
	before_value(w);
	put_string(w->out, key);
	buf_addc(w->out, ':');
	w->need_comma[w->depth] = false;
}

void
jw_key(struct jw *w, const char *key)
{
	jw_key_str(w, str_c(key));
}

void
jw_str(struct jw *w, struct str s)
{
	before_value(w);
	put_string(w->out, s);
}

void
jw_cstr(struct jw *w, const char *s)
{
	if (s == NULL)
		jw_null(w);
	else
		jw_str(w, str_c(s));
}

void
jw_i64(struct jw *w, int64_t v)
{
	before_value(w);
	buf_printf(w->out, "%lld", (long long)v);
}

void
jw_double(struct jw *w, double v)
{
	char text[40];
	if (!isfinite(v)) {
		jw_null(w);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, v);
		double back = strtod(text, NULL);
		if (back >= v && back <= v)
			break;
	}
	jw_raw(w, str_c(text));
}

void
jw_bool(struct jw *w, bool v)
{
	jw_raw(w, v ? STR("true") : STR("false"));
}

void
jw_null(struct jw *w)
{
	jw_raw(w, STR("null"));
}

void
jw_raw(struct jw *w, struct str json)
{
	before_value(w);
	buf_add(w->out, json);
}

void
jw_kstr(struct jw *w, const char *key, struct str s)
{
	jw_key(w, key);
	jw_str(w, s);
}

void
jw_kcstr(struct jw *w, const char *key, const char *s)
{
	jw_key(w, key);
	jw_cstr(w, s);
}

void
jw_ki64(struct jw *w, const char *key, int64_t v)
{
	jw_key(w, key);
	jw_i64(w, v);
}

void
jw_kbool(struct jw *w, const char *key, bool v)
{
	jw_key(w, key);
	jw_bool(w, v);
}

void
jw_knull(struct jw *w, const char *key)
{
	jw_key(w, key);
	jw_null(w);
}

void
jw_kraw(struct jw *w, const char *key, struct str json)
{
	jw_key(w, key);
	jw_raw(w, json);
}
