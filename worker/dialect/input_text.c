#include "worker/dialect/input_text.h"

#include "base/utf8.h"

static const struct str key = STR_INIT("\"input\"");

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void
expect(struct input_text *t, char c, char wanted, enum input_state next)
{
	if (c == wanted)
		t->state = next;
	else if (!is_space(c))
		t->state = INPUT_OTHER;
}

static void
key_char(struct input_text *t, char c)
{
	if (t->seen == 0 && is_space(c))
		return;
	if (c != key.ptr[t->seen]) {
		t->state = INPUT_OTHER;
		return;
	}
	if (++t->seen == key.len)
		t->state = INPUT_COLON;
}

/* The high half of a pair whose low half did not come. */
static void
settle(struct input_text *t, struct buf *out)
{
	if (t->surrogate != 0)
		utf8_put(out, 0xfffd);
	t->surrogate = 0;
}

static void
put_code(struct input_text *t, struct buf *out)
{
	uint32_t c = t->code, high = t->surrogate;
	t->state = INPUT_TEXT;
	if (c >= 0xdc00 && c <= 0xdfff && high != 0) {
		t->surrogate = 0;
		utf8_put(out, 0x10000 + ((high - 0xd800) << 10) + (c - 0xdc00));
		return;
	}
	settle(t, out);
	if (c >= 0xd800 && c <= 0xdbff)
		t->surrogate = c;
	else
		utf8_put(out, c);
}

static void
escape_char(struct input_text *t, char c, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (c == 'u') {
		t->state = INPUT_HEX;
		t->seen = 0;
		t->code = 0;
		return;
	}
	settle(t, out);
	t->state = INPUT_OTHER;
	for (size_t i = 0; i < sizeof(from) - 1; i++)
		if (c == from[i]) {
			buf_addc(out, to[i]);
			t->state = INPUT_TEXT;
		}
}

static void
hex_char(struct input_text *t, char c, struct buf *out)
{
	char lower = (char)(c | 0x20);
	uint32_t digit;
	if (c >= '0' && c <= '9')
		digit = (uint32_t)(c - '0');
	else if (lower >= 'a' && lower <= 'f')
		digit = (uint32_t)(lower - 'a') + 10;
	else {
		t->state = INPUT_OTHER;
		return;
	}
	t->code = t->code << 4 | digit;
	if (++t->seen == 4)
		put_code(t, out);
}

/* Up to the next quote or backslash; how many bytes that is. */
static size_t
text_run(struct input_text *t, struct str s, struct buf *out)
{
	size_t n = 0;
	while (n < s.len && s.ptr[n] != '"' && s.ptr[n] != '\\')
		n++;
	if (n > 0) {
		settle(t, out);
		buf_add(out, str_sub(s, 0, n));
		return n;
	}
	if (s.ptr[0] == '"') {
		settle(t, out);
		t->state = INPUT_DONE;
	} else {
		t->state = INPUT_ESCAPE;
	}
	return 1;
}

void
input_text_feed(struct input_text *t, struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++)
		switch (t->state) {
		case INPUT_START:
			expect(t, s.ptr[i], '{', INPUT_KEY);
			break;
		case INPUT_KEY:
			key_char(t, s.ptr[i]);
			break;
		case INPUT_COLON:
			expect(t, s.ptr[i], ':', INPUT_QUOTE);
			break;
		case INPUT_QUOTE:
			expect(t, s.ptr[i], '"', INPUT_TEXT);
			break;
		case INPUT_TEXT:
			i += text_run(t, str_from(s, i), out) - 1;
			break;
		case INPUT_ESCAPE:
			escape_char(t, s.ptr[i], out);
			break;
		case INPUT_HEX:
			hex_char(t, s.ptr[i], out);
			break;
		case INPUT_DONE:
		case INPUT_OTHER:
			return;
		}
}
