#include "worker/turn/attach.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "storage/blob/blob.h"
#include "storage/sql/store_file.h"
#include "storage/sql/store_file_copy.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"

struct attach {
	struct job job;
	struct request *req; /* reference: the arena outlives the job */
	struct attach_plan *plan;
	struct attach_options opt;
	struct blob_store *blobs;
	void (*done)(void *arg, const struct err *err);
	void *arg;
	bool is_cancelled;
	enum err_code rc;
	struct err err;
};

static void
finish(struct attach *t)
{
	struct request *req = t->req;
	if (!t->is_cancelled)
		t->done(t->arg, t->rc == ERR_OK ? NULL : &t->err);
	mem_free(t);
	request_put(&req);
}

/* --- bytes (io thread) ----------------------------------------------------------------------- */
static enum err_code
read_blob(struct attach *t, struct attachment *f, struct buf *dst)
{
	struct blob_get *get;
	enum err_code rc = blob_get_open(t->blobs, f->storage_ref, 0, BLOB_TO_END, &get, &t->err);
	if (rc != ERR_OK)
		return rc;
	for (;;) {
		size_t got = 0;
		char *room = buf_reserve(dst, 65536);
		if (room == NULL) {
			rc = err_set(&t->err, ERR_TOOLARGE, "files of the request are too large");
			break;
		}
		rc = blob_get_read(get, room, 65536, &got, &t->err);
		if (rc != ERR_OK || got == 0)
			break;
		buf_commit(dst, got);
	}
	blob_get_close(&get);
	return rc;
}

static enum err_code
show(struct attach *t, struct attachment *f, uint64_t *budget)
{
	struct arena *a = t->req->arena;
	if (f->bytes > *budget)
		return err_set(&t->err, ERR_TOOLARGE,
		    "the files that the model is to read are together larger than %llu bytes",
		    (unsigned long long)t->opt.max_inline_bytes);
	*budget -= f->bytes;
	struct buf bytes = BUF_INIT(f->bytes + 65536);
	enum err_code rc = read_blob(t, f, &bytes);
	if (rc == ERR_OK && attach_is_text(f->mime_type) && utf8_valid(buf_str(&bytes))) {
		f->is_text = true;
		f->content = arena_str(a, buf_str(&bytes));
	} else if (rc == ERR_OK) {
		struct buf encoded = BUF_INIT(BASE64_LEN(bytes.len) + 1);
		base64_encode(buf_str(&bytes), &encoded);
		f->content = arena_str(a, buf_str(&encoded));
		buf_done(&encoded);
	}
	buf_done(&bytes);
	return rc;
}

static void
run_io(struct job *j, void *context)
{
	(void)context;
	struct attach *t = j->arg;
	uint64_t budget = t->opt.max_inline_bytes;
	for (struct attachment *f = t->plan->first; f != NULL && t->rc == ERR_OK; f = f->next) {
		if (!f->is_found)
			continue;
		if (f->for_model)
			t->rc = show(t, f, &budget);
		if (t->rc == ERR_OK && f->for_sandbox) {
			struct blob_info info;
			t->rc = blob_stat(t->blobs, f->storage_ref, &info, &t->err);
			if (t->rc == ERR_OK)
				f->bytes = info.bytes;
		}
		if (t->rc != ERR_OK && t->rc != ERR_TOOLARGE)
			t->rc = err_set(&t->err, ERR_IO, "the bytes of file %.*s cannot be read",
			    STR_FMT(f->file_id));
	}
	if (t->rc == ERR_OK && arena_overflowed(t->req->arena))
		t->rc = err_set(&t->err, ERR_TOOLARGE, "the files of the request are too large");
}

static void
done_io(struct job *j, bool cancelled)
{
	struct attach *t = j->arg;
	if (cancelled && t->rc == ERR_OK)
		t->rc = err_set(&t->err, ERR_BUSY, "the gateway is stopping");
	finish(t);
}

/* --- rows (SQL thread) ----------------------------------------------------------------------- */
static void
take_row(struct attach *t, const struct store_file *row)
{
	for (struct attachment *f = t->plan->first; f != NULL; f = f->next) {
		if (!str_eq(f->file_id, row->id) || row->storage_ref.len == 0)
			continue;
		f->is_found = true;
		f->filename = row->filename;
		f->mime_type = row->mime_type;
		f->storage_ref = row->storage_ref;
		f->bytes = (uint64_t)row->bytes;
	}
}

/* What cannot be found out is copied once more. */
static void
find_copy(struct attach *t, struct attachment *f, struct db *db)
{
	struct str id;
	if (t->opt.account.len > 0 && store_file_copy_get(db, t->req->arena, f->file_id,
					  t->opt.account, clock_wall_s(), &id, NULL) == ERR_OK)
		f->lent_id = id;
}

static void
run_sql(struct job *j, void *context)
{
	struct attach *t = j->arg;
	struct str ids[ATTACH_FILES_MAX];
	size_t n = 0, rows_n = 0;
	for (struct attachment *f = t->plan->first; f != NULL && n < ATTACH_FILES_MAX; f = f->next)
		ids[n++] = f->file_id;
	struct store_file_scope scope = {t->opt.user_id, t->opt.workspace_id};
	struct store_file *rows = NULL;
	t->rc = store_file_list_ids(
	    context, t->req->arena, &scope, ids, n, clock_wall_ms(), &rows, &rows_n, &t->err);
	for (size_t i = 0; t->rc == ERR_OK && i < rows_n; i++)
		take_row(t, &rows[i]);
	for (struct attachment *f = t->plan->first; f != NULL; f = f->next)
		if (t->rc == ERR_OK && f->is_found && f->for_provider)
			find_copy(t, f, context);
}

static void
done_sql(struct job *j, bool cancelled)
{
	struct attach *t = j->arg;
	if (cancelled && t->rc == ERR_OK)
		t->rc = err_set(&t->err, ERR_BUSY, "the gateway is stopping");
	if (t->rc == ERR_OK)
		t->rc = attach_check(t->plan, &t->err);
	if (t->rc != ERR_OK || t->is_cancelled) {
		finish(t);
		return;
	}
	attach_name(t->req->arena, t->plan);
	t->job = (struct job){.run = run_io, .done = done_io, .arg = t};
	/* a thread may be done with it before this returns: its result is not overwritten */
	struct err err;
	enum err_code rc = jobs_submit(t->req->env->io, &t->job, &err);
	if (rc == ERR_OK)
		return;
	t->rc = rc;
	t->err = err;
	finish(t);
}

enum err_code
attach_start(struct request *req, struct attach_plan *plan, const struct attach_options *opt,
    void (*done)(void *arg, const struct err *err), void *arg, struct attach **ret,
    struct err *reterr)
{
	struct attach *t = MEM_NEW(struct attach);
	t->plan = plan;
	t->opt = *opt;
	t->blobs = req->env->blobs;
	t->done = done;
	t->arg = arg;
	t->job = (struct job){.run = run_sql, .done = done_sql, .arg = t};
	t->req = request_get(req); /* before a pool thread can look at it */
	enum err_code rc = jobs_submit(req->env->sql, &t->job, reterr);
	if (rc != ERR_OK) {
		request_put(&t->req);
		mem_free(t);
		return rc;
	}
	*ret = t;
	return ERR_OK;
}

void
attach_cancel(struct attach **tp)
{
	if (*tp != NULL)
		(*tp)->is_cancelled = true;
	*tp = NULL;
}
