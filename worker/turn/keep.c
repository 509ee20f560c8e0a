#include "worker/turn/keep.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"

#define ITEM_ID_MAX_BYTES 128u

struct keep {
	struct job job;
	struct request *req; /* reference: the arena outlives the job */
	const struct keep_plan *plan;
	struct str out; /* in the arena: the client may go away with its buffers */
	bool is_stream;
	void (*done)(void *arg);
	void *arg;
	enum err_code rc;
	struct err err;
};

/* --- pure ----------------------------------------------------------------------------------------
 */
struct str
keep_response_of(struct arena *a, struct str out, bool is_stream)
{
	static const struct str mark = STR_INIT("data: ");
	struct jval root;
	struct str rest = str_trim(out);
	if (!is_stream)
		return rest.len > 0 ? rest : STR_NULL;
	size_t line = str_rchr(rest, '\n');
	if (line != SIZE_MAX)
		rest = str_from(rest, line + 1);
	if (!str_starts(rest, mark) ||
	    jdoc_parse(a, str_from(rest, mark.len), &root, NULL) != ERR_OK)
		return STR_NULL;
	struct jval response = jv_get(root, "response");
	return jv_is(response, JT_OBJECT) ? jv_raw(response) : STR_NULL;
}

static bool
is_id(struct str id)
{
	return id.len > 0 && id.len <= ITEM_ID_MAX_BYTES;
}

enum err_code
keep_row(struct arena *a, const struct keep_plan *plan, struct str response, int64_t now_s,
    struct store_response *ret, struct err *reterr)
{
	struct jval root;
	struct jiter it = {0};
	enum err_code rc = jdoc_parse(a, response, &root, reterr);
	if (rc != ERR_OK)
		return rc;
	struct str id = jv_str(a, jv_get(root, "id"));
	struct jval output = jv_get(root, "output");
	size_t room = plan->item_count + jv_count(output), n = 0;
	struct str *ids = ARENA_NEW_ARRAY(a, struct str, room + 1);
	if (!is_id(id))
		return err_set(reterr, ERR_INPUT, "the response has no id to be kept by");
	if (ids == NULL)
		return err_set(reterr, ERR_NOMEM, "the response is too large to be kept");
	while (jv_is(output, JT_ARRAY) && jv_next(output, &it)) {
		struct str item = jv_str(a, jv_get(it.value, "id"));
		if (is_id(item) && n < STORE_RESPONSE_ITEMS_MAX)
			ids[n++] = item;
	}
	for (size_t i = 0; i < plan->item_count; i++)
		if (is_id(plan->item_ids[i]) && n < STORE_RESPONSE_ITEMS_MAX)
			ids[n++] = plan->item_ids[i];
	*ret = (struct store_response){
	    .id = id,
	    .scope = plan->scope,
	    .provider = plan->provider,
	    .created_at_s = now_s,
	    .expires_at_s =
		plan->retention_hours == 0 ? 0 : now_s + (int64_t)plan->retention_hours * 3600,
	    .input_json = plan->input,
	    .response_json = response,
	    .item_ids = ids,
	    .item_count = n,
	};
	return ERR_OK;
}

/* --- the job -------------------------------------------------------------------------------------
 */
/* A provider that gives every answer the same id: its user's latest is the one that is meant. */
static enum err_code
insert(struct db *db, const struct store_response *row, struct err *reterr)
{
	enum err_code rc = store_response_insert(db, row, reterr);
	if (rc == ERR_CONFLICT && store_response_delete(db, &row->scope, row->id, NULL) == ERR_OK)
		rc = store_response_insert(db, row, reterr);
	return rc;
}

static void
run(struct job *j, void *context)
{
	struct keep *k = j->arg;
	struct store_response row;
	if (context == NULL) {
		k->rc = err_set(&k->err, ERR_BUSY, "no database connection");
		return;
	}
	/* Found here and not on the loop: what the code printed may make it large. */
	struct str response = keep_response_of(k->req->arena, k->out, k->is_stream);
	if (response.ptr == NULL)
		return;
	k->rc = keep_row(k->req->arena, k->plan, response, clock_wall_s(), &row, &k->err);
	if (k->rc == ERR_OK)
		k->rc = insert(context, &row, &k->err);
}

static void
warn(const struct request *req, const struct err *err)
{
	log_warn("a response could not be kept", LOG_C("request_id", req->id), LOG_ERR(err));
}

static void
done(struct job *j, bool cancelled)
{
	struct keep *k = j->arg;
	struct request *req = k->req;
	if (cancelled && k->rc == ERR_OK)
		k->rc = err_set(&k->err, ERR_BUSY, "the gateway is stopping");
	if (k->rc != ERR_OK)
		warn(req, &k->err);
	if (!request_closed(req))
		k->done(k->arg);
	request_put(&req);
}

bool
keep_start(struct request *req, const struct keep_plan *plan, struct str out, bool is_stream,
    void (*on_done)(void *arg), void *arg)
{
	struct err err = {.code = ERR_NOMEM, .msg = "the response is too large to be kept"};
	if (!plan->is_wanted || out.len == 0)
		return false;
	struct keep *k = ARENA_NEW(req->arena, struct keep);
	if (k != NULL) {
		*k = (struct keep){.job = {.run = run, .done = done, .arg = k},
		    .plan = plan,
		    .out = arena_str(req->arena, out),
		    .is_stream = is_stream,
		    .done = on_done,
		    .arg = arg};
		k->req = req;
	}
	if (k == NULL || k->out.len == 0) {
		warn(req, &err);
		return false;
	}
	(void)request_get(req); /* before the thread can look at it */
	if (jobs_submit(req->env->sql, &k->job, &err) == ERR_OK)
		return true;
	request_put(&k->req);
	warn(req, &err);
	return false;
}
