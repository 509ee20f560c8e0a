#include "worker/turn/outputs.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "ipc/board.h"
#include "storage/blob/blob.h"
#include "storage/sql/store_file.h"
#include "worker/code/session.h"
#include "worker/env.h"
#include "worker/http/mime.h"
#include "worker/jobs.h"
#include "worker/request.h"

enum op_kind {
	OP_BEGIN,
	OP_DATA,
	OP_COMMIT,
	OP_ABORT,
	OP_FORGET, /* the file came to nothing: take away what there is of it */
};

struct op { /* one step of writing, in order */
	struct op *next;
	enum op_kind kind;
	struct produced *file;
	size_t len;
	char bytes[];
};

struct produced {
	struct output_file out; /* first: the list that the caller gets */
	char ref[BLOB_KEY_SIZE];
	char id[ID_SIZE];
	struct blob_put *put; /* io thread only */
	bool is_stored, has_row;
	bool is_uncertain; /* the row may be there: then its blob has to stay */
	bool is_broken;    /* bytes of it were lost on the way: it must not be stored */
	int64_t made_ms;
};

struct outputs {
	struct job job;
	struct request *req; /* reference */
	struct code_session *session;
	struct outputs_owner owner;
	struct produced *current;
	struct output_file *first, **end;
	struct op *queue, **queue_end; /* not yet given to a job */
	struct op *running;            /* with the job */
	size_t queued_bytes;
	bool is_busy, is_paused, is_finishing, is_cancelled, is_forgetting;
	void (*done)(void *arg, struct output_file *files);
	void *arg;
};

static void pump(struct outputs *o);
static void forget_rest(struct outputs *o);
static void enqueue(struct outputs *o, enum op_kind kind, struct produced *file, struct str bytes);

static void
free_ops(struct op *op)
{
	while (op != NULL) {
		struct op *next = op->next;
		mem_free(op);
		op = next;
	}
}

static void
release(struct outputs *o)
{
	struct request *req = o->req;
	free_ops(o->queue);
	mem_free(o);
	request_put(&req);
}

/* --- io thread ------------------------------------------------------------------------------- */
static void
step(struct blob_store *blobs, struct op *op)
{
	struct produced *f = op->file;
	struct err err;
	enum err_code rc = ERR_OK;
	switch (op->kind) {
	case OP_BEGIN:
		rc = blob_put_begin(blobs, str_c(f->ref), &f->put, &err);
		break;
	case OP_DATA:
		if (f->put != NULL)
			rc = blob_put_write(f->put, str_n(op->bytes, op->len), &err);
		break;
	case OP_COMMIT:
		if (f->put != NULL && !f->is_broken) {
			rc = blob_put_commit(&f->put, &err);
			f->is_stored = rc == ERR_OK;
		}
		blob_put_abort(&f->put);
		break;
	case OP_FORGET:
		if (f->is_stored)
			rc = blob_delete(blobs, str_c(f->ref), &err);
		f->is_stored = false;
		blob_put_abort(&f->put);
		break;
	case OP_ABORT:
		blob_put_abort(&f->put);
		break;
	}
	if (rc != ERR_OK) {
		blob_put_abort(&f->put);
		log_warn("a produced file is not stored", LOG_C("file_id", f->id), LOG_ERR(&err));
	}
}

static void
run_io(struct job *j, void *context)
{
	(void)context;
	struct outputs *o = j->arg;
	for (struct op *op = o->running; op != NULL; op = op->next)
		step(o->req->env->blobs, op);
}

/* --- SQL thread ------------------------------------------------------------------------------ */
static void
run_sql(struct job *j, void *context)
{
	struct outputs *o = j->arg;
	for (struct output_file *out = o->first; out != NULL; out = out->next) {
		struct produced *f = (struct produced *)out;
		struct err err;
		if (!f->is_stored)
			continue;
		struct store_file row = {
		    .id = str_c(f->id),
		    .user_id = o->owner.user_id,
		    .workspace_id = o->owner.workspace_id,
		    .filename = out->name,
		    .mime_type = mime_of_name(out->name),
		    .purpose = STR("code_execution_output"),
		    .storage_ref = str_c(f->ref),
		    .bytes = (int64_t)out->bytes,
		    .created_at_ms = f->made_ms,
		    .expires_at_ms = o->owner.expires_at_ms,
		};
		enum err_code rc = store_file_insert(context, &row, &err);
		f->has_row = rc == ERR_OK;
		if (f->has_row)
			continue;
		f->is_uncertain = rc == ERR_UNCERTAIN;
		log_warn("a produced file has no row", LOG_C("file_id", f->id), LOG_ERR(&err));
	}
}

/* --- loop ------------------------------------------------------------------------------------ */
static void
submit(struct outputs *o, struct jobs *pool, void (*run)(struct job *, void *),
    void (*done)(struct job *, bool))
{
	o->job = (struct job){.run = run, .done = done, .arg = o};
	o->is_busy = true;
	/* Taking away is never refused: blobs without a row would stay for ever. */
	enum err_code rc = o->is_cancelled ? jobs_submit_cleanup(pool, &o->job, NULL)
					   : jobs_submit(pool, &o->job, NULL);
	if (rc != ERR_OK)
		done(&o->job, true);
}

/* A job that was refused or never ran: what it should have written is missing from its files, which
 * are only named then. What should have been taken away is taken away here. */
static void
not_written(struct outputs *o)
{
	for (struct op *op = o->running; op != NULL; op = op->next) {
		op->file->is_broken = true;
		if (op->kind == OP_FORGET)
			step(o->req->env->blobs, op);
	}
}

static void
done_io(struct job *j, bool cancelled)
{
	struct outputs *o = j->arg;
	o->is_busy = false;
	if (cancelled)
		not_written(o);
	for (struct op *op = o->running; op != NULL; op = op->next)
		o->queued_bytes -= op->len;
	free_ops(o->running);
	o->running = NULL;
	if (o->is_cancelled && !o->is_forgetting)
		forget_rest(o);
	else
		pump(o);
}

static bool
has_stored(const struct outputs *o)
{
	for (const struct output_file *f = o->first; f != NULL; f = f->next)
		if (((const struct produced *)f)->is_stored)
			return true;
	return false;
}

/* Nobody waits any more: takes away what has no row, then ends. */
static void
forget_rest(struct outputs *o)
{
	o->is_cancelled = o->is_forgetting = true;
	free_ops(o->queue);
	o->queue = NULL;
	o->queue_end = &o->queue;
	for (struct output_file *out = o->first; out != NULL; out = out->next) {
		struct produced *f = (struct produced *)out;
		bool has_bytes = f->is_stored || f->put != NULL;
		if (has_bytes && !f->has_row && !f->is_uncertain)
			enqueue(o, OP_FORGET, f, STR(""));
	}
	pump(o);
}

static void
done_sql(struct job *j, bool cancelled)
{
	(void)cancelled; /* then there are no rows */
	struct outputs *o = j->arg;
	o->is_busy = false;
	if (o->is_cancelled) {
		forget_rest(o);
		return;
	}
	for (struct output_file *out = o->first; out != NULL; out = out->next) {
		struct produced *f = (struct produced *)out;
		if (!f->has_row)
			continue;
		out->file_id = str_c(f->id);
		board_count(o->req->env->slot, BC_FILES_STORED, 1);
		board_count(o->req->env->slot, BC_FILE_BYTES_STORED, out->bytes);
	}
	void (*done)(void *, struct output_file *) = o->done;
	void *arg = o->arg;
	struct output_file *files = o->first;
	struct request *req = request_get(o->req);
	forget_rest(o);
	done(arg, files);
	request_put(&req);
}

static void
pump(struct outputs *o)
{
	if (o->is_busy)
		return;
	if (o->queue != NULL) {
		o->running = o->queue;
		o->queue = NULL;
		o->queue_end = &o->queue;
		submit(o, o->req->env->io, run_io, done_io);
		return;
	}
	if (o->is_cancelled) {
		release(o);
		return;
	}
	if (o->is_paused) {
		o->is_paused = false;
		code_session_resume(o->session);
	}
	if (!o->is_finishing)
		return;
	o->is_finishing = false;
	if (has_stored(o)) {
		submit(o, o->req->env->sql, run_sql, done_sql);
		return;
	}
	o->is_busy = true;
	done_sql(&o->job, false);
}

static void
enqueue(struct outputs *o, enum op_kind kind, struct produced *file, struct str bytes)
{
	struct op *op = mem_alloc(sizeof(*op) + bytes.len);
	op->kind = kind;
	op->file = file;
	op->len = bytes.len;
	if (bytes.len > 0)
		memcpy(op->bytes, bytes.ptr, bytes.len);
	*o->queue_end = op;
	o->queue_end = &op->next;
	o->queued_bytes += bytes.len;
}

static void
push(struct outputs *o, enum op_kind kind, struct str bytes)
{
	enqueue(o, kind, o->current, bytes);
	if (o->queued_bytes > OUTPUTS_QUEUE_BYTES && !o->is_paused) {
		o->is_paused = true;
		code_session_pause(o->session);
	}
	pump(o);
}

struct outputs *
outputs_new(struct request *req, struct code_session *session, const struct outputs_owner *owner)
{
	struct outputs *o = MEM_NEW(struct outputs);
	o->req = request_get(req);
	o->session = session;
	o->owner = *owner;
	o->end = &o->first;
	o->queue_end = &o->queue;
	o->job.arg = o;
	return o;
}

/* A path of the code's choice as the name of a file of ours: text on one line, and of a long one
 * the end, which says what the file is. */
static struct str
name_of(struct arena *a, struct str path)
{
	struct buf mended = BUF_INIT((size_t)3 * path.len + 8);
	utf8_mend(path, &mended);
	for (size_t i = 0; i < mended.len; i++)
		if ((unsigned char)mended.ptr[i] < 0x20 || mended.ptr[i] == 0x7f)
			mended.ptr[i] = '_';
	size_t from = mended.len > LIMIT_FILENAME_BYTES ? mended.len - LIMIT_FILENAME_BYTES : 0;
	while (from > 0 && ((unsigned char)mended.ptr[from] & 0xc0) == 0x80)
		from++;
	struct str name = arena_str(a, str_from(buf_str(&mended), from));
	buf_done(&mended);
	return name;
}

static struct produced *
add_file(struct outputs *o, struct str path)
{
	struct produced *f = ARENA_NEW(o->req->arena, struct produced);
	if (f == NULL)
		return NULL;
	f->out.name = name_of(o->req->arena, path);
	*o->end = &f->out;
	o->end = &f->out.next;
	return f;
}

bool
outputs_file_begin(struct outputs *o, struct str path, uint64_t size)
{
	struct produced *f = add_file(o, path);
	if (f == NULL || size == 0)
		return false;
	id_make("file-", f->id);
	blob_key(str_c(f->id), f->ref);
	f->made_ms = clock_wall_ms();
	o->current = f;
	push(o, OP_BEGIN, STR(""));
	return true;
}

void
outputs_file_data(struct outputs *o, struct str bytes)
{
	o->current->out.bytes += bytes.len; /* what arrived; what was announced may not be true */
	push(o, OP_DATA, bytes);
}

void
outputs_file_end(struct outputs *o, bool whole)
{
	bool is_kept = whole && o->current->out.bytes > 0;
	push(o, is_kept ? OP_COMMIT : OP_ABORT, STR(""));
}

void
outputs_name_only(struct outputs *o, struct str path)
{
	(void)add_file(o, path);
}

void
outputs_finish(struct outputs *o, void (*done)(void *arg, struct output_file *files), void *arg)
{
	o->done = done;
	o->arg = arg;
	o->is_finishing = true;
	pump(o);
}

void
outputs_cancel(struct outputs **op)
{
	struct outputs *o = *op;
	*op = NULL;
	if (o == NULL)
		return;
	o->is_cancelled = true;
	if (!o->is_busy) /* else when the job is back: it is writing what this would read */
		forget_rest(o);
}
