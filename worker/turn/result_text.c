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

/* Length of the terminal's escape sequence that s starts with (ECMA-48 CSI and OSC, two-character
 * escapes). */
static size_t
escape_length(struct str s)
{
	size_t i = 1;
	if (s.len < 2)
		return s.len;
	if (s.ptr[1] == '[') {
		for (i = 2; i < s.len && !(s.ptr[i] >= '@' && s.ptr[i] <= '~'); i++)
			;
	} else if (s.ptr[1] == ']') {
		for (i = 2; i < s.len && s.ptr[i] != '\a' && s.ptr[i] != '\x1b'; i++)
			;
		if (i + 1 < s.len && s.ptr[i] == '\x1b')
			i++;
	} else {
		while (i < s.len && s.ptr[i] >= ' ' && s.ptr[i] <= '/')
			i++;
	}
	return i < s.len ? i + 1 : s.len;
}

static bool
is_plain(char c)
{
	return (unsigned char)c >= 0x20 || c == '\n' || c == '\t' || c == '\r';
}

/* Colour codes go; other control characters, which strict services refuse, become U+FFFD. */
static void
add_plain(struct str s, struct buf *out)
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
	if (body.len == 0)
		return;
	if (out->len > start)
		buf_addc(out, '\n');
	buf_add(out, title);
	buf_add(out, body);
}

static void
write_files(const struct result_text *r, size_t start, struct buf *out)
{
	for (size_t i = 0; i < r->file_count; i++) {
		const struct result_file *f = &r->files[i];
		struct str name = f->name.len > 0 ? f->name : STR("?");
		if (i == 0) {
			section(out, start, STR("files: "), name);
		} else {
			buf_add(out, STR(", "));
			buf_add(out, name);
		}
		if (f->file_id.len > 0)
			buf_printf(out, " (file_id: %.*s)", STR_FMT(f->file_id));
	}
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
		add_plain(r->path, out);
		break;
	case EDIT_ANSWER_REPLACE:
		buf_add(out, r->out.len > 0 ? STR("replaced in ") : STR("nothing changed in "));
		add_plain(r->path, out);
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
	section(out, start, STR("stdout:\n"), r->out);
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

void
result_clean(struct str bytes, uint64_t total, struct buf *out)
{
	struct buf valid = BUF_INIT((size_t)3 * bytes.len + 8);
	utf8_mend(bytes, &valid);
	struct str kept = utf8_cut(buf_str(&valid), RESULT_STREAM_MAX_BYTES);
	add_plain(kept, out);
	if (kept.len < valid.len || total > bytes.len)
		buf_printf(out, "\n[output cut: %llu bytes were written, the first %zu are shown]",
		    (unsigned long long)total, kept.len);
	buf_done(&valid);
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
	add_plain(utf8_cut(path, REFUSAL_PATH_BYTES), out);
	buf_printf(out, ": %s", rows[i].says);
	return rows[i].code;
}
