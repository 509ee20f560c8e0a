#include "worker/api/policy_body.h"

#include <string.h>

#include "conf/validate.h"
#include "worker/api/admin_write.h"

static const char *const SETTINGS[] = {"enabled", "default_purpose_hint", "max_iterations",
    "exec_timeout_s", "executor", "image", "tools"};
static const char *const SHOWN[] = {"workspace_id", "configured", "sandbox_configured",
    "created_at", "updated_at", "allowed_images", "available_tools", "declared_in"};

/* --- reading --------------------------------------------------------------------------------- */

static bool
is_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* A misspelt limit would be no limit. */
static enum err_code
check_members(const json_t *o, struct err *reterr)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		if (!is_among(key, SETTINGS, ARRAY_LEN(SETTINGS)) &&
		    !is_among(key, SHOWN, ARRAY_LEN(SHOWN)))
			return err_set(reterr, ERR_INPUT,
			    "%.60s: is no member of a code execution policy", key);
	}
	return ERR_OK;
}

static const json_t *
given(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_null(v) ? NULL : v;
}

/* STR_NULL: absent, null or blank. */
static enum err_code
read_text(const json_t *o, const char *key, struct str *ret, struct err *reterr)
{
	const json_t *v = given(o, key);
	*ret = STR_NULL;
	if (v == NULL)
		return ERR_OK;
	if (!json_is_string(v))
		return err_set(reterr, ERR_INPUT, "%s: must be a text or null", key);
	struct str text = str_n(json_string_value(v), json_string_length(v));
	if (str_trim(text).len > 0)
		*ret = text;
	return ERR_OK;
}

static enum err_code
read_enabled(const json_t *o, bool *ret, struct err *reterr)
{
	const json_t *v = json_object_get(o, "enabled");
	if (v == NULL)
		return err_set(reterr, ERR_INPUT, "enabled: is required");
	if (!json_is_boolean(v))
		return err_set(reterr, ERR_INPUT, "enabled: must be true or false");
	*ret = json_is_true(v);
	return ERR_OK;
}

static enum err_code
read_hint(struct arena *a, const json_t *o, struct str *ret, struct err *reterr)
{
	struct str text, hint;
	*ret = STR_NULL;
	enum err_code rc = read_text(o, "default_purpose_hint", &text, reterr);
	if (rc != ERR_OK || text.ptr == NULL)
		return rc;
	rc = validate_hint(text, &hint, reterr);
	if (rc == ERR_OK)
		*ret = arena_str(a, hint);
	else
		err_prefix(reterr, "default_purpose_hint: ");
	return rc;
}

static enum err_code
read_limit(const json_t *o, const char *key, int64_t max, int64_t *ret, struct err *reterr)
{
	const json_t *v = given(o, key);
	*ret = 0;
	if (v == NULL)
		return ERR_OK;
	if (!json_is_integer(v))
		return err_set(reterr, ERR_INPUT, "%s: must be a whole number or null", key);
	*ret = json_integer_value(v);
	enum err_code rc = validate_range(*ret, 1, max, reterr);
	if (rc != ERR_OK)
		err_prefix(reterr, "%s: ", key);
	return rc;
}

static enum err_code
read_executor(const json_t *o, struct str *ret, struct err *reterr)
{
	struct str text;
	enum snap_executor e;
	*ret = STR_NULL;
	enum err_code rc = read_text(o, "executor", &text, reterr);
	if (rc != ERR_OK || text.ptr == NULL)
		return rc;
	if (!validate_executor(text, &e))
		return err_set(
		    reterr, ERR_INPUT, "executor: must be one of auto, otari, provider, or null");
	*ret = str_c(executor_name(e));
	return ERR_OK;
}

static enum err_code
read_image(struct arena *a, const json_t *o, const struct policy_images *images, struct str *ret,
    struct err *reterr)
{
	struct str text;
	*ret = STR_NULL;
	enum err_code rc = read_text(o, "image", &text, reterr);
	if (rc != ERR_OK || text.ptr == NULL)
		return rc;
	text = str_trim(text);
	for (size_t i = 0; i < images->count; i++)
		if (str_eq(images->items[i], text)) {
			*ret = arena_str(a, text);
			return ERR_OK;
		}
	return err_set(reterr, ERR_INPUT, "image: is not among the allowed session images");
}

/* In the order of the bits, each once. */
static struct str
names_of(struct arena *a, uint32_t mask)
{
	struct buf text = BUF_INIT(1024);
	struct jw w;
	jw_init(&w, &text);
	jw_array(&w);
	for (uint32_t bit = 1; bit <= POLICY_TOOLS_ALL; bit <<= 1)
		if ((mask & bit) != 0)
			jw_cstr(&w, tool_name(bit));
	jw_end_array(&w);
	struct str ret = arena_str(a, buf_str(&text));
	buf_done(&text);
	return ret;
}

static enum err_code
read_tools(struct arena *a, const json_t *o, struct str *ret, struct err *reterr)
{
	const json_t *v = given(o, "tools"), *item;
	uint32_t mask = 0, bit;
	size_t i;
	*ret = STR_NULL;
	if (v == NULL)
		return ERR_OK;
	if (!json_is_array(v))
		return err_set(reterr, ERR_INPUT, "tools: must be a list of names or null");
	if (json_array_size(v) == 0)
		return err_set(reterr, ERR_INPUT,
		    "tools: is empty; enabled: false turns code execution off, null allows all");
	json_array_foreach((json_t *)(uintptr_t)v, i, item) {
		struct str name = json_is_string(item)
				      ? str_n(json_string_value(item), json_string_length(item))
				      : STR("");
		enum err_code rc = validate_tool(name, &bit, reterr);
		if (rc != ERR_OK) {
			err_prefix(reterr, "tools: ");
			return rc;
		}
		mask |= bit;
	}
	*ret = names_of(a, mask);
	return ERR_OK;
}

enum err_code
policy_body_read(struct arena *a, const json_t *o, const struct policy_images *images,
    struct store_policy *ret, struct err *reterr)
{
	*ret = (struct store_policy){0};
	enum err_code rc = check_members(o, reterr);
	if (rc == ERR_OK)
		rc = read_enabled(o, &ret->enabled, reterr);
	if (rc == ERR_OK)
		rc = read_hint(a, o, &ret->default_purpose_hint, reterr);
	if (rc == ERR_OK)
		rc = read_limit(
		    o, "max_iterations", POLICY_ITERATIONS_MAX, &ret->max_iterations, reterr);
	if (rc == ERR_OK)
		rc = read_limit(
		    o, "exec_timeout_s", POLICY_EXEC_S_MAX, &ret->exec_timeout_s, reterr);
	if (rc == ERR_OK)
		rc = read_executor(o, &ret->executor, reterr);
	if (rc == ERR_OK)
		rc = read_image(a, o, images, &ret->image, reterr);
	if (rc == ERR_OK)
		rc = read_tools(a, o, &ret->tools_json, reterr);
	return rc;
}

/* --- writing --------------------------------------------------------------------------------- */

static void
write_limit(struct jw *w, const char *name, int64_t v)
{
	if (v > 0)
		jw_ki64(w, name, v);
	else
		jw_knull(w, name);
}

/* What the database holds is shown as it counts: names that are not known here allow nothing. */
static void
write_tools(struct jw *w, struct str json)
{
	json_t *list, *item;
	size_t i;
	uint32_t bit;
	if (json.ptr == NULL) {
		jw_knull(w, "tools");
		return;
	}
	list = json_loadb(json.ptr, json.len, 0, NULL);
	jw_key(w, "tools");
	jw_array(w);
	json_array_foreach(list, i, item) {
		struct str name = str_c(json_string_value(item));
		if (validate_tool(name, &bit, NULL) == ERR_OK)
			jw_str(w, name);
	}
	jw_end_array(w);
	json_decref(list);
}

static void
write_choices(struct jw *w, const struct policy_images *images)
{
	jw_key(w, "allowed_images");
	jw_array(w);
	for (size_t i = 0; i < images->count; i++)
		jw_str(w, images->items[i]);
	jw_end_array(w);
	jw_key(w, "available_tools");
	jw_array(w);
	for (uint32_t bit = 1; bit <= POLICY_TOOLS_ALL; bit <<= 1)
		jw_cstr(w, tool_name(bit));
	jw_end_array(w);
}

void
policy_body_write(struct jw *w, const struct policy_view *v)
{
	static const struct store_policy unset = {.enabled = true};
	const struct store_policy *p = v->is_configured ? &v->policy : &unset;
	jw_object(w);
	jw_kstr(w, "workspace_id", v->workspace_id);
	jw_kbool(w, "configured", v->is_configured);
	jw_kbool(w, "sandbox_configured", v->has_sandbox);
	jw_kbool(w, "enabled", p->enabled);
	admin_write_text(w, "default_purpose_hint", p->default_purpose_hint);
	write_limit(w, "max_iterations", p->max_iterations);
	write_limit(w, "exec_timeout_s", p->exec_timeout_s);
	admin_write_text(w, "executor", p->executor);
	admin_write_text(w, "image", p->image);
	write_tools(w, p->tools_json);
	admin_write_time(w, "created_at", p->created_at_s);
	admin_write_time(w, "updated_at", p->updated_at_s);
	write_choices(w, &v->images);
	admin_write_text(w, "declared_in", v->declared_in);
	jw_end_object(w);
}

void
policy_body_declared(const struct snapshot *s, const struct snap_workspace *w, struct arena *a,
    struct store_policy *ret)
{
	const char *executor = executor_name((enum snap_executor)w->executor);
	*ret = (struct store_policy){
	    .enabled = w->policy_enabled != 0,
	    .executor = executor != NULL ? str_c(executor) : STR_NULL,
	    .default_purpose_hint = snapshot_str(s, w->default_purpose_hint),
	    .max_iterations = w->max_iterations,
	    .exec_timeout_s = w->exec_timeout_s,
	    .image = snapshot_str(s, w->image),
	    .tools_json = w->tools_set != 0 ? names_of(a, w->tools_mask) : STR_NULL,
	};
}
