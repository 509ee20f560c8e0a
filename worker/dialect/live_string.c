#include "worker/dialect/live_string.h"

#include <string.h>

#include "base/utf8.h"

#define REPLACEMENT 0xfffdu

void
live_stop(struct live_input *in)
{
	in->state = LIVE_BROKEN;
}

void
live_hold(struct live_input *in, struct str s)
{
	if (s.len > sizeof(in->held) - in->held_len) {
		live_stop(in);
		return;
	}
	memcpy(in->held + in->held_len, s.ptr, s.len);
	in->held_len += (unsigned)s.len;
}

/* --- names and strings --- */

static bool
name_is_new(const struct live_input *in)
{
	unsigned last = in->name_count - 1;
	for (unsigned i = 0; i < last; i++)
		if (in->name_len[i] == in->name_len[last] &&
		    memcmp(in->names[i], in->names[last], in->name_len[i]) == 0)
			return false;
	return true;
}

struct str
live_last_name(const struct live_input *in)
{
	unsigned last = in->name_count - 1;
	return str_n(in->names[last], in->name_len[last]);
}

void
live_name_begins(struct live_input *in)
{
	in->state = LIVE_IN_NAME;
	live_hold(in, STR("\""));
	if (in->depth > 1)
		return;
	if (in->name_count == LIVE_INPUT_NAMES) {
		live_stop(in);
		return;
	}
	in->name_len[in->name_count++] = 0;
}

static void
name_text(struct live_input *in, struct str decoded)
{
	if (in->depth > 1)
		return;
	unsigned last = in->name_count - 1;
	if (decoded.len > LIVE_INPUT_NAME_BYTES - in->name_len[last]) {
		live_stop(in);
		return;
	}
	memcpy(in->names[last] + in->name_len[last], decoded.ptr, decoded.len);
	in->name_len[last] = (uint8_t)(in->name_len[last] + decoded.len);
}

/* A piece of a name or string: as it is written, and what it says. */
static void
put(struct live_input *in, struct live_out *o, struct str written, struct str decoded)
{
	if (in->state == LIVE_IN_NAME) {
		live_hold(in, written);
		if (in->state == LIVE_IN_NAME)
			name_text(in, decoded);
		return;
	}
	if (in->state != LIVE_STRING) /* the name became too long */
		return;
	buf_add(o->json, written);
	if (in->in_member)
		buf_add(o->text, decoded);
}

static void
put_code(struct live_input *in, struct live_out *o, struct str written, uint32_t code)
{
	struct buf b = BUF_INIT(8);
	utf8_put(&b, code);
	put(in, o, written, buf_str(&b));
	buf_done(&b);
}

static void
string_ends(struct live_input *in, struct live_out *o)
{
	if (in->state == LIVE_IN_NAME) {
		live_hold(in, STR("\":"));
		if (in->state == LIVE_IN_NAME)
			in->state = LIVE_COLON;
		if (in->depth == 1 && !name_is_new(in))
			live_stop(in);
		return;
	}
	buf_addc(o->json, '"');
	in->in_string = in->in_member = false;
	in->state = LIVE_BEHIND_VALUE;
}

/* --- escapes --- */

static bool
hex4(const char *p, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++) {
		char lower = (char)(p[i] | 0x20);
		uint32_t digit;
		if (p[i] >= '0' && p[i] <= '9')
			digit = (uint32_t)(p[i] - '0');
		else if (lower >= 'a' && lower <= 'f')
			digit = (uint32_t)(lower - 'a') + 10;
		else
			return false;
		*ret = *ret << 4 | digit;
	}
	return true;
}

static bool
is_low(uint32_t code)
{
	return code >= 0xdc00 && code <= 0xdfff;
}

static bool
is_high(uint32_t code)
{
	return code >= 0xd800 && code <= 0xdbff;
}

static bool
holds_high(const struct live_input *in)
{
	return in->unit_len >= 6;
}

/* The high half that waits has no partner. */
static void
settle_high(struct live_input *in, struct live_out *o)
{
	if (!holds_high(in))
		return;
	in->unit_len -= 6;
	memmove(in->unit, in->unit + 6, in->unit_len);
	put_code(in, o, STR("\\ufffd"), REPLACEMENT);
}

static void
short_escape(struct live_input *in, struct live_out *o, char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c != '\0' ? strchr(from, c) : NULL;
	settle_high(in, o);
	in->unit_len = 0;
	if (at == NULL) {
		live_stop(in);
		return;
	}
	const char written[] = {'\\', c};
	put(in, o, str_n(written, 2), str_n(&to[at - from], 1));
}

/* \uXXXX is whole, alone or behind a high half. */
static void
long_escape(struct live_input *in, struct live_out *o)
{
	uint32_t code, high = 0;
	struct str last = str_n(in->unit + in->unit_len - 6, 6);
	if (!hex4(last.ptr + 2, &code)) {
		live_stop(in);
		return;
	}
	if (in->unit_len == 12)
		(void)hex4(in->unit + 2, &high);
	if (high != 0 && is_low(code)) {
		in->unit_len = 0;
		put_code(in, o, str_n(in->unit, 12),
		    0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00));
		return;
	}
	if (in->unit_len == 12)
		settle_high(in, o); /* the one in front; this one moves there */
	if (is_high(code))
		return;
	in->unit_len = 0;
	put_code(in, o, is_low(code) ? STR("\\ufffd") : last, is_low(code) ? REPLACEMENT : code);
}

static void
escape_char(struct live_input *in, struct live_out *o, char c)
{
	unsigned from = holds_high(in) ? 6 : 0;
	in->unit[in->unit_len++] = c;
	if (in->unit_len - from == 2 && c != 'u')
		short_escape(in, o, c);
	else if (in->unit_len - from == 6)
		long_escape(in, o);
}

/* --- characters --- */

static void
wide_char(struct live_input *in, struct live_out *o, char c)
{
	bool is_cut;
	in->unit[in->unit_len++] = c;
	struct str s = str_n(in->unit, in->unit_len);
	size_t valid = utf8_prefix(s, &is_cut);
	if (is_cut)
		return;
	in->unit_len = 0;
	if (valid == s.len)
		put(in, o, s, s);
	else
		live_stop(in);
}

size_t
live_string_bytes(struct live_input *in, struct live_out *o, struct str s)
{
	bool is_wide = in->unit_len > 0 && in->unit[0] != '\\';
	bool in_escape = in->unit_len > 0 && !is_wide && in->unit_len != 6;
	char c = s.ptr[0];
	if (is_wide) {
		wide_char(in, o, c);
		return 1;
	}
	if (in_escape || c == '\\') {
		escape_char(in, o, c);
		return 1;
	}
	settle_high(in, o);
	if (in->state == LIVE_BROKEN)
		return 1;
	size_t n = 0;
	while (n < s.len && s.ptr[n] != '"' && s.ptr[n] != '\\' &&
	       (unsigned char)s.ptr[n] >= 0x20 && (unsigned char)s.ptr[n] < 0x80)
		n++;
	if (n > 0) {
		put(in, o, str_sub(s, 0, n), str_sub(s, 0, n));
		return n;
	}
	if (c == '"')
		string_ends(in, o);
	else if ((unsigned char)c >= 0x80)
		wide_char(in, o, c);
	else
		live_stop(in); /* a control character */
	return 1;
}
