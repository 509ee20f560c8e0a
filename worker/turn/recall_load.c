#include "worker/turn/recall_load.h"

#include <stdio.h>

#include "base/clock.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"

#define ID_SHOWN_BYTES 128

struct load {
	struct job job;
	struct request *req; /* reference: the arena outlives the job */
	struct store_response_scope scope;
	const struct recall_wants *wants;
	struct recall_found *ret;
	void (*done)(void *arg);
	void *arg;
	/* the thread's */
	struct db *db;
	int64_t now_s;
	struct store_response *loaded; /* distinct */
	size_t count, bytes;
	size_t *holder_of;
	struct str missing; /* item that nobody holds */
	enum err_code rc;
	struct err err;
};

/* --- on the thread -------------------------------------------------------------------------------
 */
static enum err_code
fetch(struct load *l, struct str id, size_t *ret_at)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->loaded[i].id, id)) {
			*ret_at = i;
			return ERR_OK;
		}
	struct store_response *r = &l->loaded[l->count];
	enum err_code rc =
	    store_response_get(l->db, l->req->arena, &l->scope, id, l->now_s, r, &l->err);
	if (rc != ERR_OK)
		return rc;
	l->bytes += r->input_json.len + r->response_json.len;
	if (l->bytes > RECALL_LOAD_MAX_BYTES)
		return err_set(&l->err, ERR_TOOLARGE, "what the request goes on from is too large");
	*ret_at = l->count++;
	return ERR_OK;
}

static enum err_code
fetch_holder(struct load *l, size_t i)
{
	struct str id = STR_NULL, item = l->wants->references[i];
	enum err_code rc =
	    store_response_of_item(l->db, l->req->arena, &l->scope, item, l->now_s, &id, &l->err);
	if (rc == ERR_OK)
		rc = fetch(l, id, &l->holder_of[i]);
	if (rc == ERR_NOTFOUND)
		l->missing = item;
	return rc;
}

static enum err_code
fetch_all(struct load *l)
{
	struct arena *a = l->req->arena;
	size_t n = l->wants->reference_count, at = 0;
	enum err_code rc = ERR_OK;
	l->loaded = ARENA_NEW_ARRAY(a, struct store_response, n + 1);
	l->holder_of = ARENA_NEW_ARRAY(a, size_t, n + 1);
	if (l->loaded == NULL || l->holder_of == NULL)
		return err_set(&l->err, ERR_TOOLARGE, "the request is too large");
	bool has_previous = l->wants->previous_id.ptr != NULL;
	if (has_previous)
		rc = fetch(l, l->wants->previous_id, &at);
	for (size_t i = 0; rc == ERR_OK && i < n; i++)
		rc = fetch_holder(l, i);
	*l->ret = (struct recall_found){
	    .previous = has_previous ? &l->loaded[at] : NULL,
	    .holders = l->loaded,
	    .holder_of = l->holder_of,
	    .bytes = l->bytes,
	};
	return rc;
}

static void
run(struct job *j, void *context)
{
	struct load *l = j->arg;
	l->db = context;
	if (context == NULL)
		l->rc = err_set(&l->err, ERR_BUSY, "no database connection");
	else
		l->rc = fetch_all(l);
}

/* --- on the loop ---------------------------------------------------------------------------------
 */
static void
refuse_missing(struct load *l)
{
	bool is_item = l->missing.ptr != NULL;
	struct str id = str_sub(is_item ? l->missing : l->wants->previous_id, 0, ID_SHOWN_BYTES);
	char text[512];
	if (is_item)
		(void)snprintf(text, sizeof(text),
		    "Item with id '%.*s' not found. Items are not persisted when `store` is set to "
		    "false. Try again with `store` set to true, or remove this item from your "
		    "input.",
		    STR_FMT(id));
	else
		(void)snprintf(
		    text, sizeof(text), "Previous response with id '%.*s' not found.", STR_FMT(id));
	request_error_coded(l->req, 404, is_item ? "input" : "previous_response_id",
	    is_item ? NULL : "previous_response_not_found", str_c(text));
}

static void
done(struct job *j, bool cancelled)
{
	struct load *l = j->arg;
	struct request *req = l->req;
	if (cancelled)
		l->rc = err_set(&l->err, ERR_BUSY, "the gateway is stopping");
	if (!request_closed(req)) {
		if (l->rc == ERR_NOTFOUND)
			refuse_missing(l);
		else if (l->rc != ERR_OK)
			request_fail(req, &l->err);
		else
			l->done(l->arg);
	}
	request_put(&req);
}

void
recall_load_start(struct request *req, const struct store_response_scope *scope,
    const struct recall_wants *wants, struct recall_found *ret, void (*on_done)(void *arg),
    void *arg)
{
	struct err err;
	struct load *l = ARENA_NEW(req->arena, struct load);
	if (l == NULL) {
		request_errorf(req, 413, "the request is too large");
		return;
	}
	*l = (struct load){.job = {.run = run, .done = done, .arg = l},
	    .req = request_get(req), /* before the thread can look at it */
	    .scope = *scope,
	    .wants = wants,
	    .ret = ret,
	    .done = on_done,
	    .arg = arg};
	if (jobs_submit(req->env->sql, &l->job, &err) == ERR_OK)
		return;
	request_put(&l->req);
	request_fail(req, &err);
}
