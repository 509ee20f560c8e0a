#include "worker/api/reading.h"

#include "worker/env.h"

static enum err_code
on_run(struct work *w, void *context, struct err *reterr)
{
	struct reading *r = w->arg;
	struct db *db;
	enum err_code code = work_db(context, &db, reterr);
	return code == ERR_OK ? r->read(r, db, w->req->arena, reterr) : code;
}

static void
on_done(struct work *w, const struct err *err)
{
	struct reading *r = w->arg;
	struct request *req = w->req;
	if (request_closed(req))
		return;
	if (err != NULL && r->refuse != NULL)
		r->refuse(req, r, err);
	else if (err != NULL)
		request_fail(req, err);
	else if (arena_overflowed(req->arena))
		request_errorf(req, 500, "Internal server error");
	else
		r->answer(req, r);
}

void
reading_start(struct request *req, struct reading *r)
{
	struct err err;
	r->work.arg = r;
	if (work_start(&r->work, req, req->env->sql, on_run, on_done, &err) != ERR_OK)
		request_fail(req, &err);
}
