#include "sandbox/edit/edit.h"

#include <string.h>

#include "base/utf8.h"

#define CONTEXT 3

static bool
take_prefix(struct str *s, const char *prefix, size_t n)
{
	if (s->len < n || memcmp(s->ptr, prefix, n) != 0 || (s->len > n && s->ptr[n] != '/'))
		return false;
	*s = str_n(s->ptr + n, s->len - n);
	return true;
}

bool
edit_path(struct str path, char dst[FRAME_PATH_MAX], struct str *ret)
{
	size_t len = 0;
	if (path.len == 0)
		return false;
	if (path.ptr[0] == '/' && !take_prefix(&path, "/work", 5) &&
	    !take_prefix(&path, "/mnt/data", 9))
		return false;
	while (path.len > 0) {
		size_t n = 0;
		while (n < path.len && path.ptr[n] != '/')
			n++;
		const char *c = path.ptr;
		path = n < path.len ? str_n(c + n + 1, path.len - n - 1) : str_n(c + n, 0);
		if (n == 0 || (n == 1 && c[0] == '.'))
			continue;
		if (n == 2 && c[0] == '.' && c[1] == '.') {
			if (len == 0)
				return false;
			while (len > 0 && dst[len - 1] != '/')
				len--;
			len -= len > 0;
			continue;
		}
		if (len + (len > 0) + n > FRAME_PATH_MAX)
			return false;
		if (len > 0)
			dst[len++] = '/';
		memcpy(dst + len, c, n);
		len += n;
	}
	*ret = str_n(dst, len);
	return len == 0 || frame_path_ok(*ret);
}

bool
edit_is_text(struct str s)
{
	return (s.len == 0 || memchr(s.ptr, '\0', s.len) == NULL) && utf8_valid(s);
}

/* Offset behind the line that starts at `at`. */
static size_t
line_end(struct str s, size_t at)
{
	const char *nl = at < s.len ? memchr(s.ptr + at, '\n', s.len - at) : NULL;
	return nl != NULL ? (size_t)(nl - s.ptr) + 1 : s.len;
}

/* Lines of s[from, to), both at starts of lines or the end. */
static uint32_t
count_lines(struct str s, size_t from, size_t to)
{
	uint32_t n = 0;
	for (size_t at = from; at < to; at = line_end(s, at))
		n++;
	return n;
}

bool
edit_view_lines(struct str text, int32_t first, int32_t last, struct edit_view *ret)
{
	uint32_t total = count_lines(text, 0, text.len);
	if (first == 0 && last == 0) {
		*ret = (struct edit_view){text, 1, total, total};
		return true;
	}
	if (first < 1 || (uint32_t)first > total || (last != -1 && last < first))
		return false;
	uint32_t end = last == -1 || (uint32_t)last > total ? total : (uint32_t)last;
	size_t from = 0, to;
	for (int32_t i = 1; i < first; i++)
		from = line_end(text, from);
	to = from;
	for (uint32_t i = (uint32_t)first; i <= end; i++)
		to = line_end(text, to);
	*ret = (struct edit_view){
	    str_n(text.ptr + from, to - from), (uint32_t)first, end - (uint32_t)first + 1, total};
	return true;
}

enum frame_edit_error
edit_replace(
    struct str file, struct str old, struct str text, char *dst, size_t room, size_t *ret_len)
{
	const char *at =
	    old.len == 0 || file.len == 0 ? NULL : memmem(file.ptr, file.len, old.ptr, old.len);
	if (at == NULL)
		return FRAME_EDIT_NO_MATCH;
	size_t head = (size_t)(at - file.ptr), tail = file.len - head - old.len;
	const char *rest = at + old.len;
	if (tail > 0 && memmem(rest, tail, old.ptr, old.len) != NULL)
		return FRAME_EDIT_MANY_MATCHES;
	if (text.len > room || head + tail > room - text.len)
		return FRAME_EDIT_TOO_LARGE;
	memcpy(dst, file.ptr, head);
	if (text.len > 0)
		memcpy(dst + head, text.ptr, text.len);
	memcpy(dst + head + text.len, rest, tail);
	*ret_len = head + text.len + tail;
	return FRAME_EDIT_OK;
}

/* --- the diff --------------------------------------------------------------------------------- */
/* Bytes at the start that both share, down to the start of a line. */
static size_t
shared_head(struct str a, struct str b)
{
	size_t n = 0, least = a.len < b.len ? a.len : b.len;
	while (n < least && a.ptr[n] == b.ptr[n])
		n++;
	if (n == a.len && n == b.len)
		return n;
	while (n > 0 && a.ptr[n - 1] != '\n')
		n--;
	return n;
}

static bool
is_line_start(struct str s, size_t at, size_t head)
{
	return at == head || s.ptr[at - 1] == '\n';
}

/* Bytes at the end that both share, beginning at the start of a line in both. */
static size_t
shared_tail(struct str a, struct str b, size_t head)
{
	size_t n = 0, least = (a.len < b.len ? a.len : b.len) - head;
	while (n < least && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n])
		n++;
	if (!is_line_start(a, a.len - n, head) || !is_line_start(b, b.len - n, head))
		n = a.len - line_end(a, a.len - n);
	return n;
}

/* The start of the line that is `lines` above the line start `at`. */
static size_t
lines_up(struct str s, size_t at, unsigned lines)
{
	for (; lines > 0 && at > 0; lines--) {
		at--;
		while (at > 0 && s.ptr[at - 1] != '\n')
			at--;
	}
	return at;
}

struct out {
	char *p;
	size_t len, room;
	bool is_full;
};

/* Lines of s[from, to) behind a sign; each ends with '\n' here. */
static uint32_t
add_lines(struct out *o, char sign, struct str s, size_t from, size_t to)
{
	uint32_t count = 0;
	for (size_t at = from, next; at < to; at = next, count++) {
		next = line_end(s, at);
		size_t n = next - at - (s.ptr[next - 1] == '\n');
		if (o->is_full || n + 2 > o->room - o->len) {
			o->is_full = true;
			continue;
		}
		o->p[o->len] = sign;
		memcpy(o->p + o->len + 1, s.ptr + at, n);
		o->p[o->len + 1 + n] = '\n';
		o->len += n + 2;
	}
	return count;
}

bool
edit_diff(
    struct str a, struct str b, char *dst, size_t room, size_t *ret_len, struct edit_hunk *ret)
{
	size_t head = shared_head(a, b);
	*ret_len = 0;
	*ret = (struct edit_hunk){0};
	if (head == a.len && head == b.len)
		return true;
	size_t tail = shared_tail(a, b, head);
	size_t a_end = a.len - tail, b_end = b.len - tail, from = lines_up(a, head, CONTEXT);
	size_t to = a_end;
	for (unsigned i = 0; i < CONTEXT; i++)
		to = line_end(a, to);
	struct out o = {dst, 0, room, false};
	uint32_t before = count_lines(a, 0, from);
	uint32_t above = add_lines(&o, ' ', a, from, head);
	uint32_t removed = add_lines(&o, '-', a, head, a_end);
	uint32_t added = add_lines(&o, '+', b, head, b_end);
	uint32_t below = add_lines(&o, ' ', a, a_end, to);
	uint32_t old_lines = above + removed + below, new_lines = above + added + below;
	*ret = (struct edit_hunk){
	    before + (old_lines > 0), old_lines, before + (new_lines > 0), new_lines};
	*ret_len = o.len;
	return !o.is_full;
}
