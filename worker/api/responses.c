/* GET and DELETE /responses/{id}, its input items, and the cancelling that there is none of. */
#include "base/clock.h"
#include "base/json_write.h"
#include "storage/sql/store_response.h"
#include "worker/api/handlers.h"
#include "worker/api/reading.h"
#include "worker/api/responses_page.h"
#include "worker/http/uri.h"

#define ID_MAX_BYTES 128u

struct response_reading {
	struct reading reading;
	struct store_response_scope scope;
	struct str id;
	struct responses_page_query query;
	struct store_response response;
	struct str body;
};

static void
say_unknown(struct request *req, struct str id)
{
	struct str text = arena_printf(req->arena, "Response with id '%.*s' not found.",
	    STR_FMT(str_sub(id, 0, ID_MAX_BYTES)));
	request_error_coded(req, 404, NULL, NULL, text);
}

static void
refuse(struct request *req, struct reading *r, const struct err *err)
{
	struct response_reading *rr = (struct response_reading *)r;
	if (err->code == ERR_NOTFOUND)
		say_unknown(req, rr->id);
	else
		request_fail(req, err);
}

/* The master key names a user, and sees what that user keeps in the default workspace. */
static struct response_reading *
response_reading_new(struct request *req)
{
	struct response_reading *rr = ARENA_NEW(req->arena, struct response_reading);
	const struct caller *c = &req->caller;
	if (rr == NULL) {
		request_errorf(req, 500, "Internal server error");
		return NULL;
	}
	rr->id = req->path_id;
	rr->scope = (struct store_response_scope){c->user_id, c->workspace_id};
	rr->reading.refuse = refuse;
	if (c->is_master)
		rr->scope.user_id = query_get(req->arena, http_head(req->x)->query, "user");
	if (rr->scope.user_id.len == 0) {
		request_error_coded(req, 400, "user", NULL,
		    STR("With the master key, 'user' must name whose responses are meant"));
		return NULL;
	}
	if (rr->id.len > ID_MAX_BYTES) {
		say_unknown(req, rr->id);
		return NULL;
	}
	return rr;
}

static enum err_code
get(struct response_reading *rr, struct db *db, struct arena *a, struct err *reterr)
{
	return store_response_get(db, a, &rr->scope, rr->id, clock_wall_s(), &rr->response, reterr);
}

/* --- show ----------------------------------------------------------------------------------------
 */
static enum err_code
read_response(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	return get((struct response_reading *)r, db, a, reterr);
}

static void
answer_show(struct request *req, struct reading *r)
{
	req->status = 200;
	http_reply(req->x, 200, "application/json",
	    ((struct response_reading *)r)->response.response_json);
}

void
responses_show(struct request *req)
{
	struct str stream = query_get(req->arena, http_head(req->x)->query, "stream");
	if (stream.len > 0 && !str_eq_nocase(stream, STR("false"))) {
		request_error_coded(req, 400, "stream", "unsupported_parameter",
		    STR("A kept response is not streamed again: there are no background responses "
			"here"));
		return;
	}
	struct response_reading *rr = response_reading_new(req);
	if (rr == NULL)
		return;
	rr->reading.read = read_response;
	rr->reading.answer = answer_show;
	reading_start(req, &rr->reading);
}

/* --- delete --------------------------------------------------------------------------------------
 */
static enum err_code
delete_response(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct response_reading *rr = (struct response_reading *)r;
	(void)a;
	return store_response_delete(db, &rr->scope, rr->id, reterr);
}

static void
answer_delete(struct request *req, struct reading *r)
{
	struct buf body = BUF_INIT(4096);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	jw_kstr(&w, "id", ((struct response_reading *)r)->id);
	jw_kcstr(&w, "object", "response");
	jw_kbool(&w, "deleted", true);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

void
responses_delete(struct request *req)
{
	struct response_reading *rr = response_reading_new(req);
	if (rr == NULL)
		return;
	rr->reading.read = delete_response;
	rr->reading.answer = answer_delete;
	reading_start(req, &rr->reading);
}

/* --- input items ---------------------------------------------------------------------------------
 */
static enum err_code
read_page(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct response_reading *rr = (struct response_reading *)r;
	struct buf body = BUF_INIT(STORE_RESPONSE_MAX_BYTES + 4096);
	enum err_code rc = get(rr, db, a, reterr);
	if (rc != ERR_OK)
		return rc;
	rc = responses_page_write(a, rr->response.input_json, &rr->query, &body, reterr);
	if (rc == ERR_OK && body.overflowed)
		rc = err_set(reterr, ERR_INTERNAL, "a page of input items outgrew its limit");
	if (rc == ERR_OK)
		rr->body = arena_str(a, buf_str(&body));
	buf_done(&body);
	return rc;
}

static void
answer_page(struct request *req, struct reading *r)
{
	req->status = 200;
	http_reply(req->x, 200, "application/json", ((struct response_reading *)r)->body);
}

static void
refuse_page(struct request *req, struct reading *r, const struct err *err)
{
	if (err->code == ERR_INPUT)
		request_error_coded(req, 400, "after", NULL, str_c(err->msg));
	else
		refuse(req, r, err);
}

void
responses_show_items(struct request *req)
{
	const char *param = NULL;
	struct err err;
	struct response_reading *rr = response_reading_new(req);
	if (rr == NULL)
		return;
	if (responses_page_read(req->arena, http_head(req->x)->query, &rr->query, &param, &err) !=
	    ERR_OK) {
		request_error_coded(req, 400, param, "invalid_value", str_c(err.msg));
		return;
	}
	rr->reading.read = read_page;
	rr->reading.answer = answer_page;
	rr->reading.refuse = refuse_page;
	reading_start(req, &rr->reading);
}

/* --- cancel --------------------------------------------------------------------------------------
 */
static void
answer_cancel(struct request *req, struct reading *r)
{
	(void)r;
	request_error_coded(req, 400, NULL, NULL, STR("Cannot cancel a synchronous response."));
}

void
responses_cancel(struct request *req)
{
	struct response_reading *rr = response_reading_new(req);
	if (rr == NULL)
		return;
	rr->reading.read = read_response;
	rr->reading.answer = answer_cancel;
	reading_start(req, &rr->reading);
}
