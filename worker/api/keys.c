/* POST, GET, DELETE /keys by the master key. A key is shown once, in the answer that makes it, and
 * kept as its SHA-256.
 */
#include "base/digest.h"
#include "base/limits.h"
#include "base/mem.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"
#include "worker/api/admin_body.h"
#include "worker/api/admin_write.h"
#include "worker/api/change.h"
#include "worker/api/declared.h"
#include "worker/api/handlers.h"
#include "worker/api/query.h"
#include "worker/api/reading.h"

#define KEY_PREFIX      "gw-"
#define KEY_BYTES       (sizeof(KEY_PREFIX) - 1 + 64)
#define KEY_SHOWN_BYTES 10
#define LIST_MAX_BYTES  (32u * 1024u * 1024u)

struct key_change {
	struct change change;
	struct store_key key;
	char id[ID_SIZE], secret[KEY_BYTES + 1], hash_hex[SHA256_HEX + 1];
};

struct key_reading {
	struct reading reading;
	struct admin_query page;
	struct store_key *keys;
	size_t count;
};

/* secret NULL: not shown. */
static void
write_key(struct jw *w, const struct store_key *k, const char *secret)
{
	jw_object(w);
	jw_kstr(w, "id", k->id);
	if (secret != NULL)
		jw_kcstr(w, "key", secret);
	jw_kstr(w, "key_prefix", k->prefix);
	admin_write_text(w, "key_name", k->name);
	jw_kstr(w, "user_id", k->user_id);
	jw_kstr(w, "workspace_id", k->workspace_id);
	admin_write_time(w, "created_at", k->created_at_s);
	admin_write_time(w, "expires_at", k->expires_at_s);
	admin_write_time(w, "last_used_at", k->last_used_at_s);
	jw_kbool(w, "is_active", k->is_active);
	jw_kraw(w, "allowed_models",
	    k->allowed_models_json.ptr != NULL ? k->allowed_models_json : STR("null"));
	jw_kraw(w, "metadata", k->metadata_json.ptr != NULL ? k->metadata_json : STR("{}"));
	jw_end_object(w);
}

/* --- create ------------------------------------------------------------------------------ */

static enum err_code
commit_create(struct change *c, struct db *db, struct err *reterr)
{
	struct key_change *kc = (struct key_change *)c;
	return store_key_create(db, &kc->key, NULL, reterr);
}

static void
answer_create(struct request *req, struct change *c)
{
	struct key_change *kc = (struct key_change *)c;
	struct buf body = BUF_INIT(ADMIN_METADATA_MAX_BYTES * 4);
	struct jw w;
	jw_init(&w, &body);
	write_key(&w, &kc->key, kc->secret);
	mem_wipe(kc->secret, sizeof(kc->secret));
	request_reply_json(req, 200, &body);
	if (body.ptr != NULL)
		mem_wipe(body.ptr, body.len);
	buf_done(&body);
}

/* False: answered. */
static bool
read_key(struct request *req, json_t *o, struct store_key *k)
{
	struct str workspace;
	if (!admin_body_text(req, o, "key_name", &k->name) ||
	    !admin_body_text(req, o, "user_id", &k->user_id) ||
	    !admin_body_text(req, o, "workspace_id", &workspace) ||
	    !admin_body_time(req, o, "expires_at", &k->expires_at_s) ||
	    !admin_body_text_array(req, o, "allowed_models", &k->allowed_models_json) ||
	    !admin_body_object(req, o, "metadata", &k->metadata_json) ||
	    !admin_body_unbuilt(req, o, "exclude_from_budget") ||
	    !admin_body_unbuilt(req, o, "reject_user_mismatch"))
		return false;
	if (str_eq(k->metadata_json, STR(STORE_KEY_DECLARED))) {
		request_errorf(req, 422, "metadata: this value is kept for keys of otari.conf");
		return false;
	}
	if (k->user_id.ptr == NULL)
		k->user_id = STR(STORE_USER_DEFAULT);
	k->workspace_id = STR(STORE_WORKSPACE_DEFAULT);
	if (workspace.ptr != NULL && !query_uuid(req->arena, workspace, &k->workspace_id)) {
		request_errorf(req, 422, "workspace_id: must be a UUID");
		return false;
	}
	return true;
}

static void
mint(struct key_change *kc)
{
	unsigned char hash[SHA256_BYTES];
	id_make("key_", kc->id);
	id_make_token(KEY_PREFIX, kc->secret, sizeof(kc->secret));
	sha256_of(str_c(kc->secret), hash);
	hex_encode(hash, sizeof(hash), kc->hash_hex);
	kc->key.id = str_c(kc->id);
	kc->key.hash_hex = str_c(kc->hash_hex);
	kc->key.prefix = str_n(kc->secret, KEY_SHOWN_BYTES);
	kc->key.is_active = true;
	kc->key.created_at_s = clock_wall_s();
}

static void
on_create_body(void *arg, struct str body)
{
	struct request *req = arg;
	json_t *o = admin_body_parse(req, body);
	if (o == NULL)
		return;
	struct key_change *kc = ARENA_NEW(req->arena, struct key_change);
	if (kc == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	if (!read_key(req, o, &kc->key))
		return;
	mint(kc);
	/* The prefix outlives the secret, which is wiped. */
	kc->key.prefix = arena_str(req->arena, kc->key.prefix);
	kc->change.what = PUBLISH_KEYS;
	kc->change.commit = commit_create;
	kc->change.answer = answer_create;
	kc->change.conflict = "An API key of this id exists already";
	change_start(req, &kc->change);
}

void
keys_create(struct request *req)
{
	http_body_whole(req->x, LIMIT_ADMIN_BODY_BYTES, on_create_body, req);
}

/* --- delete ------------------------------------------------------------------------------ */

static enum err_code
commit_delete(struct change *c, struct db *db, struct err *reterr)
{
	struct key_change *kc = (struct key_change *)c;
	struct store_key row;
	enum err_code code = store_key_get(db, c->work.req->arena, kc->key.id, &row, reterr);
	if (code != ERR_OK)
		return code;
	if (str_eq(row.metadata_json, STR(STORE_KEY_DECLARED)))
		return err_set(reterr, ERR_CONFLICT, "declared in otari.conf");
	return store_key_delete(db, kc->key.id, NULL, reterr);
}

static void
answer_delete(struct request *req, struct change *c)
{
	(void)c;
	request_reply_empty(req, 204);
}

void
keys_delete(struct request *req)
{
	if (declared_refuse(req, "key", req->path_id, "This API key"))
		return;
	struct key_change *kc = ARENA_NEW(req->arena, struct key_change);
	if (kc == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	kc->key.id = req->path_id;
	kc->change.what = PUBLISH_KEYS;
	kc->change.commit = commit_delete;
	kc->change.answer = answer_delete;
	kc->change.conflict = "otari.conf declares this API key: take it out there and reload";
	change_start(req, &kc->change);
}

/* --- read -------------------------------------------------------------------------------- */

static enum err_code
read_all(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct key_reading *kr = (struct key_reading *)r;
	return store_key_list(db, a, kr->page.skip, kr->page.limit, &kr->keys, &kr->count, reterr);
}

static enum err_code
read_one(struct reading *r, struct db *db, struct arena *a, struct err *reterr)
{
	struct key_reading *kr = (struct key_reading *)r;
	kr->keys = ARENA_NEW(a, struct store_key);
	if (kr->keys == NULL)
		return err_set(reterr, ERR_NOMEM, "arena");
	return store_key_get(db, a, r->work.req->path_id, kr->keys, reterr);
}

static void
answer_all(struct request *req, struct reading *r)
{
	struct key_reading *kr = (struct key_reading *)r;
	struct buf body = BUF_INIT(LIST_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	jw_array(&w);
	for (size_t i = 0; i < kr->count; i++)
		write_key(&w, &kr->keys[i], NULL);
	jw_end_array(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static void
answer_one(struct request *req, struct reading *r)
{
	struct key_reading *kr = (struct key_reading *)r;
	struct buf body = BUF_INIT(ADMIN_METADATA_MAX_BYTES * 4);
	struct jw w;
	jw_init(&w, &body);
	write_key(&w, kr->keys, NULL);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

void
keys_show_all(struct request *req)
{
	struct key_reading *kr = ARENA_NEW(req->arena, struct key_reading);
	struct err err;
	if (kr == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	int status = query_read_admin(req->arena, http_head(req->x)->query, &kr->page, &err);
	if (status != 0) {
		request_error(req, status, NULL, str_c(err.msg));
		return;
	}
	kr->reading.read = read_all;
	kr->reading.answer = answer_all;
	reading_start(req, &kr->reading);
}

void
keys_show(struct request *req)
{
	struct key_reading *kr = ARENA_NEW(req->arena, struct key_reading);
	if (kr == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	kr->reading.read = read_one;
	kr->reading.answer = answer_one;
	reading_start(req, &kr->reading);
}
