#include "base/sse.h"

#include <string.h>

#define LINE_OVERHEAD  16u   /* "data: " and other field names around the value */
#define NAME_MAX_BYTES 1024u /* an event name is a word */

static const char bom[] = "\xef\xbb\xbf";

void
sse_init(struct sse_reader *r, size_t max_event_bytes)
{
	*r = (struct sse_reader){0};
	buf_init(&r->line, max_event_bytes + LINE_OVERHEAD);
	buf_init(&r->data, max_event_bytes);
	buf_init(&r->name, NAME_MAX_BYTES);
}

void
sse_done(struct sse_reader *r)
{
	buf_done(&r->line);
	buf_done(&r->data);
	buf_done(&r->name);
}

static enum err_code
dispatch(struct sse_reader *r, sse_on_event *on_event, void *arg)
{
	enum err_code e = ERR_OK;
	if (r->has_data)
		e = on_event(arg, buf_str(&r->name), buf_str(&r->data));
	r->has_data = false;
	buf_clear(&r->name);
	buf_clear(&r->data);
	return e;
}

static void
field(struct sse_reader *r, struct str name, struct str value)
{
	if (str_eq(name, STR("data"))) {
		if (r->has_data)
			buf_addc(&r->data, '\n');
		r->has_data = true;
		buf_add(&r->data, value);
	} else if (str_eq(name, STR("event"))) {
		buf_clear(&r->name);
		buf_add(&r->name, value);
	}
}

static enum err_code
line(struct sse_reader *r, struct str s, sse_on_event *on_event, void *arg, struct err *reterr)
{
	if (s.len > r->line.max)
		return err_set(reterr, ERR_TOOLARGE, "event stream: a line is too long");
	if (s.len == 0)
		return dispatch(r, on_event, arg);
	size_t colon = str_chr(s, ':');
	if (colon == 0) /* comment */
		return ERR_OK;
	struct str value = colon == SIZE_MAX ? STR("") : str_from(s, colon + 1);
	if (value.len > 0 && value.ptr[0] == ' ')
		value = str_from(value, 1);
	field(r, str_sub(s, 0, colon), value);
	if (r->data.overflowed || r->name.overflowed)
		return err_set(reterr, ERR_TOOLARGE, "event stream: an event is too large");
	return ERR_OK;
}

/* Takes the byte-order mark off the start, however it is cut. */
static struct str
skip_bom(struct sse_reader *r, struct str bytes)
{
	while (!r->started && bytes.len > 0) {
		if (bytes.ptr[0] == bom[r->bom]) {
			bytes = str_from(bytes, 1);
			r->started = ++r->bom == 3;
		} else {
			r->started = true;
			buf_addn(&r->line, bom, r->bom); /* it was text after all */
		}
	}
	return bytes;
}

static size_t
line_end(struct str s)
{
	const char *lf = memchr(s.ptr, '\n', s.len);
	size_t n = lf != NULL ? (size_t)(lf - s.ptr) : s.len;
	const char *cr = memchr(s.ptr, '\r', n);
	return cr != NULL ? (size_t)(cr - s.ptr) : lf != NULL ? n : SIZE_MAX;
}

enum err_code
sse_feed(
    struct sse_reader *r, struct str bytes, sse_on_event *on_event, void *arg, struct err *reterr)
{
	enum err_code e = ERR_OK;
	bytes = skip_bom(r, bytes);
	while (bytes.len > 0 && e == ERR_OK) {
		if (r->last_cr && bytes.ptr[0] == '\n') {
			r->last_cr = false;
			bytes = str_from(bytes, 1);
			continue;
		}
		r->last_cr = false;
		size_t n = line_end(bytes);
		struct str piece = str_sub(bytes, 0, n);
		if (n == SIZE_MAX || r->line.len > 0)
			buf_add(&r->line, piece);
		if (r->line.overflowed)
			return err_set(reterr, ERR_TOOLARGE, "event stream: a line is too long");
		if (n == SIZE_MAX)
			break;
		r->last_cr = bytes.ptr[n] == '\r';
		bytes = str_from(bytes, n + 1);
		e = line(r, r->line.len > 0 ? buf_str(&r->line) : piece, on_event, arg, reterr);
		buf_clear(&r->line);
	}
	return e;
}
