#include "worker/turn/result_text.h"

#include <stdio.h>

#include "base/err.h"
#include "base/utf8.h"

#define REFUSAL_PATH_BYTES 256u /* of a path that is named in a refusal */

bool
result_is_error(const struct result_text *r)
{
	if (r->failure.len == 0 && r->edit != NULL)
		return false;
	return r->failure.len > 0 || r->return_code != 0 || (r->err.len > 0 && r->out.len == 0);
}

/* Bytes of s from i on that lie between two characters. */
static size_t
skip(struct str s, size_t i, char first, char last)
{
	while (i < s.len && s.ptr[i] >= first && s.ptr[i] <= last)
		i++;
	return i;
}

/* Length of the terminal's escape sequence that s starts with (ECMA-48 CSI and OSC, two-character
 * escapes). Whatever cannot be part of it ends it: no line and no character is lost to one that was
 * broken off. */
static size_t
escape_length(struct str s)
{
	size_t i = 1;
	if (s.len < 2)
		return s.len;
	if (s.ptr[1] == ']') {
		for (i = 2;
		     i < s.len && s.ptr[i] != '\a' && s.ptr[i] != '\x1b' && s.ptr[i] != '\n';)
			i++;
		if (i < s.len && s.ptr[i] == '\a')
			return i + 1;
		return i + 1 < s.len && s.ptr[i] == '\x1b' && s.ptr[i + 1] == '\\' ? i + 2 : i;
	}
	bool is_csi = s.ptr[1] == '[';
	i = is_csi ? skip(s, 2, ' ', '?') : skip(s, 1, ' ', '/');
	bool is_final = i < s.len && s.ptr[i] >= (is_csi ? '@' : '0') && s.ptr[i] <= '~';
	return is_final ? i + 1 : i;
}

static bool
is_plain(char c)
{
	return (unsigned char)c >= 0x20 || c == '\n' || c == '\t' || c == '\r';
}

void
result_plain(struct str s, struct buf *out)
{
	while (s.len > 0) {
		size_t n = 0;
		while (n < s.len && is_plain(s.ptr[n]))
			n++;
		buf_add(out, str_sub(s, 0, n));
		s = str_from(s, n);
		if (s.len == 0)
			break;
		if (s.ptr[0] == '\x1b') {
			s = str_from(s, escape_length(s));
		} else {
			buf_add(out, STR("\xef\xbf\xbd"));
			s = str_from(s, 1);
		}
	}
}

static void
section(struct buf *out, size_t start, struct str title, struct str body)
{
	if (out->len > start)
		buf_addc(out, '\n');
	buf_add(out, title);
	buf_add(out, body);
}

/* Bytes of the code's choice; on one line. */
static void
add_name(struct str name, struct buf *out)
{
	struct str kept = utf8_cut(name, RESULT_NAME_BYTES);
	for (size_t i = 0; i < kept.len; i++)
		if ((unsigned char)kept.ptr[i] < 0x20)
			buf_add(out, STR("\xef\xbf\xbd"));
		else
			buf_addc(out, kept.ptr[i]);
	if (kept.len < name.len || name.len == 0)
		buf_add(out, name.len == 0 ? STR("?") : STR("..."));
}

static void
write_files(const struct result_text *r, size_t start, struct buf *out)
{
	size_t from = out->len, i = 0;
	for (; i < r->file_count && out->len - from < RESULT_FILES_BYTES; i++) {
		const struct result_file *f = &r->files[i];
		if (i == 0)
			section(out, start, STR("files: "), STR(""));
		else
			buf_add(out, STR(", "));
		add_name(f->name, out);
		if (f->file_id.len > 0)
			buf_printf(out, " (file_id: %.*s)", STR_FMT(f->file_id));
	}
	if (i < r->file_count)
		buf_printf(out, " and %zu more", r->file_count - i);
}

static void
write_edit(const struct result_text *r, struct buf *out)
{
	const struct edit_record *e = r->edit;
	switch (e->answer) {
	case EDIT_ANSWER_VIEW:
		if (!e->is_directory && e->line_count < e->total_lines)
			buf_printf(out, "[lines %d to %d of %d]\n", e->first_line,
			    e->first_line + e->line_count - 1, e->total_lines);
		buf_add(out, r->out.len > 0 ? r->out : STR("(empty)"));
		break;
	case EDIT_ANSWER_CREATE:
		buf_add(out, e->is_update ? STR("written over: ") : STR("created: "));
		result_plain(r->path, out);
		break;
	case EDIT_ANSWER_REPLACE:
		buf_add(out, r->out.len > 0 ? STR("replaced in ") : STR("nothing changed in "));
		result_plain(r->path, out);
		if (r->out.len > 0)
			buf_printf(out, ", from line %d:\n", e->new_start);
		buf_add(out, r->out);
		break;
	}
}

void
result_text_write(const struct result_text *r, struct buf *out)
{
	if (result_is_error(r))
		buf_add(out, STR("[tool error] "));
	if (r->failure.len > 0) {
		buf_add(out, r->failure);
		return;
	}
	size_t start = out->len;
	if (r->edit != NULL) {
		write_edit(r, out);
		write_files(r, start, out);
		return;
	}
	if (r->out.len > 0)
		section(out, start, STR("stdout:\n"), r->out);
	if (r->err.len > 0)
		section(out, start, STR("stderr:\n"), r->err);
	if (r->return_code != 0) {
		char num[16];
		int n = snprintf(num, sizeof(num), "%d", r->return_code);
		section(out, start, STR("return_code: "), str_n(num, (size_t)n));
	}
	write_files(r, start, out);
	if (out->len == start)
		buf_add(out, STR("(no output)"));
}

/* As much of a stream as is shown; no character is cut. */
static struct str
first_bytes(struct str s)
{
	size_t n = RESULT_STREAM_MAX_BYTES;
	if (s.len <= n)
		return s;
	for (unsigned i = 0; i < 3 && ((unsigned char)s.ptr[n] & 0xc0) == 0x80; i++)
		n--;
	return str_sub(s, 0, n);
}

bool
result_clean(struct str bytes, uint64_t total, struct str note, struct buf *out)
{
	struct str first = first_bytes(bytes);
	struct buf valid = BUF_INIT((size_t)3 * first.len), plain = BUF_INIT((size_t)9 * first.len);
	utf8_mend(first, &valid);
	result_plain(buf_str(&valid), &plain);
	struct str kept = utf8_cut(buf_str(&plain), RESULT_STREAM_MAX_BYTES);
	size_t start = out->len;
	bool is_cut = kept.len < plain.len || first.len < bytes.len || total > bytes.len;
	buf_add(out, kept);
	if (is_cut)
		buf_printf(out, "\n[output cut: %llu bytes were written, the first %zu are shown]",
		    (unsigned long long)total, kept.len);
	if (note.len > 0 && out->len > start && out->ptr[out->len - 1] != '\n')
		buf_addc(out, '\n');
	buf_add(out, note);
	buf_done(&valid);
	buf_done(&plain);
	return is_cut;
}

struct str
result_edit_refusal(enum code_edit_error e, struct str path, struct buf *out)
{
	static const struct {
		const char *says;
		struct str code;
	} rows[] = {
	    [CODE_EDIT_OK] = {"nothing was done", STR_INIT("unavailable")},
	    [CODE_EDIT_NOT_FOUND] = {"there is no such file", STR_INIT("file_not_found")},
	    [CODE_EDIT_INVALID] = {"the path is outside the working directory (use one relative "
				   "to it), or no file, or it has no such lines",
		STR_INIT("invalid_tool_input")},
	    [CODE_EDIT_NO_MATCH] = {"old_str does not occur in it", STR_INIT("invalid_tool_input")},
	    [CODE_EDIT_MANY_MATCHES] = {"old_str occurs more than once; give more of the text "
					"around it",
		STR_INIT("invalid_tool_input")},
	    [CODE_EDIT_NOT_TEXT] = {"it is not a text file", STR_INIT("invalid_tool_input")},
	    [CODE_EDIT_TOO_LARGE] = {"it is too large for the editor; a view_range may show a part",
		STR_INIT("invalid_tool_input")},
	    [CODE_EDIT_FAILED] = {"it could not be read or written", STR_INIT("unavailable")},
	};
	size_t i = (size_t)e < ARRAY_LEN(rows) ? (size_t)e : CODE_EDIT_FAILED;
	result_plain(utf8_cut(path, REFUSAL_PATH_BYTES), out);
	buf_printf(out, ": %s", rows[i].says);
	return rows[i].code;
}
