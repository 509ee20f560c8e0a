#include "base/clock.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/snapshot.h"
#include "worker/api/sandbox_serve.h"
#include "worker/code/protocol.h"
#include "worker/env.h"
#include "worker/request.h"

/* A program, each byte escaped, and what stands around it. */
#define EXEC_BODY_MAX_BYTES   (6u * CODE_SOURCE_MAX + 65536u)
#define EXEC_ARENA_MAX_BYTES  (64u << 20)
#define CREATE_BODY_MAX_BYTES 65536u
/* Both outputs, each byte escaped, and the names of files. */
#define ANSWER_MAX_BYTES (256u << 20)

/* --- create ---------------------------------------------------------------------------------- */

static void
say_created(struct request *req, const struct lent *l)
{
	struct buf body = BUF_INIT(4096);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	jw_kcstr(&w, "session_id", l->id);
	jw_ki64(&w, "protocol_version", PROTOCOL_VERSION);
	protocol_write_tools(&w);
	jw_end_object(&w);
	request_reply_json(req, 201, &body);
	buf_done(&body);
}

static void
on_open(struct code_session *session, const struct err *e, void *arg)
{
	struct lent_open *o = arg;
	struct sandbox_serve *s = o->serve;
	struct request *req = o->req;
	TAILQ_REMOVE(&s->opens, o, link);
	mem_free(o);
	if (session == NULL || request_closed(req) || s->is_draining) {
		s->count--;
		if (session == NULL)
			log_warn("no code session to lend", LOG_ERR(e));
		code_session_close(&session);
		serve_refuse(req, 503, e != NULL ? str_c(e->msg) : STR("the sandbox is draining"));
	} else {
		struct lent *l = MEM_NEW(struct lent);
		id_make("sbx_", l->id);
		l->serve = s;
		l->session = session;
		l->account = serve_account_new();
		l->used_ms = clock_mono_ms();
		TAILQ_INIT(&l->works);
		TAILQ_INSERT_TAIL(&s->lents, l, link);
		say_created(req, l);
	}
	request_put(&req);
}

/* An image is whatever this host has: there is one. */
static void
on_create_body(void *arg, struct str body)
{
	struct request *req = arg;
	struct sandbox_serve *s = req->env->serve;
	const struct snap_settings *t = &snapshot_policy(req->env->policy)->settings;
	struct jval root;
	struct str why;
	if (str_trim(body).len > 0 &&
	    (jdoc_parse(req->arena, body, &root, NULL) != ERR_OK || !jv_is(root, JT_OBJECT))) {
		request_errorf(req, 400, "the body is not a JSON object");
		return;
	}
	struct code_backend *code = req->env->code;
	if (code == NULL || code_backend_opens_early(code)) { /* a reload took it away */
		serve_refuse(req, 503, STR("there is no sandbox here"));
		return;
	}
	if (!code_backend_ready(code, &why)) {
		serve_refuse(req, 503, why);
		return;
	}
	if (s->is_draining || s->count >= t->sandbox_serve_max_sessions) {
		serve_refuse(req, 503, STR("all sandboxes are in use"));
		return;
	}
	struct lent_open *o = MEM_NEW(struct lent_open);
	o->serve = s;
	o->req = request_get(req);
	s->count++;
	TAILQ_INSERT_TAIL(&s->opens, o, link);
	o->open = code_session_open(req->env->code, STR(""), 0, on_open, o);
}

void
serve_create(struct request *req)
{
	if (http_head(req->x)->has_body)
		http_body_whole(req->x, CREATE_BODY_MAX_BYTES, on_create_body, req);
	else
		on_create_body(req, STR(""));
}

void
serve_delete(struct request *req)
{
	struct lent *l = lent_of(req);
	if (l == NULL)
		return;
	lent_close(l);
	request_reply_empty(req, 204);
}

/* --- exec ------------------------------------------------------------------------------------ */

struct exec {
	struct lent_work work; /* lent NULL: the session is not asked yet */
	struct request *req;
	struct buf body; /* until the session has it */
	struct protocol_exec asked;
	bool is_over; /* answered before all of the body was here */
};

static void
exec_free(struct exec *x)
{
	serve_claim_end(&x->work.claim);
	buf_done(&x->body);
	mem_free(x);
}

static void
dropped(struct lent_work *w)
{
	exec_free((struct exec *)w);
}

/* The client is gone, or was answered, before the session was asked. */
static void
on_exec_closed(struct request *req, bool aborted)
{
	struct exec *x = req->work;
	(void)aborted;
	req->work = NULL;
	if (x != NULL)
		exec_free(x);
}

static void
on_done(void *arg, const struct code_result *r)
{
	struct exec *x = arg;
	struct request *req = request_get(x->work.req);
	struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
	bool ok = r->failed == NULL;
	if (ok) {
		req->code_runs++;
		protocol_write_result(&x->asked, r, &body);
	} else if (r->failed->code == ERR_TOOLARGE) {
		request_error(req, 413, NULL, str_c(r->failed->msg));
	} else {
		log_warn(
		    "a lent code session failed", LOG_C("request_id", req->id), LOG_ERR(r->failed));
		request_errorf(req, 500, "the code session failed");
	}
	lent_end(&x->work);
	if (ok)
		lent_answer(&x->work, req, &body);
	else
		exec_free(x);
	buf_done(&body);
	request_put(&req);
}

/* The session copies what it is asked. */
static void
run(struct exec *x, struct lent *l, struct protocol_exec *asked)
{
	static const struct code_run_ops ops = {.done = on_done};
	struct request *req = x->req;
	x->asked = (struct protocol_exec){.kind = asked->kind,
	    .edit.command = asked->edit.command,
	    .tool_use_id = asked->tool_use_id.len > 0 ? arena_str(req->arena, asked->tool_use_id)
						      : str_c(req->id)};
	x->work.dropped = dropped;
	req->work = NULL; /* from here on it is the session's */
	lent_begin(l, &x->work, req);
	if (asked->kind == CODE_EDITOR)
		code_session_edit(l->session, &asked->edit, asked->timeout_ms, &ops, x);
	else
		code_session_exec(
		    l->session, asked->kind, asked->program, asked->timeout_ms, &ops, x);
}

static bool
on_exec_bytes(void *arg, struct str bytes)
{
	struct exec *x = ((struct request *)arg)->work;
	if (x == NULL || x->is_over)
		return true;
	buf_add(&x->body, bytes);
	enum serve_verdict v = serve_claim_add(&x->work.claim, bytes.len);
	if (v != SERVE_ADMITTED) {
		x->is_over = true;
		serve_refuse_full(x->req, v);
	}
	return true;
}

static void
on_exec_body(void *arg, bool ok)
{
	struct request *req = arg;
	struct exec *x = req->work;
	struct protocol_exec asked;
	struct err e;
	if (x == NULL || x->is_over || !ok)
		return;
	struct lent *l = lent_of(req); /* it may have gone while the body came */
	if (l == NULL)
		return;
	/* Of its own: what a body was made of may be many times as much, and it may wait long. */
	struct arena *a = arena_new(EXEC_ARENA_MAX_BYTES);
	enum err_code rc = protocol_read_exec(a, buf_str(&x->body), &asked, &e);
	if (rc == ERR_OK)
		run(x, l, &asked);
	else
		request_error(req, rc == ERR_UNSUPPORTED ? 422 : 400, NULL, str_c(e.msg));
	arena_free(&a);
	if (rc == ERR_OK)
		buf_done(&x->body);
}

void
serve_exec(struct request *req)
{
	static const struct http_body_sink sink = {on_exec_bytes, on_exec_body};
	struct lent *l = lent_of(req);
	if (l == NULL)
		return;
	struct exec *x = MEM_NEW(struct exec);
	if (!lent_admit(l, &x->work, req)) {
		mem_free(x);
		return;
	}
	x->req = req;
	buf_init(&x->body, EXEC_BODY_MAX_BYTES);
	req->work = x;
	req->work_close = on_exec_closed;
	http_body_stream(req->x, EXEC_BODY_MAX_BYTES, &sink, req);
}
