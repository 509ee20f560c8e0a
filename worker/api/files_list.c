/* GET /files: pages of both vendors and both generations of Anthropic's paging. */
#include "base/clock.h"
#include "base/utf8.h"
#include "worker/api/files.h"
#include "worker/api/handlers.h"
#include "worker/api/query.h"
#include "worker/api/reading.h"

#define BODY_MAX_BYTES (8u * 1024u * 1024u) /* 1000 files of the longest names, escaped */

struct file_list {
	struct reading reading;
	struct file_query query;
	struct store_file_scope scope;
	struct store_file *files;
	size_t count;
	bool has_more;
};

static enum err_code
read_list(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct file_list *l = (struct file_list *)r;
	const struct file_query *fq = &l->query;
	if (fq->by_ids)
		return store_file_list_ids(db, a, &l->scope, fq->ids, fq->id_count, clock_wall_ms(),
		    &l->files, &l->count, reterr);
	const struct store_file_query q = {
	    .scope = l->scope,
	    .purpose = fq->purpose,
	    .after_id = fq->after,
	    .before_id = fq->before,
	    .limit = fq->limit,
	    .ascending = fq->ascending,
	    .now_ms = clock_wall_ms(),
	};
	return store_file_list(db, a, &q, &l->files, &l->count, &l->has_more, reterr);
}

static void
answer_list(struct request *req, struct reading *r)
{
	struct file_list *l = (struct file_list *)r;
	struct files_page page = {l->files, l->count, l->has_more, STR_NULL};
	if (l->has_more && l->count > 0 && l->query.before.ptr == NULL)
		page.next_page = query_page_token(req->arena, l->files[l->count - 1].id);
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	files_write_page(&w, req->wire, &page);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static void
refuse_list(struct request *req, struct reading *r, const struct err *err)
{
	struct file_list *l = (struct file_list *)r;
	if (err->code == ERR_NOTFOUND && l->query.after_is_token)
		request_errorf(req, 400, "page: not a token of this list");
	else
		files_refuse(
		    req, l->query.after.ptr != NULL ? l->query.after : l->query.before, err);
}

/* What can be in no row never reaches the database; false: answered. */
static bool
check_texts(struct request *req, struct file_query *q)
{
	struct str cursor = q->after.ptr != NULL ? q->after : q->before;
	const struct err unknown = {.code = ERR_NOTFOUND};
	if (cursor.ptr != NULL && !files_id_ok(cursor)) {
		if (q->after_is_token)
			request_errorf(req, 400, "page: not a token of this list");
		else
			files_refuse(req, cursor, &unknown);
		return false;
	}
	if (!utf8_valid(q->purpose) || !utf8_valid(q->user) || q->purpose.len > 255 ||
	    q->user.len > 255) {
		request_errorf(req, 422, "purpose and user: must be UTF-8 of at most 255 bytes");
		return false;
	}
	size_t kept = 0;
	for (size_t i = 0; i < q->id_count; i++) {
		if (files_id_ok(q->ids[i]))
			q->ids[kept++] = q->ids[i];
	}
	q->id_count = kept;
	return true;
}

void
files_show_all(struct request *req)
{
	struct file_list *l = ARENA_NEW(req->arena, struct file_list);
	struct err err;
	if (l == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	int status =
	    query_read_files(req->arena, http_head(req->x)->query, req->wire, &l->query, &err);
	if (status != 0) {
		request_error(req, status, NULL, str_c(err.msg));
		return;
	}
	if (!check_texts(req, &l->query) ||
	    !files_scope(req, l->query.user, l->query.workspace_id, &l->scope))
		return;
	l->reading.read = read_list;
	l->reading.answer = answer_list;
	l->reading.refuse = refuse_list;
	if (l->query.by_ids && l->query.id_count == 0)
		answer_list(req, &l->reading);
	else
		reading_start(req, &l->reading);
}
