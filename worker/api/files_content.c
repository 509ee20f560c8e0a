/* GET and HEAD /files/{id}/content: the bytes, read on io threads a chunk at a time, no faster than
 * the client takes them. The first chunk is read before the status is said, so that a missing blob
 * is a 500 and not a short 200.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "storage/blob/blob.h"
#include "worker/api/files.h"
#include "worker/api/handlers.h"
#include "worker/api/reading.h"
#include "worker/env.h"
#include "worker/http/disposition.h"
#include "worker/http/range.h"

#define CHUNK_BYTES (128u * 1024u)

struct download {
	struct reading reading;
	struct store_file_scope scope;
	struct str id, etag;
	struct store_file file;
	uint64_t first, length; /* of the blob */
	uint64_t sent;
	bool is_part, has_begun, is_missing; /* is_missing: the row is there, the blob is not */
	struct work work;
	struct blob_get *get; /* the io thread's while work is busy */
	char *chunk;
	size_t got;
};

/* --- io thread --------------------------------------------------------------------------- */

static enum err_code
close_blob(struct work *w, void *context, struct err *reterr)
{
	struct download *d = w->arg;
	(void)context;
	(void)reterr;
	blob_get_close(&d->get);
	return ERR_OK;
}

static enum err_code
fill_chunk(struct download *d, struct err *reterr)
{
	uint64_t left = d->length - d->sent;
	size_t want = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	d->got = 0;
	while (d->got < want) {
		size_t n = 0;
		enum err_code code =
		    blob_get_read(d->get, d->chunk + d->got, want - d->got, &n, reterr);
		if (code != ERR_OK)
			return code;
		if (n == 0)
			return err_set(
			    reterr, ERR_INTERNAL, "the blob is shorter than its row says");
		d->got += n;
	}
	return ERR_OK;
}

static enum err_code
read_chunk(struct work *w, void *context, struct err *reterr)
{
	struct download *d = w->arg;
	enum err_code code = ERR_OK;
	(void)context;
	if (d->get == NULL)
		code = blob_get_open(
		    w->req->env->blobs, d->file.storage_ref, d->first, d->length, &d->get, reterr);
	if (code == ERR_OK)
		code = fill_chunk(d, reterr);
	d->is_missing = code == ERR_NOTFOUND;
	if (code != ERR_OK || d->sent + d->got == d->length)
		blob_get_close(&d->get);
	return code;
}

/* --- loop -------------------------------------------------------------------------------- */

static void next_chunk(struct request *req, struct download *d);

static void
on_closed(struct work *w, const struct err *err)
{
	struct download *d = w->arg;
	(void)err;
	blob_get_close(&d->get); /* open only when the job never ran */
}

/* The exchange is over: nobody reads on. */
static void
release(struct request *req, struct download *d)
{
	if (d->get == NULL || d->work.is_busy)
		return;
	if (work_start(&d->work, req, req->env->io, close_blob, on_closed, NULL) != ERR_OK)
		blob_get_close(&d->get);
}

static void
on_exchange_end(struct request *req, bool aborted)
{
	(void)aborted;
	release(req, req->work);
}

static void
set_headers(struct request *req, const struct download *d)
{
	struct http_exchange *x = req->x;
	struct arena *a = req->arena;
	http_reply_header(x, "Content-Disposition", disposition_attachment(a, d->file.filename));
	http_reply_header(x, "ETag", d->etag);
	http_reply_header(x, "Accept-Ranges", STR("bytes"));
	http_reply_header(x, "X-Content-Type-Options", STR("nosniff"));
	http_reply_header(x, "Cache-Control", STR("private, no-cache"));
	if (d->is_part)
		http_reply_header(x, "Content-Range",
		    arena_printf(a, "bytes %" PRIu64 "-%" PRIu64 "/%" PRId64, d->first,
			d->first + d->length - 1, d->file.bytes));
}

static void
begin(struct request *req, struct download *d)
{
	struct str mime = d->file.mime_type;
	const char *type =
	    files_mime_ok(mime) ? arena_cstr(req->arena, mime) : "application/octet-stream";
	set_headers(req, d);
	d->has_begun = true;
	req->status = d->is_part ? 206 : 200;
	http_reply_begin(req->x, req->status, type, (int64_t)d->length);
}

static void
on_writable(void *arg)
{
	struct request *req = arg;
	next_chunk(req, req->work);
}

static void
say_missing(struct request *req, struct reading *r)
{
	struct err err;
	(void)r;
	(void)err_set(&err, ERR_INTERNAL, "the blob of a live file is missing");
	request_fail(req, &err);
}

/* Another request may have deleted the file since its row was read: then it is a 404. */
static void
look_again(struct request *req, struct download *d)
{
	d->reading.answer = say_missing;
	reading_start(req, &d->reading);
}

static void
on_chunk(struct work *w, const struct err *err)
{
	struct download *d = w->arg;
	struct request *req = w->req;
	if (request_closed(req)) {
		release(req, d);
		return;
	}
	if (err != NULL) {
		blob_get_close(&d->get); /* open only when the job never ran */
		if (d->is_missing && !d->has_begun)
			look_again(req, d);
		else
			request_fail(req, err); /* cuts the answer off when it has begun */
		return;
	}
	if (!d->has_begun)
		begin(req, d);
	http_reply_write(req->x, str_n(d->chunk, d->got));
	d->sent += d->got;
	if (d->sent == d->length)
		http_reply_end(req->x);
	else if (http_can_write(req->x))
		next_chunk(req, d);
	else
		http_on_writable(req->x, on_writable, req);
}

static void
next_chunk(struct request *req, struct download *d)
{
	struct err err;
	if (work_start(&d->work, req, req->env->io, read_chunk, on_chunk, &err) != ERR_OK)
		request_fail(req, &err);
}

/* --- what is asked for ------------------------------------------------------------------- */

static bool
tag_matches(struct str list, struct str etag)
{
	struct str piece;
	while (str_split(&list, ',', &piece)) {
		piece = str_trim(piece);
		if (str_starts(piece, STR("W/")))
			piece = str_from(piece, 2);
		if (str_eq(piece, etag) || str_eq(piece, STR("*")))
			return true;
	}
	return false;
}

/* False: answered (304, 416). */
static bool
choose_part(struct request *req, struct download *d)
{
	struct http_exchange *x = req->x;
	struct str range = http_header(x, "Range");
	uint64_t size = (uint64_t)d->file.bytes;
	d->first = 0;
	d->length = size;
	if (tag_matches(http_header(x, "If-None-Match"), d->etag)) {
		http_reply_header(x, "ETag", d->etag);
		request_reply_empty(req, 304);
		return false;
	}
	/* Range means GET alone (RFC 9110 §14.2). */
	if (range.ptr == NULL || http_head(x)->method != HTTP_GET ||
	    !range_if_matches(http_header(x, "If-Range"), d->etag))
		return true;
	switch (range_parse(range, size, &d->first, &d->length)) {
	case RANGE_WHOLE:
		return true;
	case RANGE_PART:
		d->is_part = true;
		return true;
	case RANGE_UNSATISFIABLE:
		http_reply_header(
		    x, "Content-Range", arena_printf(req->arena, "bytes */%" PRIu64, size));
		request_errorf(req, 416, "The range lies outside of the file");
		return false;
	}
	return true;
}

static void
answer(struct request *req, struct reading *r)
{
	struct download *d = (struct download *)r;
	if (d->file.storage_ref.ptr == NULL) {
		request_errorf(req, 502,
		    "The provider that made this file holds its bytes, and "
		    "fetching them is not built yet");
		return;
	}
	d->etag = arena_printf(req->arena, "\"%.*s\"", STR_FMT(d->id));
	d->chunk = arena_alloc(req->arena, CHUNK_BYTES);
	if (d->chunk == NULL || d->file.bytes < 0) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (!choose_part(req, d))
		return;
	req->work = d;
	req->work_close = on_exchange_end;
	d->work.arg = d;
	if (http_head(req->x)->method == HTTP_HEAD) {
		begin(req, d);
		http_reply_end(req->x);
		return;
	}
	next_chunk(req, d);
}

static void
refuse(struct request *req, struct reading *r, const struct err *err)
{
	files_refuse(req, ((struct download *)r)->id, err);
}

static enum err_code
read_row(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct download *d = (struct download *)r;
	return store_file_get(db, a, &d->scope, d->id, clock_wall_ms(), &d->file, reterr);
}

void
files_content(struct request *req)
{
	struct download *d = ARENA_NEW(req->arena, struct download);
	if (d == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (!files_id_of_path(req, &d->id) || !files_scope_of_query(req, &d->scope))
		return;
	d->reading.read = read_row;
	d->reading.answer = answer;
	d->reading.refuse = refuse;
	reading_start(req, &d->reading);
}
