#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "worker/code/backend.h"

#define SESSION_MAGIC 0x53455353u

static void
destroy(struct code_session *s)
{
	s->magic = 0;
	mem_free(s);
}

/* Handlers hold the session over the callbacks they make. */
static void
hold(struct code_session *s)
{
	s->refs++;
}

static void
let_go(struct code_session *s)
{
	if (--s->refs == 0 && s->is_closed)
		destroy(s);
}

void
local_session_late_in(struct code_session *s, uint32_t ms)
{
	struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
	if (ms == 0)
		(void)event_del(s->ev_late);
	else
		(void)event_add(s->ev_late, &t);
}

void
local_session_turn(struct code_session *s)
{
	if (!s->is_closed)
		event_active(s->ev_turn, EV_TIMEOUT, 0);
}

void
local_session_break(struct code_session *s, enum err_code code, const char *why)
{
	if (s->is_broken || s->is_closed)
		return;
	s->is_broken = true;
	(void)err_set(&s->broken, code, "%s", why);
	(void)event_del(s->ev_read);
	(void)event_del(s->ev_write);
	(void)event_del(s->ev_late);
	(void)event_del(s->out.ev);
	(void)event_del(s->err.ev);
	/* Whatever runs there is of no use to anyone any more. */
	local_release(s->backend, s->lease_id);
	local_session_turn(s);
}

void
local_session_flush(struct code_session *s)
{
	if (s->is_broken)
		return;
	while (evbuffer_get_length(s->to_init) > 0) {
		int n = evbuffer_write(s->to_init, s->ctl);
		if (n > 0)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			(void)event_add(s->ev_write, NULL);
			return;
		}
		local_session_break(s, ERR_IO, "the sandbox session ended");
		return;
	}
}

void
local_send(struct code_session *s, uint8_t type, const void *payload, size_t n)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, type, (uint32_t)n);
	CHECK(evbuffer_add(s->to_init, head, sizeof(head)) == 0);
	CHECK(n == 0 || evbuffer_add(s->to_init, payload, n) == 0);
}

static void
op_free(struct code_op *op)
{
	fd_close(&op->fd);
	if (op->pending != NULL)
		evbuffer_free(op->pending);
	mem_free(op->name);
	mem_free(op->source);
	mem_free(op);
}

void
local_op_done(struct code_session *s)
{
	struct code_op *op = TAILQ_FIRST(&s->ops);
	TAILQ_REMOVE(&s->ops, op, link);
	op_free(op);
	s->is_running = false;
	local_session_late_in(s, 0);
	local_session_turn(s);
}

/* e by value: it may live in the op. */
static void
fail_op(struct code_session *s, struct code_op *op, struct err e)
{
	if (op->kind == CODE_OP_EXEC)
		local_exec_fail(s, op, &e);
	else
		local_put_fail(s, op, &e);
}

static void
fail_all(struct code_session *s)
{
	while (!s->is_closed && !TAILQ_EMPTY(&s->ops)) {
		fail_op(s, TAILQ_FIRST(&s->ops), s->broken);
	}
}

static void process(struct code_session *s);

/* The queue goes on here and only here, so that no callback runs inside a caller's call. */
static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct code_session *s = arg;
	hold(s);
	if (s->is_broken) {
		fail_all(s);
	} else if (!s->is_running && !TAILQ_EMPTY(&s->ops)) {
		struct code_op *op = TAILQ_FIRST(&s->ops);
		if (op->refused.code != ERR_OK) {
			fail_op(s, op, op->refused);
		} else {
			s->is_running = true;
			if (op->kind == CODE_OP_EXEC)
				local_exec_start(s, op);
			else
				local_put_start(s, op);
		}
	} else if (!s->is_paused) {
		process(s); /* what was read before a pause */
	}
	let_go(s);
}

/* Hands out whole frames while the session is not paused. */
static void
process(struct code_session *s)
{
	size_t pos = 0;
	while (!s->is_closed && !s->is_broken && !s->is_paused && s->in_len - pos >= FRAME_HEAD) {
		struct frame_head h;
		uint8_t raw[FRAME_HEAD];
		memcpy(raw, s->in + pos, FRAME_HEAD);
		if (!frame_head_get(raw, &h)) {
			local_session_break(s, ERR_PROTO, "the sandbox session sent garbage");
			break;
		}
		if (s->in_len - pos < FRAME_HEAD + h.len)
			break;
		struct str payload = str_n(s->in + pos + FRAME_HEAD, h.len);
		pos += FRAME_HEAD + h.len;
		struct code_op *op = s->is_running ? TAILQ_FIRST(&s->ops) : NULL;
		if (op == NULL)
			local_session_break(s, ERR_PROTO, "the sandbox session spoke unasked");
		else if (op->kind == CODE_OP_EXEC)
			local_exec_frame(s, op, h.type, payload);
		else
			local_put_frame(s, op, h.type, payload);
	}
	if (s->is_closed)
		return; /* s->in is gone */
	memmove(s->in, s->in + pos, s->in_len - pos);
	s->in_len -= pos;
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct code_session *s = arg;
	size_t room = FRAME_HEAD + FRAME_MAX - s->in_len;
	ssize_t n = recv(fd, s->in + s->in_len, room, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	hold(s);
	if (n <= 0) {
		local_session_break(s, ERR_IO, "the sandbox session ended");
	} else {
		s->in_len += (size_t)n;
		process(s);
	}
	let_go(s);
}

static void
on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct code_session *s = arg;
	hold(s);
	local_session_flush(s);
	struct code_op *op = s->is_running && !s->is_broken ? TAILQ_FIRST(&s->ops) : NULL;
	if (op != NULL && op->kind != CODE_OP_EXEC) {
		local_put_more(s, op);
		local_put_ask(s, op);
	}
	let_go(s);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	local_session_break(arg, ERR_TIMEOUT, "the sandbox session does not answer");
}

struct code_session *
local_session_new(struct code_backend *b, uint64_t lease_id, const int fds[LEASE_FDS])
{
	struct code_session *s = MEM_NEW(struct code_session);
	s->magic = SESSION_MAGIC;
	s->backend = b;
	s->lease_id = lease_id;
	s->ctl = fds[LEASE_FD_CTL];
	s->in = mem_alloc(FRAME_HEAD + FRAME_MAX);
	s->to_init = evbuffer_new();
	TAILQ_INIT(&s->ops);
	buf_init(&s->omitted_names, (size_t)COLLECT_LISTED_MAX * FRAME_PATH_MAX);
	(void)fd_set_nonblock(s->ctl, true);
	s->ev_read = event_new(b->base, s->ctl, EV_READ | EV_PERSIST, on_read, s);
	s->ev_write = event_new(b->base, s->ctl, EV_WRITE, on_write, s);
	s->ev_turn = event_new(b->base, -1, 0, on_turn, s);
	s->ev_late = evtimer_new(b->base, on_late, s);
	CHECK(s->to_init != NULL && s->ev_read != NULL && s->ev_write != NULL &&
	      s->ev_turn != NULL && s->ev_late != NULL);
	CHECK(local_captures_init(s, fds[LEASE_FD_OUT], fds[LEASE_FD_ERR]));
	(void)event_add(s->ev_read, NULL);
	b->session_count++;
	return s;
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
	if (!s->is_broken)
		local_release(s->backend, s->lease_id);
	s->is_closed = true;
	for (struct code_op *op; (op = TAILQ_FIRST(&s->ops)) != NULL;) {
		TAILQ_REMOVE(&s->ops, op, link);
		op_free(op);
	}
	event_free(s->ev_read);
	event_free(s->ev_write);
	event_free(s->ev_turn);
	event_free(s->ev_late);
	local_captures_done(s);
	evbuffer_free(s->to_init);
	buf_done(&s->omitted_names);
	mem_free(s->in);
	s->in = NULL;
	fd_close(&s->ctl);
	s->backend->session_count--;
	if (s->refs == 0)
		destroy(s);
}

void
code_session_pause(struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	s->is_paused = true;
	(void)event_del(s->ev_read);
	if (s->has_result)
		local_session_late_in(s, 0);
}

void
code_session_resume(struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	if (!s->is_paused)
		return;
	s->is_paused = false;
	if (!s->is_broken)
		(void)event_add(s->ev_read, NULL);
	if (s->has_result)
		local_session_late_in(s, CODE_STALL_MS);
	local_session_turn(s);
}

bool
code_session_is_broken(const struct code_session *s)
{
	CHECK_MAGIC(s, SESSION_MAGIC);
	return s->is_broken;
}

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
