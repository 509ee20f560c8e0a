/* POST /tool-settings/{service}/test by the master key: does the service answer?
 *
 * Process: worker, loop thread. The sandbox that is in force is tried with code: a session is
 * opened and prints something. Another http(s) URL is asked with a GET; any HTTP answer will do,
 * since only a sandbox that is in force can be used. The state hangs on the request (req->work).
 */
#include <stdio.h>

#include "base/http_client.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "worker/api/admin_body.h"
#include "worker/api/handlers.h"
#include "worker/code/session.h"
#include "worker/code/trial.h"
#include "worker/env.h"
#include "worker/http/http.h"

#define TRY_MS       5000u
#define REASON_BYTES 512

struct trial {
	struct request *req;
	struct code_trial *code;
	struct http_call *call;
};

static void
stop(struct trial *t)
{
	code_trial_cancel(&t->code);
	http_call_cancel(&t->call);
}

static void
on_exchange_end(struct request *req, bool aborted)
{
	(void)aborted;
	stop(req->work);
}

/* Ends the trial: nothing of it is touched afterwards. */
static void
report(struct trial *t, bool ok, const char *reason)
{
	struct request *req = t->req;
	struct buf body = BUF_INIT(16u * 1024u);
	struct jw w;
	stop(t);
	jw_init(&w, &body);
	jw_object(&w);
	jw_kbool(&w, "ok", ok);
	jw_kcstr(&w, "reason", reason);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

/* --- the sandbox in force ------------------------------------------------------------------------
 */
static void
on_trial(void *arg, bool ok, const char *text)
{
	struct trial *t = arg;
	t->code = NULL;
	report(t, ok, text);
}

static void
try_code(struct trial *t)
{
	struct request *req = t->req;
	struct str why;
	if (req->env->code == NULL)
		report(t, false, "no sandbox is configured (sandbox_url in otari.conf)");
	else if (!code_backend_ready(req->env->code, &why))
		report(t, false, arena_cstr(req->arena, why));
	else
		t->code = code_trial_start(req->env->code, req->caller.workspace_id, on_trial, t);
}

/* --- another URL ---------------------------------------------------------------------------------
 */
static void
on_head(void *arg, struct http_call *c, int status)
{
	struct trial *t = arg;
	char reason[REASON_BYTES];
	(void)c;
	(void)snprintf(reason, sizeof(reason), "it answers (HTTP %d)", status);
	report(t, true, reason);
}

static bool
on_data(void *arg, struct http_call *c, struct str bytes)
{
	(void)arg, (void)c, (void)bytes;
	return true;
}

static void
on_done(void *arg, struct http_call *c, const struct err *err)
{
	struct trial *t = arg;
	(void)c;
	t->call = NULL;
	report(t, err == NULL, err == NULL ? "it answers" : err->msg);
}

static const struct http_call_ops call_ops = {on_head, on_data, on_done};

static void
try_url(struct trial *t, struct str url)
{
	struct err err;
	struct http_call_spec spec = {
	    .method = "GET",
	    .url = url,
	    .connect_timeout_ms = TRY_MS,
	    .first_byte_timeout_ms = TRY_MS,
	    .idle_timeout_ms = TRY_MS,
	};
	if (http_call_start(t->req->env->client, &spec, &call_ops, t, &t->call, &err) != ERR_OK)
		report(t, false, err.msg);
}

/* --- the request ---------------------------------------------------------------------------------
 */
static void
on_body(void *arg, struct str body)
{
	struct request *req = arg;
	struct snapshot *snap = req->env->policy;
	struct str url = STR_NULL;
	json_t *o = admin_body_parse(req, body);
	if (o == NULL || !admin_body_text(req, o, "url", &url))
		return;
	bool is_http =
	    str_starts_nocase(url, STR("http://")) || str_starts_nocase(url, STR("https://"));
	if (url.ptr != NULL && !is_http && !str_eq(url, STR("local:"))) {
		request_errorf(req, 422, "url: must be local: or an http(s) URL");
		return;
	}
	struct trial *t = ARENA_NEW(req->arena, struct trial);
	if (t == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	t->req = req;
	req->work = t;
	req->work_close = on_exchange_end;
	struct str in_force = snapshot_str(snap, snapshot_policy(snap)->settings.sandbox_url);
	if (url.ptr == NULL || str_eq(url, in_force))
		try_code(t);
	else if (is_http)
		try_url(t, url);
	else
		report(t, false, "this sandbox is not in force: set sandbox_url in otari.conf");
}

void
tool_settings_test(struct request *req)
{
	if (!str_eq(req->path_id, STR("sandbox"))) {
		request_errorf(req, 404, "There is no such service to test");
		return;
	}
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_body, req);
}
