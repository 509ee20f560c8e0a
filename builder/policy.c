#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "builder/build.h"
#include "conf/validate.h"
#include "ipc/snapshot_build.h"
#include "storage/sql/store_policy.h"
#include "storage/sql/store_setting.h"
#include "storage/sql/store_workspace.h"

struct policy_rows {
	struct store_workspace *workspaces;
	struct store_policy *policies;
	struct store_setting *settings;
	size_t workspace_count, policy_count, setting_count;
};

enum err_code
policy_read(struct build *b, struct arena *a, struct policy_rows **ret, struct err *reterr)
{
	struct policy_rows *r = ARENA_NEW(a, struct policy_rows);
	CHECK(r != NULL);
	enum err_code rc =
	    store_workspace_list(b->db, a, &r->workspaces, &r->workspace_count, reterr);
	if (rc == ERR_OK)
		rc = store_policy_list(b->db, a, &r->policies, &r->policy_count, reterr);
	if (rc == ERR_OK)
		rc = store_setting_list(b->db, a, &r->settings, &r->setting_count, reterr);
	if (rc == ERR_OK)
		*ret = r;
	return rc;
}

/* --- settings -------------------------------------------------------------------------------- */

/* What the API set counts where neither the file nor the environment says anything. */
static struct str
runtime_text(const struct build *b, const struct policy_rows *r, const char *key, struct str own)
{
	if (conf_origin_of(b->conf, key)->from != FROM_DEFAULT)
		return own;
	for (size_t i = 0; i < r->setting_count; i++)
		if (str_eq(r->settings[i].key, str_c(key)) && r->settings[i].value.len > 0)
			return r->settings[i].value;
	return own;
}

static uint32_t
executor_of(struct build *b, const struct policy_rows *r)
{
	enum snap_executor e = (enum snap_executor)b->conf->code_execution_executor;
	struct str text = runtime_text(b, r, "code_execution_executor", STR_NULL);
	if (text.ptr != NULL && !validate_executor(text, &e))
		conf_warning(&b->report, 0,
		    "the database's code_execution_executor is no known value; ignored");
	return e;
}

static void
fill_texts(
    struct build *b, const struct policy_rows *r, struct snap_build *s, struct snap_settings *t)
{
	const struct conf *c = b->conf;
	t->public_base_url = snap_build_str(s, c->public_base_url);
	t->tools_header = snap_build_str(s, runtime_text(b, r, "tools_header", c->tools_header));
	t->sandbox_purpose_hint =
	    snap_build_str(s, runtime_text(b, r, "sandbox_purpose_hint", c->sandbox_purpose_hint));
	t->files_backend = snap_build_str(s, str_c(conf_files_backend(c)));
	t->files_local_dir = snap_build_str(s, c->files_local_dir);
	t->state_dir = snap_build_str(s, c->state_dir);
	t->sandbox_url = snap_build_str(s, c->sandbox_url);
	t->sandbox_ca_file = snap_build_str(s, c->sandbox_ca_file);
	t->sandbox_session_image = snap_build_str(s, c->sandbox_session_image);
	if (b->master_key.ptr != NULL) {
		unsigned char digest[SHA256_BYTES];
		sha256_of(b->master_key, digest);
		t->master_key_sha256 = snap_build_str(s, str_n(digest, sizeof(digest)));
	}
}

static void
fill_numbers(const struct conf *c, struct snap_settings *t)
{
	t->files_enabled = c->files_enabled;
	t->file_understanding_enabled = c->file_understanding_enabled;
	t->require_pricing = (uint32_t)c->require_pricing;
	t->reject_user_mismatch = c->reject_user_mismatch;
	t->strict_translation = c->strict_translation;
	t->files_provider_copy = c->files_provider_copy;
	t->max_body_bytes = c->max_body_bytes;
	t->files_max_bytes = c->files_max_bytes;
	t->files_inline_max_bytes = c->files_inline_max_bytes;
	t->files_output_max_bytes = c->files_output_max_bytes;
	t->files_output_max_files = (uint32_t)c->files_output_max_files;
	t->files_retention_hours = (uint32_t)c->files_retention_hours;
	t->responses_retention_hours = (uint32_t)c->responses_retention_hours;
	t->files_sweep_interval_s = (uint32_t)c->files_sweep_interval_sec;
	t->keepalive_ms = (uint32_t)c->streaming_keepalive_interval_ms;
	t->publish_timeout_ms = (uint32_t)c->publish_timeout_ms;
	t->policy_max_stale_s = (uint32_t)c->policy_max_stale_s;
	t->sql_threads = (uint32_t)c->sql_threads;
	t->io_threads = (uint32_t)c->io_threads;
	t->sandbox_queue_ms = (uint32_t)c->sandbox_queue_ms;
	t->sandbox_output_bytes = (uint32_t)c->sandbox_output_bytes;
	t->sandbox_serve_max_sessions = (uint32_t)c->sandbox_serve_max_sessions;
	t->sandbox_serve_idle_ms = (uint32_t)c->sandbox_serve_idle_ms;
	t->sandbox_file_bytes = c->sandbox_file_bytes;
	t->upstream_connect_ms = (uint32_t)c->upstream_connect_timeout_ms;
	t->upstream_first_byte_ms = (uint32_t)c->upstream_first_byte_timeout_ms;
	t->upstream_idle_ms = (uint32_t)c->upstream_idle_timeout_ms;
	t->http_head_timeout_ms = (uint32_t)c->http_head_timeout_ms;
	t->http_idle_timeout_ms = (uint32_t)c->http_idle_timeout_ms;
	t->http_write_stall_ms = (uint32_t)c->http_write_stall_ms;
	t->max_connections = (uint32_t)c->max_connections;
	t->drain_timeout_ms = (uint32_t)c->drain_timeout_ms;
}

/* --- providers and models -------------------------------------------------------------------- */

static struct snap_table
headers_of(struct build *b, const struct conf_provider *p, struct snap_build *s)
{
	struct snap_header_pair *pairs =
	    ARENA_NEW_ARRAY(b->arena, struct snap_header_pair, p->headers.count);
	if (pairs == NULL || p->headers.count == 0)
		return (struct snap_table){0, 0};
	for (uint32_t i = 0; i < p->headers.count; i++) {
		pairs[i].name = snap_build_str(s, p->headers.items[i].name);
		pairs[i].value = snap_build_str(s, p->headers.items[i].value);
	}
	return SNAP_TABLE(s, pairs, p->headers.count);
}

static struct snap_table
providers_of(struct build *b, struct snap_build *s)
{
	const struct conf *c = b->conf;
	struct snap_provider *all = MEM_NEW_ARRAY(struct snap_provider, c->provider_count);
	for (uint32_t i = 0; i < c->provider_count; i++) {
		const struct conf_provider *p = &c->providers[i];
		struct snap_provider *o = &all[i];
		o->name = snap_build_str(s, p->name);
		o->provider_type = snap_build_str(s, p->type);
		o->api_base = snap_build_str(s, p->api_base);
		o->proxy = snap_build_str(s, p->proxy);
		if (b->provider_keys[i].ptr != NULL)
			o->secret = snap_build_str(
			    s, arena_printf(b->arena, "provider/%.*s", STR_FMT(p->name)));
		o->headers = headers_of(b, p, s);
		o->wire = p->wire;
		o->native_code_execution = p->native_code_execution;
		o->native_documents = p->native_documents;
		o->connect_ms = p->connect_ms;
		o->first_byte_ms = p->first_byte_ms;
		o->idle_ms = p->idle_ms;
		o->max_tokens_default = p->max_tokens_default;
	}
	struct snap_table t = SNAP_TABLE(s, all, c->provider_count);
	mem_free(all);
	return t;
}

static struct snap_table
aliases_of(struct build *b, struct snap_build *s)
{
	const struct conf *c = b->conf;
	struct snap_alias *all = MEM_NEW_ARRAY(struct snap_alias, c->alias_count);
	for (uint32_t i = 0; i < c->alias_count; i++) {
		all[i].name = snap_build_str(s, c->aliases[i].name);
		all[i].target = snap_build_str(s, c->aliases[i].target);
	}
	struct snap_table t = SNAP_TABLE(s, all, c->alias_count);
	mem_free(all);
	return t;
}

static bool
is_listed(const struct snap_model *all, uint32_t n, struct snap_str id)
{
	/* Equal texts are one string in the image. */
	for (uint32_t i = 0; i < n; i++)
		if (all[i].id.off == id.off)
			return true;
	return false;
}

static struct snap_table
models_of(struct build *b, struct snap_build *s)
{
	const struct conf *c = b->conf;
	size_t most = c->models.count;
	for (uint32_t i = 0; i < c->provider_count; i++)
		most += c->providers[i].models.count;
	struct snap_model *all = MEM_NEW_ARRAY(struct snap_model, most);
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->models.count; i++) {
		struct snap_str id = snap_build_str(s, c->models.items[i]);
		if (!is_listed(all, n, id))
			all[n++].id = id;
	}
	for (uint32_t i = 0; i < c->provider_count; i++)
		for (uint32_t j = 0; j < c->providers[i].models.count; j++) {
			struct snap_str id = snap_build_str(
			    s, arena_printf(b->arena, "%.*s:%.*s", STR_FMT(c->providers[i].name),
				   STR_FMT(c->providers[i].models.items[j])));
			if (!is_listed(all, n, id))
				all[n++].id = id;
		}
	struct snap_table t = SNAP_TABLE(s, all, n);
	mem_free(all);
	return t;
}

static struct snap_table
images_of(struct build *b, struct snap_build *s)
{
	const struct conf_list *from = &b->conf->sandbox_allowed_session_images;
	struct snap_model *all = MEM_NEW_ARRAY(struct snap_model, from->count);
	for (uint32_t i = 0; i < from->count; i++)
		all[i].id = snap_build_str(s, from->items[i]);
	struct snap_table t = SNAP_TABLE(s, all, from->count);
	mem_free(all);
	return t;
}

/* --- workspaces ------------------------------------------------------------------------------ */

/* Names that this program does not know allow nothing; a text that is no list allows nothing. */
static uint32_t
tools_mask(struct str json)
{
	uint32_t mask = 0, bit;
	json_t *list = json_loadb(json.ptr, json.len, 0, NULL), *item;
	size_t i;
	json_array_foreach(list, i, item) {
		if (json_is_string(item) &&
		    validate_tool(str_n(json_string_value(item), json_string_length(item)), &bit,
			NULL) == ERR_OK)
			mask |= bit;
	}
	json_decref(list);
	return mask;
}

static void
use_declared(const struct conf_policy *p, struct snap_build *s, struct snap_workspace *w)
{
	uint32_t bit;
	w->policy_configured = 1;
	w->policy_enabled = p->enabled;
	w->executor = p->executor;
	w->max_iterations = (int32_t)p->max_iterations;
	w->exec_timeout_s = (int32_t)p->exec_timeout_s;
	w->default_purpose_hint = snap_build_str(s, p->default_purpose_hint);
	w->image = snap_build_str(s, p->image);
	w->tools_set = p->tools_set;
	for (uint32_t i = 0; i < p->tools.count; i++)
		if (validate_tool(p->tools.items[i], &bit, NULL) == ERR_OK)
			w->tools_mask |= bit;
}

static int32_t
limited(int64_t v, int32_t max)
{
	return v <= 0 ? 0 : v > max ? max : (int32_t)v;
}

static void
use_stored(const struct store_policy *p, struct snap_build *s, struct snap_workspace *w)
{
	enum snap_executor e = EXECUTOR_UNSET;
	w->policy_configured = 1;
	w->policy_enabled = p->enabled;
	if (p->executor.ptr != NULL && validate_executor(p->executor, &e))
		w->executor = e;
	w->max_iterations = limited(p->max_iterations, POLICY_ITERATIONS_MAX);
	w->exec_timeout_s = limited(p->exec_timeout_s, POLICY_EXEC_S_MAX);
	w->default_purpose_hint = snap_build_str(s, p->default_purpose_hint);
	w->image = snap_build_str(s, p->image);
	w->tools_set = p->tools_json.ptr != NULL;
	if (w->tools_set)
		w->tools_mask = tools_mask(p->tools_json);
}

static int
by_workspace(const void *a, const void *b)
{
	const struct store_policy *x = a, *y = b;
	return str_cmp(x->workspace_id, y->workspace_id);
}

static void
fill_workspace(const struct build *b, const struct policy_rows *r,
    const struct store_workspace *row, struct snap_build *s, struct snap_workspace *w)
{
	const struct conf_workspace *declared = conf_workspace(b->conf, row->id);
	w->id = snap_build_str(s, row->id);
	w->name = snap_build_str(s, row->name);
	w->created_s = row->created_at_s;
	w->policy_enabled = 1;
	if (declared != NULL && declared->has_policy) {
		use_declared(&declared->policy, s, w);
		return;
	}
	if (r->policy_count == 0)
		return;
	const struct store_policy wanted = {.workspace_id = row->id}, *found;
	found = bsearch(&wanted, r->policies, r->policy_count, sizeof(wanted), by_workspace);
	if (found != NULL)
		use_stored(found, s, w);
}

static struct snap_table
workspaces_of(struct build *b, const struct policy_rows *r, struct snap_build *s)
{
	struct snap_workspace *all = MEM_NEW_ARRAY(struct snap_workspace, r->workspace_count);
	if (r->policy_count > 0) /* the database may order by another rule */
		qsort(r->policies, r->policy_count, sizeof(*r->policies), by_workspace);
	for (size_t i = 0; i < r->workspace_count; i++)
		fill_workspace(b, r, &r->workspaces[i], s, &all[i]);
	struct snap_table t = SNAP_TABLE(s, all, (uint32_t)r->workspace_count);
	mem_free(all);
	return t;
}

enum err_code
policy_make(struct build *b, const struct policy_rows *rows, int *ret_fd, struct err *reterr)
{
	struct snap_build *s = snap_build_new(SNAP_POLICY, b->req.generation);
	struct snap_policy root = {0};
	fill_numbers(b->conf, &root.settings);
	fill_texts(b, rows, s, &root.settings);
	root.settings.code_execution_executor = executor_of(b, rows);
	root.providers = providers_of(b, s);
	root.aliases = aliases_of(b, s);
	root.models = models_of(b, s);
	root.workspaces = workspaces_of(b, rows, s);
	root.session_images = images_of(b, s);
	root.declared = declared_of(b, s);
	root.default_provider = snap_build_str(s, b->conf->default_provider);
	return snap_build_end_policy(&s, &root, ret_fd, reterr);
}
