/* However a stream is cut, the same events come out. The first byte chooses the cuts. */
#include "base/check.h"
#include "base/sse.h"

#define MAX_EVENT 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum err_code
note(void *arg, struct str name, struct str data)
{
	struct buf *b = arg;
	buf_printf(b, "[%zu:%zu:", name.len, data.len);
	buf_add(b, name);
	buf_add(b, data);
	return data.len == 7 ? ERR_CONFLICT : ERR_OK;
}

static enum err_code
feed(struct str in, size_t step, struct buf *out)
{
	struct sse_reader r;
	sse_init(&r, MAX_EVENT);
	enum err_code e = ERR_OK;
	for (size_t at = 0; at < in.len && e == ERR_OK; at += step)
		e = sse_feed(&r, str_sub(in, at, step), note, out, NULL);
	sse_done(&r);
	return e;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct buf whole = BUF_INIT(1u << 20), cut = BUF_INIT(1u << 20);
	struct str in = str_n(data + 1, size - 1);
	enum err_code a = feed(in, in.len, &whole);
	enum err_code b = feed(in, data[0] % 17u + 1, &cut);
	CHECK(a == b);
	CHECK(str_eq(buf_str(&whole), buf_str(&cut)));
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}
