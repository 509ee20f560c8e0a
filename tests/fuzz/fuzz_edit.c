/* fuzz_edit - the text editor's work on any bytes: the input is the source of one edit, then the
 * file
 *
 * The hunk is applied to the old lines again: it must lead to the new ones.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "sandbox/edit/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct str
next_line(struct str *s)
{
	const char *nl = s->len > 0 ? memchr(s->ptr, '\n', s->len) : NULL;
	size_t n = nl != NULL ? (size_t)(nl - s->ptr) : s->len;
	struct str line = str_n(s->ptr, n);
	*s = str_n(s->ptr + n + (nl != NULL), s->len - n - (nl != NULL));
	return line;
}

static struct str
skip_lines(struct str s, uint32_t n)
{
	while (n-- > 0)
		(void)next_line(&s);
	return s;
}

static void
apply(struct str a, struct str b, struct str hunk, const struct edit_hunk *h)
{
	uint32_t old_lines = 0, new_lines = 0;
	struct str o = skip_lines(a, h->old_start - (h->old_lines > 0));
	struct str n = skip_lines(b, h->new_start - (h->new_lines > 0));
	while (hunk.len > 0) {
		struct str line = next_line(&hunk);
		CHECK(line.len > 0 && strchr("-+ ", line.ptr[0]) != NULL);
		struct str text = str_n(line.ptr + 1, line.len - 1);
		if (line.ptr[0] != '+') {
			CHECK(o.len > 0 && str_eq(next_line(&o), text));
			old_lines++;
		}
		if (line.ptr[0] != '-') {
			CHECK(n.len > 0 && str_eq(next_line(&n), text));
			new_lines++;
		}
	}
	CHECK(old_lines == h->old_lines && new_lines == h->new_lines && str_eq(o, n));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_edit e;
	char path[FRAME_PATH_MAX];
	struct str clean;
	struct edit_view v;
	struct edit_hunk h;
	size_t cut = size > 0 ? data[0] : 0, len, hunk_len;
	if (size < 1 + cut || size > 100000)
		return 0;
	struct str file = str_n(data + 1 + cut, size - 1 - cut);
	if (!frame_edit_get(str_n(data + 1, cut), &e))
		return 0;
	if (edit_path(e.path, path, &clean))
		CHECK(clean.len == 0 || frame_path_ok(clean));
	(void)edit_is_text(file);
	if (edit_view_lines(file, e.first_line, e.last_line, &v))
		CHECK(v.text.len <= file.len && v.line_count <= v.total_lines);
	size_t room = file.len + e.text.len;
	char *dst = mem_alloc(room + 1), *hunk = mem_alloc(4 * room + 100);
	if (edit_replace(file, e.old, e.text, dst, room, &len) == FRAME_EDIT_OK) {
		struct str b = str_n(dst, len);
		CHECK(len == file.len - e.old.len + e.text.len);
		CHECK(edit_diff(file, b, hunk, 4 * room + 100, &hunk_len, &h));
		apply(file, b, str_n(hunk, hunk_len), &h);
		(void)edit_diff(file, b, hunk, data[0], &hunk_len, &h);
	}
	mem_free(dst);
	mem_free(hunk);
	return 0;
}
