/* Files of a session: into it, and as they are. Shared by all backends. */
#include <errno.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "ipc/frames.h"
#include "worker/code/backend.h"

/* Pushed bytes that wait in memory. */
#define HIGH_WATER (256u << 10)
#define LOW_WATER  (64u << 10)

/* --- files in -------------------------------------------------------------------------------- */

bool
code_name_ok(struct str name)
{
	return frame_path_ok(name);
}

static struct code_op *
add_put(struct code_session *s, enum code_op_kind kind, struct str name, uint64_t size,
    code_on_put *on_done, void *arg)
{
	struct code_op *op = code_op_add(s, kind, arg);
	op->name = mem_strndup(name.ptr, name.len);
	op->name_len = name.len;
	op->size = size;
	op->on_done = on_done;
	if (!code_name_ok(name))
		(void)err_set(&op->refused, ERR_INPUT, "a file name that is no plain path");
	return op;
}

void
code_session_put(
    struct code_session *s, struct str name, uint64_t size, int fd, code_on_put *on_done, void *arg)
{
	struct code_op *op = add_put(s, CODE_OP_PUT, name, size, on_done, arg);
	op->fd = fd;
	op->is_ended = true;
}

void
code_session_put_begin(struct code_session *s, struct str name, uint64_t size,
    void (*on_room)(void *arg), code_on_put *on_done, void *arg)
{
	struct code_op *op = add_put(s, CODE_OP_PUSH, name, size, on_done, arg);
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

static size_t
unsent(const struct code_session *s, const struct code_op *op)
{
	return evbuffer_get_length(op->pending) + s->backend->ops->in_flight(s);
}

bool
code_session_put_data(struct code_session *s, struct str bytes)
{
	struct code_op *op = pushed_op(s);
	if (op == NULL)
		return true; /* it failed meanwhile; on_done says or said so */
	CHECK(evbuffer_add(op->pending, bytes.ptr, bytes.len) == 0);
	if (op == code_session_op(s))
		s->backend->ops->more(s, op);
	return unsent(s, op) < HIGH_WATER;
}

void
code_session_put_end(struct code_session *s)
{
	struct code_op *op = pushed_op(s);
	if (op == NULL)
		return;
	op->is_ended = true;
	if (op == code_session_op(s))
		s->backend->ops->more(s, op);
}

void
code_put_ask(struct code_session *s, struct code_op *op)
{
	if (op->kind == CODE_OP_PUSH && !op->is_ended && op->on_room != NULL && !s->is_broken &&
	    unsent(s, op) < LOW_WATER)
		op->on_room(op->arg);
}

size_t
code_put_chunk(struct code_op *op, char *dst, size_t room)
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

/* Takes the op off first: the callback may close the session. */
void
code_put_done(struct code_session *s, struct code_op *op, const struct err *e)
{
	code_on_put *on_done = op->on_done;
	void *arg = op->arg;
	code_op_done(s);
	on_done(e, arg);
}

/* --- files as they are ----------------------------------------------------------------------- */

void
code_session_list(struct code_session *s, code_on_list *on_list, void *arg)
{
	struct code_op *op = code_op_add(s, CODE_OP_LIST, arg);
	op->on_list = on_list;
	if (!s->backend->ops->has_files)
		(void)err_set(&op->refused, ERR_UNSUPPORTED, "this sandbox lists no files");
}

void
code_session_get(struct code_session *s, struct str path, const struct code_get_ops *ops, void *arg)
{
	struct code_op *op = code_op_add(s, CODE_OP_GET, arg);
	op->name = mem_strndup(path.ptr, path.len);
	op->name_len = path.len;
	op->get_ops = ops;
	if (!s->backend->ops->has_files)
		(void)err_set(&op->refused, ERR_UNSUPPORTED, "this sandbox gives no files");
	else if (!code_name_ok(path))
		(void)err_set(&op->refused, ERR_INPUT, "a file name that is no plain path");
}

void
code_files_fail(struct code_session *s, struct code_op *op, const struct err *e)
{
	code_on_list *on_list = op->on_list;
	const struct code_get_ops *get = op->get_ops;
	void *arg = op->arg;
	code_op_done(s);
	if (on_list != NULL)
		on_list(e, NULL, 0, false, arg);
	else
		get->done(arg, e);
}
