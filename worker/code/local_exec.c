#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "worker/code/local.h"

/* Of one stream and call, counting what was not kept; then the call is ended. */
#define FLOOD_BYTES (256ull << 20)
/* Above the call's own limit: a cold interpreter, the grace after SIGINT, a busy host. */
#define ANSWER_SLACK_MS 30000
/* Bytes of output read in one go before the loop serves others. */
#define READ_MAX (64u << 10)
/* Between two reads of what is only counted: a flood costs the worker a few per cent of a
 * processor, whatever the code's pace is. */
#define PAUSE_US 1000

/* Room for our own lines at the end. */
#define NOTE_MAX 256u

static void
capture(struct local_session *s, struct local_capture *c, const char *p, size_t n)
{
	size_t cap = c->kept.max - NOTE_MAX;
	size_t keep = c->kept.len < cap ? cap - c->kept.len : 0;
	buf_addn(&c->kept, p, keep < n ? keep : n);
	c->total += n;
	if (c->total > FLOOD_BYTES && !s->is_flooded) {
		s->is_flooded = true;
		local_send(s, FRAME_KILL, NULL, 0);
		local_session_flush(s);
	}
}

/* False when there is nothing now. */
static bool
read_output(struct local_session *s, struct local_capture *c, bool keep)
{
	char chunk[READ_MAX];
	ssize_t n = read(c->fd, chunk, sizeof(chunk));
	if (n > 0 && keep)
		capture(s, c, chunk, (size_t)n);
	if (n == 0)
		(void)event_del(c->ev); /* the control socket ends too */
	return n > 0;
}

static void
on_output(struct local_session *s, struct local_capture *c)
{
	static const struct timeval pause = {0, PAUSE_US};
	if (!read_output(s, c, true) || c->kept.len < c->kept.max - NOTE_MAX || s->port.is_broken)
		return;
	(void)event_del(c->ev);
	(void)evtimer_add(c->ev_pause, &pause);
}

static void
on_out(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	on_output(s, &s->out);
}

static void
on_err(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	on_output(s, &s->err);
}

static void
on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_capture *c = arg;
	(void)event_add(c->ev, NULL);
}

bool
local_captures_init(struct local_session *s, int out, int err)
{
	struct event_base *base = s->port.backend->base;
	s->out.fd = out;
	s->err.fd = err;
	size_t max = (size_t)s->port.backend->cfg.output_bytes + NOTE_MAX;
	buf_init(&s->out.kept, max);
	buf_init(&s->err.kept, max);
	s->out.ev = event_new(base, out, EV_READ | EV_PERSIST, on_out, s);
	s->err.ev = event_new(base, err, EV_READ | EV_PERSIST, on_err, s);
	s->out.ev_pause = evtimer_new(base, on_pause_over, &s->out);
	s->err.ev_pause = evtimer_new(base, on_pause_over, &s->err);
	return s->out.ev != NULL && s->err.ev != NULL && s->out.ev_pause != NULL &&
	       s->err.ev_pause != NULL && fd_set_nonblock(out, true) && fd_set_nonblock(err, true);
}

void
local_captures_stop(struct local_session *s)
{
	struct local_capture *both[] = {&s->out, &s->err};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		(void)event_del(both[i]->ev);
		(void)event_del(both[i]->ev_pause);
	}
}

void
local_captures_done(struct local_session *s)
{
	struct local_capture *both[] = {&s->out, &s->err};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		event_free(both[i]->ev);
		event_free(both[i]->ev_pause);
		buf_done(&both[i]->kept);
		fd_close(&both[i]->fd);
	}
}

/* Everything but init is stopped or dead: what is in the pipe now is all there is. A pipe holds
 * 1 MiB at most. */
static void
drain(struct local_session *s, struct local_capture *c, bool keep)
{
	for (unsigned i = 0; i < 64 && read_output(s, c, keep); i++)
		continue;
}

static uint32_t
kind_of(enum code_kind kind)
{
	switch (kind) {
	case CODE_PYTHON:
		return FRAME_KIND_PYTHON;
	case CODE_BASH:
		return FRAME_KIND_BASH;
	case CODE_EDITOR:
		return FRAME_KIND_EDITOR;
	case CODE_CONVERT:
		break;
	}
	return FRAME_KIND_CONVERT;
}

/* As the bytes of a source; freed by the caller. */
static uint8_t *
edit_source(const struct code_edit *e, size_t *ret_len)
{
	uint8_t *p = mem_alloc(FRAME_FIXED_MAX + e->path.len + e->old.len + e->text.len);
	struct frame_edit f = {e->command == CODE_EDIT_VIEW     ? FRAME_EDIT_VIEW
			       : e->command == CODE_EDIT_CREATE ? FRAME_EDIT_CREATE
								: FRAME_EDIT_STR_REPLACE,
	    e->first_line, e->last_line, e->path, e->old, e->text};
	*ret_len = frame_edit_put(p, &f);
	return p;
}

static uint8_t *
convert_source(const struct code_op *op, size_t *ret_len)
{
	static const uint32_t extractors[] = {
	    [CODE_EXTRACT_PDF] = FRAME_EXTRACT_PDF,
	    [CODE_EXTRACT_DOC] = FRAME_EXTRACT_DOC,
	    [CODE_EXTRACT_DOCX] = FRAME_EXTRACT_DOCX,
	    [CODE_EXTRACT_PPTX] = FRAME_EXTRACT_PPTX,
	    [CODE_EXTRACT_XLSX] = FRAME_EXTRACT_XLSX,
	    [CODE_EXTRACT_ODF] = FRAME_EXTRACT_ODF,
	    [CODE_EXTRACT_HTML] = FRAME_EXTRACT_HTML,
	};
	uint8_t *p = mem_alloc(FRAME_FIXED_MAX + op->name_len);
	struct frame_convert f = {extractors[op->extractor], str_n(op->name, op->name_len)};
	*ret_len = frame_convert_put(p, &f);
	return p;
}

static void
send_run(struct local_session *s, const struct code_op *op)
{
	uint8_t p[FRAME_FIXED_MAX], *made = NULL;
	struct str source = str_n(op->source, op->source_len);
	if (op->edit != NULL)
		made = edit_source(op->edit, &source.len);
	else if (op->code_kind == CODE_CONVERT)
		made = convert_source(op, &source.len);
	if (made != NULL)
		source.ptr = (const char *)made;
	struct frame_run r = {kind_of(op->code_kind), op->timeout_ms, s->check.budget.files_left,
	    (uint32_t)source.len, s->check.budget.bytes_left};
	local_send(s, FRAME_RUN, p, frame_run_put(p, &r));
	for (size_t at = 0; at < source.len; at += FRAME_MAX) {
		size_t n = source.len - at < FRAME_MAX ? source.len - at : FRAME_MAX;
		local_send(s, FRAME_RUN_DATA, source.ptr + at, n);
	}
	mem_free(made);
}

void
local_exec_start(struct local_session *s, struct code_op *op)
{
	const struct code_config *cfg = &s->port.backend->cfg;
	struct local_capture *both[] = {&s->out, &s->err};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		drain(s, both[i], false); /* late output of the call before is dropped */
		buf_clear(&both[i]->kept);
		both[i]->total = 0;
		(void)event_add(both[i]->ev, NULL);
	}
	s->has_result = s->is_flooded = s->is_skipping = s->has_edited = false;
	s->omitted_count = 0;
	buf_clear(&s->omitted_names);
	collect_check_init(
	    &s->check, op->ops->file_begin != NULL ? cfg->max_files : 0, cfg->max_bytes);
	send_run(s, op);
	local_session_late_in(s, op->timeout_ms + ANSWER_SLACK_MS);
	local_session_flush(s);
}

#define SIGKILL_CODE (128 + 9)

/* How many bytes they are. */
static size_t
add_notes(struct local_session *s, const struct code_op *op)
{
	struct buf *b = &s->err.kept;
	bool timed_out = (s->result.flags & FRAME_RESULT_TIMED_OUT) != 0;
	bool died = (s->result.flags & FRAME_RESULT_DIED) != 0;
	bool memory = (s->result.flags & FRAME_RESULT_MEMORY) != 0;
	if (b->len > 0 && b->ptr[b->len - 1] != '\n' &&
	    (timed_out || died || memory || s->is_flooded))
		buf_addc(b, '\n');
	size_t from = b->len;
	if (memory)
		buf_printf(b, "[%s: the memory limit of %u MiB was reached]\n",
		    s->result.return_code == SIGKILL_CODE ? "ended" : "a process was ended",
		    local_backend_of(&s->port)->memory_mib);
	if (timed_out)
		buf_printf(b, "[the time limit of %.3g s was exceeded]\n", op->timeout_ms / 1000.0);
	if (s->is_flooded)
		buf_printf(b, "[ended: too much output]\n");
	if (died)
		buf_printf(b, "[the interpreter ended; its variables are lost, files are kept]\n");
	return b->len - from;
}

static struct code_edit_result
edit_result(struct local_session *s)
{
	static const enum code_edit_error errors[FRAME_EDIT_ERROR_END_] = {
	    [FRAME_EDIT_OK] = CODE_EDIT_OK,
	    [FRAME_EDIT_NOT_FOUND] = CODE_EDIT_NOT_FOUND,
	    [FRAME_EDIT_INVALID] = CODE_EDIT_INVALID,
	    [FRAME_EDIT_NO_MATCH] = CODE_EDIT_NO_MATCH,
	    [FRAME_EDIT_MANY_MATCHES] = CODE_EDIT_MANY_MATCHES,
	    [FRAME_EDIT_NOT_TEXT] = CODE_EDIT_NOT_TEXT,
	    [FRAME_EDIT_TOO_LARGE] = CODE_EDIT_TOO_LARGE,
	    [FRAME_EDIT_FAILED] = CODE_EDIT_FAILED,
	};
	const struct frame_edited *f = &s->edited;
	if (!s->has_edited)
		return (struct code_edit_result){0};
	if (f->error == FRAME_EDIT_OK && s->out.total > s->out.kept.len) {
		/* The numbers would not fit the part that was kept. */
		buf_clear(&s->out.kept);
		return (struct code_edit_result){.error = CODE_EDIT_TOO_LARGE};
	}
	return (struct code_edit_result){
	    .error = errors[f->error],
	    .is_update = (f->flags & FRAME_EDITED_UPDATE) != 0,
	    .is_directory = (f->flags & FRAME_EDITED_DIRECTORY) != 0,
	    .first_line = (int32_t)f->first_line,
	    .line_count = (int32_t)f->line_count,
	    .total_lines = (int32_t)f->total_lines,
	    .old_start = (int32_t)f->old_start,
	    .old_lines = (int32_t)f->old_lines,
	    .new_start = (int32_t)f->new_start,
	    .new_lines = (int32_t)f->new_lines,
	};
}

/* Takes the op off before the callback, which may close the session. */
static void
finish(struct local_session *s, struct code_op *op, const struct err *failed, uint32_t omitted)
{
	const struct code_run_ops *ops = op->ops;
	void *arg = op->arg;
	size_t notes = failed == NULL ? add_notes(s, op) : 0;
	/* The names moved while they were collected. */
	size_t at = 0;
	for (size_t i = 0; i < s->omitted_count; i++) {
		s->omitted[i].path.ptr = buf_str(&s->omitted_names).ptr + at;
		at += s->omitted[i].path.len;
	}
	struct code_edit_result edit = edit_result(s);
	struct code_result r = {
	    .failed = failed,
	    .timed_out = (s->result.flags & FRAME_RESULT_TIMED_OUT) != 0,
	    .died = (s->result.flags & FRAME_RESULT_DIED) != 0,
	    .flooded = s->is_flooded,
	    .out_of_memory = (s->result.flags & FRAME_RESULT_MEMORY) != 0,
	    .return_code = s->result.return_code,
	    .out = buf_str(&s->out.kept),
	    .err = buf_str(&s->err.kept),
	    .err_note_bytes = notes,
	    .out_total = s->out.total,
	    .err_total = s->err.total,
	    .omitted = s->omitted,
	    .omitted_count = s->omitted_count,
	    .omitted_total = omitted,
	    .exec_ms = s->result.exec_ms,
	    .edit = s->has_edited && failed == NULL ? &edit : NULL,
	};
	s->has_result = s->has_edited = false;
	local_session_late_in(s, 0);
	code_op_done(&s->port);
	ops->done(arg, &r);
}

void
local_exec_fail(struct local_session *s, struct code_op *op, const struct err *e)
{
	bool was_in_file =
	    s->port.is_running && s->check.state == COLLECT_IN_FILE && !s->is_skipping;
	if (!s->port.is_running) { /* it never began: nothing of the call before shows */
		buf_clear(&s->out.kept);
		buf_clear(&s->err.kept);
		s->out.total = s->err.total = 0;
		s->omitted_count = 0;
	}
	if (!s->has_result)
		s->result = (struct frame_result){0, -1, 0};
	s->check.state = COLLECT_ENDED;
	if (was_in_file) {
		op->ops->file_end(op->arg, false);
		if (s->port.is_closed)
			return;
	}
	finish(s, op, e, (uint32_t)s->omitted_count);
}

static bool
take_result(struct local_session *s, struct str payload)
{
	if (s->has_result || !frame_result_get(payload, &s->result))
		return false;
	s->has_result = true;
	local_captures_stop(s);
	drain(s, &s->out, true);
	drain(s, &s->err, true);
	return true;
}

static bool
take_omitted(struct local_session *s, struct str payload)
{
	struct frame_omitted o;
	if (!frame_omitted_get(payload, &o) || !collect_check_omitted(&s->check, &o))
		return false;
	/* collect_check_omitted bounds the count, frame_omitted_get the length. */
	buf_add(&s->omitted_names, o.path);
	s->omitted[s->omitted_count++] =
	    (struct code_omitted){{NULL, o.path.len}, o.size, (enum code_omit)o.reason};
	return true;
}

static bool
take_file_frame(struct local_session *s, const struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_file f;
	struct frame_file_end fe;
	switch (type) {
	case FRAME_FILE:
		if (!frame_file_get(payload, &f) || !collect_check_file(&s->check, &f))
			return false;
		s->is_skipping = !op->ops->file_begin(op->arg, f.path, f.size);
		return true;
	case FRAME_FILE_DATA: /* one without bytes would put the deadline off for nothing */
		if (payload.len == 0 || !collect_check_data(&s->check, payload.len))
			return false;
		if (!s->is_skipping)
			op->ops->file_data(op->arg, payload);
		return true;
	case FRAME_FILE_END:
		if (!frame_file_end_get(payload, &fe) || !collect_check_file_end(&s->check, &fe))
			return false;
		if (!s->is_skipping)
			op->ops->file_end(op->arg, fe.whole == 1);
		return true;
	case FRAME_OMITTED:
		return take_omitted(s, payload);
	default:
		return false;
	}
}

/* Before the result, once, and of an edit only. */
static bool
take_edit(struct local_session *s, const struct code_op *op, uint8_t type, struct str payload)
{
	if (op->edit == NULL || s->has_edited || s->has_result)
		return false;
	if (type == FRAME_EDITED) {
		s->has_edited = frame_edited_get(payload, &s->edited);
		return s->has_edited;
	}
	if (payload.len == 0 || s->out.total + payload.len > FRAME_EDIT_MAX)
		return false;
	capture(s, &s->out, payload.ptr, payload.len);
	return true;
}

void
local_exec_frame(struct local_session *s, struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_end end;
	bool ok;
	if (type == FRAME_RESULT) {
		ok = take_result(s, payload);
	} else if (type == FRAME_EDIT_TEXT || type == FRAME_EDITED) {
		ok = take_edit(s, op, type, payload);
	} else if (!s->has_result) {
		ok = false;
	} else if (type == FRAME_END) {
		ok = frame_end_get(payload, &end) && collect_check_end(&s->check, &end);
		if (ok) {
			finish(s, op, NULL, end.omitted);
			return;
		}
	} else {
		ok = take_file_frame(s, op, type, payload);
	}
	if (s->port.is_closed)
		return;
	if (!ok)
		code_session_break(&s->port, ERR_PROTO, "the sandbox session broke its protocol");
	else if (!s->port.is_paused)
		local_session_late_in(s, CODE_STALL_MS);
}
