/* GET, PATCH /tool-settings by the master key: the deployment's defaults for the gateway's tools.
 */
#include "base/json_write.h"
#include "base/limits.h"
#include "worker/api/admin_body.h"
#include "worker/api/admin_write.h"
#include "worker/api/change.h"
#include "worker/api/declared.h"
#include "worker/api/handlers.h"
#include "worker/api/tool_setting.h"
#include "worker/env.h"

#define ANSWER_MAX_BYTES (256u * 1024u)

struct settings_change {
	struct change change;
	struct store_setting changes[TOOL_SETTINGS_MAX];
	size_t count;
};

static void
write_setting(struct jw *w, struct request *req, const struct tool_setting *t)
{
	struct str where = declared_where(req, "setting", str_c(t->key));
	jw_object(w);
	jw_kcstr(w, "key", t->key);
	jw_kcstr(w, "service", t->service);
	jw_kcstr(w, "type", t->type);
	admin_write_text(w, "value", tool_setting_value(req->env->policy, t));
	jw_kcstr(w, "description", t->description);
	if (t->options == NULL) {
		jw_knull(w, "options");
	} else {
		jw_key(w, "options");
		jw_array(w);
		for (const char *const *o = t->options; *o != NULL; o++)
			jw_cstr(w, *o);
		jw_end_array(w);
	}
	jw_kbool(w, "read_only", t->is_file_only || where.ptr != NULL);
	admin_write_text(w, "declared_in", where);
	jw_end_object(w);
}

void
tool_settings_show(struct request *req)
{
	struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	jw_key(&w, "fields");
	jw_array(&w);
	for (const struct tool_setting *t = tool_settings; t->key != NULL; t++)
		write_setting(&w, req, t);
	jw_end_array(&w);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static enum err_code
commit(struct change *c, struct db *db, struct err *reterr)
{
	struct settings_change *sc = (struct settings_change *)c;
	return store_setting_apply(db, sc->changes, sc->count, NULL, reterr);
}

static void
answer(struct request *req, struct change *c)
{
	(void)c;
	tool_settings_show(req);
}

/* False: answered. */
static bool
read_change(struct request *req, const char *key, const json_t *v, struct settings_change *sc)
{
	const struct tool_setting *t = tool_setting_find(key);
	struct err err;
	if (t == NULL) {
		request_errorf(req, 422, "%.60s: is no tool setting", key);
		return false;
	}
	if (declared_refuse(req, "setting", str_c(key), key))
		return false;
	if (t->is_file_only) {
		request_errorf(req, 409, "%s can only be set in otari.conf", key);
		return false;
	}
	if (tool_setting_read(req->arena, t, v, &sc->changes[sc->count], &err) != ERR_OK) {
		request_errorf(req, 422, "%s: %s", key, err.msg);
		return false;
	}
	sc->count++;
	return true;
}

static void
on_body(void *arg, struct str body)
{
	struct request *req = arg;
	const char *key;
	json_t *v, *o = admin_body_parse(req, body);
	if (o == NULL)
		return;
	struct settings_change *sc = ARENA_NEW(req->arena, struct settings_change);
	if (sc == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	json_object_foreach(o, key, v)
		if (!read_change(req, key, v, sc))
			return;
	if (sc->count == 0) {
		tool_settings_show(req);
		return;
	}
	sc->change.what = PUBLISH_POLICY;
	sc->change.commit = commit;
	sc->change.answer = answer;
	change_start(req, &sc->change);
}

void
tool_settings_change(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_body, req);
}
