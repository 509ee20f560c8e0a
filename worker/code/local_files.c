/* Files as they are: a list of them, and one of them, whenever nothing runs. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "worker/code/local.h"

#define NAMES_MAX ((size_t)FRAME_ENTRIES_MAX * FRAME_PATH_MAX)

void
local_files_done(struct local_session *s)
{
	mem_free(s->listed);
	s->listed = NULL;
	s->listed_count = 0;
	buf_done(&s->listed_names);
}

void
local_files_start(struct local_session *s, struct code_op *op)
{
	local_files_done(s);
	s->is_in_file = false;
	if (op->kind == CODE_OP_LIST) {
		s->listed = MEM_NEW_ARRAY(struct code_listed, FRAME_ENTRIES_MAX);
		buf_init(&s->listed_names, NAMES_MAX);
		local_send(s, FRAME_LIST, NULL, 0);
	} else {
		local_send(s, FRAME_GET, op->name, op->name_len);
	}
	local_session_late_in(s, CODE_STALL_MS);
	local_session_flush(s);
}

/* --- list ------------------------------------------------------------------------------------ */

/* The list is the call's own from here on: the session may be closed inside the callback. */
static void
list_ended(struct local_session *s, const struct code_op *op, bool is_all)
{
	code_on_list *on_list = op->on_list;
	void *arg = op->arg;
	struct code_listed *listed = s->listed;
	struct buf names = s->listed_names;
	size_t n = s->listed_count, at = 0;
	for (size_t i = 0; i < n; i++) { /* the names moved while they were collected */
		listed[i].path.ptr = buf_str(&names).ptr + at;
		at += listed[i].path.len;
	}
	s->listed = NULL;
	buf_init(&s->listed_names, NAMES_MAX);
	local_session_late_in(s, 0);
	code_op_done(&s->port);
	on_list(NULL, listed, n, is_all, arg);
	mem_free(listed);
	buf_done(&names);
}

static bool
list_frame(struct local_session *s, const struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_entry e;
	struct frame_end end;
	if (type == FRAME_ENTRY) {
		if (s->listed_count == FRAME_ENTRIES_MAX || !frame_entry_get(payload, &e))
			return false;
		buf_add(&s->listed_names, e.path);
		s->listed[s->listed_count++] =
		    (struct code_listed){{NULL, e.path.len}, e.size, e.changed_ns};
		return true;
	}
	if (type != FRAME_END || !frame_end_get(payload, &end) || end.sent != s->listed_count)
		return false;
	list_ended(s, op, end.omitted == 0);
	return true;
}

/* --- get ------------------------------------------------------------------------------------- */

static void
get_ended(struct local_session *s, const struct code_op *op, const struct err *e)
{
	const struct code_get_ops *ops = op->get_ops;
	void *arg = op->arg;
	s->is_in_file = false;
	local_session_late_in(s, 0);
	code_op_done(&s->port);
	ops->done(arg, e);
}

static bool
get_failed(struct local_session *s, const struct code_op *op, struct str payload)
{
	struct frame_put_done d;
	struct err e;
	if (s->is_in_file || !frame_put_done_get(payload, &d) || d.sys_errno == 0)
		return false;
	(void)err_set(&e, ERR_NOTFOUND, "no such file: %s", strerror(d.sys_errno));
	e.sys_errno = d.sys_errno;
	get_ended(s, op, &e);
	return true;
}

static bool
get_file_end(struct local_session *s, const struct code_op *op, struct str payload)
{
	struct frame_file_end end;
	struct err e;
	if (!s->is_in_file || !frame_file_end_get(payload, &end) ||
	    (end.whole == 1) != (s->file_left == 0))
		return false;
	if (end.whole != 1)
		(void)err_set(&e, ERR_IO, "the file could not be read to its end");
	get_ended(s, op, end.whole == 1 ? NULL : &e);
	return true;
}

static bool
get_frame(struct local_session *s, const struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_file f;
	switch (type) {
	case FRAME_FILE:
		if (s->is_in_file || !frame_file_get(payload, &f) ||
		    !str_eq(f.path, str_n(op->name, op->name_len)))
			return false;
		s->is_in_file = true;
		s->file_left = f.size;
		op->get_ops->begin(op->arg, f.size);
		return true;
	case FRAME_FILE_DATA:
		if (!s->is_in_file || payload.len == 0 || payload.len > s->file_left)
			return false;
		s->file_left -= payload.len;
		op->get_ops->data(op->arg, payload);
		return true;
	case FRAME_FILE_END:
		return get_file_end(s, op, payload);
	case FRAME_GET_FAILED:
		return get_failed(s, op, payload);
	default:
		return false;
	}
}

void
local_files_frame(struct local_session *s, struct code_op *op, uint8_t type, struct str payload)
{
	bool is_list = op->kind == CODE_OP_LIST;
	local_session_late_in(s, CODE_STALL_MS); /* a pause in the callback takes it back */
	bool ok = is_list ? list_frame(s, op, type, payload) : get_frame(s, op, type, payload);
	if (!ok && !s->port.is_closed)
		code_session_break(&s->port, ERR_PROTO, "the sandbox session broke its protocol");
}
