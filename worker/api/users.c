/* POST and GET /users, the little that keys need, by the master key. */
#include "base/limits.h"
#include "storage/sql/store_user.h"
#include "worker/api/admin_body.h"
#include "worker/api/admin_write.h"
#include "worker/api/change.h"
#include "worker/api/handlers.h"
#include "worker/api/query.h"
#include "worker/api/reading.h"

#define LIST_MAX_BYTES (8u * 1024u * 1024u)

struct user_change {
	struct change change;
	struct store_user user;
};

struct user_reading {
	struct reading reading;
	struct admin_query page;
	struct store_user *users;
	size_t count;
};

static void
write_user(struct jw *w, const struct store_user *u)
{
	jw_object(w);
	jw_kstr(w, "user_id", u->id);
	admin_write_text(w, "alias", u->alias);
	jw_kraw(w, "spend", STR("0.0"));
	jw_kraw(w, "reserved", STR("0.0"));
	jw_knull(w, "budget_id");
	jw_kbool(w, "blocked", u->blocked);
	admin_write_time(w, "created_at", u->created_at_s);
	jw_end_object(w);
}

static enum err_code
commit_create(struct change *c, struct db *db, struct err *reterr)
{
	return store_user_create(db, &((struct user_change *)c)->user, NULL, reterr);
}

static void
answer_create(struct request *req, struct change *c)
{
	struct buf body = BUF_INIT(64u * 1024u);
	struct jw w;
	jw_init(&w, &body);
	write_user(&w, &((struct user_change *)c)->user);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static void
on_create_body(void *arg, struct str body)
{
	struct request *req = arg;
	json_t *o = admin_body_parse(req, body);
	if (o == NULL)
		return;
	struct user_change *uc = ARENA_NEW(req->arena, struct user_change);
	if (uc == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (!admin_body_text(req, o, "user_id", &uc->user.id) ||
	    !admin_body_text(req, o, "alias", &uc->user.alias) ||
	    !admin_body_bool(req, o, "blocked", &uc->user.blocked) ||
	    !admin_body_unbuilt(req, o, "budget_id"))
		return;
	if (uc->user.id.ptr == NULL) {
		request_errorf(req, 422, "user_id: is required");
		return;
	}
	uc->user.created_at_s = clock_wall_s();
	uc->change.what = PUBLISH_KEYS;
	uc->change.commit = commit_create;
	uc->change.answer = answer_create;
	uc->change.conflict = "A user of this user_id exists already";
	change_start(req, &uc->change);
}

void
users_create(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_create_body, req);
}

static enum err_code
read_users(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct user_reading *ur = (struct user_reading *)r;
	return store_user_list(
	    db, a, ur->page.skip, ur->page.limit, &ur->users, &ur->count, reterr);
}

static void
answer_users(struct request *req, struct reading *r)
{
	struct user_reading *ur = (struct user_reading *)r;
	struct buf body = BUF_INIT(LIST_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	jw_array(&w);
	for (size_t i = 0; i < ur->count; i++)
		write_user(&w, &ur->users[i]);
	jw_end_array(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

void
users_show_all(struct request *req)
{
	struct user_reading *ur = ARENA_NEW(req->arena, struct user_reading);
	struct err err;
	if (ur == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	int status = query_read_admin(req->arena, http_head(req->x)->query, &ur->page, &err);
	if (status != 0) {
		request_error(req, status, NULL, str_c(err.msg));
		return;
	}
	ur->reading.read = read_users;
	ur->reading.answer = answer_users;
	reading_start(req, &ur->reading);
}
