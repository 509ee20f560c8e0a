#include "worker/turn/seed.h"

#include "base/fd.h"
#include "base/mem.h"
#include "storage/blob/blob.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"

struct seed {
	struct job job;
	struct request *req; /* reference */
	struct code_session *session;
	struct attachment *next;
	void (*done)(void *arg, const struct err *err);
	void *arg;
	bool is_cancelled, is_putting;
	int fd;
	uint64_t bytes;
	enum err_code rc;
	struct err err;
};

static void open_next(struct seed *s);

static void
finish(struct seed *s, const struct err *err)
{
	struct request *req = s->req;
	struct err copy;
	if (err != NULL)
		copy = *err;
	void (*done)(void *, const struct err *) = s->is_cancelled ? NULL : s->done;
	void *arg = s->arg;
	fd_close(&s->fd);
	mem_free(s);
	if (done != NULL)
		done(arg, err != NULL ? &copy : NULL);
	request_put(&req);
}

static void
fail(struct seed *s)
{
	enum err_code code = s->err.code != ERR_OK ? s->err.code : ERR_IO;
	(void)err_set(&s->err, code, "the code sandbox did not take the file %.*s",
	    STR_FMT(s->next->file_id));
	finish(s, &s->err);
}

static void
on_put(const struct err *e, void *arg)
{
	struct seed *s = arg;
	s->is_putting = false;
	if (e != NULL) {
		s->err = *e;
		fail(s);
		return;
	}
	s->next = s->next->next;
	open_next(s);
}

/* io thread */
static void
run(struct job *j, void *context)
{
	(void)context;
	struct seed *s = j->arg;
	s->rc = blob_open_fd(s->req->env->blobs, s->next->storage_ref, &s->fd, &s->bytes, &s->err);
}

static void
opened(struct job *j, bool cancelled)
{
	struct seed *s = j->arg;
	if (s->is_cancelled) {
		finish(s, NULL);
		return;
	}
	if (cancelled || s->rc != ERR_OK) {
		s->err.code = cancelled ? ERR_BUSY : s->rc;
		fail(s);
		return;
	}
	int fd = s->fd;
	s->fd = -1;
	s->is_putting = true;
	code_session_put(s->session, s->next->name, s->bytes, fd, on_put, s);
}

static void
open_next(struct seed *s)
{
	while (s->next != NULL && !(s->next->is_found && s->next->for_sandbox))
		s->next = s->next->next;
	if (s->next == NULL) {
		finish(s, NULL);
		return;
	}
	s->job = (struct job){.run = run, .done = opened, .arg = s};
	if (jobs_submit(s->req->env->io, &s->job, &s->err) != ERR_OK) {
		s->err.code = ERR_BUSY;
		fail(s);
	}
}

enum err_code
seed_start(struct request *req, struct code_session *session, const struct attach_plan *plan,
    void (*done)(void *arg, const struct err *err), void *arg, struct seed **ret,
    struct err *reterr)
{
	struct attachment *first = plan->first;
	while (first != NULL && !(first->is_found && first->for_sandbox))
		first = first->next;
	*ret = NULL;
	if (first == NULL)
		return ERR_OK;
	struct seed *s = MEM_NEW(struct seed);
	s->session = session;
	s->next = first;
	s->done = done;
	s->arg = arg;
	s->fd = -1;
	s->job = (struct job){.run = run, .done = opened, .arg = s};
	s->req = request_get(req); /* before a thread may look at it */
	enum err_code rc = jobs_submit(req->env->io, &s->job, reterr);
	if (rc != ERR_OK) {
		request_put(&s->req);
		mem_free(s);
		return rc;
	}
	*ret = s;
	return ERR_OK;
}

void
seed_cancel(struct seed **sp)
{
	struct seed *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	s->is_cancelled = true;
	if (s->is_putting) /* closing the session forgets the put: nobody calls back */
		finish(s, NULL);
}
