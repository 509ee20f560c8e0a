/* GET and DELETE /files/{id}. */
#include "base/clock.h"
#include "base/log.h"
#include "storage/blob/blob.h"
#include "worker/api/files.h"
#include "worker/api/handlers.h"
#include "worker/api/reading.h"
#include "worker/env.h"

struct file_reading {
	struct reading reading;
	struct store_file_scope scope;
	struct str id;
	struct store_file file;
	struct work blob_work;
};

static struct file_reading *
file_reading_new(struct request *req)
{
	struct file_reading *fr = ARENA_NEW(req->arena, struct file_reading);
	if (fr == NULL) {
		request_errorf(req, 500, "Internal server error");
		return NULL;
	}
	if (!files_id_of_path(req, &fr->id) || !files_scope_of_query(req, &fr->scope))
		return NULL;
	return fr;
}

static void
refuse(struct request *req, struct reading *r, const struct err *err)
{
	files_refuse(req, ((struct file_reading *)r)->id, err);
}

/* --- show -------------------------------------------------------------------------------- */

static enum err_code
read_file(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct file_reading *fr = (struct file_reading *)r;
	return store_file_get(db, a, &fr->scope, fr->id, clock_wall_ms(), &fr->file, reterr);
}

static void
answer_show(struct request *req, struct reading *r)
{
	struct buf body = BUF_INIT(64u * 1024u);
	struct jw w;
	jw_init(&w, &body);
	files_write(&w, req->wire, &((struct file_reading *)r)->file);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

void
files_show(struct request *req)
{
	struct file_reading *fr = file_reading_new(req);
	if (fr == NULL)
		return;
	fr->reading.read = read_file;
	fr->reading.answer = answer_show;
	fr->reading.refuse = refuse;
	reading_start(req, &fr->reading);
}

/* --- delete ------------------------------------------------------------------------------ */

static enum err_code
delete_row(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct file_reading *fr = (struct file_reading *)r;
	return store_file_delete(db, a, &fr->scope, fr->id, clock_wall_ms(), &fr->file, reterr);
}

static enum err_code
delete_blob(struct work *w, void *context, struct err *reterr)
{
	struct file_reading *fr = w->arg;
	(void)context;
	return blob_delete(w->req->env->blobs, fr->file.storage_ref, reterr);
}

static void
say_deleted(struct request *req, const struct file_reading *fr)
{
	struct buf body = BUF_INIT(4096);
	struct jw w;
	jw_init(&w, &body);
	files_write_deleted(&w, req->wire, fr->id);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

/* The row is gone for everybody; bytes that stay behind are the sweeper's. */
static void
on_blob_deleted(struct work *w, const struct err *err)
{
	if (err != NULL)
		log_warn("blob of a deleted file stays until the sweep",
		    LOG_C("request_id", w->req->id), LOG_ERR(err));
	say_deleted(w->req, w->arg);
}

static void
answer_delete(struct request *req, struct reading *r)
{
	struct file_reading *fr = (struct file_reading *)r;
	fr->blob_work.arg = fr;
	if (fr->file.storage_ref.ptr == NULL || work_start(&fr->blob_work, req, req->env->io,
						    delete_blob, on_blob_deleted, NULL) != ERR_OK)
		say_deleted(req, fr);
}

void
files_delete(struct request *req)
{
	struct file_reading *fr = file_reading_new(req);
	if (fr == NULL)
		return;
	fr->reading.read = delete_row;
	fr->reading.answer = answer_delete;
	fr->reading.refuse = refuse;
	reading_start(req, &fr->reading);
}
