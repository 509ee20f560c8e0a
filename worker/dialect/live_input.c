#include "worker/dialect/live_input.h"

#include "base/json_scalar.h"
#include "worker/dialect/live_string.h"

void
live_input_init(struct live_input *in, struct str member, size_t max_bytes)
{
	*in = (struct live_input){.member = member, .max_bytes = max_bytes};
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A value is certain to follow: what was held for it goes out. */
static void
release(struct live_input *in, struct live_out *o)
{
	buf_addn(o->json, in->held, in->held_len);
	in->held_len = 0;
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
	live_hold(in, str_n(&c, 1));
}

static void
literal_char(struct live_input *in, struct live_out *o, char c)
{
	bool is_whole = false;
	live_hold(in, str_n(&c, 1));
	if (in->state == LIVE_BROKEN)
		return;
	if (!json_literal_begins(scalar(in), &is_whole)) {
		live_stop(in);
	} else if (is_whole) {
		release(in, o);
		in->state = LIVE_BEHIND_VALUE;
	}
}

/* False: the number ended in front of c. */
static bool
number_char(struct live_input *in, struct live_out *o, char c)
{
	if ((c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-' || c == 'e' || c == 'E') {
		live_hold(in, str_n(&c, 1));
		return true;
	}
	if (!json_is_number(scalar(in))) {
		live_stop(in);
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
container_begins(struct live_input *in, struct live_out *o, char c)
{
	if (in->depth == LIVE_INPUT_DEPTH) {
		live_stop(in);
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
container_ends(struct live_input *in, struct live_out *o, char c)
{
	if (c != (in_array(in) ? ']' : '}')) {
		live_stop(in);
		return;
	}
	buf_addc(o->json, c);
	in->state = --in->depth == 0 ? LIVE_DONE : LIVE_BEHIND_VALUE;
}

static void
value_begins(struct live_input *in, struct live_out *o, char c)
{
	if (c == '"') {
		in->in_member =
		    in->depth == 1 && !in_array(in) && str_eq(live_last_name(in), in->member);
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
		live_stop(in);
	}
}

static void
behind_value(struct live_input *in, struct live_out *o, char c)
{
	if (c != ',') {
		container_ends(in, o, c);
		return;
	}
	live_hold(in, STR(","));
	in->state = in_array(in) ? LIVE_VALUE : LIVE_NAME;
}

/* Between tokens. */
static void
structure_char(struct live_input *in, struct live_out *o, char c)
{
	if (is_space(c))
		return;
	switch (in->state) {
	case LIVE_START:
		if (c == '{')
			container_begins(in, o, c);
		else
			live_stop(in);
		break;
	case LIVE_NAME_OR_END:
	case LIVE_NAME:
		if (c == '"')
			live_name_begins(in);
		else if (in->state == LIVE_NAME_OR_END)
			container_ends(in, o, c);
		else
			live_stop(in);
		break;
	case LIVE_COLON:
		if (c == ':')
			in->state = LIVE_VALUE;
		else
			live_stop(in);
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
		live_stop(in);
		break;
	}
}

static void
feed_all(struct live_input *in, struct str piece, struct live_out *o)
{
	for (size_t i = 0; i < piece.len && in->state != LIVE_BROKEN;) {
		if (in->state == LIVE_IN_NAME || in->state == LIVE_STRING) {
			i += live_string_bytes(in, o, str_from(piece, i));
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
	struct live_out o = {json, text};
	size_t room = in->max_bytes - in->bytes;
	struct str fits = piece.len > room ? str_sub(piece, 0, room) : piece;
	in->bytes += fits.len;
	feed_all(in, fits, &o);
	if (fits.len < piece.len)
		live_stop(in);
}

bool
live_input_end(struct live_input *in, struct buf *json)
{
	if (in->state == LIVE_DONE)
		return true;
	live_stop(in);
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
