#include "worker/api/work.h"

#include "base/check.h"
#include "worker/env.h"

static void
on_run(struct job *j, void *context)
{
	struct work *w = j->arg;
	w->code = w->run(w, context, &w->err);
}

static void
on_done(struct job *j, bool cancelled)
{
	struct work *w = j->arg;
	struct request *req = w->req;
	w->is_busy = false;
	if (cancelled)
		w->code = err_set(&w->err, ERR_BUSY, "the worker is stopping");
	w->done(w, w->code == ERR_OK ? NULL : &w->err);
	request_put(&req);
}

typedef enum err_code submit_fn(struct jobs *p, struct job *j, struct err *reterr);

static enum err_code
start(struct work *w, struct request *req, struct jobs *pool, submit_fn *submit, struct err *reterr)
{
	CHECK(!w->is_busy);
	w->job = (struct job){.run = on_run, .done = on_done, .arg = w};
	w->code = ERR_OK;
	w->req = request_get(req); /* before the thread can look at it */
	w->is_busy = true;
	enum err_code code = submit(pool, &w->job, reterr);
	if (code != ERR_OK) {
		w->is_busy = false;
		request_put(&w->req);
		if (req->env->slot != NULL)
			board_count(req->env->slot, BC_JOBS_REFUSED, 1);
		return code;
	}
	return ERR_OK;
}

enum err_code
work_start(struct work *w, struct request *req, struct jobs *pool, work_run *run, work_done *done,
    struct err *reterr)
{
	w->run = run;
	w->done = done;
	return start(w, req, pool, jobs_submit, reterr);
}

enum err_code
work_start_cleanup(struct work *w, struct request *req, struct jobs *pool, work_run *run,
    work_done *done, struct err *reterr)
{
	w->run = run;
	w->done = done;
	return start(w, req, pool, jobs_submit_cleanup, reterr);
}

enum err_code
work_db(void *context, struct db **ret, struct err *reterr)
{
	if (context == NULL)
		return err_set(reterr, ERR_BUSY, "no database connection");
	*ret = context;
	return ERR_OK;
}
