/* The provider's body of a round. A large one is written on an io thread: the loop has other
 * clients to serve. Until the job is back nothing of the turn touches its arena or its
 * conversation. */
#include "base/limits.h"
#include "base/mem.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"
#include "worker/turn/turn.h"

#define INLINE_BYTES (256u * 1024u)

struct encoding {
	struct job job;
	struct request *req; /* reference: conversation and arena outlive the job */
	struct turn *turn;   /* NULL: the turn is over */
	const struct dialect *provider;
	struct conversation *conv;
	struct encode_options opt;
	struct buf body;
	void (*done)(struct turn *t, const struct err *err);
	enum err_code rc;
	struct err err;
};

static enum err_code
encode(const struct dialect *provider, struct conversation *conv, const struct encode_options *opt,
    struct buf *out, struct err *reterr)
{
	enum err_code rc = provider->encode(conv, opt, out, reterr);
	if (rc == ERR_OK && (out->overflowed || arena_overflowed(conv->arena)))
		rc = err_set(reterr, ERR_TOOLARGE, "the conversation is too large");
	return rc;
}

static void
run(struct job *j, void *context)
{
	(void)context;
	struct encoding *e = j->arg;
	e->rc = encode(e->provider, e->conv, &e->opt, &e->body, &e->err);
}

static void
back_on_loop(struct job *j, bool cancelled)
{
	struct encoding *e = j->arg;
	struct turn *t = e->turn;
	struct request *req = e->req;
	struct err err = e->err;
	enum err_code rc = e->rc;
	if (cancelled && rc == ERR_OK)
		rc = err_set(&err, ERR_BUSY, "the gateway is stopping");
	if (t != NULL) {
		t->encoding = NULL;
		buf_done(&t->body);
		t->body = e->body;
	} else {
		buf_done(&e->body);
	}
	void (*done)(struct turn *, const struct err *) = e->done;
	mem_free(e);
	if (t != NULL)
		done(t, rc == ERR_OK ? NULL : &err);
	request_put(&req);
}

/* What is to be written, about: the client's body, the files that were put into it, and what the
 * rounds so far gave. */
static size_t
estimate(const struct turn *t)
{
	size_t n = t->plan.body_bytes + t->plan.conv->added_bytes;
	for (const struct attachment *f = t->files.first; f != NULL; f = f->next)
		n += f->content.len;
	return n;
}

void
turn_encode(struct turn *t, const struct encode_options *opt,
    void (*done)(struct turn *t, const struct err *err))
{
	struct err err = {.msg = ""};
	if (estimate(t) <= INLINE_BYTES) {
		enum err_code rc = encode(t->provider, t->plan.conv, opt, &t->body, &err);
		done(t, rc == ERR_OK ? NULL : &err);
		return;
	}
	struct encoding *e = MEM_NEW(struct encoding);
	e->turn = t;
	e->provider = t->provider;
	e->conv = t->plan.conv;
	e->opt = *opt;
	e->done = done;
	e->req = request_get(t->req);
	e->job = (struct job){.run = run, .done = back_on_loop, .arg = e};
	buf_init(&e->body, LIMIT_ARENA_REQUEST_BYTES);
	if (jobs_submit(t->req->env->io, &e->job, &err) != ERR_OK) {
		struct request *req = e->req;
		mem_free(e);
		(void)err_set(&err, ERR_BUSY, "the gateway is busy");
		done(t, &err);
		request_put(&req);
		return;
	}
	t->encoding = e;
}

void
turn_encode_cancel(struct turn *t)
{
	if (t->encoding != NULL)
		t->encoding->turn = NULL;
	t->encoding = NULL;
}
