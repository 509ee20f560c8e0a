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
	jw_end_object(&w);
	request_reply_json(req, 201, &body);
	buf_done(&body);
}

static void
refuse_busy(struct request *req, struct str why)
{
	if (!request_closed(req))
		http_reply_header(req->x, "Retry-After", STR(SERVE_RETRY_AFTER));
	request_error(req, 503, NULL, why);
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
		refuse_busy(req, e != NULL ? str_c(e->msg) : STR("the sandbox is draining"));
	} else {
		struct lent *l = MEM_NEW(struct lent);
		id_make("sbx_", l->id);
		l->serve = s;
		l->session = session;
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
		refuse_busy(req, STR("there is no sandbox here"));
		return;
	}
	if (!code_backend_ready(code, &why)) {
		refuse_busy(req, why);
		return;
	}
	if (s->is_draining || s->count >= t->sandbox_serve_max_sessions) {
		refuse_busy(req, STR("all sandboxes are in use"));
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
	struct lent_work work;
	struct protocol_exec asked; /* in the request's arena */
};

static void
dropped(struct lent_work *w)
{
	mem_free(w);
}

static void
on_done(void *arg, const struct code_result *r)
{
	struct exec *x = arg;
	struct request *req = request_get(x->work.req);
	if (r->failed != NULL && r->failed->code == ERR_TOOLARGE) {
		request_error(req, 413, NULL, str_c(r->failed->msg));
	} else if (r->failed != NULL) {
		log_warn(
		    "a lent code session failed", LOG_C("request_id", req->id), LOG_ERR(r->failed));
		request_errorf(req, 500, "the code session failed");
	} else {
		struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
		req->code_runs++;
		protocol_write_result(&x->asked, r, &body);
		request_reply_json(req, 200, &body);
		buf_done(&body);
	}
	lent_end(&x->work);
	mem_free(x);
	request_put(&req);
}

static void
on_exec_body(void *arg, struct str body)
{
	static const struct code_run_ops ops = {.done = on_done};
	struct request *req = arg;
	struct protocol_exec asked;
	struct err e;
	struct lent *l = lent_of(req); /* it may have gone while the body came */
	if (l == NULL)
		return;
	enum err_code rc = protocol_read_exec(req->arena, body, &asked, &e);
	if (rc != ERR_OK) {
		request_error(req, rc == ERR_UNSUPPORTED ? 422 : 400, NULL, str_c(e.msg));
		return;
	}
	/* The body is the connection's, which may be gone before the answer is there. */
	asked.tool_use_id =
	    asked.tool_use_id.len > 0 ? arena_str(req->arena, asked.tool_use_id) : str_c(req->id);
	struct exec *x = MEM_NEW(struct exec);
	x->asked = asked;
	x->work.dropped = dropped;
	lent_begin(l, &x->work, req);
	if (asked.kind == CODE_EDITOR)
		code_session_edit(l->session, &asked.edit, asked.timeout_ms, &ops, x);
	else
		code_session_exec(l->session, asked.kind, asked.program, asked.timeout_ms, &ops, x);
}

/* Its body is the connection's until it is answered. */
struct claim {
	uint64_t bytes;
};

static void
on_exec_closed(struct request *req, bool aborted)
{
	const struct claim *c = req->work;
	(void)aborted;
	req->work = NULL;
	if (c != NULL)
		req->env->serve->body_bytes -= c->bytes;
}

void
serve_exec(struct request *req)
{
	struct sandbox_serve *s = req->env->serve;
	int64_t length = http_head(req->x)->content_length;
	uint64_t bytes = length >= 0 && length < (int64_t)EXEC_BODY_MAX_BYTES ? (uint64_t)length
									      : EXEC_BODY_MAX_BYTES;
	struct claim *c = ARENA_NEW(req->arena, struct claim);
	if (lent_of(req) == NULL)
		return;
	if (c == NULL || s->body_bytes + bytes > SERVE_BODIES_MAX_BYTES) {
		refuse_busy(req, STR("too many programs at a time"));
		return;
	}
	c->bytes = bytes;
	s->body_bytes += bytes;
	req->work = c;
	req->work_close = on_exec_closed;
	http_body_whole(req->x, EXEC_BODY_MAX_BYTES, on_exec_body, req);
}
