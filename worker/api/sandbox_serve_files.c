#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "ipc/snapshot.h"
#include "worker/api/sandbox_serve.h"
#include "worker/code/protocol.h"
#include "worker/env.h"
#include "worker/http/mime.h"
#include "worker/http/multipart.h"
#include "worker/http/uri.h"
#include "worker/request.h"

#define LIST_MAX_BYTES (32u << 20)
/* Of an upload, beside its file. */
#define FORM_MAX_BYTES (64u << 10)

/* Only the path of a request may be wrong here; the rest is the session's. */
static void
answer_error(struct request *req, const struct err *e)
{
	int status = e->code == ERR_NOTFOUND   ? 404
		     : e->code == ERR_INPUT    ? 403
		     : e->code == ERR_TOOLARGE ? 413
					       : 500;
	request_error(
	    req, status, NULL, status == 500 ? STR("the code session failed") : str_c(e->msg));
}

/* --- list ------------------------------------------------------------------------------------ */

static void
dropped(struct lent_work *w)
{
	serve_claim_end(&w->claim);
	mem_free(w);
}

static void
write_listing(const struct code_listed *files, size_t n, struct buf *dst)
{
	struct jw w;
	char when[PROTOCOL_TIME_SIZE];
	jw_init(&w, dst);
	jw_object(&w);
	jw_key(&w, "files");
	jw_array(&w);
	for (size_t i = 0; i < n; i++) {
		protocol_write_time(files[i].changed_ns, when);
		jw_object(&w);
		jw_kstr(&w, "path", files[i].path);
		jw_ki64(&w, "size_bytes", (int64_t)files[i].size);
		jw_kstr(&w, "mime_type", mime_of_name(files[i].path));
		jw_kcstr(&w, "modified_at", when);
		jw_end_object(&w);
	}
	jw_end_array(&w);
	jw_end_object(&w);
}

static void
on_list(const struct err *e, const struct code_listed *files, size_t n, bool is_all, void *arg)
{
	struct lent_work *w = arg;
	struct request *req = request_get(w->req);
	struct buf body = BUF_INIT(LIST_MAX_BYTES);
	bool ok = e == NULL && is_all;
	if (e != NULL)
		answer_error(req, e);
	else if (!is_all)
		request_errorf(req, 413, "the session has too many files to list");
	else
		write_listing(files, n, &body);
	lent_end(w);
	if (ok)
		lent_answer(w, req, &body);
	else
		dropped(w);
	buf_done(&body);
	request_put(&req);
}

void
serve_list(struct request *req)
{
	struct lent *l = lent_of(req);
	if (l == NULL)
		return;
	struct lent_work *w = MEM_NEW(struct lent_work);
	if (!lent_admit(l, w, req)) {
		mem_free(w);
		return;
	}
	w->dropped = dropped;
	lent_begin(l, w, req);
	code_session_list(l->session, on_list, w);
}

/* --- get ------------------------------------------------------------------------------------- */

struct download {
	struct lent_work work;
	struct str name; /* in the request's arena */
	bool is_paused;
};

static void
go_on(struct download *d)
{
	if (!d->is_paused || d->work.lent == NULL)
		return;
	d->is_paused = false;
	code_session_resume(d->work.lent->session);
}

static void
on_writable(void *arg)
{
	go_on(arg);
}

/* The rest of the file is read and thrown away: others wait behind it. */
static void
on_gone(struct request *req, bool aborted)
{
	(void)aborted;
	struct download *d = req->work;
	if (d != NULL)
		go_on(d);
}

static void
on_begin(void *arg, uint64_t size)
{
	struct download *d = arg;
	struct request *req = d->work.req;
	if (request_closed(req))
		return;
	req->status = 200;
	http_reply_begin(req->x, 200, mime_of_name(d->name).ptr, (int64_t)size);
}

static void
on_data(void *arg, struct str bytes)
{
	struct download *d = arg;
	struct request *req = d->work.req;
	if (request_closed(req))
		return;
	http_reply_write(req->x, bytes);
	if (request_closed(req) || http_can_write(req->x))
		return;
	d->is_paused = true;
	code_session_pause(d->work.lent->session);
	http_on_writable(req->x, on_writable, d);
}

static void
on_got(void *arg, const struct err *e)
{
	struct download *d = arg;
	struct request *req = request_get(d->work.req);
	req->work = NULL;
	if (!request_closed(req)) {
		if (e == NULL)
			http_reply_end(req->x);
		else if (http_reply_begun(req->x))
			http_reply_abort(req->x);
		else
			answer_error(req, e);
	}
	lent_end(&d->work);
	serve_claim_end(&d->work.claim);
	mem_free(d);
	request_put(&req);
}

static void
download_dropped(struct lent_work *w)
{
	w->req->work = NULL;
	serve_claim_end(&w->claim);
	mem_free(w);
}

void
serve_get(struct request *req)
{
	static const struct code_get_ops ops = {on_begin, on_data, on_got};
	struct lent *l = lent_of(req);
	if (l == NULL)
		return;
	struct str path = query_get(req->arena, http_head(req->x)->query, "path"), name;
	if (path.len == 0) {
		request_errorf(req, 400, "path: missing");
		return;
	}
	if (!protocol_read_path(path, &name)) {
		request_errorf(req, 403, "path: leads out of the working directory");
		return;
	}
	struct download *d = MEM_NEW(struct download);
	if (!lent_admit(l, &d->work, req)) {
		mem_free(d);
		return;
	}
	d->name = name;
	d->work.dropped = download_dropped;
	req->work = d;
	req->work_close = on_gone;
	lent_begin(l, &d->work, req);
	code_session_get(l->session, name, &ops, d);
}

/* --- put ------------------------------------------------------------------------------------- */

/* The file is collected in memory of its own before it goes into the session, which is made of
 * memory too: its length must be known first, and a form does not tell it. */
struct upload {
	struct lent_work work; /* lent NULL: the session is not asked yet */
	struct request *req;
	struct multipart *form;
	struct buf path;
	char *filename;
	size_t filename_len;
	int fd;
	uint64_t bytes, max_bytes;
	bool has_file, in_file, in_path, is_over; /* is_over: answered */
};

static void
upload_free(struct upload *u)
{
	serve_claim_end(&u->work.claim);
	fd_close(&u->fd);
	multipart_free(&u->form);
	buf_done(&u->path);
	mem_free(u->filename);
	mem_free(u);
}

/* The client is gone, or was answered, before the session was asked. */
static void
on_upload_closed(struct request *req, bool aborted)
{
	(void)aborted;
	struct upload *u = req->work;
	req->work = NULL;
	if (u != NULL)
		upload_free(u);
}

static void
refuse(struct upload *u, int status, const char *why)
{
	if (u->is_over)
		return;
	u->is_over = true;
	multipart_stop(u->form);
	serve_refuse(u->req, status, str_c(why)); /* may end the exchange, and u with it */
}

static void
refuse_full(struct upload *u, enum serve_verdict v)
{
	if (u->is_over)
		return;
	u->is_over = true;
	multipart_stop(u->form);
	serve_refuse_full(u->req, v);
}

static bool
on_part(void *arg, const struct multipart_part *p)
{
	struct upload *u = arg;
	u->in_file = str_eq(p->name, STR("file"));
	u->in_path = str_eq(p->name, STR("path"));
	if (u->in_path)
		buf_clear(&u->path);
	if (!u->in_file)
		return true;
	if (u->has_file) {
		refuse(u, 400, "file: exactly one is expected");
		return true;
	}
	u->has_file = true;
	u->filename = mem_strndup(p->filename.ptr, p->filename.len);
	u->filename_len = p->filename.len;
	return true;
}

static bool
on_part_data(void *arg, struct str bytes)
{
	struct upload *u = arg;
	if (u->in_path)
		buf_add(&u->path, bytes);
	if (!u->in_file || u->is_over)
		return true;
	u->bytes += bytes.len;
	enum serve_verdict v = serve_claim_add(&u->work.claim, bytes.len);
	if (u->bytes > u->max_bytes)
		refuse(u, 413, "file: larger than a session takes");
	else if (v != SERVE_ADMITTED)
		refuse_full(u, v);
	else if (fd_write_all(u->fd, bytes, NULL) != ERR_OK)
		refuse(u, 503, "no memory for the upload");
	return true;
}

static bool
on_part_end(void *arg)
{
	(void)arg;
	return true;
}

static void
on_put(const struct err *e, void *arg)
{
	struct upload *u = arg;
	struct request *req = request_get(u->work.req);
	if (e != NULL) {
		answer_error(req, e);
	} else {
		struct buf body = BUF_INIT(65536);
		struct jw w;
		jw_init(&w, &body);
		jw_object(&w);
		jw_kstr(&w, "path", buf_str(&u->path));
		jw_ki64(&w, "size_bytes", (int64_t)u->bytes);
		jw_end_object(&w);
		request_reply_json(req, 201, &body);
		buf_done(&body);
	}
	lent_end(&u->work);
	upload_free(u);
	request_put(&req);
}

static void
upload_dropped(struct lent_work *w)
{
	upload_free((struct upload *)w);
}

/* All of the body is here. */
static void
into_session(struct upload *u)
{
	struct request *req = u->req;
	struct lent *l = lent_of(req);
	struct str name;
	if (l == NULL)
		return; /* answered; on_upload_closed frees */
	if (u->path.len == 0)
		buf_add(&u->path, str_n(u->filename, u->filename_len));
	if (u->path.len == 0) {
		refuse(u, 400, "path: missing");
		return;
	}
	if (u->path.overflowed || !protocol_read_path(buf_str(&u->path), &name)) {
		refuse(u, 403, "path: leads out of the working directory");
		return;
	}
	int fd = u->fd;
	u->fd = -1;
	req->work = NULL; /* from here on it is the session's */
	u->work.dropped = upload_dropped;
	lent_begin(l, &u->work, req);
	code_session_put(l->session, name, u->bytes, fd, on_put, u);
}

static bool
on_body(void *arg, struct str bytes)
{
	struct upload *u = ((struct request *)arg)->work;
	struct err e;
	if (u == NULL || u->is_over)
		return true;
	if (multipart_feed(u->form, bytes, &e) != ERR_OK)
		refuse(u, e.code == ERR_TOOLARGE ? 413 : 400, e.msg);
	return true;
}

static void
on_body_end(void *arg, bool ok)
{
	struct upload *u = ((struct request *)arg)->work;
	struct err e;
	if (u == NULL || u->is_over || !ok)
		return;
	if (multipart_end(u->form, &e) != ERR_OK)
		refuse(u, 400, e.msg);
	else if (!u->has_file)
		refuse(u, 400, "file: missing");
	else
		into_session(u);
}

void
serve_put(struct request *req)
{
	static const struct multipart_ops form_ops = {on_part, on_part_data, on_part_end};
	static const struct http_body_sink sink = {on_body, on_body_end};
	uint64_t max = snapshot_policy(req->env->policy)->settings.sandbox_file_bytes;
	const struct http_head *head = http_head(req->x);
	struct err e;
	struct lent *l = lent_of(req);
	if (l == NULL)
		return;
	if (max > SERVE_SESSION_MAX_BYTES)
		max = SERVE_SESSION_MAX_BYTES;
	if (head->content_length > 0 && (uint64_t)head->content_length > max + FORM_MAX_BYTES) {
		request_errorf(req, 413, "file: larger than a session takes");
		return;
	}
	struct upload *u = MEM_NEW(struct upload);
	if (!lent_admit(l, &u->work, req)) {
		mem_free(u);
		return;
	}
	u->req = req;
	u->fd = fd_memfd("upload");
	u->max_bytes = max;
	buf_init(&u->path, PROTOCOL_PATH_MAX);
	req->work = u;
	req->work_close = on_upload_closed;
	if (u->fd < 0)
		request_errorf(req, 503, "no memory for the upload");
	else if (multipart_new(http_header(req->x, "content-type"), &form_ops, u, &u->form, &e) !=
		 ERR_OK)
		request_error(req, 400, NULL, str_c(e.msg));
	else
		http_body_stream(req->x, max + FORM_MAX_BYTES, &sink, req);
}
