#include "worker/http/disposition.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "worker/http/uri.h"

/* Every byte of a name becomes at most three, and once more as ascii. */
#define DISPOSITION_MAX_BYTES (4u * LIMIT_HTTP_TARGET_BYTES + 128u)

struct str
disposition_attachment(struct arena *a, struct str filename)
{
	struct buf out = BUF_INIT(DISPOSITION_MAX_BYTES);
	filename = str_sub(filename, 0, LIMIT_HTTP_TARGET_BYTES);
	buf_add(&out, STR("attachment; filename=\""));
	size_t before = out.len;
	for (size_t i = 0; i < filename.len; i++) {
		char c = filename.ptr[i];
		if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
			buf_addc(&out, c);
	}
	if (out.len == before)
		buf_add(&out, STR("download"));
	buf_add(&out, STR("\"; filename*=UTF-8''"));
	uri_encode(filename.len > 0 ? filename : STR("download"), &out);
	struct str ret = arena_str(a, buf_str(&out));
	buf_done(&out);
	return ret;
}

void
disposition_form_name(struct buf *dst, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		switch (name.ptr[i]) {
		case '"':
			buf_add(dst, STR("%22"));
			break;
		case '\r':
			buf_add(dst, STR("%0D"));
			break;
		case '\n':
			buf_add(dst, STR("%0A"));
			break;
		default:
			buf_addc(dst, name.ptr[i]);
		}
	}
}
