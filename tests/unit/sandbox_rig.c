#include "tests/unit/sandbox_rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "master/listen.h"
#include "worker/http/uri.h"

struct visit { /* one exchange */
	struct sandbox_rig *r;
	struct http_exchange *x;
	struct buf body;
	bool is_put, is_gone, is_endless;
	struct event *more;
};

/* --- the sandbox ----------------------------------------------------------------------------- */

static const struct sandbox_answer *
answer_of(const struct sandbox_answer *list, unsigned i)
{
	if (i >= SANDBOX_ANSWERS_MAX)
		i = SANDBOX_ANSWERS_MAX - 1;
	while (i > 0 && list[i].status == 0)
		i--;
	return &list[i];
}

static void
reply(struct visit *v, const struct sandbox_answer *a)
{
	if (a->status == 503 && v->r->retry_after != NULL)
		http_reply_header(v->x, "Retry-After", str_c(v->r->retry_after));
	http_reply(v->x, a->status, "application/json", str_c(a->body != NULL ? a->body : ""));
}

static void
write_piece(void *arg)
{
	struct visit *v = arg;
	if (v->is_gone)
		return;
	v->r->pieces++;
	http_reply_write(v->x, STR("12345678"));
	const struct timeval soon = {0, 1000};
	(void)event_add(v->more, &soon);
}

static void
on_more(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	write_piece(arg);
}

static void
reply_file(struct visit *v, struct str path)
{
	const struct sandbox_file *f = v->r->files;
	while (f != NULL && f->path != NULL && !str_eq(path, str_c(f->path)))
		f++;
	v->r->fetches++;
	if (f == NULL || f->path == NULL || f->status != 0) {
		http_reply(v->x, f != NULL && f->path != NULL ? f->status : 404, "text/plain",
		    STR("no such file"));
		return;
	}
	if (f->is_endless) {
		v->is_endless = true;
		v->more = evtimer_new(v->r->base, on_more, v);
		http_reply_begin(v->x, 200, "text/plain", -1);
		write_piece(v);
		return;
	}
	if (f->is_stuck) {
		http_reply_begin(v->x, 200, "text/plain", 9);
		return;
	}
	struct str bytes = str_c(f->bytes);
	int64_t length = f->announced != 0 ? f->announced : (int64_t)bytes.len;
	http_reply_begin(v->x, 200, "text/plain", f->is_chunked ? -1 : length);
	http_reply_write(v->x, bytes);
	if (f->announced != 0)
		http_reply_abort(v->x);
	else
		http_reply_end(v->x);
}

static void
answer(struct visit *v)
{
	struct sandbox_rig *r = v->r;
	const struct http_head *h = http_head(v->x);
	struct str target = h->target, body = buf_str(&v->body);
	buf_printf(&r->log, "%s %.*s%s%.*s\n", http_method_name(h->method), STR_FMT(target),
	    body.len > 0 && !v->is_put ? " " : "", v->is_put ? 0 : (int)body.len, body.ptr);
	if (h->method == HTTP_DELETE) {
		r->deletes++;
		http_reply(v->x, 204, NULL, STR(""));
	} else if (str_ends(h->path, STR("/exec"))) {
		const struct sandbox_answer *a = answer_of(r->exec, r->execs++);
		if (!r->is_silent)
			reply(v, a);
	} else if (str_ends(h->path, STR("/files/list"))) {
		reply(v, answer_of(r->list, r->lists++));
	} else if (h->method == HTTP_GET) {
		struct arena *a = arena_new(1u << 20);
		reply_file(v, query_get(a, h->query, "path"));
		arena_free(&a);
	} else if (v->is_put) {
		buf_clear(&r->put_body);
		buf_add(&r->put_body, body);
		reply(v, &r->put);
	} else {
		reply(v, &r->create);
	}
}

static void
on_whole(void *arg, struct str body)
{
	struct visit *v = arg;
	buf_add(&v->body, body);
	answer(v);
}

static void
on_close(void *arg, bool aborted)
{
	struct visit *v = arg;
	(void)aborted;
	v->is_gone = true;
	if (v->more != NULL)
		event_free(v->more);
	buf_done(&v->body);
	mem_free(v);
}

static void
on_request(void *arg, struct http_exchange *x)
{
	struct sandbox_rig *r = arg;
	struct visit *v = MEM_NEW(struct visit);
	struct str auth = http_header(x, "authorization"), type = http_header(x, "content-type");
	v->r = r;
	v->x = x;
	buf_init(&v->body, 1u << 20);
	(void)str_copy(r->authorization, sizeof(r->authorization), auth);
	v->is_put = str_starts(type, STR("multipart/"));
	if (v->is_put)
		(void)str_copy(r->put_type, sizeof(r->put_type), type);
	http_on_close(x, on_close, v);
	if (http_head(x)->has_body)
		http_body_whole(x, 1u << 20, on_whole, v);
	else
		answer(v);
}

static void
on_finished(void *arg, struct http_exchange *x, int status, uint64_t in, uint64_t out, bool aborted)
{
	(void)arg, (void)x, (void)status, (void)in, (void)out, (void)aborted;
}

static void
error_body(void *arg, struct http_exchange *x, int status, const char *reason, struct str path,
    char *dst, size_t size)
{
	(void)arg, (void)x, (void)status, (void)reason, (void)path;
	(void)str_copy(dst, size, STR("{}"));
}

/* --- the client ------------------------------------------------------------------------------ */

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct sandbox_rig *r = arg;
	r->opens++;
	r->s = s;
	if (e != NULL)
		r->open_err = *e;
}

static void
on_put(const struct err *e, void *arg)
{
	struct sandbox_rig *r = arg;
	r->puts++;
	if (e != NULL)
		r->put_err = *e;
}

static bool
on_file_begin(void *arg, struct str path, uint64_t size)
{
	struct sandbox_rig *r = arg;
	(void)size;
	buf_printf(&r->got, "%.*s=", STR_FMT(path));
	return !str_eq(path, STR("skip"));
}

static void
on_file_data(void *arg, struct str bytes)
{
	struct sandbox_rig *r = arg;
	cr_assert_not_null(r->s, "bytes after the session was closed");
	buf_add(&r->got, bytes);
	if (r->pause_at_data)
		code_session_pause(r->s);
	if (r->close_at == SANDBOX_CLOSE_AT_DATA)
		code_session_close(&r->s);
}

static void
on_file_end(void *arg, bool whole)
{
	struct sandbox_rig *r = arg;
	buf_addc(&r->got, whole ? ';' : '!');
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct sandbox_rig *r = arg;
	r->dones++;
	r->has_failed = c->failed != NULL;
	if (c->failed != NULL)
		r->failed = *c->failed;
	r->timed_out = c->timed_out;
	r->notes = c->err_note_bytes;
	r->code = c->return_code;
	(void)snprintf(r->out, sizeof(r->out), "%.*s", STR_FMT(c->out));
	(void)snprintf(r->err, sizeof(r->err), "%.*s", STR_FMT(c->err));
	r->has_edit = c->edit != NULL;
	if (c->edit != NULL)
		r->edit = *c->edit;
	for (size_t i = 0; i < c->omitted_count; i++)
		buf_printf(
		    &r->omitted, "%.*s:%d,", STR_FMT(c->omitted[i].path), c->omitted[i].reason);
	if (r->close_at == SANDBOX_CLOSE_AT_DONE)
		code_session_close(&r->s);
}

const struct code_run_ops sandbox_rig_ops = {on_file_begin, on_file_data, on_file_end, on_done};

/* --- life ------------------------------------------------------------------------------------ */

void
sandbox_rig_init(struct sandbox_rig *r, const char *token)
{
	static const struct http_server_ops ops = {on_request, on_finished, error_body};
	const struct http_server_config server = {
	    .head_timeout_ms = 10000,
	    .idle_timeout_ms = 75000,
	    .body_min_bytes_per_s = 1,
	    .write_stall_ms = 60000,
	    .max_connections = 64,
	};
	const struct code_config cfg = {.timeout_ms = 1000,
	    .queue_ms = 100,
	    .max_files = 2,
	    .max_bytes = 32,
	    .output_bytes = 100};
	struct err e;
	char url[64];
	int fd;
	memset(r, 0, sizeof(*r));
	buf_init(&r->log, 1u << 20);
	buf_init(&r->put_body, 1u << 20);
	buf_init(&r->got, 1u << 20);
	buf_init(&r->omitted, 1u << 20);
	r->create = (struct sandbox_answer){201, "{\"session_id\":\"s1\"}"};
	r->exec[0] = (struct sandbox_answer){
	    200, "{\"result_block\":{\"content\":{\"stdout\":\"hi\",\"return_code\":0}}}"};
	r->list[0] = (struct sandbox_answer){200, "{\"files\":[]}"};
	r->put = (struct sandbox_answer){201, "{}"};
	r->base = event_base_new();
	CHECK(listen_open(STR("127.0.0.1"), &r->port, true, &fd, &e) == ERR_OK);
	CHECK(http_server_new(r->base, &server, &ops, r, &r->server, &e) == ERR_OK);
	CHECK(http_server_listen(r->server, fd, NULL, &e) == ERR_OK);
	CHECK(http_client_new(r->base, &r->client, &e) == ERR_OK);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/base/", r->port);
	const struct code_remote remote = {.url = str_c(url), .token = str_c(token)};
	r->backend = code_backend_new_remote(r->base, r->client, &remote, &cfg);
}

void
sandbox_rig_done(struct sandbox_rig *r)
{
	code_session_close(&r->s);
	int64_t end = clock_mono_ms() + 10000;
	while (r->server != NULL && !code_backend_is_idle(r->backend) && clock_mono_ms() < end)
		(void)event_base_loop(r->base, EVLOOP_ONCE);
	cr_assert(code_backend_is_idle(r->backend), "something of a session is left");
	code_backend_free(&r->backend);
	http_client_free(&r->client);
	http_server_free(&r->server);
	event_base_free(r->base);
	buf_done(&r->log);
	buf_done(&r->put_body);
	buf_done(&r->got);
	buf_done(&r->omitted);
}

void
sandbox_rig_wait(struct sandbox_rig *r, const unsigned *count, unsigned n)
{
	int64_t end = clock_mono_ms() + 10000;
	while (*count < n && clock_mono_ms() < end)
		(void)event_base_loop(r->base, EVLOOP_ONCE);
	cr_assert(*count >= n, "it never came; asked was:\n%s", r->log.ptr);
}

void
sandbox_rig_turn(struct sandbox_rig *r)
{
	for (int i = 0; i < 50; i++)
		(void)event_base_loop(r->base, EVLOOP_NONBLOCK);
}

void
sandbox_rig_open(struct sandbox_rig *r, const char *image)
{
	unsigned before = r->opens;
	struct code_open *o = code_session_open_image(
	    r->backend, STR("w"), image != NULL ? str_c(image) : STR(""), 0, on_open, r);
	cr_assert(o != NULL && r->opens == before, "called back at once");
	sandbox_rig_wait(r, &r->opens, before + 1);
}

void
sandbox_rig_exec(struct sandbox_rig *r, const char *code)
{
	unsigned before = r->dones;
	r->has_failed = false;
	buf_clear(&r->got);
	buf_clear(&r->omitted);
	code_session_exec(r->s, CODE_PYTHON, str_c(code), 0, &sandbox_rig_ops, r);
	cr_assert(r->dones == before, "called back at once");
	sandbox_rig_wait(r, &r->dones, before + 1);
}

void
sandbox_rig_put(struct sandbox_rig *r, const char *name, const char *bytes)
{
	unsigned before = r->puts;
	int fd = fd_memfd("put");
	struct str b = str_c(bytes);
	cr_assert(fd_write_all(fd, b, NULL) == ERR_OK);
	code_session_put(r->s, str_c(name), b.len, fd, on_put, r);
	sandbox_rig_wait(r, &r->puts, before + 1);
}

void
sandbox_rig_run(struct sandbox_rig *r, const char *code)
{
	sandbox_rig_open(r, NULL);
	cr_assert_not_null(r->s, "%s", r->open_err.msg);
	sandbox_rig_exec(r, code);
}
