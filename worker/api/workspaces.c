/* /workspaces by the master key: what keys belong to and policies are set for. */
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "conf/validate.h"
#include "storage/sql/store_workspace.h"
#include "worker/api/admin_body.h"
#include "worker/api/admin_write.h"
#include "worker/api/change.h"
#include "worker/api/declared.h"
#include "worker/api/handlers.h"
#include "worker/api/reading.h"
#include "worker/http/uri.h"

#define LIST_MAX_BYTES   (8u * 1024u * 1024u)
#define ANSWER_MAX_BYTES (64u * 1024u)
#define NOT_FOUND        "no such workspace"
#define NAME_MAX_BYTES   128u /* as in otari.conf */

struct workspace_change {
	struct change change;
	struct store_workspace workspace, stored; /* as asked for; a renamed one as it is now */
	bool even_in_use;
	char id[ID_UUID_SIZE];
};

struct workspace_reading {
	struct reading reading;
	struct str id; /* STR_NULL: all */
	struct store_workspace *workspaces;
	size_t count;
};

static void
write_workspace(struct jw *w, struct request *req, const struct store_workspace *ws)
{
	jw_object(w);
	jw_kstr(w, "id", ws->id);
	jw_kstr(w, "name", ws->name);
	jw_kbool(w, "is_default", str_eq(ws->id, STR(STORE_WORKSPACE_DEFAULT)));
	admin_write_time(w, "created_at", ws->created_at_s);
	admin_write_text(w, "declared_in", declared_where(req, "workspace", ws->id));
	jw_end_object(w);
}

static void
answer_with(struct request *req, const struct store_workspace *ws)
{
	struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	write_workspace(&w, req, ws);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

/* False: answered. */
static bool
read_name(struct request *req, json_t *o, struct str *ret)
{
	struct err err;
	if (!admin_body_text(req, o, "name", ret))
		return false;
	if (ret->ptr == NULL) {
		request_errorf(req, 422, "name: is required");
		return false;
	}
	if (validate_name(*ret, NAME_MAX_BYTES, &err) == ERR_OK)
		return true;
	request_errorf(req, 422, "name: %s", err.msg);
	return false;
}

static struct workspace_change *
change_new(struct request *req)
{
	struct workspace_change *wc = ARENA_NEW(req->arena, struct workspace_change);
	if (wc == NULL)
		request_errorf(req, 500, "Internal server error");
	else
		wc->change.what = PUBLISH_POLICY;
	return wc;
}

/* --- create ---------------------------------------------------------------------------------- */

static enum err_code
commit_create(struct change *c, struct db *db, struct err *reterr)
{
	return store_workspace_add(db, &((struct workspace_change *)c)->workspace, NULL, reterr);
}

static void
answer_create(struct request *req, struct change *c)
{
	answer_with(req, &((struct workspace_change *)c)->workspace);
}

static void
on_create_body(void *arg, struct str body)
{
	struct request *req = arg;
	json_t *o = admin_body_parse(req, body);
	struct workspace_change *wc = o != NULL ? change_new(req) : NULL;
	if (wc == NULL || !read_name(req, o, &wc->workspace.name))
		return;
	id_make_uuid(wc->id);
	wc->workspace.id = str_c(wc->id);
	wc->workspace.created_at_s = clock_wall_s();
	wc->change.commit = commit_create;
	wc->change.answer = answer_create;
	change_start(req, &wc->change);
}

void
workspaces_create(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_create_body, req);
}

/* --- rename ---------------------------------------------------------------------------------- */

static enum err_code
rename_unit(struct db *db, void *arg, struct err *reterr)
{
	struct workspace_change *wc = arg;
	const struct store_workspace *ws = &wc->workspace;
	struct arena *a = wc->change.work.req->arena;
	enum err_code code = store_workspace_rename(db, ws->id, ws->name, NULL, reterr);
	return code == ERR_OK ? store_workspace_get(db, a, ws->id, &wc->stored, reterr) : code;
}

static enum err_code
commit_rename(struct change *c, struct db *db, struct err *reterr)
{
	return db_unit(db, DB_WRITE, rename_unit, c, reterr);
}

static void
answer_rename(struct request *req, struct change *c)
{
	answer_with(req, &((struct workspace_change *)c)->stored);
}

static void
on_rename_body(void *arg, struct str body)
{
	struct request *req = arg;
	struct str id;
	if (!admin_path_uuid(req, NOT_FOUND, &id) ||
	    declared_refuse(req, "workspace", id, "This workspace"))
		return;
	json_t *o = admin_body_parse(req, body);
	struct workspace_change *wc = o != NULL ? change_new(req) : NULL;
	if (wc == NULL || !read_name(req, o, &wc->workspace.name))
		return;
	wc->workspace.id = id;
	wc->change.commit = commit_rename;
	wc->change.answer = answer_rename;
	change_start(req, &wc->change);
}

void
workspaces_rename(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_rename_body, req);
}

/* --- delete ---------------------------------------------------------------------------------- */

static enum err_code
commit_delete(struct change *c, struct db *db, struct err *reterr)
{
	struct workspace_change *wc = (struct workspace_change *)c;
	return store_workspace_delete(db, wc->workspace.id, wc->even_in_use, NULL, reterr);
}

static void
answer_delete(struct request *req, struct change *c)
{
	(void)c;
	request_reply_empty(req, 204);
}

/* force=true; false: answered. */
static bool
read_force(struct request *req, bool *ret)
{
	struct str text = query_get(req->arena, http_head(req->x)->query, "force");
	*ret = str_eq(text, STR("true"));
	if (text.ptr == NULL || *ret || str_eq(text, STR("false")))
		return true;
	request_errorf(req, 422, "force: must be true or false");
	return false;
}

void
workspaces_delete(struct request *req)
{
	struct str id;
	bool force;
	if (!admin_path_uuid(req, NOT_FOUND, &id) || !read_force(req, &force) ||
	    declared_refuse(req, "workspace", id, "This workspace"))
		return;
	struct workspace_change *wc = change_new(req);
	if (wc == NULL)
		return;
	wc->workspace.id = id;
	wc->even_in_use = force;
	wc->change.what = (enum publish_what)(PUBLISH_POLICY | PUBLISH_KEYS);
	wc->change.commit = commit_delete;
	wc->change.answer = answer_delete;
	change_start(req, &wc->change);
}

/* --- read ------------------------------------------------------------------------------------ */

static enum err_code
read_all(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct workspace_reading *wr = (struct workspace_reading *)r;
	return store_workspace_list(db, a, &wr->workspaces, &wr->count, reterr);
}

static enum err_code
read_one(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct workspace_reading *wr = (struct workspace_reading *)r;
	wr->workspaces = ARENA_NEW(a, struct store_workspace);
	if (wr->workspaces == NULL)
		return err_set(reterr, ERR_NOMEM, "arena");
	return store_workspace_get(db, a, wr->id, wr->workspaces, reterr);
}

static void
answer_all(struct request *req, struct reading *r)
{
	struct workspace_reading *wr = (struct workspace_reading *)r;
	struct buf body = BUF_INIT(LIST_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	jw_key(&w, "data");
	jw_array(&w);
	for (size_t i = 0; i < wr->count; i++)
		write_workspace(&w, req, &wr->workspaces[i]);
	jw_end_array(&w);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static void
answer_one(struct request *req, struct reading *r)
{
	answer_with(req, ((struct workspace_reading *)r)->workspaces);
}

static struct workspace_reading *
reading_new(struct request *req)
{
	struct workspace_reading *wr = ARENA_NEW(req->arena, struct workspace_reading);
	if (wr == NULL)
		request_errorf(req, 500, "Internal server error");
	return wr;
}

void
workspaces_show_all(struct request *req)
{
	struct workspace_reading *wr = reading_new(req);
	if (wr == NULL)
		return;
	wr->reading.read = read_all;
	wr->reading.answer = answer_all;
	reading_start(req, &wr->reading);
}

void
workspaces_show(struct request *req)
{
	struct workspace_reading *wr = reading_new(req);
	if (wr == NULL || !admin_path_uuid(req, NOT_FOUND, &wr->id))
		return;
	wr->reading.read = read_one;
	wr->reading.answer = answer_one;
	reading_start(req, &wr->reading);
}
