#include <string.h>

#include <criterion/criterion.h>

#include "base/sse.h"

static enum err_code
note(void *arg, struct str name, struct str data)
{
	struct buf *b = arg;
	buf_addc(b, '[');
	buf_add(b, name);
	buf_addc(b, '|');
	buf_add(b, data);
	buf_addc(b, ']');
	return str_eq(data, STR("stop")) ? ERR_CONFLICT : ERR_OK;
}

static enum err_code
read_at(struct str in, size_t first, size_t second, size_t max, struct buf *out)
{
	struct sse_reader r;
	sse_init(&r, max);
	buf_clear(out);
	enum err_code e = sse_feed(&r, str_sub(in, 0, first), note, out, NULL);
	if (e == ERR_OK)
		e = sse_feed(&r, str_sub(in, first, second - first), note, out, NULL);
	if (e == ERR_OK)
		e = sse_feed(&r, str_from(in, second), note, out, NULL);
	sse_done(&r);
	return e;
}

static const struct {
	const char *name, *in, *want;
	enum err_code code;
} rows[] = {
    {"lf", "data: a\n\ndata: b\n\n", "[|a][|b]", ERR_OK},
    {"crlf", "event: x\r\ndata: a\r\n\r\ndata:b\r\n\r\n", "[x|a][|b]", ERR_OK},
    {"cr", "data: a\r\rdata: b\r\r", "[|a][|b]", ERR_OK},
    {"mixed", "data: a\r\n\ndata: b\n\r\n", "[|a][|b]", ERR_OK},
    {"several data lines", "data:{\"a\":\ndata:1}\n\n", "[|{\"a\":\n1}]", ERR_OK},
    {"empty data line", "data\ndata:\n\n", "[|\n]", ERR_OK},
    {"one space only", "data:  a \n\n", "[| a ]", ERR_OK},
    {"comments", ": ping\n\n:x\ndata: a\n: y\n\n", "[|a]", ERR_OK},
    {"other fields", "id: 1\nretry: 5\nfoo: x\ndata: a\n\n", "[|a]", ERR_OK},
    {"name without data is forgotten", "event: x\n\ndata: a\n\n", "[|a]", ERR_OK},
    {"last name counts", "event: x\nevent: y\ndata: a\n\n", "[y|a]", ERR_OK},
    {"bom",
	"\xef\xbb\xbf"
	"data: a\n\n",
	"[|a]", ERR_OK},
    {"half a bom",
	"\xef\xbb"
	"data: a\n\ndata: b\n\n",
	"[|b]", ERR_OK},
    {"bom later", "data: \xef\xbb\xbf\n\n", "[|\xef\xbb\xbf]", ERR_OK},
    {"cut event is dropped", "data: a\n\ndata: b\n", "[|a]", ERR_OK},
    {"utf-8", "data: \xe5\x8c\x97\xf0\x9f\x98\x80\n\n", "[|\xe5\x8c\x97\xf0\x9f\x98\x80]", ERR_OK},
    {"the callback stops", "data: a\n\ndata: stop\n\ndata: b\n\n", "[|a][|stop]", ERR_CONFLICT},
    {"too long a line", "data: a\n\ndata: 12345678901234567890123456789012345678901234567890\n\n",
	"[|a]", ERR_TOOLARGE},
    {"too large an event", "data: 123456789012345678901234567890\ndata: 1234567890\n\n", "",
	ERR_TOOLARGE},
};

Test(sse, gives_the_same_events_at_every_split, .timeout = 20)
{
	struct buf out = BUF_INIT(4096);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str in = str_c(rows[i].in);
		for (size_t a = 0; a <= in.len; a++)
			for (size_t b = a; b <= in.len; b++) {
				enum err_code e = read_at(in, a, b, 32, &out);
				cr_assert_eq(
				    e, rows[i].code, "%s split %zu %zu: %d", rows[i].name, a, b, e);
				cr_assert(str_eq(buf_str(&out), str_c(rows[i].want)),
				    "%s split %zu %zu: %s", rows[i].name, a, b, out.ptr);
			}
	}
	buf_done(&out);
}
