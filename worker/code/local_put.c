#include <errno.h>
#include <string.h>

#include "worker/code/local.h"

/* Bytes in flight to a session. */
#define HIGH_WATER (256u << 10)
/* In one go, however fast they are taken: the loop has others to serve. */
#define TURN_BYTES (1u << 20)

void
local_put_start(struct local_session *s, struct code_op *op)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_file f = {op->size, str_n(op->name, op->name_len)};
	local_send(s, FRAME_PUT, p, frame_file_put(p, &f));
	local_put_more(&s->port, op);
	code_put_ask(&s->port, op);
}

void
local_put_more(struct code_session *port, struct code_op *op)
{
	struct local_session *s = local_of(port);
	char chunk[FRAME_MAX];
	size_t sent = 0;
	if (op->size == UINT64_MAX) /* the end was sent */
		return;
	local_session_late_in(s, CODE_STALL_MS);
	while (!s->port.is_broken && evbuffer_get_length(s->to_init) < HIGH_WATER &&
	       sent < TURN_BYTES) {
		size_t n = code_put_chunk(op, chunk, sizeof(chunk));
		if (n > 0) {
			local_send(s, FRAME_PUT_DATA, chunk, n);
			op->offset += n;
			sent += n;
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
	if (sent >= TURN_BYTES && !s->port.is_broken)
		(void)event_add(s->ev_write, NULL);
}

size_t
local_put_in_flight(const struct code_session *s)
{
	return evbuffer_get_length(local_of(s)->to_init);
}

void
local_put_frame(struct local_session *s, struct code_op *op, uint8_t type, struct str payload)
{
	struct frame_put_done d;
	struct err e = op->refused;
	if (type != FRAME_PUT_DONE || op->size != UINT64_MAX || !frame_put_done_get(payload, &d)) {
		code_session_break(&s->port, ERR_PROTO, "the sandbox session broke its protocol");
		return;
	}
	if (e.code == ERR_OK && d.sys_errno != 0) {
		bool is_full =
		    d.sys_errno == ENOSPC || d.sys_errno == EFBIG || d.sys_errno == EDQUOT;
		(void)err_set(&e, is_full ? ERR_TOOLARGE : ERR_INTERNAL,
		    "the sandbox did not take the file: %s", strerror(d.sys_errno));
		e.sys_errno = d.sys_errno;
	}
	local_session_late_in(s, 0);
	code_put_done(&s->port, op, e.code == ERR_OK ? NULL : &e);
}
