#include "worker/code/protocol.h"

#include "base/json.h"
#include "base/json_write.h"

struct str
protocol_tool(enum code_kind kind)
{
	switch (kind) {
	case CODE_PYTHON:
		return STR("code_execution");
	case CODE_BASH:
		return STR("bash_code_execution");
	case CODE_EDITOR:
	case CODE_CONVERT: /* never asked of it: code_backend_ops.converts */
		break;
	}
	return STR("text_editor_code_execution");
}

/* --- requests -------------------------------------------------------------------------------- */

void
protocol_write_create(struct str image, struct buf *dst)
{
	struct jw w;
	jw_init(&w, dst);
	jw_object(&w);
	if (image.len > 0)
		jw_kstr(&w, "image", image);
	jw_end_object(&w);
}

void
protocol_write_exec(enum code_kind kind, struct str input_raw, uint32_t timeout_ms, struct buf *dst)
{
	struct jw w;
	jw_init(&w, dst);
	jw_object(&w);
	jw_kstr(&w, "tool", protocol_tool(kind));
	jw_kraw(&w, "input", input_raw);
	jw_ki64(&w, "timeout_seconds", timeout_ms / 1000 + (timeout_ms % 1000 != 0));
	jw_end_object(&w);
}

void
protocol_write_program(enum code_kind kind, struct str program, struct buf *dst)
{
	struct jw w;
	jw_init(&w, dst);
	jw_object(&w);
	jw_kstr(&w, kind == CODE_BASH ? "command" : "code", program);
	jw_end_object(&w);
}

static void
write_view_range(struct jw *w, const struct code_edit *e)
{
	if (e->first_line == 0 && e->last_line == 0)
		return;
	jw_key(w, "view_range");
	jw_array(w);
	jw_i64(w, e->first_line);
	jw_i64(w, e->last_line);
	jw_end_array(w);
}

void
protocol_write_edit(const struct code_edit *e, struct buf *dst)
{
	static const char *const commands[] = {[CODE_EDIT_VIEW] = "view",
	    [CODE_EDIT_CREATE] = "create",
	    [CODE_EDIT_STR_REPLACE] = "str_replace"};
	struct jw w;
	jw_init(&w, dst);
	jw_object(&w);
	jw_kcstr(&w, "command", commands[e->command]);
	jw_kstr(&w, "path", e->path);
	switch (e->command) {
	case CODE_EDIT_VIEW:
		write_view_range(&w, e);
		break;
	case CODE_EDIT_CREATE:
		jw_kstr(&w, "file_text", e->text);
		break;
	case CODE_EDIT_STR_REPLACE:
		jw_kstr(&w, "old_str", e->old);
		jw_kstr(&w, "new_str", e->text);
		break;
	}
	jw_end_object(&w);
}

/* --- answers --------------------------------------------------------------------------------- */

static enum err_code
read_object(struct arena *a, struct str body, struct jval *ret, struct err *reterr)
{
	struct err e;
	if (jdoc_parse(a, body, ret, &e) != ERR_OK)
		return err_set(reterr, ERR_PROTO, "the answer is not JSON");
	if (!jv_is(*ret, JT_OBJECT))
		return err_set(reterr, ERR_PROTO, "the answer is not an object");
	return ERR_OK;
}

static bool
is_usable_id(struct str id)
{
	for (size_t i = 0; i < id.len; i++)
		if (id.ptr[i] <= ' ' || id.ptr[i] > '~')
			return false;
	return id.len > 0 && id.len <= PROTOCOL_ID_MAX && !str_eq(id, STR(".")) &&
	       !str_eq(id, STR(".."));
}

static uint32_t
read_tools(struct jval list)
{
	uint32_t kinds = 0;
	struct jiter it = {0};
	while (jv_is(list, JT_ARRAY) && jv_next(list, &it))
		for (uint32_t k = CODE_PYTHON; k <= CODE_EDITOR; k++)
			if (jv_str_is(it.value, protocol_tool((enum code_kind)k).ptr))
				kinds |= 1u << k;
	return kinds != 0 ? kinds | 1u << CODE_PYTHON : 0;
}

enum err_code
protocol_read_session(
    struct arena *a, struct str body, struct str *ret_id, uint32_t *ret_kinds, struct err *reterr)
{
	struct jval root;
	enum err_code rc = read_object(a, body, &root, reterr);
	if (rc != ERR_OK)
		return rc;
	struct jval v = jv_get(root, "session_id");
	if (!jv_present(v))
		return err_set(reterr, ERR_PROTO, "session_id: missing");
	if (!jv_is(v, JT_STRING))
		return err_set(reterr, ERR_PROTO, "session_id: not a string");
	struct str id = jv_str(a, v);
	if (!is_usable_id(id))
		return err_set(reterr, ERR_PROTO, "session_id: not usable in a path");
	*ret_id = id;
	*ret_kinds = read_tools(jv_get(root, "tools"));
	return ERR_OK;
}

struct str
protocol_text(struct arena *a, struct jval v)
{
	if (!jv_present(v))
		return STR("");
	return jv_is(v, JT_STRING) ? jv_str(a, v) : jv_raw(v);
}

int32_t
protocol_count(struct jval v)
{
	int64_t n = jv_i64_or(v, 0);
	return n < 0 || n > INT32_MAX ? 0 : (int32_t)n;
}

static bool
read_return_code(struct arena *a, struct jval v, int32_t *ret)
{
	int64_t n = 0;
	bool ok = !jv_present(v) || jv_i64(v, &n) || str_i64(jv_str(a, v), &n);
	if (!ok || n < INT32_MIN || n > INT32_MAX)
		return false;
	*ret = (int32_t)n;
	return true;
}

static void
read_files(struct arena *a, struct jval list, struct protocol_result *r)
{
	uint32_t n = jv_is(list, JT_ARRAY) ? jv_count(list) : 0;
	if (n > PROTOCOL_NAMED_MAX)
		n = PROTOCOL_NAMED_MAX;
	r->files = ARENA_NEW_ARRAY(a, struct str, n);
	struct jiter it = {0};
	while (r->files != NULL && r->file_count < n && jv_next(list, &it)) {
		struct str path = jv_str(a, jv_get(it.value, "filename")), name;
		bool is_again = r->file_count > 0 && str_eq(r->files[r->file_count - 1], path);
		if (protocol_name(path, &name) && !is_again)
			r->files[r->file_count++] = path;
	}
}

/* --- result block -------------------------------------------------------------------------------
 */

/* The sandbox did not run it, and says why in a word. */
static void
read_failure(struct arena *a, struct jval content, struct protocol_result *r)
{
	struct jval code = jv_get(content, "error_code");
	if (!jv_is(code, JT_STRING) || jv_present(jv_get(content, "stdout")) ||
	    jv_present(jv_get(content, "return_code")))
		return;
	r->timed_out = jv_str_is(code, "execution_time_exceeded");
	r->return_code = r->timed_out ? 124 : 1;
	if (r->err.len == 0)
		r->err = arena_printf(
		    a, "[the sandbox says: %.*s]\n", STR_FMT(str_sub(jv_str(a, code), 0, 64)));
}

/* Ours says how much was written when it sends less. */
static uint64_t
total_of(struct jval v, struct str sent)
{
	int64_t n = jv_i64_or(v, 0);
	return n > 0 && (uint64_t)n > sent.len ? (uint64_t)n : sent.len;
}

enum err_code
protocol_read_result(struct arena *a, enum code_kind kind, struct str body,
    struct protocol_result *ret, struct err *reterr)
{
	struct jval root;
	struct protocol_result r = {0};
	enum err_code rc = read_object(a, body, &root, reterr);
	if (rc != ERR_OK)
		return rc;
	struct jval block = jv_get(root, "result_block");
	struct jval content = jv_get(block, "content");
	if (!jv_present(block))
		return err_set(reterr, ERR_PROTO, "result_block: missing");
	if (!jv_is(block, JT_OBJECT))
		return err_set(reterr, ERR_PROTO, "result_block: not an object");
	if (!jv_is(content, JT_OBJECT))
		return err_set(reterr, ERR_PROTO, "result_block.content: %s",
		    jv_present(content) ? "not an object" : "missing");
	if (!read_return_code(a, jv_get(content, "return_code"), &r.return_code))
		return err_set(
		    reterr, ERR_PROTO, "result_block.content.return_code: not an integer");
	r.out = protocol_text(a, jv_get(content, "stdout"));
	r.err = protocol_text(a, jv_get(content, "stderr"));
	r.out_total = total_of(jv_get(content, "stdout_bytes"), r.out);
	r.err_total = total_of(jv_get(content, "stderr_bytes"), r.err);
	r.timed_out = jv_bool(jv_get(content, "timed_out"), false);
	r.exec_ms = (uint32_t)protocol_count(jv_get(root, "execution_time_ms"));
	if (kind == CODE_EDITOR && !jv_present(jv_get(content, "stdout")))
		protocol_read_edit(a, content, &r);
	else
		read_failure(a, content, &r);
	read_files(a, jv_get(content, "content"), &r);
	if (arena_overflowed(a))
		return err_set(reterr, ERR_TOOLARGE, "the answer is too large");
	*ret = r;
	return ERR_OK;
}

/* --- listing ------------------------------------------------------------------------------------
 */

bool
protocol_name(struct str path, struct str *ret_name)
{
	if (path.len == 0 || path.len > PROTOCOL_PATH_MAX)
		return false;
	struct str name = path;
	while (str_starts(name, STR("./")))
		name = str_from(name, 2);
	while (str_starts(name, STR("/")))
		name = str_from(name, 1);
	*ret_name = name;
	return code_name_ok(name);
}

static bool
read_file(struct arena *a, struct jval v, struct protocol_file *f)
{
	int64_t size;
	struct jval bytes = jv_get(v, "size_bytes");
	f->path = jv_str(a, jv_get(v, "path"));
	f->size = jv_i64(bytes, &size) && size >= 0 ? (uint64_t)size : UINT64_MAX;
	f->modified = str_sub(jv_raw(jv_get(v, "modified_at")), 0, 64);
	return protocol_name(f->path, &f->name);
}

enum err_code
protocol_read_listing(struct arena *a, struct str body, struct protocol_file **ret,
    size_t *ret_count, struct err *reterr)
{
	struct jval root;
	enum err_code rc = read_object(a, body, &root, reterr);
	if (rc != ERR_OK)
		return rc;
	struct jval list = jv_get(root, "files");
	if (!jv_is(list, JT_ARRAY))
		return err_set(
		    reterr, ERR_PROTO, "files: %s", jv_present(list) ? "not an array" : "missing");
	uint32_t max = jv_count(list);
	if (max > PROTOCOL_LISTED_MAX)
		return err_set(reterr, ERR_TOOLARGE, "files: more than %u", PROTOCOL_LISTED_MAX);
	struct protocol_file *files = ARENA_NEW_ARRAY(a, struct protocol_file, max);
	size_t n = 0;
	struct jiter it = {0};
	while (files != NULL && jv_next(list, &it))
		n += read_file(a, it.value, &files[n]) ? 1 : 0;
	if (arena_overflowed(a))
		return err_set(reterr, ERR_TOOLARGE, "files: too large");
	*ret = files;
	*ret_count = n;
	return ERR_OK;
}

uint32_t
protocol_retry_after_s(struct str header)
{
	uint64_t s;
	if (!str_u64(header, &s) || s == 0 || s > PROTOCOL_RETRY_AFTER_MAX_S)
		return 0;
	return (uint32_t)s;
}
