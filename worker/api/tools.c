/* GET /tools: what the gateway itself can run for a model. */
#include "base/json_write.h"
#include "worker/api/handlers.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/turn/gateway_tool.h"

static bool
is_available(const struct worker_env *env)
{
	struct str why;
	return env->code != NULL && code_backend_ready(env->code, &why);
}

static void
write_accepted(struct jw *w, bool takes_vendor_names)
{
	jw_key(w, "accepted_types");
	jw_array(w);
	jw_cstr(w, "otari_code_execution");
	if (takes_vendor_names) {
		jw_cstr(w, "code_execution");
		jw_cstr(w, "code_interpreter");
		jw_cstr(w, "code_execution_<date>");
	}
	jw_end_array(w);
}

/* What the model is shown besides, for declarations that offer it. */
static void
write_kinds(struct jw *w, const struct code_backend *code)
{
	uint32_t kinds = code != NULL ? code_backend_kinds(code) : CODE_KINDS_ALL;
	jw_key(w, "kinds");
	jw_array(w);
	for (int i = 0; i < CODE_TOOL_COUNT; i++) {
		enum code_tool kind = (enum code_tool)i;
		if ((kinds & 1u << i) == 0)
			continue;
		jw_object(w);
		jw_kstr(w, "name", code_tool_name(kind));
		jw_kstr(w, "description", gateway_tool_description(kind));
		jw_kraw(w, "input_schema", gateway_tool_schema(kind));
		jw_end_object(w);
	}
	jw_end_array(w);
}

void
tools_show_all(struct request *req)
{
	const struct snap_settings *s = &snapshot_policy(req->env->policy)->settings;
	struct buf body = BUF_INIT(64u * 1024u);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	jw_kcstr(&w, "object", "list");
	jw_key(&w, "data");
	jw_array(&w);
	jw_object(&w);
	jw_kcstr(&w, "id", "otari_code_execution");
	jw_kcstr(&w, "object", "tool");
	jw_kstr(&w, "description", gateway_tool_description(CODE_TOOL_PYTHON));
	jw_kbool(&w, "available", is_available(req->env));
	write_accepted(&w, s->code_execution_executor != EXECUTOR_PROVIDER);
	jw_kraw(&w, "input_schema", gateway_tool_schema(CODE_TOOL_PYTHON));
	write_kinds(&w, req->env->code);
	jw_kraw(&w, "example", STR("{\"type\":\"otari_code_execution\"}"));
	jw_end_object(&w);
	jw_end_array(&w);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}
