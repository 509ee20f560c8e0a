/* GET, PUT, DELETE /workspaces/{id}/code-execution-policy by the master key: who runs the code that
 * a workspace's requests declare, and within which limits.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "ipc/snapshot.h"
#include "storage/sql/store_workspace.h"
#include "worker/api/admin_body.h"
#include "worker/api/change.h"
#include "worker/api/declared.h"
#include "worker/api/handlers.h"
#include "worker/api/policy_body.h"
#include "worker/api/reading.h"

#define ANSWER_MAX_BYTES (4u * 1024u * 1024u)
#define NOT_FOUND        "no such workspace"
#define SUBJECT          "The code execution policy of this workspace"

struct policy_change {
	struct change change;
	struct store_policy policy, stored; /* as asked for; as it is now, with its times */
	bool is_put;
};

struct policy_reading {
	struct reading reading;
	struct str workspace_id;
	struct store_policy policy;
	bool is_found;
};

/* The local sandbox has no images: a choice would be kept and never heeded. */
static struct policy_images
images_of(struct request *req)
{
	const struct snapshot *s = req->env->policy;
	struct snap_table t = snapshot_policy(s)->session_images;
	if (str_starts(snapshot_str(s, snapshot_policy(s)->settings.sandbox_url), STR("local:")))
		t.count = 0;
	struct policy_images images = {ARENA_NEW_ARRAY(req->arena, struct str, t.count), 0};
	if (images.items == NULL)
		return images;
	for (; images.count < t.count; images.count++)
		images.items[images.count] =
		    snapshot_str(s, SNAP_AT(s, t, struct snap_model, images.count)->id);
	return images;
}

/* stored NULL: the database has none. What the file declares counts before it. */
static void
answer(struct request *req, struct str workspace_id, const struct store_policy *stored)
{
	const struct snapshot *s = req->env->policy;
	const struct snap_workspace *w = snapshot_workspace(s, workspace_id);
	struct policy_view v = {
	    .workspace_id = workspace_id,
	    .is_configured = stored != NULL,
	    .has_sandbox = snapshot_str(s, snapshot_policy(s)->settings.sandbox_url).len > 0,
	    .declared_in = declared_where(req, "policy", workspace_id),
	    .images = images_of(req),
	};
	if (stored != NULL)
		v.policy = *stored;
	if (v.declared_in.ptr != NULL && w != NULL) {
		v.is_configured = true;
		policy_body_declared(s, w, req->arena, &v.policy);
	}
	struct buf body = BUF_INIT(ANSWER_MAX_BYTES);
	struct jw out;
	jw_init(&out, &body);
	policy_body_write(&out, &v);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

/* --- put and delete -------------------------------------------------------------------------- */

static enum err_code
put_unit(struct db *db, void *arg, struct err *reterr)
{
	struct policy_change *pc = arg;
	struct arena *a = pc->change.work.req->arena;
	enum err_code code = store_policy_put(db, &pc->policy, NULL, reterr);
	return code == ERR_OK
		   ? store_policy_get(db, a, pc->policy.workspace_id, &pc->stored, reterr)
		   : code;
}

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct policy_change *pc = arg;
	struct store_workspace ws;
	enum err_code code = store_workspace_get(
	    db, pc->change.work.req->arena, pc->policy.workspace_id, &ws, reterr);
	return code == ERR_OK ? store_policy_delete(db, pc->policy.workspace_id, NULL, reterr)
			      : code;
}

static enum err_code
commit(struct change *c, struct db *db, struct err *reterr)
{
	struct policy_change *pc = (struct policy_change *)c;
	return db_unit(db, DB_WRITE, pc->is_put ? put_unit : delete_unit, pc, reterr);
}

static void
answer_change(struct request *req, struct change *c)
{
	const struct policy_change *pc = (struct policy_change *)c;
	answer(req, pc->policy.workspace_id, pc->is_put ? &pc->stored : NULL);
}

static void
start(struct request *req, struct policy_change *pc)
{
	pc->change.what = PUBLISH_POLICY;
	pc->change.commit = commit;
	pc->change.answer = answer_change;
	change_start(req, &pc->change);
}

/* NULL: answered. */
static struct policy_change *
change_new(struct request *req)
{
	struct str id;
	if (!admin_path_uuid(req, NOT_FOUND, &id) || declared_refuse(req, "policy", id, SUBJECT))
		return NULL;
	struct policy_change *pc = ARENA_NEW(req->arena, struct policy_change);
	if (pc == NULL)
		request_errorf(req, 500, "Internal server error");
	else
		pc->policy.workspace_id = id;
	return pc;
}

static void
on_put_body(void *arg, struct str body)
{
	struct request *req = arg;
	struct err err;
	struct policy_change *pc = change_new(req);
	json_t *o = pc != NULL ? admin_body_parse(req, body) : NULL;
	if (o == NULL)
		return;
	struct policy_images images = images_of(req);
	struct str id = pc->policy.workspace_id;
	if (policy_body_read(req->arena, o, &images, &pc->policy, &err) != ERR_OK) {
		request_error(req, 422, NULL, str_c(err.msg));
		return;
	}
	pc->policy.workspace_id = id;
	pc->policy.created_at_s = pc->policy.updated_at_s = clock_wall_s();
	pc->is_put = true;
	start(req, pc);
}

void
policy_put(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_put_body, req);
}

void
policy_delete(struct request *req)
{
	struct policy_change *pc = change_new(req);
	if (pc != NULL)
		start(req, pc);
}

/* --- get ------------------------------------------------------------------------------------- */

static enum err_code
read_policy(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct policy_reading *pr = (struct policy_reading *)r;
	struct store_workspace ws;
	enum err_code code = store_workspace_get(db, a, pr->workspace_id, &ws, reterr);
	if (code != ERR_OK)
		return code;
	code = store_policy_get(db, a, pr->workspace_id, &pr->policy, reterr);
	pr->is_found = code == ERR_OK;
	return code == ERR_NOTFOUND ? ERR_OK : code;
}

static void
answer_reading(struct request *req, struct reading *r)
{
	const struct policy_reading *pr = (struct policy_reading *)r;
	answer(req, pr->workspace_id, pr->is_found ? &pr->policy : NULL);
}

void
policy_show(struct request *req)
{
	struct policy_reading *pr = ARENA_NEW(req->arena, struct policy_reading);
	if (pr == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (!admin_path_uuid(req, NOT_FOUND, &pr->workspace_id))
		return;
	pr->reading.read = read_policy;
	pr->reading.answer = answer_reading;
	reading_start(req, &pr->reading);
}
