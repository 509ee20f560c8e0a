#include "worker/turn/carry_store.h"

#include "base/clock.h"
#include "base/log.h"
#include "worker/env.h"
#include "worker/jobs.h"
#include "worker/request.h"

struct carrying {
	struct job job;
	struct request *req; /* reference: the arena outlives the job */
	struct store_response_scope scope;
	const char *failure; /* what a log line says of it */
	void (*done)(void *arg);
	void *arg;
	enum err_code rc;
	struct err err;
	/* saving */
	struct str call_id, text;
	/* loading */
	struct conversation *conv; /* NULL: it saves */
	struct str ids[STORE_TOOL_RESULT_IDS_MAX], texts[STORE_TOOL_RESULT_IDS_MAX];
	size_t count;
};

static void
run(struct job *j, void *context)
{
	struct carrying *c = j->arg;
	int64_t now_s = clock_wall_s();
	if (context == NULL) {
		c->rc = err_set(&c->err, ERR_BUSY, "no database connection");
	} else if (c->conv != NULL) {
		c->rc = store_tool_result_get(context, c->req->arena, &c->scope, c->ids, c->count,
		    CARRY_LOAD_MAX_BYTES, now_s, c->texts, &c->err);
	} else {
		struct store_tool_result row = {
		    .scope = c->scope,
		    .call_id = c->call_id,
		    .text = c->text,
		    .expires_at_s = now_s + CARRY_HOURS * 3600,
		};
		c->rc = store_tool_result_put(context, &row, now_s, &c->err);
	}
}

static void
warn(const struct carrying *c, const struct err *err)
{
	log_warn(c->failure, LOG_C("request_id", c->req->id), LOG_ERR(err));
}

static void
done(struct job *j, bool cancelled)
{
	struct carrying *c = j->arg;
	struct request *req = c->req;
	if (cancelled && c->rc == ERR_OK)
		c->rc = err_set(&c->err, ERR_BUSY, "the gateway is stopping");
	if (c->rc != ERR_OK)
		warn(c, &c->err);
	else if (c->conv != NULL && !request_closed(req))
		carry_attach(c->conv, c->ids, c->texts, c->count);
	if (!request_closed(req))
		c->done(c->arg);
	request_put(&req);
}

static struct carrying *
carrying_new(struct request *req, const struct store_response_scope *scope,
    void (*on_done)(void *arg), void *arg)
{
	struct carrying *c = ARENA_NEW(req->arena, struct carrying);
	if (c == NULL)
		return NULL;
	c->job = (struct job){.run = run, .done = done, .arg = c};
	c->req = req;
	c->scope = *scope;
	c->done = on_done;
	c->arg = arg;
	return c;
}

static bool
submit(struct carrying *c)
{
	struct err err;
	(void)request_get(c->req); /* before the thread can look at it */
	if (jobs_submit(c->req->env->sql, &c->job, &err) == ERR_OK)
		return true;
	warn(c, &err);
	request_put(&c->req);
	return false;
}

bool
carry_save(struct request *req, const struct store_response_scope *scope, const struct carry *carry,
    void (*on_done)(void *arg), void *arg)
{
	struct str text = carry_text(carry, req->arena);
	struct carrying *c = text.len > 0 ? carrying_new(req, scope, on_done, arg) : NULL;
	if (c == NULL)
		return false;
	c->failure = "a tool result could not be kept for the client's next request";
	c->call_id = carry->call_id;
	c->text = text;
	return submit(c);
}

bool
carry_load(struct request *req, const struct store_response_scope *scope, struct conversation *conv,
    void (*on_done)(void *arg), void *arg)
{
	struct str ids[STORE_TOOL_RESULT_IDS_MAX];
	size_t n = carry_find(conv, ids);
	struct carrying *c = n > 0 ? carrying_new(req, scope, on_done, arg) : NULL;
	if (c == NULL)
		return false;
	c->failure = "kept tool results could not be read; the request goes on without them";
	c->conv = conv;
	c->count = n;
	for (size_t i = 0; i < n; i++)
		c->ids[i] = ids[i];
	return submit(c);
}
