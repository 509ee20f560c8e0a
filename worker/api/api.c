#include "worker/api/api.h"

#include "base/clock.h"
#include "ipc/board.h"
#include "ipc/snapshot.h"
#include "worker/api/access_log.h"
#include "worker/api/auth.h"
#include "worker/api/route.h"
#include "worker/dialect/dialect.h"
#include "worker/env.h"
#include "worker/request.h"

static bool
files_are_off(const struct request *req)
{
	return !snapshot_policy(req->env->policy)->settings.files_enabled;
}

static void
pick_wire(struct request *req, const struct route *r, struct str path)
{
	bool has_version = http_header(req->x, "anthropic-version").ptr != NULL;
	req->wire = route_wire(path, has_version);
	if (r != NULL && (r->flags & ROUTE_MESSAGES))
		req->wire = WIRE_MESSAGES;
	req->detail_is_text = route_wire(path, false) != WIRE_MESSAGES;
}

/* A key that was revoked meanwhile must not work for ever. */
static bool
policy_is_stale(const struct worker_env *env)
{
	return env->board != NULL && env->policy != NULL &&
	       board_is_stale(env->board, (uint64_t)clock_mono_ms(),
		   snapshot_policy(env->policy)->settings.policy_max_stale_s);
}

/* False when it was answered with a refusal. */
static bool
admit(struct request *req, const struct route *r)
{
	if ((r->access != ACCESS_OPEN || (r->flags & ROUTE_FILES)) && req->env->policy == NULL) {
		request_errorf(req, 503, "The gateway has no configuration in force yet");
		return false;
	}
	if ((r->flags & ROUTE_FILES) && files_are_off(req)) {
		request_errorf(req, 404, "File uploads are disabled on this gateway");
		return false;
	}
	if ((r->flags & ROUTE_FILES) && req->env->blobs == NULL) {
		request_errorf(req, 503,
		    "File uploads were switched on after this worker started; recycle the workers");
		return false;
	}
	if (r->access == ACCESS_OPEN)
		return true;
	if (policy_is_stale(req->env)) {
		request_errorf(req, 503,
		    "The gateway could not reach its database for too long to go on with the keys "
		    "and "
		    "policies that it holds");
		return false;
	}
	enum auth_verdict v = auth_request(req);
	if (v != AUTH_OK) {
		request_error(req, 401, NULL, str_c(auth_text(v)));
		return false;
	}
	if (r->access == ACCESS_MASTER && !req->caller.is_master) {
		request_errorf(req, 403, "This route needs the master key");
		return false;
	}
	return true;
}

static void
dispatch(struct request *req, const struct route *routes, const char *const *prefixes)
{
	const struct http_head *head = http_head(req->x);
	const struct route *r = NULL;
	struct str allow = STR_NULL;
	enum route_found found = route_find(
	    routes, prefixes, head->method, head->path, req->arena, &r, &req->path_id, &allow);
	if (found == ROUTE_UNKNOWN && !req->from_admin)
		found = route_find(route_root, route_root_prefixes, head->method, head->path,
		    req->arena, &r, &req->path_id, &allow);
	pick_wire(req, r, head->path);
	if (found == ROUTE_UNKNOWN) {
		request_errorf(req, 404, "Not found");
	} else if (found == ROUTE_WRONG_METHOD) {
		http_reply_header(req->x, "Allow", allow);
		request_errorf(req, 405, "Method not allowed");
	} else {
		req->endpoint = r->endpoint;
		if (admit(req, r))
			r->handle(req);
	}
}

static void
on_request(struct worker_env *env, struct http_exchange *x, bool from_admin)
{
	struct request *req = request_get(request_new(env, x, from_admin));
	if (from_admin)
		dispatch(req, route_admin, route_admin_prefixes);
	else
		dispatch(req, route_public, route_public_prefixes);
	request_put(&req);
}

static void
on_public_request(void *arg, struct http_exchange *x)
{
	on_request(arg, x, false);
}

static void
on_admin_request(void *arg, struct http_exchange *x)
{
	on_request(arg, x, true);
}

static void
on_finished(void *arg, struct http_exchange *x, int status, uint64_t bytes_in, uint64_t bytes_out,
    bool aborted)
{
	const struct access_entry e = {status, bytes_in, bytes_out, aborted};
	access_log(arg, x, request_of(x), &e);
}

/* An answer of the HTTP layer itself. Where the head could not be read, the path (if any) decides,
 * and the answer gets an id of its own. */
static void
error_body(void *arg, struct http_exchange *x, int status, const char *reason, struct str path,
    char *dst, size_t size)
{
	(void)arg;
	struct buf body = BUF_INIT(4096);
	const struct request *req = request_of(x);
	char own[ID_SIZE];
	if (req == NULL) {
		id_make("req_", own);
		http_reply_header(x, "request-id", str_c(own));
		http_reply_header(x, "x-request-id", str_c(own));
	}
	dialect_error_body(req != NULL ? req->wire : route_wire(path, false), status, NULL,
	    str_c(reason), STR_NULL, req != NULL ? req->id : own, &body);
	if (!str_copy(dst, size, buf_str(&body)))
		str_copy(dst, size, STR("{\"detail\":\"Bad request\"}"));
	buf_done(&body);
}

static const struct http_server_ops public_ops = {on_public_request, on_finished, error_body};
static const struct http_server_ops admin_ops = {on_admin_request, on_finished, error_body};

const struct http_server_ops *
api_public_ops(void)
{
	return &public_ops;
}

const struct http_server_ops *
api_admin_ops(void)
{
	return &admin_ops;
}
