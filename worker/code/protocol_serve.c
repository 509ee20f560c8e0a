/* The server's half: what is asked, read; what came of it, written. */
#include <stdio.h>
#include <time.h>

#include "base/json_write.h"
#include "worker/code/protocol.h"

/* --- requests read --------------------------------------------------------------------------- */

static bool
read_kind(struct jval v, enum code_kind *ret)
{
	static const enum code_kind kinds[] = {CODE_PYTHON, CODE_BASH, CODE_EDITOR};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct str name = protocol_tool(kinds[i]);
		if (jv_str_is(v, name.ptr)) {
			*ret = kinds[i];
			return true;
		}
	}
	return false;
}

static bool
read_line(struct jval v, int32_t *ret)
{
	int64_t n;
	if (!jv_i64(v, &n) || n < -1 || n > INT32_MAX)
		return false;
	*ret = (int32_t)n;
	return true;
}

static enum err_code
read_view_range(struct jval range, struct code_edit *e, struct err *reterr)
{
	if (!jv_present(range))
		return ERR_OK;
	if (!jv_is(range, JT_ARRAY) || jv_count(range) != 2 ||
	    !read_line(jv_at(range, 0), &e->first_line) ||
	    !read_line(jv_at(range, 1), &e->last_line))
		return err_set(reterr, ERR_INPUT, "input.view_range: not two line numbers");
	return ERR_OK;
}

static enum err_code
need_text(struct arena *a, struct jval input, const char *name, struct str *ret, struct err *reterr)
{
	struct jval v = jv_get(input, name);
	if (!jv_is(v, JT_STRING))
		return err_set(reterr, ERR_INPUT, "input.%s: %s", name,
		    jv_present(v) ? "not a string" : "missing");
	*ret = jv_str(a, v);
	return ERR_OK;
}

static enum err_code
read_edit(struct arena *a, struct jval input, struct code_edit *e, struct err *reterr)
{
	struct jval command = jv_get(input, "command");
	*e = (struct code_edit){0};
	enum err_code rc = need_text(a, input, "path", &e->path, reterr);
	if (rc != ERR_OK)
		return rc;
	if (jv_str_is(command, "view")) {
		e->command = CODE_EDIT_VIEW;
		return read_view_range(jv_get(input, "view_range"), e, reterr);
	}
	if (jv_str_is(command, "create")) {
		e->command = CODE_EDIT_CREATE;
		return need_text(a, input, "file_text", &e->text, reterr);
	}
	if (!jv_str_is(command, "str_replace"))
		return err_set(reterr, ERR_INPUT, "input.command: not view, create or str_replace");
	e->command = CODE_EDIT_STR_REPLACE;
	rc = need_text(a, input, "old_str", &e->old, reterr);
	if (rc == ERR_OK && jv_present(jv_get(input, "new_str")))
		rc = need_text(a, input, "new_str", &e->text, reterr);
	return rc;
}

enum err_code
protocol_read_exec(struct arena *a, struct str body, struct protocol_exec *ret, struct err *reterr)
{
	static const char *const once[] = {"tool", "input", "timeout_seconds", "tool_use_id", NULL};
	struct protocol_exec x = {.timeout_ms = PROTOCOL_TIMEOUT_DEFAULT_S * 1000};
	struct jval root;
	int64_t seconds = 0;
	if (jdoc_parse(a, body, &root, NULL) != ERR_OK || !jv_is(root, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "the body is not a JSON object");
	enum err_code rc = jv_unique(root, once, reterr);
	if (rc != ERR_OK)
		return rc;
	struct jval input = jv_get(root, "input"), timeout = jv_get(root, "timeout_seconds");
	if (!read_kind(jv_get(root, "tool"), &x.kind))
		return err_set(reterr, ERR_UNSUPPORTED, "tool: unknown kind");
	if (!jv_is(input, JT_OBJECT))
		return err_set(reterr, ERR_INPUT, "input: not an object");
	if (jv_present(timeout) &&
	    (!jv_i64(timeout, &seconds) || seconds < 1 || seconds > PROTOCOL_TIMEOUT_MAX_S))
		return err_set(
		    reterr, ERR_INPUT, "timeout_seconds: not 1 to %u", PROTOCOL_TIMEOUT_MAX_S);
	if (seconds > 0)
		x.timeout_ms = (uint32_t)seconds * 1000;
	x.tool_use_id = str_sub(jv_str(a, jv_get(root, "tool_use_id")), 0, PROTOCOL_ID_MAX);
	if (x.kind == CODE_EDITOR)
		rc = read_edit(a, input, &x.edit, reterr);
	else
		rc = need_text(
		    a, input, x.kind == CODE_BASH ? "command" : "code", &x.program, reterr);
	if (rc == ERR_OK)
		*ret = x;
	return rc;
}

bool
protocol_read_path(struct str path, struct str *ret_name)
{
	if (str_starts(path, STR("/work/")))
		path = str_from(path, 6);
	while (str_starts(path, STR("./")))
		path = str_from(path, 2);
	*ret_name = path;
	return code_name_ok(path);
}

void
protocol_write_tools(struct jw *w)
{
	jw_key(w, "tools");
	jw_array(w);
	for (uint32_t k = CODE_PYTHON; k <= CODE_EDITOR; k++)
		jw_str(w, protocol_tool((enum code_kind)k));
	jw_end_array(w);
}

/* --- answers written ------------------------------------------------------------------------- */

static void
write_type(struct jw *w, enum code_kind kind, const char *what)
{
	char type[96];
	(void)snprintf(type, sizeof(type), "%.*s_%s", STR_FMT(protocol_tool(kind)), what);
	jw_kcstr(w, "type", type);
}

static void
write_file(struct jw *w, enum code_kind kind, struct str path)
{
	jw_object(w);
	write_type(w, kind, "output");
	jw_kstr(w, "file_id", path);
	jw_kstr(w, "filename", path);
	jw_end_object(w);
}

static void
write_run(struct jw *w, enum code_kind kind, const struct code_result *r)
{
	write_type(w, kind, "result");
	jw_kstr(w, "stdout", r->out);
	jw_kstr(w, "stderr", r->err);
	jw_ki64(w, "return_code", r->return_code);
	jw_kbool(w, "timed_out", r->timed_out);
	jw_ki64(w, "stdout_bytes", (int64_t)r->out_total);
	jw_ki64(w, "stderr_bytes", (int64_t)r->err_total);
	jw_key(w, "content");
	jw_array(w);
	for (size_t i = 0; i < r->omitted_count; i++)
		write_file(w, kind, r->omitted[i].path);
	jw_end_array(w);
}

static void
write_lines(struct jw *w, struct str text)
{
	struct str line;
	if (str_ends(text, STR("\n")))
		text.len--;
	jw_key(w, "lines");
	jw_array(w);
	while (text.len > 0 && str_split(&text, '\n', &line))
		jw_str(w, line);
	jw_end_array(w);
}

static void
write_edited(struct jw *w, const struct code_edit *edit, const struct code_result *r)
{
	const struct code_edit_result *e = r->edit;
	switch (edit->command) {
	case CODE_EDIT_VIEW:
		write_type(w, CODE_EDITOR, "view_result");
		jw_kcstr(w, "file_type", "text");
		jw_kstr(w, "content", r->out);
		if (!e->is_directory) {
			jw_ki64(w, "num_lines", e->line_count);
			jw_ki64(w, "start_line", e->first_line);
			jw_ki64(w, "total_lines", e->total_lines);
		}
		break;
	case CODE_EDIT_CREATE:
		write_type(w, CODE_EDITOR, "create_result");
		jw_kbool(w, "is_file_update", e->is_update);
		break;
	case CODE_EDIT_STR_REPLACE:
		write_type(w, CODE_EDITOR, "str_replace_result");
		jw_ki64(w, "old_start", e->old_start);
		jw_ki64(w, "old_lines", e->old_lines);
		jw_ki64(w, "new_start", e->new_start);
		jw_ki64(w, "new_lines", e->new_lines);
		write_lines(w, r->out);
		break;
	}
}

static void
write_error(struct jw *w, enum code_kind kind, const char *code)
{
	write_type(w, kind, "tool_result_error");
	jw_kcstr(w, "error_code", code);
	jw_knull(w, "error_message");
}

void
protocol_write_result(const struct protocol_exec *x, const struct code_result *r, struct buf *dst)
{
	struct jw w;
	jw_init(&w, dst);
	jw_object(&w);
	jw_kstr(&w, "tool_use_id", x->tool_use_id);
	jw_ki64(&w, "execution_time_ms", r->exec_ms);
	jw_key(&w, "result_block");
	jw_object(&w);
	write_type(&w, x->kind, "tool_result");
	jw_kstr(&w, "tool_use_id", x->tool_use_id);
	jw_key(&w, "content");
	jw_object(&w);
	if (x->kind != CODE_EDITOR)
		write_run(&w, x->kind, r);
	else if (r->edit == NULL)
		write_error(&w, x->kind, r->timed_out ? "execution_time_exceeded" : "unavailable");
	else if (r->edit->error != CODE_EDIT_OK)
		write_error(&w, x->kind, protocol_edit_error(r->edit->error));
	else
		write_edited(&w, &x->edit, r);
	jw_end_object(&w);
	jw_end_object(&w);
	jw_end_object(&w);
}

void
protocol_write_time(uint64_t ns, char dst[PROTOCOL_TIME_SIZE])
{
	time_t s = (time_t)(ns / 1000000000u);
	struct tm tm;
	char date[32];
	if (gmtime_r(&s, &tm) == NULL ||
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		date[0] = '\0';
	(void)snprintf(dst, PROTOCOL_TIME_SIZE, "%s.%09uZ", date, (unsigned)(ns % 1000000000u));
}
