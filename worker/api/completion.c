#include "worker/api/completion.h"

#include "base/json.h"
#include "worker/api/completion_plan.h"
#include "worker/dialect/dialect.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/turn/executor.h"
#include "worker/turn/extract.h"
#include "worker/turn/fastpath.h"
#include "worker/turn/forward.h"
#include "worker/turn/recall_load.h"
#include "worker/turn/settle.h"
#include "worker/turn/turn.h"

#define INLINE_BODY_BYTES (256u * 1024u) /* larger bodies are parsed on an io thread */

struct completion { /* the preamble of one request */
	struct job job;
	struct request *req;
	enum wire wire;
	struct str body;
	struct jval root;
	struct str model;
	bool fits_fast;
	struct fastpath fast;
	bool is_undecided; /* the documents in it say whether it goes the fast way */
	struct target target;
	struct conversation *conv;
	/* Responses */
	struct recall_wants wants;
	struct recall_found found;
	struct recalled recalled;
	enum err_code rc;
	struct err err;
};

/* --- gates ---------------------------------------------------------------------------------------
 */
static bool
model_is_allowed(const struct caller *c, struct str model)
{
	if (c->is_master || c->any_model)
		return true;
	for (size_t i = 0; i < c->allowed_model_count; i++)
		if (str_eq(c->allowed_models[i], model))
			return true;
	return false;
}

/* Who is billed: the key's user; with the master key the one that the body names. */
static bool
resolve_user(struct completion *c, struct str named)
{
	struct request *req = c->req;
	if (req->caller.is_master) {
		if (named.len == 0) {
			request_errorf(req, 400,
			    "with the master key the request must name a user (%s)",
			    c->wire == WIRE_MESSAGES ? "metadata.user_id" : "user");
			return false;
		}
		req->caller.user_id = arena_str(req->arena, named);
		return true;
	}
	if (named.len > 0 && req->caller.reject_user_mismatch &&
	    !str_eq(named, req->caller.user_id)) {
		request_errorf(req, 403, "the user does not match the key's user");
		return false;
	}
	return true;
}

static bool
resolve_target(struct completion *c)
{
	struct request *req = c->req;
	struct err err;
	enum err_code rc = target_resolve(
	    req->arena, req->env->policy, req->env->secrets, c->model, &c->target, &err);
	if (rc != ERR_OK) {
		if (rc == ERR_NOTFOUND)
			req->error_code = STR("model_not_found");
		request_error(req, request_status_of(rc), NULL, str_c(err.msg));
		return false;
	}
	req->model = c->target.model;
	req->provider = c->target.instance;
	if (!model_is_allowed(&req->caller, c->model)) {
		request_errorf(req, 403, "this key may not use that model");
		return false;
	}
	return true;
}

static void
forward(struct completion *c)
{
	struct jval user = c->wire == WIRE_MESSAGES ? jv_get(jv_get(c->root, "metadata"), "user_id")
						    : jv_get(c->root, "user");
	struct str end_user = jv_str(c->req->arena, user);
	if (resolve_user(c, end_user))
		forward_start(c->req, &c->fast, &c->target, end_user);
}

static void
start_turn(struct completion *c)
{
	struct request *req = c->req;
	uint32_t leaves = extract_leaves(req->env, &c->target);
	if (c->is_undecided && (c->rc != ERR_OK || !extract_is_needed(c->conv, leaves))) {
		forward(c);
		return;
	}
	if (c->rc != ERR_OK) {
		request_error(req, request_status_of(c->rc), NULL, str_c(c->err.msg));
		return;
	}
	if (c->conv->has_thread) {
		request_error_details(req, 400, "invalid_request_error",
		    STR("thread: threads are not kept here; send the whole conversation"),
		    STR("{\"error_code\":\"thread_unsupported_request\","
			"\"unsupported\":[\"thread\"]}"));
		return;
	}
	if (!resolve_user(c, c->conv->user))
		return;
	struct turn_plan *plan = ARENA_NEW(req->arena, struct turn_plan);
	const struct completion_read read = {
	    .wire = c->wire,
	    .conv = c->conv,
	    .body_bytes = c->body.len,
	    .target = &c->target,
	    .documents = leaves,
	    .recalled = &c->recalled,
	};
	if (plan == NULL)
		request_errorf(req, 413, "the request is too large");
	else if (completion_plan(req, &read, plan))
		turn_start(req, plan);
}

/* --- parsing, here or on an io thread ------------------------------------------------------------
 */
static void
parse(struct completion *c)
{
	static const char *const deciding[] = {"model", "stream", "messages", "tools", "user",
	    "metadata", "max_tool_iterations", "thread", "input", "store", "previous_response_id",
	    NULL};
	c->rc = jdoc_parse(c->req->arena, c->body, &c->root, &c->err);
	if (c->rc == ERR_OK && !jv_is(c->root, JT_OBJECT))
		c->rc = err_set(&c->err, ERR_INPUT, "the body must be a JSON object");
	if (c->rc == ERR_OK)
		c->rc = jv_unique(c->root, deciding, &c->err);
	if (c->rc != ERR_OK)
		return;
	c->model = jv_str(c->req->arena, jv_get(c->root, "model"));
	if (c->wire == WIRE_RESPONSES)
		c->rc = recall_read(c->req->arena, c->root, &c->wants, &c->err);
	c->fits_fast = fastpath_fits(c->root, c->body, c->wire, &c->fast);
}

/* Puts what the request goes on from in front of its input. */
static void
expand(struct completion *c)
{
	struct arena *a = c->req->arena;
	bool keep = !jv_is(jv_get(c->root, "store"), JT_FALSE);
	if (!keep && recall_is_empty(&c->wants))
		return;
	c->rc = recall_build(
	    a, c->root, &c->wants, &c->found, c->target.instance, keep, &c->recalled, &c->err);
	if (c->rc != ERR_OK || c->recalled.body.ptr == NULL)
		return;
	c->body = c->recalled.body;
	c->rc = jdoc_parse(a, c->body, &c->root, &c->err);
}

static void
decode(struct completion *c)
{
	if (c->wire == WIRE_RESPONSES)
		expand(c);
	if (c->rc != ERR_OK)
		return;
	c->rc = dialect_of(c->wire)->decode(c->req->arena, c->body, c->root, &c->conv, &c->err);
	if (c->rc == ERR_OK && arena_overflowed(c->req->arena))
		c->rc = err_set(&c->err, ERR_TOOLARGE, "the request is too large");
	if (c->rc == ERR_OK)
		c->conv->continued_id = c->wants.previous_id;
}

static void
run_decode(struct job *j, void *context)
{
	(void)context;
	decode(j->arg);
}

static void
run_parse(struct job *j, void *context)
{
	(void)context;
	parse(j->arg);
}

/* True: go on. The job's reference is given back. */
static bool
back_on_loop(struct completion *c, bool cancelled)
{
	struct request *req = c->req;
	bool go = !request_closed(req) && !cancelled;
	if (cancelled && !request_closed(req))
		request_errorf(req, 503, "the gateway is stopping");
	return go;
}

static void
done_decode(struct job *j, bool cancelled)
{
	struct completion *c = j->arg;
	struct request *req = c->req;
	if (back_on_loop(c, cancelled))
		start_turn(c);
	request_put(&req);
}

static void
submit(struct completion *c, void (*run)(struct job *, void *), void (*done)(struct job *, bool))
{
	c->job = (struct job){.run = run, .done = done, .arg = c};
	(void)request_get(c->req);
	if (jobs_submit(c->req->env->io, &c->job, NULL) == ERR_OK)
		return;
	struct request *req = c->req;
	request_errorf(req, 503, "the gateway is busy");
	request_put(&req);
}

/* bytes: of all texts that are to be read. */
static void
go_on(struct completion *c, size_t bytes)
{
	if (bytes > INLINE_BODY_BYTES) {
		submit(c, run_decode, done_decode);
		return;
	}
	decode(c);
	start_turn(c);
}

/* --- Responses: what the request goes on from ----------------------------------------------------
 */
static void
loaded(void *arg)
{
	struct completion *c = arg;
	go_on(c, c->body.len + c->found.bytes);
}

static void
load(struct completion *c)
{
	struct request *req = c->req;
	if (!resolve_user(c, jv_str(req->arena, jv_get(c->root, "user"))))
		return;
	struct store_response_scope scope = completion_scope(req);
	/* A thread reads it, now or in the next step: not the connection's memory. */
	if (c->body.len <= INLINE_BODY_BYTES) {
		c->body = arena_str(req->arena, c->body);
		c->rc = jdoc_parse(req->arena, c->body, &c->root, &c->err);
	}
	if (c->rc != ERR_OK)
		request_fail(req, &c->err);
	else
		recall_load_start(req, &scope, &c->wants, &c->found, loaded, c);
}

static void
parsed(struct completion *c)
{
	struct request *req = c->req;
	if (c->rc != ERR_OK) {
		request_error(req, request_status_of(c->rc), NULL, str_c(c->err.msg));
		return;
	}
	if (!resolve_target(c))
		return;
	bool fast = c->fits_fast && c->wire == c->target.wire && target_is_faithful(&c->target);
	c->is_undecided = fast && c->fast.may_hold_document &&
			  extract_leaves(req->env, &c->target) != DOCUMENTS_ALL;
	if (fast && !c->is_undecided) {
		forward(c);
		return;
	}
	if (c->wire == WIRE_RESPONSES && !recall_is_empty(&c->wants))
		load(c);
	else
		go_on(c, c->body.len);
}

static void
done_parse(struct job *j, bool cancelled)
{
	struct completion *c = j->arg;
	struct request *req = c->req;
	if (back_on_loop(c, cancelled))
		parsed(c);
	request_put(&req);
}

static void
on_body(void *arg, struct str body)
{
	struct completion *c = arg;
	/* Its memory goes with the connection. What is read of it points into it, and threads read
	 * that (to parse, to look files up, to write the provider's body) when the client may be
	 * gone. */
	c->body = arena_str(c->req->arena, body);
	if (arena_overflowed(c->req->arena)) {
		request_errorf(c->req, 413, "the request is too large");
		return;
	}
	if (c->body.len > INLINE_BODY_BYTES) {
		submit(c, run_parse, done_parse);
		return;
	}
	parse(c);
	parsed(c);
}

void
completion_start(struct request *req, enum wire wire)
{
	struct str header = completion_executor_header(req);
	const struct snap_settings *s = &snapshot_policy(req->env->policy)->settings;
	if (req->env->settlement != NULL && settlement_is_full(req->env->settlement)) {
		request_errorf(req, 503, "usage cannot be recorded at the moment");
		return;
	}
	if (str_trim(header).len > 0 && executor_parse(header) == EXECUTOR_UNSET) {
		request_errorf(req, 400, "the header %s must be one of auto, otari, provider",
		    EXECUTOR_HEADER);
		return;
	}
	struct completion *c = ARENA_NEW(req->arena, struct completion);
	if (c == NULL) {
		request_errorf(req, 503, "the gateway is out of memory for this request");
		return;
	}
	c->req = req;
	c->wire = wire;
	http_body_whole(req->x, s->max_body_bytes, on_body, c);
}
