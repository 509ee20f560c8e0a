#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"
#include "worker/code/local.h"

void
local_session_late_in(struct local_session *s, uint32_t ms)
{
	struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
	if (ms == 0)
		(void)event_del(s->ev_late);
	else
		(void)event_add(s->ev_late, &t);
}

void
local_session_flush(struct local_session *s)
{
	if (s->port.is_broken)
		return;
	while (evbuffer_get_length(s->to_init) > 0) {
		int n = evbuffer_write(s->to_init, s->ctl);
		if (n > 0)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			(void)event_add(s->ev_write, NULL);
			return;
		}
		code_session_break(&s->port, ERR_IO, "the sandbox session ended");
		return;
	}
}

void
local_send(struct local_session *s, uint8_t type, const void *payload, size_t n)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, type, (uint32_t)n);
	CHECK(evbuffer_add(s->to_init, head, sizeof(head)) == 0);
	CHECK(n == 0 || evbuffer_add(s->to_init, payload, n) == 0);
}

void
local_session_start(struct code_session *s, struct code_op *op)
{
	if (op->kind == CODE_OP_EXEC)
		local_exec_start(local_of(s), op);
	else if (op->kind == CODE_OP_LIST || op->kind == CODE_OP_GET)
		local_files_start(local_of(s), op);
	else
		local_put_start(local_of(s), op);
}

void
local_session_fail(struct code_session *s, struct code_op *op, const struct err *e)
{
	local_session_late_in(local_of(s), 0);
	if (op->kind == CODE_OP_EXEC)
		local_exec_fail(local_of(s), op, e);
	else if (op->kind == CODE_OP_LIST || op->kind == CODE_OP_GET)
		code_files_fail(s, op, e);
	else
		code_put_done(s, op, e);
}

/* Hands out whole frames while the session is not paused. */
static void
process(struct local_session *s)
{
	size_t pos = 0;
	while (!s->port.is_closed && !s->port.is_broken && !s->port.is_paused &&
	       s->in_len - pos >= FRAME_HEAD) {
		struct frame_head h;
		uint8_t raw[FRAME_HEAD];
		memcpy(raw, s->in + pos, FRAME_HEAD);
		if (!frame_head_get(raw, &h)) {
			code_session_break(&s->port, ERR_PROTO, "the sandbox session sent garbage");
			break;
		}
		if (s->in_len - pos < FRAME_HEAD + h.len)
			break;
		struct str payload = str_n(s->in + pos + FRAME_HEAD, h.len);
		pos += FRAME_HEAD + h.len;
		struct code_op *op = code_session_op(&s->port);
		if (op == NULL)
			code_session_break(
			    &s->port, ERR_PROTO, "the sandbox session spoke unasked");
		else if (op->kind == CODE_OP_EXEC)
			local_exec_frame(s, op, h.type, payload);
		else if (op->kind == CODE_OP_LIST || op->kind == CODE_OP_GET)
			local_files_frame(s, op, h.type, payload);
		else
			local_put_frame(s, op, h.type, payload);
	}
	if (s->port.is_closed)
		return; /* s->in is gone */
	memmove(s->in, s->in + pos, s->in_len - pos);
	s->in_len -= pos;
}

static void
on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct local_session *s = arg;
	size_t room = FRAME_HEAD + FRAME_MAX - s->in_len;
	ssize_t n = recv(fd, s->in + s->in_len, room, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	code_session_hold(&s->port);
	if (n <= 0) {
		errno = n == 0 ? 0 : errno; /* an end has none */
		code_session_break(&s->port, ERR_IO, "the sandbox session ended");
	} else {
		s->in_len += (size_t)n;
		process(s);
	}
	code_session_let_go(&s->port);
}

static void
on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	code_session_hold(&s->port);
	local_session_flush(s);
	struct code_op *op = s->port.is_broken ? NULL : code_session_op(&s->port);
	if (op != NULL && (op->kind == CODE_OP_PUT || op->kind == CODE_OP_PUSH)) {
		local_put_more(&s->port, op);
		code_put_ask(&s->port, op);
	}
	code_session_let_go(&s->port);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_session *s = arg;
	code_session_break(&s->port, ERR_TIMEOUT, "the sandbox session does not answer");
}

struct code_session *
local_session_new(struct local_link *l, uint64_t lease_id, const int fds[LEASE_FDS])
{
	struct event_base *base = l->backend->port.base;
	struct local_session *s = MEM_NEW(struct local_session);
	code_session_init(&s->port, &l->backend->port);
	s->link = l;
	l->sessions++;
	s->lease_id = lease_id;
	s->ctl = fds[LEASE_FD_CTL];
	s->in = mem_alloc(FRAME_HEAD + FRAME_MAX);
	s->to_init = evbuffer_new();
	buf_init(&s->omitted_names, (size_t)COLLECT_LISTED_MAX * FRAME_PATH_MAX);
	(void)fd_set_nonblock(s->ctl, true);
	s->ev_read = event_new(base, s->ctl, EV_READ | EV_PERSIST, on_read, s);
	s->ev_write = event_new(base, s->ctl, EV_WRITE, on_write, s);
	s->ev_late = evtimer_new(base, on_late, s);
	CHECK(
	    s->to_init != NULL && s->ev_read != NULL && s->ev_write != NULL && s->ev_late != NULL);
	CHECK(local_captures_init(s, fds[LEASE_FD_OUT], fds[LEASE_FD_ERR]));
	(void)event_add(s->ev_read, NULL);
	return &s->port;
}

void
local_session_go_on(struct code_session *s)
{
	process(local_of(s)); /* what was read before a pause */
}

/* Whatever runs there is of no use to anyone any more. */
void
local_session_stop(struct code_session *port)
{
	struct local_session *s = local_of(port);
	(void)event_del(s->ev_read);
	(void)event_del(s->ev_write);
	(void)event_del(s->ev_late);
	local_captures_stop(s);
	local_release(s->link, s->lease_id);
}

void
local_session_close(struct code_session *port)
{
	struct local_session *s = local_of(port);
	if (!port->is_broken)
		local_release(s->link, s->lease_id);
	local_link_leave(s->link);
	event_free(s->ev_read);
	event_free(s->ev_write);
	event_free(s->ev_late);
	local_captures_done(s);
	evbuffer_free(s->to_init);
	local_files_done(s);
	buf_done(&s->omitted_names);
	mem_free(s->in);
	s->in = NULL;
	fd_close(&s->ctl);
}

void
local_session_paused(struct code_session *port)
{
	struct local_session *s = local_of(port);
	(void)event_del(s->ev_read);
	if (s->has_result || s->is_in_file)
		local_session_late_in(s, 0);
}

void
local_session_resumed(struct code_session *port)
{
	struct local_session *s = local_of(port);
	(void)event_add(s->ev_read, NULL);
	if (s->has_result || s->is_in_file)
		local_session_late_in(s, CODE_STALL_MS);
}
