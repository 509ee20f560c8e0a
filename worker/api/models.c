/* GET /models and /models/{id}: what otari.conf lists and what the caller's key may use, in the
 * shape of the SDK that asks (an anthropic-version header chooses Anthropic's).
 */
#include "base/clock.h"
#include "base/json_write.h"
#include "worker/api/handlers.h"
#include "worker/api/query.h"
#include "worker/env.h"

#define BODY_MAX_BYTES (4u * 1024u * 1024u)

struct entry {
	struct str id, owner;
};

/* Aliases first, then the listed models, in the order of the configuration. */
static uint32_t
model_count(const struct snapshot *s)
{
	return snapshot_policy(s)->aliases.count + snapshot_policy(s)->models.count;
}

static struct entry
model_at(const struct snapshot *s, uint32_t i)
{
	const struct snap_policy *p = snapshot_policy(s);
	if (i < p->aliases.count) {
		const struct snap_alias *al = SNAP_AT(s, p->aliases, struct snap_alias, i);
		return (struct entry){snapshot_str(s, al->name), STR("otari")};
	}
	const struct snap_model *m = SNAP_AT(s, p->models, struct snap_model, i - p->aliases.count);
	struct str id = snapshot_str(s, m->id);
	size_t colon = str_chr(id, ':');
	return (struct entry){id, colon == SIZE_MAX ? STR("otari") : str_sub(id, 0, colon)};
}

static bool
may_use(const struct caller *c, struct str model)
{
	if (c->any_model)
		return true;
	for (size_t i = 0; i < c->allowed_model_count; i++) {
		if (str_eq(c->allowed_models[i], model))
			return true;
	}
	return false;
}

static int64_t
created_s(const struct worker_env *env)
{
	if (env->board == NULL)
		return 0;
	return (int64_t)atomic_load_explicit(&env->board->started_s, memory_order_relaxed);
}

static void
write_model(struct jw *w, const struct request *req, const struct entry *e)
{
	int64_t created = created_s(req->env);
	jw_object(w);
	if (req->wire == WIRE_MESSAGES) {
		char text[CLOCK_RFC3339_SIZE];
		clock_rfc3339(created, text);
		jw_kcstr(w, "type", "model");
		jw_kstr(w, "id", e->id);
		jw_kstr(w, "display_name", e->id);
		jw_kcstr(w, "created_at", text);
	} else {
		jw_kstr(w, "id", e->id);
		jw_kcstr(w, "object", "model");
		jw_ki64(w, "created", created);
		jw_kstr(w, "owned_by", e->owner);
	}
	jw_end_object(w);
}

static size_t
visible(const struct request *req, struct entry *dst)
{
	const struct snapshot *s = req->env->policy;
	size_t n = 0;
	for (uint32_t i = 0; i < model_count(s); i++) {
		struct entry e = model_at(s, i);
		if (may_use(&req->caller, e.id))
			dst[n++] = e;
	}
	return n;
}

static size_t
position(const struct entry *all, size_t n, struct str id)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(all[i].id, id))
			return i;
	}
	return SIZE_MAX;
}

/* Anthropic's paging over the n models; false: answered with a refusal. */
static bool
pick_page(struct request *req, const struct entry *all, size_t n, struct page_slice *ret)
{
	struct model_query q;
	struct err err;
	int status = query_read_models(req->arena, http_head(req->x)->query, &q, &err);
	if (status != 0) {
		request_error(req, status, NULL, str_c(err.msg));
		return false;
	}
	struct str cursor = q.before_id.ptr != NULL ? q.before_id : q.after_id;
	size_t at = cursor.ptr != NULL ? position(all, n, cursor) : 0;
	if (at == SIZE_MAX) {
		request_errorf(req, 400, "The cursor names no model");
		return false;
	}
	if (q.before_id.ptr != NULL)
		*ret = page_before(at, q.limit);
	else
		*ret = page_from(n, cursor.ptr != NULL ? at + 1 : 0, q.limit);
	return true;
}

static void
write_end_ids(struct jw *w, const struct entry *all, const struct page_slice *p)
{
	jw_kbool(w, "has_more", p->has_more);
	if (p->count == 0) {
		jw_knull(w, "first_id");
		jw_knull(w, "last_id");
		return;
	}
	jw_kstr(w, "first_id", all[p->first].id);
	jw_kstr(w, "last_id", all[p->first + p->count - 1].id);
}

void
models_show_all(struct request *req)
{
	size_t cap = model_count(req->env->policy);
	struct entry *all = ARENA_NEW_ARRAY(req->arena, struct entry, cap + 1);
	if (all == NULL) {
		request_errorf(req, 500, "Internal server error");
		return;
	}
	size_t n = visible(req, all);
	struct page_slice page = {.first = 0, .count = n, .has_more = false};
	if (req->wire == WIRE_MESSAGES && !pick_page(req, all, n, &page))
		return;
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	struct jw w;
	jw_init(&w, &body);
	jw_object(&w);
	if (req->wire != WIRE_MESSAGES)
		jw_kcstr(&w, "object", "list");
	jw_key(&w, "data");
	jw_array(&w);
	for (size_t i = 0; i < page.count; i++)
		write_model(&w, req, &all[page.first + i]);
	jw_end_array(&w);
	if (req->wire == WIRE_MESSAGES)
		write_end_ids(&w, all, &page);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

void
models_show(struct request *req)
{
	const struct snapshot *s = req->env->policy;
	struct entry e = {STR_NULL, STR_NULL};
	for (uint32_t i = 0; i < model_count(s); i++) {
		e = model_at(s, i);
		if (str_eq(e.id, req->path_id) && may_use(&req->caller, e.id))
			break;
		e.id = STR_NULL;
	}
	if (e.id.ptr == NULL) {
		struct str name = str_sub(req->path_id, 0, 200);
		request_errorf(req, 404, "The model '%.*s' does not exist", STR_FMT(name));
		return;
	}
	struct buf body = BUF_INIT(64u * 1024u);
	struct jw w;
	jw_init(&w, &body);
	write_model(&w, req, &e);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}
