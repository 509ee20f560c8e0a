/* One file into the session: a multipart form of its bytes and its path. */
#include "base/check.h"
#include "base/id.h"
#include "worker/code/remote.h"
#include "worker/http/disposition.h"
#include "worker/http/mime.h"

/* Slowest upload that is waited for. */
#define BYTES_PER_MS 64u

static void
write_frame(struct remote_session *s, const struct code_op *op, const char *boundary)
{
	struct str path = str_n(op->name, op->name_len), name = path;
	size_t slash = str_rchr(path, '/');
	if (slash != SIZE_MAX)
		name = str_from(path, slash + 1);
	buf_clear(&s->head);
	buf_clear(&s->tail);
	buf_printf(
	    &s->head, "--%s\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n", boundary);
	buf_add(&s->head, path);
	buf_printf(&s->head,
	    "\r\n--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"", boundary);
	disposition_form_name(&s->head, name);
	buf_printf(&s->head, "\"\r\nContent-Type: %.*s\r\n\r\n", STR_FMT(mime_of_name(name)));
	buf_printf(&s->tail, "\r\n--%s--\r\n", boundary);
	s->head_sent = s->tail_sent = 0;
}

static size_t
take(const struct buf *from, size_t *sent, char *dst, size_t room)
{
	struct str rest = str_sub(str_from(buf_str(from), *sent), 0, room);
	for (size_t i = 0; i < rest.len; i++)
		dst[i] = rest.ptr[i];
	*sent += rest.len;
	return rest.len;
}

/* -2: none now. -1: it ended early. */
static ssize_t
file_bytes(struct remote_session *s, struct code_op *op, char *dst, size_t room)
{
	size_t n = code_put_chunk(op, dst, room);
	if (n == 0 && op->kind == CODE_OP_PUSH && !op->is_ended) {
		code_session_hold(&s->port);
		code_put_ask(&s->port, op);
		bool is_closed = s->port.is_closed;
		code_session_let_go(&s->port);
		if (is_closed)
			return -1;
		n = code_put_chunk(op, dst, room);
		if (n == 0 && !op->is_ended)
			return -2;
	}
	op->offset += n;
	return n > 0 ? (ssize_t)n : -1;
}

static ssize_t
read_body(void *arg, char *dst, size_t room)
{
	struct remote_session *s = ((struct remote_call *)arg)->arg;
	struct code_op *op = code_session_op(&s->port);
	if (op == NULL)
		return -1;
	size_t n = take(&s->head, &s->head_sent, dst, room);
	if (n > 0)
		return (ssize_t)n;
	if (op->offset < op->size)
		return file_bytes(s, op, dst, room);
	if (op->kind == CODE_OP_PUSH && !op->is_ended && s->tail_sent == 0)
		return -2;
	if (op->pending != NULL && evbuffer_get_length(op->pending) > 0)
		return -1; /* more than announced */
	return (ssize_t)take(&s->tail, &s->tail_sent, dst, room);
}

static void post(struct remote_session *s, struct code_op *op);

/* A kept connection that the other side had just closed: libcurl cannot send a body again that it
 * was given piece by piece, we can where it is a file. */
static bool
may_try_again(struct remote_session *s, const struct err *err)
{
	struct code_op *op = code_session_op(&s->port);
	return err != NULL && err->code == ERR_UPSTREAM && !s->is_again && op->kind == CODE_OP_PUT;
}

static void
on_put(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_session *s = arg;
	struct err e;
	(void)answer;
	code_session_hold(&s->port);
	if (err == NULL && (status < 200 || status > 299)) {
		(void)remote_status_error(status, &e);
		err = &e;
	}
	s->has_baseline = false; /* what was put is not what the next exec makes */
	if (may_try_again(s, err)) {
		s->is_again = true;
		post(s, code_session_op(&s->port));
		code_session_let_go(&s->port);
		return;
	}
	if (err == NULL)
		code_put_done(&s->port, code_session_op(&s->port), NULL);
	else
		remote_session_op_failed(s, err);
	code_session_let_go(&s->port);
}

static void
post(struct remote_session *s, struct code_op *op)
{
	char boundary[ID_SIZE];
	struct buf url = BUF_INIT(8192), type = BUF_INIT(256);
	op->offset = 0;
	id_make("otari-", boundary);
	write_frame(s, op, boundary);
	buf_printf(&url, "%s/files", s->url);
	buf_printf(&type, "multipart/form-data; boundary=%s", boundary);
	uint64_t slow_ms = op->size / BYTES_PER_MS;
	const struct remote_ask ask = {.method = "POST",
	    .url = buf_str(&url),
	    .content_type = buf_str(&type),
	    .read_body = read_body,
	    .body_bytes = s->head.len + op->size + s->tail.len,
	    .max_answer = PROTOCOL_SESSION_MAX_BYTES,
	    .timeout_ms = CODE_STALL_MS + (slow_ms < 3600000u ? (uint32_t)slow_ms : 3600000u)};
	remote_call_start(&s->call, remote_backend_of(s), &ask, on_put);
	buf_done(&type);
	buf_done(&url);
}

void
remote_put_start(struct remote_session *s, struct code_op *op)
{
	s->is_again = false;
	post(s, op);
}

void
remote_put_more(struct code_session *port, struct code_op *op)
{
	struct remote_session *s = remote_of(port);
	(void)op;
	if (s->call.http != NULL)
		http_call_resume_upload(s->call.http);
}
