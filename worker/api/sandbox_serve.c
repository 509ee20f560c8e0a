#include "worker/api/sandbox_serve.h"

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/version.h"
#include "ipc/secrets.h"
#include "ipc/snapshot.h"
#include "worker/api/access_log.h"
#include "worker/api/api.h"
#include "worker/api/route.h"
#include "worker/code/protocol.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/request.h"

#define SWEEP_MS 1000

/* --- sessions -------------------------------------------------------------------------------- */

struct lent *
lent_of(struct request *req)
{
	struct sandbox_serve *s = req->env->serve;
	struct lent *l;
	TAILQ_FOREACH(l, &s->lents, link)
		if (str_eq(req->path_id, str_c(l->id))) {
			l->used_ms = clock_mono_ms();
			return l;
		}
	request_errorf(req, 404, "no such session");
	return NULL;
}

void
serve_refuse(struct request *req, int status, struct str why)
{
	if (!request_closed(req) && (status == 429 || status == 503))
		http_reply_header(req->x, "Retry-After", STR(SERVE_RETRY_AFTER));
	request_error(req, status, NULL, why);
}

void
serve_refuse_full(struct request *req, enum serve_verdict v)
{
	if (v == SERVE_SESSION_FULL)
		serve_refuse(req, 429, STR("too much at a time for this session"));
	else if (v == SERVE_CLIENT_FULL)
		serve_refuse(req, 429, STR("too much at a time from this address"));
	else
		serve_refuse(req, 503, STR("too many programs and uploads at a time"));
}

bool
lent_admit(struct lent *l, struct lent_work *w, struct request *req)
{
	uint32_t connections = snapshot_policy(req->env->policy)->settings.max_connections;
	enum serve_verdict v = serve_claim_begin(
	    l->serve->budget, http_head(req->x)->peer, l->account, connections / 2 + 1, &w->claim);
	if (v != SERVE_ADMITTED)
		serve_refuse_full(req, v);
	return v == SERVE_ADMITTED;
}

void
lent_begin(struct lent *l, struct lent_work *w, struct request *req)
{
	w->req = request_get(req);
	w->lent = l;
	TAILQ_INSERT_TAIL(&l->works, w, link);
}

void
lent_end(struct lent_work *w)
{
	struct lent *l = w->lent;
	TAILQ_REMOVE(&l->works, w, link);
	w->lent = NULL;
	l->used_ms = clock_mono_ms();
	request_put(&w->req);
	bool is_idle = TAILQ_EMPTY(&l->works);
	if (code_session_is_broken(l->session) || (is_idle && l->serve->is_draining))
		lent_close(l);
}

static void
on_answer_closed(struct request *req, bool aborted)
{
	struct lent_work *w = req->work;
	(void)aborted;
	req->work = NULL;
	w->dropped(w);
}

void
lent_answer(struct lent_work *w, struct request *req, struct buf *body)
{
	if (request_closed(req)) {
		w->dropped(w);
		return;
	}
	enum serve_verdict v = serve_claim_add(&w->claim, body->len);
	req->work = w;
	req->work_close = on_answer_closed;
	if (v == SERVE_ADMITTED)
		request_reply_json(req, 200, body);
	else
		serve_refuse_full(req, v);
}

void
lent_close(struct lent *l)
{
	struct lent_work *w;
	code_session_close(&l->session); /* nothing calls back any more */
	TAILQ_REMOVE(&l->serve->lents, l, link);
	l->serve->count--;
	while ((w = TAILQ_FIRST(&l->works)) != NULL) {
		struct request *req = w->req;
		TAILQ_REMOVE(&l->works, w, link);
		w->lent = NULL;
		request_errorf(req, 404, "the session was closed");
		w->dropped(w);
		request_put(&req);
	}
	serve_account_put(&l->account);
	mem_free(l);
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct sandbox_serve *s = arg;
	int64_t idle_ms = snapshot_policy(s->env->policy)->settings.sandbox_serve_idle_ms;
	int64_t now = clock_mono_ms();
	struct lent *l, *next;
	for (l = TAILQ_FIRST(&s->lents); l != NULL; l = next) {
		next = TAILQ_NEXT(l, link);
		if (!serve_account_is_idle(l->account)) /* a body may come for longer than that */
			l->used_ms = now;
		else if (now - l->used_ms >= idle_ms)
			lent_close(l);
	}
}

struct sandbox_serve *
sandbox_serve_new(struct worker_env *env)
{
	struct sandbox_serve *s = MEM_NEW(struct sandbox_serve);
	const struct timeval every = {SWEEP_MS / 1000, SWEEP_MS % 1000 * 1000};
	s->env = env;
	s->budget = serve_budget_new();
	TAILQ_INIT(&s->lents);
	TAILQ_INIT(&s->opens);
	s->sweep = event_new(env->base, -1, EV_PERSIST, on_sweep, s);
	CHECK(s->sweep != NULL && event_add(s->sweep, &every) == 0);
	return s;
}

static void
close_all(struct sandbox_serve *s, bool only_idle)
{
	struct lent *l, *next;
	for (l = TAILQ_FIRST(&s->lents); l != NULL; l = next) {
		next = TAILQ_NEXT(l, link);
		if (!only_idle || TAILQ_EMPTY(&l->works))
			lent_close(l);
	}
}

void
sandbox_serve_drain(struct sandbox_serve *s)
{
	s->is_draining = true;
	close_all(s, true);
}

void
sandbox_serve_resume(struct sandbox_serve *s)
{
	s->is_draining = false;
}

void
sandbox_serve_set_loopback(struct sandbox_serve *s, bool is_loopback)
{
	s->is_loopback = is_loopback;
}

void
sandbox_serve_free(struct sandbox_serve **sp)
{
	struct sandbox_serve *s = *sp;
	struct lent_open *o;
	if (s == NULL)
		return;
	close_all(s, false);
	while ((o = TAILQ_FIRST(&s->opens)) != NULL) {
		TAILQ_REMOVE(&s->opens, o, link);
		code_open_cancel(&o->open);
		request_put(&o->req);
		mem_free(o);
	}
	event_free(s->sweep);
	serve_budget_free(&s->budget);
	mem_free(s);
	*sp = NULL; /* not before: what is given up counts itself out */
}

/* --- requests -------------------------------------------------------------------------------- */

static void
serve_health(struct request *req)
{
	struct buf body = BUF_INIT(4096);
	struct jw w;
	struct str why;
	bool is_ready = req->env->code != NULL && code_backend_ready(req->env->code, &why);
	jw_init(&w, &body);
	jw_object(&w);
	jw_kcstr(&w, "status", is_ready ? "ok" : "refused");
	jw_ki64(&w, "protocol_version", PROTOCOL_VERSION);
	jw_kcstr(&w, "server", "otari/" OTARI_VERSION);
	protocol_write_tools(&w);
	jw_ki64(&w, "sessions", (int64_t)req->env->serve->count);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

#define R(method, path, handle)                                                                    \
	{                                                                                          \
		HTTP_##method, path, ACCESS_OPEN, 0, handle, path                                  \
	}

static const struct route routes[] = {
    R(GET, "/health", serve_health),
    R(POST, "/sessions", serve_create),
    R(DELETE, "/sessions/{id}", serve_delete),
    R(POST, "/sessions/{id}/exec", serve_exec),
    R(GET, "/sessions/{id}/files/list", serve_list),
    R(GET, "/sessions/{id}/files", serve_get),
    R(POST, "/sessions/{id}/files", serve_put),
    {HTTP_GET, NULL, ACCESS_OPEN, 0, NULL, NULL},
};

static bool
has_token(const struct request *req)
{
	struct str want = secrets_get(req->env->secrets, STR("sandbox_serve_token"));
	struct str sent = str_trim(http_header(req->x, "authorization"));
	unsigned char a[SHA256_BYTES], b[SHA256_BYTES];
	/* The configuration wants a token for any other address; but a reload that takes it away
	 * comes in pieces, and may not get the other address. */
	if (want.len == 0)
		return req->env->serve->is_loopback;
	if (!str_starts_nocase(sent, STR("Bearer ")))
		return false;
	sha256_of(want, a);
	sha256_of(str_trim(str_from(sent, 7)), b);
	return bytes_equal_ct(str_n(a, sizeof(a)), str_n(b, sizeof(b)));
}

static void
dispatch(struct request *req)
{
	static const char *const prefixes[] = {"", NULL};
	const struct http_head *head = http_head(req->x);
	const struct route *r = NULL;
	struct str allow = STR_NULL;
	enum route_found found = route_find(
	    routes, prefixes, head->method, head->path, req->arena, &r, &req->path_id, &allow);
	if (!has_token(req)) {
		http_reply_header(req->x, "WWW-Authenticate", STR("Bearer"));
		request_errorf(req, 401, "the bearer token is missing or wrong");
	} else if (found == ROUTE_UNKNOWN) {
		request_errorf(req, 404, "Not found");
	} else if (found == ROUTE_WRONG_METHOD) {
		http_reply_header(req->x, "Allow", allow);
		request_errorf(req, 405, "Method not allowed");
	} else {
		req->endpoint = r->endpoint;
		r->handle(req);
	}
}

static void
on_request(void *arg, struct http_exchange *x)
{
	struct request *req = request_get(request_new(arg, x, false));
	dispatch(req);
	request_put(&req);
}

static struct http_server_ops ops;

const struct http_server_ops *
sandbox_serve_ops(void)
{
	ops = *api_admin_ops(); /* log and errors of the layer below are the same everywhere */
	ops.on_request = on_request;
	return &ops;
}
