/* Multipart bodies, with the Content-Type on the first line (or a fixed one when the input starts
 * with a line end). The first byte says how the rest is cut and whether the handler pauses; what
 * comes out must be the same as when it is fed whole. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "worker/http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct multipart *m;
	struct buf out;
	bool in_part, pause;
	enum err_code rc;
};

static bool
begin(void *arg, const struct multipart_part *p)
{
	struct run *r = arg;
	if (r->in_part || str_chr(p->filename, '/') != SIZE_MAX)
		abort();
	r->in_part = true;
	buf_printf(
	    &r->out, "(%.*s|%.*s|%d:", STR_FMT(p->name), STR_FMT(p->filename), p->has_filename);
	buf_add(&r->out, p->content_type);
	return !r->pause;
}

static bool
piece(void *arg, struct str bytes)
{
	struct run *r = arg;
	if (!r->in_part || bytes.len == 0)
		abort();
	buf_add(&r->out, bytes);
	return !r->pause;
}

static bool
end(void *arg)
{
	struct run *r = arg;
	if (!r->in_part)
		abort();
	r->in_part = false;
	buf_addc(&r->out, ')');
	return !r->pause;
}

static bool
run(struct run *r, struct str type, struct str s, size_t step, bool pause)
{
	static const struct multipart_ops ops = {begin, piece, end};
	*r = (struct run){.pause = pause};
	buf_init(&r->out, 1u << 22);
	if (multipart_new(type, &ops, r, &r->m, NULL) != ERR_OK)
		return false;
	for (size_t i = 0; i < s.len && r->rc == ERR_OK; i += step) {
		r->rc = multipart_feed(r->m, str_sub(s, i, step), NULL);
		while (r->rc == ERR_OK && multipart_is_paused(r->m))
			r->rc = multipart_resume(r->m, NULL);
	}
	if (r->rc == ERR_OK)
		r->rc = multipart_end(r->m, NULL);
	multipart_free(&r->m);
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run a, b;
	if (size < 1)
		return 0;
	struct str rest = str_n(data + 1, size - 1), type;
	(void)str_split(&rest, '\n', &type);
	if (type.len == 0)
		type = STR("multipart/form-data; boundary=b");
	if (rest.ptr == NULL || !run(&a, type, rest, rest.len + 1, false))
		return 0;
	(void)run(&b, type, rest, 1u + data[0] % 32u, data[0] >= 128);
	/* A failed field may have been given on in part, by how it was cut. */
	if (a.rc != b.rc || (a.rc == ERR_OK && !str_eq(buf_str(&a.out), buf_str(&b.out))))
		abort();
	buf_done(&a.out);
	buf_done(&b.out);
	return 0;
}
