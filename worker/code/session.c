#include "worker/code/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "ipc/frames.h"
#include "worker/code/backend.h"

#define BACKEND_MAGIC 0x434f4445u
#define SESSION_MAGIC 0x53455353u
/* When a backend at capacity says nothing better. */
#define RETRY_AFTER_S 5u

/* --- backend --------------------------------------------------------------------------------- */

void
code_backend_init(struct code_backend *b, const struct code_backend_ops *ops,
    struct event_base *base, const struct code_config *cfg)
{
	b->magic = BACKEND_MAGIC;
	b->ops = ops;
	b->base = base;
	b->cfg = *cfg;
}

void
code_backend_free(struct code_backend **bp)
{
	struct code_backend *b = *bp;
	*bp = NULL;
	if (b == NULL)
		return;
	CHECK_MAGIC(b, BACKEND_MAGIC);
	CHECK(b->session_count == 0);
	b->magic = 0;
	b->ops->free(b);
}

void
code_backend_attach(struct code_backend *b, int spawner_fd)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	if (b->ops->attach != NULL)
		b->ops->attach(b, spawner_fd);
	else
		fd_close(&spawner_fd);
}

void
code_backend_set_config(struct code_backend *b, const struct code_config *cfg)
{
	b->cfg = *cfg;
}

bool
code_backend_ready(const struct code_backend *b, struct str *ret_why_not)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	*ret_why_not = STR("");
	return b->ops->ready(b, ret_why_not);
}

bool
code_backend_opens_early(const struct code_backend *b)
{
	return b->ops->opens_early;
}

uint32_t
code_backend_kinds(const struct code_backend *b)
{
	return b->ops->kinds != NULL ? b->ops->kinds(b) : CODE_KINDS_ALL;
}

bool
code_backend_converts(const struct code_backend *b)
{
	return b->ops->converts;
}

uint32_t
code_backend_retry_after_s(const struct code_backend *b)
{
	return b->retry_after_s != 0 ? b->retry_after_s : RETRY_AFTER_S;
}

bool
code_backend_is_idle(const struct code_backend *b)
{
	return b->session_count == 0 && (b->ops->is_idle == NULL || b->ops->is_idle(b));
}

size_t
code_backend_open_count(const struct code_backend *b)
{
	return b->session_count;
}

struct code_open *
code_session_open(struct code_backend *b, struct str workspace, uint32_t queue_ms,
    code_on_open *on_open, void *arg)
{
	return code_session_open_image(b, workspace, STR(""), queue_ms, on_open, arg);
}

struct code_open *
code_session_open_image(struct code_backend *b, struct str workspace, struct str image,
    uint32_t queue_ms, code_on_open *on_open, void *arg)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	b->retry_after_s = 0;
	if (queue_ms == 0)
		queue_ms = b->cfg.queue_ms;
	return b->ops->open(b, workspace, image, queue_ms, on_open, arg);
}

void
code_open_cancel(struct code_open **op)
{
	struct code_open *o = *op;
	*op = NULL;
	if (o != NULL)
		o->backend->ops->open_cancel(o);
}

/* --- life of a session ----------------------------------------------------------------------- */

static void on_turn(evutil_socket_t fd, short what, void *arg);

void
code_session_init(struct code_session *s, struct code_backend *b)
{
	s->magic = SESSION_MAGIC;
	s->backend = b;
	TAILQ_INIT(&s->ops);
	s->ev_turn = event_new(b->base, -1, 0, on_turn, s);
	CHECK(s->ev_turn != NULL);
	b->session_count++;
}

static void
destroy(struct code_session *s)
{
	s->magic = 0;
	mem_free(s);
}

void
code_session_hold(struct code_session *s)
{
	s->refs++;
}

void
code_session_let_go(struct code_session *s)
{
	if (--s->refs == 0 && s->is_closed)
		destroy(s);
}

void
code_session_turn(struct code_session *s)
{
	if (!s->is_closed)
		event_active(s->ev_turn, EV_TIMEOUT, 0);
}

void
code_session_break(struct code_session *s, enum err_code code, const char *why)
{
	if (s->is_broken || s->is_closed)
		return;
	s->is_broken = true;
	(void)err_set(&s->broken, code, "%s", why);
	s->backend->ops->stop(s);
	code_session_turn(s);
}

static void
op_free(struct code_op *op)
{
	fd_close(&op->fd);
	if (op->pending != NULL)
		evbuffer_free(op->pending);
	mem_free(op->name);
	mem_free(op->source);
	mem_free(op->edit);
	mem_free(op);
}

void
code_session_close(struct code_session **sp)
{
	struct code_session *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	CHECK_MAGIC(s, SESSION_MAGIC);
	CHECK(!s->is_closed);
	s->is_closed = true;
	for (struct code_op *op; (op = TAILQ_FIRST(&s->ops)) != NULL;) {
		TAILQ_REMOVE(&s->ops, op, link);
		op_free(op);
	}
	event_free(s->ev_turn);
	s->backend->ops->close(s);
	s->backend->session_count--;
	if (s->refs == 0)
		destroy(s);
}

void
code_session_pause(struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	s->is_paused = true;
	s->backend->ops->paused(s);
}

void
code_session_resume(struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	if (!s->is_paused)
		return;
	s->is_paused = false;
	if (!s->is_broken)
		s->backend->ops->resumed(s);
	code_session_turn(s);
}

bool
code_session_is_broken(const struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	return s->is_broken;
}

/* --- queue ----------------------------------------------------------------------------------- */

struct code_op *
code_session_op(struct code_session *s)
{
	return s->is_running ? TAILQ_FIRST(&s->ops) : NULL;
}

void
code_op_done(struct code_session *s)
{
	struct code_op *op = TAILQ_FIRST(&s->ops);
	TAILQ_REMOVE(&s->ops, op, link);
	op_free(op);
	s->is_running = false;
	code_session_turn(s);
}

/* e by value: it may live in the op. */
static void
fail_op(struct code_session *s, struct code_op *op, struct err e)
{
	s->backend->ops->fail(s, op, &e);
}

/* The queue goes on here and only here, so that no callback runs inside a caller's call. */
static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct code_session *s = arg;
	struct code_op *op = TAILQ_FIRST(&s->ops);
	code_session_hold(s);
	if (s->is_broken) {
		for (; !s->is_closed && (op = TAILQ_FIRST(&s->ops)) != NULL;)
			fail_op(s, op, s->broken);
	} else if (!s->is_running && op != NULL) {
		if (op->refused.code != ERR_OK) {
			fail_op(s, op, op->refused);
		} else {
			s->is_running = true;
			s->backend->ops->start(s, op);
		}
	} else if (!s->is_paused) {
		s->backend->ops->go_on(s);
	}
	code_session_let_go(s);
}

struct code_op *
code_op_add(struct code_session *s, enum code_op_kind kind, void *arg)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	struct code_op *op = MEM_NEW(struct code_op);
	op->kind = kind;
	op->fd = -1;
	op->arg = arg;
	TAILQ_INSERT_TAIL(&s->ops, op, link);
	code_session_turn(s);
	return op;
}

/* --- running --------------------------------------------------------------------------------- */

static struct str
append(char **at, struct str s)
{
	struct str copy = str_n(*at, s.len);
	if (s.len > 0)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return copy;
}

static struct code_edit *
edit_copy(const struct code_edit *e)
{
	struct code_edit *c = mem_alloc(sizeof(*c) + e->path.len + e->old.len + e->text.len);
	char *at = (char *)(c + 1);
	*c = *e;
	c->path = append(&at, e->path);
	c->old = append(&at, e->old);
	c->text = append(&at, e->text);
	return c;
}

static struct code_op *
add_exec(struct code_session *s, enum code_kind kind, uint32_t timeout_ms,
    const struct code_run_ops *ops, void *arg)
{
	struct code_op *op = code_op_add(s, CODE_OP_EXEC, arg);
	op->code_kind = kind;
	op->timeout_ms = timeout_ms != 0 ? timeout_ms : s->backend->cfg.timeout_ms;
	op->ops = ops;
	return op;
}

void
code_session_exec(struct code_session *s, enum code_kind kind, struct str input,
    uint32_t timeout_ms, const struct code_run_ops *ops, void *arg)
{
	struct code_op *op = add_exec(s, kind, timeout_ms, ops, arg);
	if (input.len > CODE_SOURCE_MAX) {
		(void)err_set(
		    &op->refused, ERR_TOOLARGE, "a program of %zu bytes is too long", input.len);
	} else if (kind != CODE_PYTHON && kind != CODE_BASH) { /* code_session_edit(), … */
		(void)err_set(&op->refused, ERR_UNSUPPORTED, "only Python and bash run a program");
	} else {
		op->source = mem_strndup(input.ptr, input.len);
		op->source_len = input.len;
	}
}

void
code_session_edit(struct code_session *s, const struct code_edit *e, uint32_t timeout_ms,
    const struct code_run_ops *ops, void *arg)
{
	struct code_op *op = add_exec(s, CODE_EDITOR, timeout_ms, ops, arg);
	size_t path = e->path.len, texts = e->old.len + e->text.len;
	if (path > CODE_EDIT_PATH_MAX || texts > CODE_EDIT_TEXT_MAX)
		(void)err_set(
		    &op->refused, ERR_TOOLARGE, "an edit of %zu bytes is too long", path + texts);
	else
		op->edit = edit_copy(e);
}

void
code_session_convert(struct code_session *s, enum code_extractor extractor, struct str name,
    uint32_t timeout_ms, const struct code_run_ops *ops, void *arg)
{
	struct code_op *op = add_exec(s, CODE_CONVERT, timeout_ms, ops, arg);
	op->extractor = extractor;
	op->name = mem_strndup(name.ptr, name.len);
	op->name_len = name.len;
	if (!s->backend->ops->converts)
		(void)err_set(&op->refused, ERR_UNSUPPORTED, "this sandbox reads no documents");
	else if (!code_name_ok(name))
		(void)err_set(&op->refused, ERR_INPUT, "a file name that is no plain path");
}

/* --- outliving a request --------------------------------------------------------------------- */

enum err_code
code_session_park(struct code_session **s, char token[64], struct err *reterr)
{
	(void)s, (void)token;
	return err_set(reterr, ERR_UNSUPPORTED, "sessions cannot be parked yet");
}

enum err_code
code_session_resume_parked(
    struct code_backend *b, struct str token, struct code_session **ret, struct err *reterr)
{
	(void)b, (void)token, (void)ret;
	return err_set(reterr, ERR_UNSUPPORTED, "sessions cannot be parked yet");
}

enum err_code
code_session_checkpoint(struct code_session *s, int dst_fd, struct err *reterr)
{
	(void)s, (void)dst_fd;
	return err_set(reterr, ERR_UNSUPPORTED, "sessions cannot be saved yet");
}

enum err_code
code_session_restore(struct code_session *s, int src_fd, struct err *reterr)
{
	(void)s, (void)src_fd;
	return err_set(reterr, ERR_UNSUPPORTED, "sessions cannot be saved yet");
}
