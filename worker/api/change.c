#include "worker/api/change.h"

#include "base/log.h"

static void
on_published(void *arg, const struct err *err)
{
	struct change *c = arg;
	struct request *req = c->work.req;
	if (err != NULL) {
		log_warn("change saved but not in force", LOG_C("request_id", req->id),
		    LOG_C("endpoint", req->endpoint), LOG_ERR(err));
		request_errorf(req, 503,
		    "The change is saved, but not in force on every worker yet; it will be with "
		    "the next reload");
	} else if (!request_closed(req)) {
		c->answer(req, c);
	}
	request_put(&req);
}

static void
refuse(struct request *req, const struct change *c, const struct err *err)
{
	if (err->code == ERR_CONFLICT)
		request_error(req, 409, NULL, str_c(c->conflict != NULL ? c->conflict : err->msg));
	else
		request_fail(req, err);
}

static void
on_committed(struct work *w, const struct err *err)
{
	struct change *c = w->arg;
	struct request *req = w->req;
	if (err != NULL) {
		refuse(req, c, err);
		return;
	}
	/* The worker ends; the others will hear of the change with the next publication. */
	if (req->env->publish == NULL)
		return;
	/* Published even when the client has gone: the change is in the database. */
	request_get(req);
	publish_request(req->env, c->what, on_published, c);
}

static enum err_code
on_run(struct work *w, void *context, struct err *reterr)
{
	struct change *c = w->arg;
	struct db *db;
	enum err_code code = work_db(context, &db, reterr);
	return code == ERR_OK ? c->commit(c, db, reterr) : code;
}

void
change_start(struct request *req, struct change *c)
{
	struct err err;
	c->work.arg = c;
	if (arena_overflowed(req->arena)) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (work_start(&c->work, req, req->env->sql, on_run, on_committed, &err) != ERR_OK)
		request_fail(req, &err);
}
