/* POST /files: a multipart form, streamed into the blob store; the row is made when the blob is
 * whole. No faster than the store takes it, at constant memory.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "worker/api/files.h"
#include "worker/api/handlers.h"
#include "worker/api/upload_form.h"
#include "worker/api/upload_store.h"
#include "worker/env.h"
#include "worker/http/multipart.h"

/* What a form may weigh beside its file. */
#define FORM_MAX_BYTES                                                                             \
	((uint64_t)LIMIT_MULTIPART_PARTS *                                                         \
	    (LIMIT_MULTIPART_HEAD_BYTES + LIMIT_MULTIPART_FIELD_BYTES))

struct upload {
	struct request *req;
	struct multipart *form;
	struct upload_store store;
	struct upload_form fields;
	struct work sql;
	char id[ID_SIZE];
	uint64_t max_bytes, bytes;
	struct str filename, mime; /* of the file part */
	enum { PART_NONE, PART_FILE, PART_FIELD } part;
	struct str field_name;
	struct buf field;
	bool has_file, is_over; /* is_over: answered, or given up */
	struct store_file row;
};

/* Nothing more is wanted of this upload. */
static void
give_up(struct upload *u)
{
	u->is_over = true;
	multipart_stop(u->form);
	upload_store_drop(&u->store);
}

static void
refuse(struct upload *u, const struct err *err)
{
	give_up(u);
	request_fail(u->req, err);
}

static void
refuse_size(struct upload *u)
{
	give_up(u);
	request_errorf(u->req, 413, "File too large: at most %llu MB are allowed",
	    (unsigned long long)(u->max_bytes >> 20));
}

/* --- parts of the form ------------------------------------------------------------------- */

static void
begin_file(struct upload *u, const struct multipart_part *p)
{
	struct arena *a = u->req->arena;
	u->part = PART_FILE;
	if (u->has_file) {
		give_up(u);
		request_errorf(u->req, 400, "file: exactly one file is expected");
		return;
	}
	u->has_file = true;
	if (!files_name_clean(a, p->filename, &u->filename)) {
		give_up(u);
		request_errorf(u->req, 400,
		    "file: the filename has control characters or more than %u bytes",
		    LIMIT_FILENAME_BYTES);
		return;
	}
	if (u->filename.len == 0)
		u->filename = str_c(u->id);
	u->mime = files_mime(a, p->content_type, u->filename);
}

/* Back-pressure is that of the connection: the reader itself is never paused. */

static bool
on_part(void *arg, const struct multipart_part *p)
{
	struct upload *u = arg;
	u->part = PART_NONE;
	if (str_eq(p->name, STR("file"))) {
		begin_file(u, p);
	} else if (!p->has_filename) { /* another file is nobody's */
		u->part = PART_FIELD;
		u->field_name = arena_str(u->req->arena, p->name);
		buf_clear(&u->field);
	}
	return true;
}

static bool
on_data(void *arg, struct str bytes)
{
	struct upload *u = arg;
	if (u->part == PART_FIELD)
		buf_add(&u->field, bytes);
	if (u->part != PART_FILE)
		return true;
	u->bytes += bytes.len;
	if (u->bytes > u->max_bytes)
		refuse_size(u);
	else
		upload_store_add(&u->store, bytes);
	return true;
}

static bool
on_part_end(void *arg)
{
	struct upload *u = arg;
	struct err err;
	if (u->part == PART_FIELD && upload_form_field(&u->fields, u->req->arena, u->field_name,
					 buf_str(&u->field), &err) != ERR_OK)
		refuse(u, &err);
	return true;
}

static const struct multipart_ops form_ops = {on_part, on_data, on_part_end};

/* --- the body ---------------------------------------------------------------------------- */

static bool
on_body(void *arg, struct str bytes)
{
	struct upload *u = arg;
	struct err err;
	if (u->is_over)
		return true;
	enum err_code code = multipart_feed(u->form, bytes, &err);
	if (!u->is_over && code != ERR_OK)
		refuse(u, &err);
	return u->is_over || upload_store_has_room(&u->store);
}

static void
on_room(struct request *req)
{
	if (!request_closed(req))
		http_body_resume(req->x);
}

static void
on_body_end(void *arg, bool ok)
{
	struct upload *u = arg;
	struct request *req = u->req;
	struct store_file_scope scope;
	if (u->is_over)
		return;
	if (!ok) {
		give_up(u);
		return;
	}
	struct err err;
	if (multipart_end(u->form, &err) != ERR_OK) {
		refuse(u, &err);
		return;
	}
	if (!u->has_file) {
		give_up(u);
		request_errorf(req, 422, "file: is required");
	} else if (u->bytes == 0) {
		give_up(u);
		request_errorf(req, 400, "The file is empty");
	} else if (!files_scope(req, u->fields.user,
		       req->caller.is_master ? req->caller.workspace_id : STR_NULL, &scope)) {
		give_up(u);
	} else {
		u->row.user_id = scope.user_id;
		u->row.workspace_id = scope.workspace_id;
		upload_store_finish(&u->store);
	}
}

/* --- the row ----------------------------------------------------------------------------- */

static void
fill_row(struct upload *u)
{
	const struct snap_settings *s = &snapshot_policy(u->req->env->policy)->settings;
	struct store_file *f = &u->row;
	int64_t now = clock_wall_ms();
	f->id = str_c(u->id);
	f->filename = u->filename;
	f->mime_type = u->mime;
	f->purpose = u->fields.purpose.len > 0 ? u->fields.purpose : STR(UPLOAD_PURPOSE_DEFAULT);
	f->storage_ref = str_c(u->store.key);
	f->bytes = (int64_t)u->bytes;
	f->created_at_ms = now;
	f->expires_at_ms = upload_form_expiry(&u->fields, now, s->files_retention_hours);
}

static enum err_code
insert_row(struct work *w, void *context, struct err *reterr)
{
	struct upload *u = w->arg;
	struct db *db;
	enum err_code code = work_db(context, &db, reterr);
	return code == ERR_OK ? store_file_insert(db, &u->row, reterr) : code;
}

static void
answer(struct upload *u)
{
	struct request *req = u->req;
	struct buf body = BUF_INIT(64u * 1024u);
	struct jw w;
	if (req->env->slot != NULL) {
		board_count(req->env->slot, BC_FILES_STORED, 1);
		board_count(req->env->slot, BC_FILE_BYTES_STORED, u->bytes);
	}
	jw_init(&w, &body);
	files_write(&w, req->wire, &u->row);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static void
on_inserted(struct work *w, const struct err *err)
{
	struct upload *u = w->arg;
	u->is_over = true;
	if (err == NULL) {
		answer(u);
		return;
	}
	/* Where the row may have been made, its bytes stay. */
	if (err->code != ERR_UNCERTAIN)
		upload_store_drop(&u->store);
	request_fail(u->req, err);
}

static void
on_stored(struct request *req, const struct err *err)
{
	struct upload *u = req->work;
	struct err why;
	if (u->is_over)
		return;
	if (err != NULL) {
		u->is_over = true;
		request_fail(req, err);
		return;
	}
	fill_row(u);
	u->sql.arg = u;
	if (work_start(&u->sql, req, req->env->sql, insert_row, on_inserted, &why) != ERR_OK)
		refuse(u, &why);
}

/* --- start ------------------------------------------------------------------------------- */

static void
on_exchange_end(struct request *req, bool aborted)
{
	struct upload *u = req->work;
	(void)aborted;
	/* A row that is being made is made, whether or not the client still hears of it. */
	if (!u->is_over && !u->sql.is_busy)
		give_up(u);
}

static void
release(void *arg)
{
	struct upload *u = arg;
	multipart_free(&u->form);
	buf_done(&u->field);
}

static struct upload *
upload_new(struct request *req)
{
	struct upload *u = ARENA_NEW(req->arena, struct upload);
	struct err err;
	if (u == NULL) {
		request_errorf(req, 500, "Internal server error");
		return NULL;
	}
	u->req = req;
	u->max_bytes = snapshot_policy(req->env->policy)->settings.files_max_bytes;
	id_make("file-", u->id);
	buf_init(&u->field, LIMIT_MULTIPART_FIELD_BYTES);
	arena_defer(req->arena, release, u);
	enum err_code code =
	    multipart_new(http_header(req->x, "Content-Type"), &form_ops, u, &u->form, &err);
	if (code != ERR_OK) {
		request_errorf(req, 415, "The body must be multipart/form-data with a boundary");
		return NULL;
	}
	upload_store_init(&u->store, req, str_c(u->id));
	u->store.on_room = on_room;
	u->store.on_end = on_stored;
	return u;
}

void
files_upload(struct request *req)
{
	static const struct http_body_sink sink = {on_body, on_body_end};
	struct upload *u = upload_new(req);
	if (u == NULL)
		return;
	req->work = u;
	req->work_close = on_exchange_end;
	const struct http_head *head = http_head(req->x);
	if (head->content_length >= 0 &&
	    (uint64_t)head->content_length > u->max_bytes + FORM_MAX_BYTES)
		refuse_size(u);
	else
		http_body_stream(req->x, u->max_bytes + FORM_MAX_BYTES, &sink, u);
}
