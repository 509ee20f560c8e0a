#include "worker/api/upload_store.h"

#include "base/check.h"
#include "base/log.h"
#include "worker/env.h"

#define BUFFER_MAX_BYTES (4u * 1024u * 1024u) /* far over a chunk and one delivery */

static void pump(struct upload_store *s);

/* --- io thread --------------------------------------------------------------------------- */

static enum err_code
run_write(struct work *w, void *context, struct err *reterr)
{
	struct upload_store *s = w->arg;
	enum err_code code = ERR_OK;
	(void)context;
	if (s->put == NULL)
		code = blob_put_begin(w->req->env->blobs, str_c(s->key), &s->put, reterr);
	if (code == ERR_OK && s->drain.len > 0)
		code = blob_put_write(s->put, buf_str(&s->drain), reterr);
	if (code == ERR_OK && s->commits)
		return blob_put_commit(&s->put, reterr);
	if (code != ERR_OK)
		blob_put_abort(&s->put);
	return code;
}

static enum err_code
run_drop(struct work *w, void *context, struct err *reterr)
{
	struct upload_store *s = w->arg;
	(void)context;
	blob_put_abort(&s->put);
	if (s->is_committed)
		return blob_delete(w->req->env->blobs, str_c(s->key), reterr);
	return ERR_OK;
}

/* --- loop -------------------------------------------------------------------------------- */

static void
on_dropped(struct work *w, const struct err *err)
{
	struct upload_store *s = w->arg;
	s->is_committed = false;
	blob_put_abort(&s->put);
	if (err != NULL)
		log_warn("bytes of a failed upload stay behind", LOG_C("request_id", w->req->id),
		    LOG_ERR(err));
}

static void
on_written(struct work *w, const struct err *err)
{
	struct upload_store *s = w->arg;
	buf_clear(&s->drain);
	if (err == NULL && s->commits)
		s->is_committed = true;
	if (err != NULL)
		blob_put_abort(&s->put); /* there is one only when the job never ran */
	if (s->is_dead) {
		pump(s);
		return;
	}
	if (err != NULL || s->is_committed) {
		s->is_dead = err != NULL;
		s->on_end(s->req, err);
		return;
	}
	pump(s);
	if (s->wants_room && !s->is_dead && s->fill.len < UPLOAD_CHUNK_BYTES) {
		s->wants_room = false;
		s->on_room(s->req);
	}
}

static void
start_drop(struct upload_store *s)
{
	struct err err;
	if (s->put == NULL && !s->is_committed)
		return;
	if (work_start_cleanup(&s->work, s->req, s->req->env->io, run_drop, on_dropped, &err) ==
	    ERR_OK)
		return;
	/* The worker is ending: better a short wait here than a temporary file that stays. */
	blob_put_abort(&s->put);
	if (s->is_committed)
		log_warn("bytes of a failed upload stay behind", LOG_C("request_id", s->req->id),
		    LOG_ERR(&err));
	s->is_committed = false;
}

static void
start_write(struct upload_store *s)
{
	struct err err;
	struct buf tmp = s->drain;
	s->drain = s->fill;
	s->fill = tmp;
	s->commits = s->is_last;
	if (work_start(&s->work, s->req, s->req->env->io, run_write, on_written, &err) == ERR_OK)
		return;
	s->is_dead = true;
	start_drop(s);
	s->on_end(s->req, &err);
}

static void
pump(struct upload_store *s)
{
	if (s->work.is_busy)
		return;
	if (s->is_dead)
		start_drop(s);
	else if (!s->is_committed && (s->is_last || s->fill.len >= UPLOAD_CHUNK_BYTES))
		start_write(s);
}

static void
free_buffers(void *arg)
{
	struct upload_store *s = arg;
	CHECK(s->put == NULL);
	buf_done(&s->fill);
	buf_done(&s->drain);
}

void
upload_store_init(struct upload_store *s, struct request *req, struct str id)
{
	s->req = req;
	s->work.arg = s;
	buf_init(&s->fill, BUFFER_MAX_BYTES);
	buf_init(&s->drain, BUFFER_MAX_BYTES);
	arena_defer(req->arena, free_buffers, s);
	blob_key(id, s->key);
}

void
upload_store_add(struct upload_store *s, struct str bytes)
{
	if (s->is_dead)
		return;
	CHECK(!s->is_last);
	buf_add(&s->fill, bytes);
	if (s->fill.overflowed) {
		const struct err err = {.code = ERR_NOMEM, .msg = "an upload's buffer is full"};
		upload_store_drop(s);
		s->on_end(s->req, &err);
		return;
	}
	pump(s);
}

bool
upload_store_has_room(struct upload_store *s)
{
	s->wants_room = !s->is_dead && s->fill.len >= UPLOAD_CHUNK_BYTES;
	return !s->wants_room;
}

void
upload_store_finish(struct upload_store *s)
{
	s->is_last = true;
	pump(s);
}

void
upload_store_drop(struct upload_store *s)
{
	s->is_dead = true;
	pump(s);
}
