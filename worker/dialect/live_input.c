#include "worker/dialect/live_input.h"

#include <string.h>

#include "base/json_scalar.h"
#include "base/utf8.h"

#define REPLACEMENT 0xfffdu

struct out {
	struct buf *json, *text;
};

void
live_input_init(struct live_input *in, struct str member, size_t max_bytes)
{
	*in = (struct live_input){.member = member, .max_bytes = max_bytes};
}

static void
stop(struct live_input *in)
{
	in->state = LIVE_BROKEN;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void
hold(struct live_input *in, struct str s)
{
	if (s.len > sizeof(in->held) - in->held_len) {
		stop(in);
		return;
	}
	memcpy(in->held + in->held_len, s.ptr, s.len);
	in->held_len += (unsigned)s.len;
}

/* A value is certain to follow: what was held for it goes out. */
static void
release(struct live_input *in, struct out *o)
{
	buf_addn(o->json, in->held, in->held_len);
	in->held_len = 0;
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

static struct str
last_name(const struct live_input *in)
{
	unsigned last = in->name_count - 1;
	return str_n(in->names[last], in->name_len[last]);
}

static void
name_begins(struct live_input *in)
{
	in->state = LIVE_IN_NAME;
	hold(in, STR("\""));
	if (in->depth > 1)
		return;
	if (in->name_count == LIVE_INPUT_NAMES) {
		stop(in);
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
		stop(in);
		return;
	}
	memcpy(in->names[last] + in->name_len[last], decoded.ptr, decoded.len);
	in->name_len[last] = (uint8_t)(in->name_len[last] + decoded.len);
}

/* A piece of a name or string: as it is written, and what it says. */
static void
put(struct live_input *in, struct out *o, struct str written, struct str decoded)
{
	if (in->state == LIVE_IN_NAME) {
		hold(in, written);
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
put_code(struct live_input *in, struct out *o, struct str written, uint32_t code)
{
	struct buf b = BUF_INIT(8);
	utf8_put(&b, code);
	put(in, o, written, buf_str(&b));
	buf_done(&b);
}

static void
string_ends(struct live_input *in, struct out *o)
{
	if (in->state == LIVE_IN_NAME) {
		hold(in, STR("\":"));
		if (in->state == LIVE_IN_NAME)
			in->state = LIVE_COLON;
		if (in->depth == 1 && !name_is_new(in))
			stop(in);
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
settle_high(struct live_input *in, struct out *o)
{
	if (!holds_high(in))
		return;
	in->unit_len -= 6;
	memmove(in->unit, in->unit + 6, in->unit_len);
	put_code(in, o, STR("\\ufffd"), REPLACEMENT);
}

static void
short_escape(struct live_input *in, struct out *o, char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c != '\0' ? strchr(from, c) : NULL;
	settle_high(in, o);
	in->unit_len = 0;
	if (at == NULL) {
		stop(in);
		return;
	}
	const char written[] = {'\\', c};
	put(in, o, str_n(written, 2), str_n(&to[at - from], 1));
}

/* \uXXXX is whole, alone or behind a high half. */
static void
long_escape(struct live_input *in, struct out *o)
{
	uint32_t code, high = 0;
	struct str last = str_n(in->unit + in->unit_len - 6, 6);
	if (!hex4(last.ptr + 2, &code)) {
		stop(in);
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
escape_char(struct live_input *in, struct out *o, char c)
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
wide_char(struct live_input *in, struct out *o, char c)
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
		stop(in);
}

/* Of a name or string; how many bytes were taken. */
static size_t
string_bytes(struct live_input *in, struct out *o, struct str s)
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
		stop(in); /* a control character */
	return 1;
}

/* --- numbers and literals --- */

static struct str
scalar(const struct live_input *in)
{
	return str_n(in->held + in->scalar_at, in->held_len - in->scalar_at);
}

static void
scalar_begins(struct live_input *in, enum live_state state, char c)
{
	in->scalar_at = in->held_len;
	in->state = state;
	hold(in, str_n(&c, 1));
}

static void
literal_char(struct live_input *in, struct out *o, char c)
{
	bool is_whole = false;
	hold(in, str_n(&c, 1));
	if (in->state == LIVE_BROKEN)
		return;
	if (!json_literal_begins(scalar(in), &is_whole)) {
		stop(in);
	} else if (is_whole) {
		release(in, o);
		in->state = LIVE_BEHIND_VALUE;
	}
}

/* False: the number ended in front of c. */
static bool
number_char(struct live_input *in, struct out *o, char c)
{
	if ((c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-' || c == 'e' || c == 'E') {
		hold(in, str_n(&c, 1));
		return true;
	}
	if (!json_is_number(scalar(in))) {
		stop(in);
		return true;
	}
	release(in, o);
	in->state = LIVE_BEHIND_VALUE;
	return false;
}

/* --- structure --- */

static bool
in_array(const struct live_input *in)
{
	return in->arrays >> (in->depth - 1) & 1;
}

static void
container_begins(struct live_input *in, struct out *o, char c)
{
	if (in->depth == LIVE_INPUT_DEPTH) {
		stop(in);
		return;
	}
	release(in, o);
	in->has_begun = true;
	buf_addc(o->json, c);
	uint32_t bit = UINT32_C(1) << in->depth++;
	in->arrays = c == '[' ? in->arrays | bit : in->arrays & ~bit;
	in->state = c == '[' ? LIVE_VALUE_OR_END : LIVE_NAME_OR_END;
}

static void
container_ends(struct live_input *in, struct out *o, char c)
{
	if (c != (in_array(in) ? ']' : '}')) {
		stop(in);
		return;
	}
	buf_addc(o->json, c);
	in->state = --in->depth == 0 ? LIVE_DONE : LIVE_BEHIND_VALUE;
}

static void
value_begins(struct live_input *in, struct out *o, char c)
{
	if (c == '"') {
		in->in_member =
		    in->depth == 1 && !in_array(in) && str_eq(last_name(in), in->member);
		release(in, o);
		buf_addc(o->json, c);
		in->in_string = true;
		in->state = LIVE_STRING;
	} else if (c == '{' || c == '[') {
		container_begins(in, o, c);
	} else if (c == 't' || c == 'f' || c == 'n') {
		scalar_begins(in, LIVE_LITERAL, c);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		scalar_begins(in, LIVE_NUMBER, c);
	} else {
		stop(in);
	}
}

static void
behind_value(struct live_input *in, struct out *o, char c)
{
	if (c != ',') {
		container_ends(in, o, c);
		return;
	}
	hold(in, STR(","));
	in->state = in_array(in) ? LIVE_VALUE : LIVE_NAME;
}

/* Between tokens. */
static void
structure_char(struct live_input *in, struct out *o, char c)
{
	if (is_space(c))
		return;
	switch (in->state) {
	case LIVE_START:
		if (c == '{')
			container_begins(in, o, c);
		else
			stop(in);
		break;
	case LIVE_NAME_OR_END:
	case LIVE_NAME:
		if (c == '"')
			name_begins(in);
		else if (in->state == LIVE_NAME_OR_END)
			container_ends(in, o, c);
		else
			stop(in);
		break;
	case LIVE_COLON:
		if (c == ':')
			in->state = LIVE_VALUE;
		else
			stop(in);
		break;
	case LIVE_VALUE_OR_END:
		if (c == ']')
			container_ends(in, o, c);
		else
			value_begins(in, o, c);
		break;
	case LIVE_VALUE:
		value_begins(in, o, c);
		break;
	case LIVE_BEHIND_VALUE:
		behind_value(in, o, c);
		break;
	case LIVE_IN_NAME:
	case LIVE_STRING:
	case LIVE_NUMBER:
	case LIVE_LITERAL:
	case LIVE_DONE:
	case LIVE_BROKEN:
		stop(in);
		break;
	}
}

static void
feed_all(struct live_input *in, struct str piece, struct out *o)
{
	for (size_t i = 0; i < piece.len && in->state != LIVE_BROKEN;) {
		if (in->state == LIVE_IN_NAME || in->state == LIVE_STRING) {
			i += string_bytes(in, o, str_from(piece, i));
			continue;
		}
		if (in->state == LIVE_NUMBER && !number_char(in, o, piece.ptr[i]))
			continue; /* it ended in front of this one */
		if (in->state == LIVE_LITERAL)
			literal_char(in, o, piece.ptr[i]);
		else if (in->state != LIVE_NUMBER)
			structure_char(in, o, piece.ptr[i]);
		i++;
	}
}

void
live_input_feed(struct live_input *in, struct str piece, struct buf *json, struct buf *text)
{
	struct out o = {json, text};
	size_t room = in->max_bytes - in->bytes;
	struct str fits = piece.len > room ? str_sub(piece, 0, room) : piece;
	in->bytes += fits.len;
	feed_all(in, fits, &o);
	if (fits.len < piece.len)
		stop(in);
}

bool
live_input_end(struct live_input *in, struct buf *json)
{
	if (in->state == LIVE_DONE)
		return true;
	stop(in);
	if (!in->has_begun)
		buf_add(json, STR("{}"));
	if (in->in_string)
		buf_addc(json, '"');
	in->in_string = false;
	in->has_begun = true;
	for (; in->depth > 0; in->depth--)
		buf_addc(json, in_array(in) ? ']' : '}');
	return false;
}
