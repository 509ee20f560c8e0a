#include "base/check.h"
#include "base/mem.h"
#include "worker/code/remote.h"
#include "worker/http/uri.h"

struct code_session *
remote_session_new(struct remote_backend *b, struct str id)
{
	struct remote_session *s = MEM_NEW(struct remote_session);
	struct buf url = BUF_INIT(8192);
	code_session_init(&s->port, &b->port);
	buf_printf(&url, "%s/sessions/", b->url);
	uri_encode(id, &url);
	s->url = mem_strndup(url.ptr, url.len);
	buf_done(&url);
	remote_call_init(&s->call, b->port.base, s);
	remote_fetch_init(s);
	buf_init(&s->head, 4u * PROTOCOL_PATH_MAX + 4096u);
	buf_init(&s->tail, 256);
	return &s->port;
}

void
remote_session_start(struct code_session *s, struct code_op *op)
{
	if (op->kind == CODE_OP_EXEC)
		remote_exec_start(remote_of(s), op);
	else
		remote_put_start(remote_of(s), op);
}

void
remote_session_fail(struct code_session *s, struct code_op *op, const struct err *e)
{
	if (s->is_running)
		remote_call_cancel(&remote_of(s)->call);
	if (op->kind == CODE_OP_EXEC)
		remote_exec_end(remote_of(s), op, e);
	else if (op->kind == CODE_OP_LIST || op->kind == CODE_OP_GET)
		code_files_fail(s, op, e);
	else
		code_put_done(s, op, e);
}

void
remote_session_op_failed(struct remote_session *s, const struct err *e)
{
	struct err copy = *e;
	/* What runs there now is not known, or it is not there. */
	if (e->code == ERR_NOTFOUND || e->code == ERR_TIMEOUT) {
		s->is_gone = e->code == ERR_NOTFOUND;
		code_session_break(&s->port, e->code, copy.msg);
		return; /* the queue fails from the loop */
	}
	remote_session_fail(&s->port, code_session_op(&s->port), &copy);
}

void
remote_session_go_on(struct code_session *port)
{
	struct remote_session *s = remote_of(port);
	struct code_op *op = code_session_op(port);
	if (op == NULL || op->kind != CODE_OP_EXEC || !s->has_result)
		return;
	if (s->fetch.has_ended)
		remote_fetch_ended(s);
	else if (s->fetch.is_over)
		remote_fetch_next(s);
}

void
remote_session_paused(struct code_session *s)
{
	(void)s; /* the next piece asks */
}

void
remote_session_resumed(struct code_session *s)
{
	if (remote_of(s)->fetch.http != NULL)
		http_call_resume(remote_of(s)->fetch.http);
}

void
remote_session_stop(struct code_session *port)
{
	struct remote_session *s = remote_of(port);
	remote_call_cancel(&s->call);
	remote_fetch_stop(s);
}

void
remote_session_close(struct code_session *port)
{
	struct remote_session *s = remote_of(port);
	remote_session_stop(port);
	if (!s->is_gone)
		remote_delete(remote_backend_of(s), str_c(s->url));
	remote_call_done(&s->call);
	event_free(s->fetch.late);
	s->fetch.late = NULL;
	map_free(&s->baseline);
	arena_free(&s->baseline_arena);
	arena_free(&s->arena);
	buf_done(&s->head);
	buf_done(&s->tail);
	mem_free(s->url);
	s->url = NULL;
}
