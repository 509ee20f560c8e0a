#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "worker/code/backend.h"

/* Bytes in flight to a session. */
#define HIGH_WATER (256u << 10)
#define LOW_WATER  (64u << 10)

bool
code_name_ok(struct str name)
{
	return frame_path_ok(name);
}

static struct code_op *
add_op(struct code_session *s, enum code_op_kind kind, struct str name, uint64_t size, int fd,
    code_on_put *on_done, void *arg)
{
	struct code_op *op = MEM_NEW(struct code_op);
	op->kind = kind;
	op->name = mem_strndup(name.ptr, name.len);
	op->name_len = name.len;
	op->size = size;
	op->fd = fd;
	op->on_done = on_done;
	op->arg = arg;
	if (!code_name_ok(name))
		(void)err_set(&op->refused, ERR_INPUT, "a file name that is no plain path");
	TAILQ_INSERT_TAIL(&s->ops, op, link);
	local_session_turn(s);
	return op;
}

void
code_session_put(
    struct code_session *s, struct str name, uint64_t size, int fd, code_on_put *on_done, void *arg)
{
	(void)add_op(s, CODE_OP_PUT, name, size, fd, on_done, arg);
}

void
code_session_put_begin(struct code_session *s, struct str name, uint64_t size,
    void (*on_room)(void *arg), code_on_put *on_done, void *arg)
{
	struct code_op *op = add_op(s, CODE_OP_PUSH, name, size, -1, on_done, arg);
	op->on_room = on_room;
	op->pending = evbuffer_new();
	CHECK(op->pending != NULL);
}

static struct code_op *
pushed_op(struct code_session *s)
{
	struct code_op *op = TAILQ_LAST(&s->ops, code_ops);
	return op != NULL && op->kind == CODE_OP_PUSH && !op->is_ended ? op : NULL;
}

bool
code_session_put_data(struct code_session *s, struct str bytes)
{
	struct code_op *op = pushed_op(s);
	if (op == NULL)
		return true; /* it failed meanwhile; on_done says or said so */
	CHECK(evbuffer_add(op->pending, bytes.ptr, bytes.len) == 0);
	if (s->is_running && op == TAILQ_FIRST(&s->ops))
		local_put_more(s, op);
	return evbuffer_get_length(op->pending) + evbuffer_get_length(s->to_init) < HIGH_WATER;
}

void
code_session_put_end(struct code_session *s)
{
	struct code_op *op = pushed_op(s);
	if (op == NULL)
		return;
	op->is_ended = true;
	if (s->is_running && op == TAILQ_FIRST(&s->ops))
		local_put_more(s, op);
}

void
local_put_start(struct code_session *s, struct code_op *op)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_file f = {op->size, str_n(op->name, op->name_len)};
	local_send(s, FRAME_PUT, p, frame_file_put(p, &f));
	if (op->kind == CODE_OP_PUT)
		op->is_ended = true;
	local_put_more(s, op);
	local_put_ask(s, op);
}

/* 0 at the end, or when there is none now. */
static size_t
next_chunk(struct code_op *op, char *dst, size_t room)
{
	uint64_t left = op->size - op->offset;
	if (left < room)
		room = (size_t)left;
	if (room == 0)
		return 0;
	if (op->kind == CODE_OP_PUSH) {
		int n = evbuffer_remove(op->pending, dst, room);
		return n > 0 ? (size_t)n : 0;
	}
	ssize_t n;
	do
		n = pread(op->fd, dst, room, (off_t)op->offset);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

void
local_put_more(struct code_session *s, struct code_op *op)
{
	char chunk[FRAME_MAX];
	if (op->size == UINT64_MAX) /* the end was sent */
		return;
	local_session_late_in(s, CODE_STALL_MS);
	while (!s->is_broken && evbuffer_get_length(s->to_init) < HIGH_WATER) {
		size_t n = next_chunk(op, chunk, sizeof(chunk));
		if (n > 0) {
			local_send(s, FRAME_PUT_DATA, chunk, n);
			op->offset += n;
			local_session_flush(s);
			continue;
		}
		/* Short of its size or over it, init or we say so after the end. */
		if (op->is_ended) {
			if (op->pending != NULL && evbuffer_get_length(op->pending) > 0)
				(void)err_set(&op->refused, ERR_INPUT, "more bytes than announced");
			local_send(s, FRAME_PUT_END, NULL, 0);
			op->size = UINT64_MAX;
		}
		break;
	}
	local_session_flush(s);
}

void
local_put_ask(struct code_session *s, struct code_op *op)
{
	if (op->kind == CODE_OP_PUSH && !op->is_ended && op->on_room != NULL && !s->is_broken &&
	    evbuffer_get_length(op->pending) + evbuffer_get_length(s->to_init) < LOW_WATER)
		op->on_room(op->arg);
}

/* Takes the op off first: the callback may close the session. */
void
local_put_fail(struct code_session *s, struct code_op *op, const struct err *e)
{
	code_on_put *on_done = op->on_done;
	void *arg = op->arg;
	local_op_done(s);
	on_done(e, arg);
}

void
local_put_frame(struct code_session *s, struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_put_done d;
	struct err e = op->refused;
	if (type != FRAME_PUT_DONE || op->size != UINT64_MAX || !frame_put_done_get(payload, &d)) {
		local_session_break(s, ERR_PROTO, "the sandbox session broke its protocol");
		return;
	}
	if (e.code == ERR_OK && d.sys_errno != 0) {
		bool is_full =
		    d.sys_errno == ENOSPC || d.sys_errno == EFBIG || d.sys_errno == EDQUOT;
		(void)err_set(&e, is_full ? ERR_TOOLARGE : ERR_INTERNAL,
		    "the sandbox did not take the file: %s", strerror(d.sys_errno));
		e.sys_errno = d.sys_errno;
	}
	local_put_fail(s, op, e.code == ERR_OK ? NULL : &e);
}
