#include "worker/turn/lend.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/blob/blob.h"
#include "storage/sql/store_file_copy.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"
#include "worker/upstream/file_copy.h"

struct lend {
	struct job job;
	struct request *req; /* reference */
	const struct target *target;
	struct str account;
	struct attachment *next;
	void (*done)(void *arg, const struct failure *f);
	void *arg;
	bool is_cancelled, is_opening;
	struct file_copy *copy;
	int fd;
	uint64_t bytes;
	enum err_code rc;
	struct err err;
};

static void open_next(struct lend *l);

static void
finish(struct lend *l, const struct failure *f)
{
	struct request *req = l->req;
	void (*done)(void *, const struct failure *) = l->is_cancelled ? NULL : l->done;
	void *arg = l->arg;
	file_copy_cancel(&l->copy);
	fd_close(&l->fd);
	mem_free(l);
	if (done != NULL)
		done(arg, f);
	request_put(&req);
}

/* What the client can do something about; the rest is between us and the provider. */
static int
shown_status(int status)
{
	return status == 413 || status == 429 || status == 503 || status == 529 ? status : 502;
}

/* said: what the provider said; NULL: it was not asked. */
static void
fail(struct lend *l, int status, const struct failure *said)
{
	struct str why = said != NULL ? said->message : STR("");
	struct failure f = {
	    .status = shown_status(status),
	    .retry_after = said != NULL ? said->retry_after : STR(""),
	    .message = arena_printf(l->req->arena, "the provider did not take the file %.*s%s%.*s",
		STR_FMT(l->next->file_id), why.len > 0 ? ": " : "", STR_FMT(why)),
	    .cause = STR("a file could not be copied to the provider"),
	};
	finish(l, &f);
}

/* --- what a copy is called, for other requests ---------------------------------------------------
 */
struct note { /* of its own: the request goes on meanwhile */
	struct job job;
	char file_id[160], account[SHA256_HEX + 1], copy_id[FILE_COPY_ID_BYTES + 1];
	int64_t expires_at_s;
};

static void
run_note(struct job *j, void *context)
{
	const struct note *n = j->arg;
	struct store_file_copy row = {
	    str_c(n->file_id), str_c(n->account), str_c(n->copy_id), n->expires_at_s};
	struct err err;
	if (context != NULL && store_file_copy_put(context, &row, &err) != ERR_OK)
		log_warn("a copy of a file could not be noted; it is copied again next time",
		    LOG_ERR(&err));
}

static void
done_note(struct job *j, bool cancelled)
{
	(void)cancelled;
	mem_free(j->arg);
}

static void
note(struct request *req, struct str file_id, struct str account, struct str copy_id,
    int64_t expires_at_s)
{
	struct note *n = MEM_NEW(struct note);
	n->job = (struct job){.run = run_note, .done = done_note, .arg = n};
	n->expires_at_s = expires_at_s;
	bool fits = str_copy(n->file_id, sizeof(n->file_id), file_id) &&
		    str_copy(n->account, sizeof(n->account), account) &&
		    str_copy(n->copy_id, sizeof(n->copy_id), copy_id);
	if (!fits || jobs_submit(req->env->sql, &n->job, NULL) != ERR_OK)
		mem_free(n);
}

void
lend_forget(struct request *req, const struct target *target, const struct attach_plan *plan)
{
	struct str account = STR_NULL;
	for (const struct attachment *t = plan->first; t != NULL; t = t->next) {
		if (t->lent_id.len == 0)
			continue;
		if (account.ptr == NULL)
			account = lend_account(req->arena, target);
		note(req, t->file_id, account, t->lent_id, 0);
	}
}

struct str
lend_account(struct arena *a, const struct target *target)
{
	unsigned char digest[SHA256_BYTES];
	char hex[SHA256_HEX + 1];
	struct str parts[] = {target->instance, target->api_base, target->key};
	struct sha256 *s = sha256_new();
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		sha256_add(s, parts[i]);
		sha256_add(s, STR("\0"));
	}
	sha256_end(s, digest);
	sha256_free(&s);
	hex_encode(digest, sizeof(digest), hex);
	return arena_str(a, str_c(hex));
}

/* --- one file after the other --------------------------------------------------------------------
 */
static void
on_copied(void *arg, struct str id, const struct failure *f)
{
	struct lend *l = arg;
	l->copy = NULL;
	if (f != NULL) {
		fail(l, f->status, f);
		return;
	}
	l->next->lent_id = id;
	note(l->req, l->next->file_id, l->account, id,
	    clock_wall_s() + FILE_COPY_LIFETIME_S - LEND_MARGIN_S);
	l->next = l->next->next;
	open_next(l);
}

/* io thread */
static void
run(struct job *j, void *context)
{
	(void)context;
	struct lend *l = j->arg;
	l->rc = blob_open_fd(l->req->env->blobs, l->next->storage_ref, &l->fd, &l->bytes, &l->err);
}

static void
opened(struct job *j, bool cancelled)
{
	struct lend *l = j->arg;
	l->is_opening = false;
	if (l->is_cancelled) {
		finish(l, NULL);
		return;
	}
	if (cancelled || l->rc != ERR_OK) {
		fail(l, cancelled || l->rc == ERR_BUSY ? 503 : 502, NULL);
		return;
	}
	struct file_copy_source source = {
	    .fd = l->fd, .bytes = l->bytes, .name = l->next->name, .mime_type = l->next->mime_type};
	l->fd = -1;
	if (file_copy_start(l->req->env->client, l->req->arena, l->target, &source, on_copied, l,
		&l->copy, &l->err) != ERR_OK)
		fail(l, 502, NULL);
}

static bool
is_lent(const struct attachment *t)
{
	return t->is_found && t->for_provider && t->lent_id.len == 0;
}

static void
open_next(struct lend *l)
{
	while (l->next != NULL && !is_lent(l->next))
		l->next = l->next->next;
	if (l->next == NULL) {
		finish(l, NULL);
		return;
	}
	l->job = (struct job){.run = run, .done = opened, .arg = l};
	l->is_opening = true;
	if (jobs_submit(l->req->env->io, &l->job, &l->err) != ERR_OK) {
		l->is_opening = false;
		fail(l, 503, NULL);
	}
}

enum err_code
lend_start(struct request *req, const struct target *target, struct attach_plan *plan,
    void (*done)(void *arg, const struct failure *f), void *arg, struct lend **ret,
    struct err *reterr)
{
	struct attachment *first = plan->first;
	while (first != NULL && !is_lent(first))
		first = first->next;
	*ret = NULL;
	if (first == NULL)
		return ERR_OK;
	struct lend *l = MEM_NEW(struct lend);
	*l = (struct lend){
	    .target = target,
	    .account = lend_account(req->arena, target),
	    .next = first,
	    .done = done,
	    .arg = arg,
	    .fd = -1,
	    .is_opening = true,
	};
	l->job = (struct job){.run = run, .done = opened, .arg = l};
	l->req = request_get(req); /* before a thread may look at it */
	enum err_code rc = jobs_submit(req->env->io, &l->job, reterr);
	if (rc != ERR_OK) {
		request_put(&l->req);
		mem_free(l);
		return rc;
	}
	*ret = l;
	return ERR_OK;
}

void
lend_cancel(struct lend **lp)
{
	struct lend *l = *lp;
	*lp = NULL;
	if (l == NULL)
		return;
	l->is_cancelled = true;
	if (!l->is_opening)
		finish(l, NULL);
}
