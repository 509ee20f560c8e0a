#include "worker/api/completion_plan.h"

#include "base/log.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/turn/executor.h"
#include "worker/turn/gateway_tool.h"
#include "worker/turn/recall.h"

#define DEFAULT_ROUNDS 10u
#define DEFAULT_EXEC_S 60u

struct str
completion_executor_header(const struct request *req)
{
	struct str h = http_header(req->x, EXECUTOR_HEADER);
	return h.ptr != NULL ? h : http_header(req->x, EXECUTOR_HEADER_OLD);
}

static void
read_policy(
    const struct snapshot *snap, const struct snap_workspace *w, struct executor_policy *ret)
{
	*ret = (struct executor_policy){.is_enabled = true};
	if (!w->policy_configured)
		return;
	struct str image = snapshot_str(snap, w->image);
	ret->image_is_withdrawn = image.len > 0 && !snapshot_has_image(snap, image);
	ret->is_configured = true;
	ret->is_enabled = w->policy_enabled != 0;
	ret->pin = (enum snap_executor)w->executor;
	ret->has_tools = w->tools_set != 0;
	ret->tools = w->tools_mask;
}

static uint32_t
lower(uint32_t value, int32_t ceiling)
{
	return ceiling > 0 && (uint32_t)ceiling < value ? (uint32_t)ceiling : value;
}

static void
fill_limits(const struct conversation *conv, const struct snap_settings *s,
    const struct snap_workspace *w, struct turn_limits *l)
{
	uint32_t rounds =
	    conv->max_tool_iterations != 0 ? conv->max_tool_iterations : DEFAULT_ROUNDS;
	bool has_policy = w != NULL && w->policy_configured;
	*l = (struct turn_limits){
	    .max_rounds = lower(rounds < LIMIT_TOOL_ROUNDS ? rounds : LIMIT_TOOL_ROUNDS,
		has_policy ? w->max_iterations : 0),
	    .exec_timeout_ms = 1000 * lower(DEFAULT_EXEC_S, has_policy ? w->exec_timeout_s : 0),
	    .queue_ms = s->sandbox_queue_ms,
	    .keepalive_ms = s->keepalive_ms,
	    .max_inline_bytes = s->files_inline_max_bytes,
	    .retention_hours = s->files_retention_hours,
	    .is_strict = s->strict_translation != 0,
	};
}

static struct str
first_text(struct str a, struct str b, struct str c)
{
	return a.len > 0 ? a : b.len > 0 ? b : c;
}

/* False: the request was refused. */
static bool
decide(struct request *req, const struct completion_read *c, const struct snap_workspace *w,
    struct turn_plan *plan)
{
	struct snapshot *snap = req->env->policy;
	const struct snap_settings *s = &snapshot_policy(snap)->settings;
	struct executor_policy policy;
	struct str why;
	if (w != NULL)
		read_policy(snap, w, &policy);
	struct executor_input in = {
	    .header = completion_executor_header(req),
	    .policy = w != NULL ? &policy : NULL,
	    .deployment = (enum snap_executor)s->code_execution_executor,
	    .has_sandbox = snapshot_str(snap, s->sandbox_url).len > 0 && req->env->code != NULL,
	    .provider_type = c->target->provider_type,
	    .native_override = c->target->native_override,
	    .wire = c->wire,
	    .same_wire = c->wire == c->target->wire,
	    .conv = c->conv,
	};
	executor_decide(&in, &plan->decision);
	if (plan->decision.outcome == EXECUTOR_REFUSED) {
		if (w == NULL && plan->decision.status == 500)
			log_warn("a caller's workspace is not in the policy",
			    LOG_C("request_id", req->id),
			    LOG_STR("workspace_id", req->caller.workspace_id));
		request_error(req, plan->decision.status, NULL, str_c(plan->decision.message));
		return false;
	}
	if (plan->decision.outcome != EXECUTOR_HERE)
		return true;
	if (!code_backend_ready(req->env->code, &why)) {
		request_errorf(req, 503, "the code sandbox is not available: %.*s", STR_FMT(why));
		return false;
	}
	/* A remote sandbox may have fewer tools than the protocol knows. */
	plan->decision.kinds &= code_backend_kinds(req->env->code);
	if (plan->decision.kinds == 0) {
		request_errorf(req, 503,
		    "the code sandbox has none of the tools that the workspace policy allows");
		return false;
	}
	struct str hint = w != NULL ? snapshot_str(snap, w->default_purpose_hint) : STR("");
	struct gateway_hints hints = {
	    .header =
		first_text(c->conv->tools_header, snapshot_str(snap, s->tools_header), STR("")),
	    .purpose = first_text(
		plan->decision.purpose_hint, hint, snapshot_str(snap, s->sandbox_purpose_hint)),
	};
	plan->target.runs_no_code = !executor_apply(c->conv, &plan->decision);
	plan->image = arena_str(req->arena,
	    first_text(w != NULL && w->policy_configured ? snapshot_str(snap, w->image) : STR(""),
		snapshot_str(snap, s->sandbox_session_image), STR("")));
	gateway_tool_install(
	    c->conv, plan->decision.claimed, plan->decision.kinds, &hints, &plan->tools);
	return true;
}

/* As configured, else as this request reached us; empty when it did not say. */
static struct str
public_base_url(const struct request *req)
{
	struct snapshot *snap = req->env->policy;
	const struct http_head *head = http_head(req->x);
	struct str url = snapshot_str(snap, snapshot_policy(snap)->settings.public_base_url);
	while (str_ends(url, STR("/")))
		url = str_sub(url, 0, url.len - 1);
	if (url.len > 0)
		return arena_str(req->arena, url);
	if (head->host.len == 0)
		return STR("");
	return arena_printf(
	    req->arena, "http%s://%.*s", head->is_tls ? "s" : "", STR_FMT(head->host));
}

struct store_response_scope
completion_scope(const struct request *req)
{
	return (struct store_response_scope){req->caller.user_id, req->caller.workspace_id};
}

static void
fill_keep(const struct request *req, const struct completion_read *c, struct keep_plan *k)
{
	const struct snap_settings *s = &snapshot_policy(req->env->policy)->settings;
	if (c->wire != WIRE_RESPONSES || c->conv->store == 0)
		return;
	*k = (struct keep_plan){
	    .is_wanted = true,
	    .scope = completion_scope(req),
	    .provider = c->target->instance,
	    .input = c->recalled->input,
	    .item_ids = c->recalled->item_ids,
	    .item_count = c->recalled->item_count,
	    .retention_hours = s->responses_retention_hours,
	};
}

bool
completion_plan(struct request *req, const struct completion_read *c, struct turn_plan *plan)
{
	struct snapshot *snap = req->env->policy;
	const struct snap_workspace *w = snapshot_workspace(snap, req->caller.workspace_id);
	const struct snap_settings *s = &snapshot_policy(snap)->settings;
	plan->conv = c->conv;
	plan->body_bytes = c->body_bytes;
	plan->target = *c->target;
	plan->documents = c->documents;
	plan->takes_files = s->file_understanding_enabled != 0;
	plan->public_base_url = public_base_url(req);
	plan->user_id = req->caller.user_id;
	plan->workspace_id = req->caller.workspace_id;
	plan->file_workspace = req->caller.is_master ? STR_NULL : req->caller.workspace_id;
	fill_limits(c->conv, s, w, &plan->limits);
	fill_keep(req, c, &plan->keep);
	return decide(req, c, w, plan);
}
