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
on_out(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	(void)read_output(s, &s->out, true);
}

static void
on_err(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	(void)read_output(s, &s->err, true);
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
	return s->out.ev != NULL && s->err.ev != NULL && fd_set_nonblock(out, true) &&
	       fd_set_nonblock(err, true);
}

void
local_captures_done(struct local_session *s)
{
	struct local_capture *both[] = {&s->out, &s->err};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		event_free(both[i]->ev);
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
		break;
	}
	return FRAME_KIND_EDITOR;
}

void
local_exec_start(struct local_session *s, struct code_op *op)
{
	const struct code_config *cfg = &s->port.backend->cfg;
	uint8_t p[FRAME_FIXED_MAX];
	struct local_capture *both[] = {&s->out, &s->err};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		drain(s, both[i], false); /* late output of the call before is dropped */
		buf_clear(&both[i]->kept);
		both[i]->total = 0;
		(void)event_add(both[i]->ev, NULL);
	}
	s->has_result = s->is_flooded = s->is_skipping = false;
	s->omitted_count = 0;
	buf_clear(&s->omitted_names);
	collect_check_init(&s->check, cfg->max_files, cfg->max_bytes);
	struct frame_run r = {kind_of(op->code_kind), op->timeout_ms, cfg->max_files,
	    (uint32_t)op->source_len, cfg->max_bytes};
	local_send(s, FRAME_RUN, p, frame_run_put(p, &r));
	for (size_t at = 0; at < op->source_len; at += FRAME_MAX) {
		size_t n = op->source_len - at < FRAME_MAX ? op->source_len - at : FRAME_MAX;
		local_send(s, FRAME_RUN_DATA, op->source + at, n);
	}
	local_session_late_in(s, op->timeout_ms + ANSWER_SLACK_MS);
	local_session_flush(s);
}

static void
add_notes(struct local_session *s, const struct code_op *op)
{
	struct buf *b = &s->err.kept;
	bool timed_out = (s->result.flags & FRAME_RESULT_TIMED_OUT) != 0;
	bool died = (s->result.flags & FRAME_RESULT_DIED) != 0;
	if (b->len > 0 && b->ptr[b->len - 1] != '\n' && (timed_out || died || s->is_flooded))
		buf_addc(b, '\n');
	if (timed_out)
		buf_printf(b, "[the time limit of %.3g s was exceeded]\n", op->timeout_ms / 1000.0);
	if (s->is_flooded)
		buf_printf(b, "[ended: too much output]\n");
	if (died)
		buf_printf(b, "[the interpreter ended; its variables are lost, files are kept]\n");
}

/* Takes the op off before the callback, which may close the session. */
static void
finish(struct local_session *s, struct code_op *op, const struct err *failed, uint32_t omitted)
{
	const struct code_run_ops *ops = op->ops;
	void *arg = op->arg;
	if (failed == NULL)
		add_notes(s, op);
	/* The names moved while they were collected. */
	size_t at = 0;
	for (size_t i = 0; i < s->omitted_count; i++) {
		s->omitted[i].path.ptr = buf_str(&s->omitted_names).ptr + at;
		at += s->omitted[i].path.len;
	}
	struct code_result r = {
	    .failed = failed,
	    .timed_out = (s->result.flags & FRAME_RESULT_TIMED_OUT) != 0,
	    .died = (s->result.flags & FRAME_RESULT_DIED) != 0,
	    .return_code = s->result.return_code,
	    .out = buf_str(&s->out.kept),
	    .err = buf_str(&s->err.kept),
	    .out_total = s->out.total,
	    .err_total = s->err.total,
	    .omitted = s->omitted,
	    .omitted_count = s->omitted_count,
	    .omitted_total = omitted,
	    .exec_ms = s->result.exec_ms,
	};
	s->has_result = false;
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
	(void)event_del(s->out.ev);
	(void)event_del(s->err.ev);
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
	case FRAME_FILE_DATA:
		if (!collect_check_data(&s->check, payload.len))
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

void
local_exec_frame(struct local_session *s, struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_end end;
	bool ok;
	if (type == FRAME_RESULT) {
		ok = take_result(s, payload);
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
