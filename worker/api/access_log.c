#include "worker/api/access_log.h"

#include "base/clock.h"
#include "base/log.h"

#define PATH_MAX_BYTES 512

static void
count(struct board_slot *slot, const struct access_entry *e)
{
	board_count(slot, BC_REQUESTS, 1);
	board_count(slot, BC_BYTES_IN, e->bytes_in);
	board_count(slot, BC_BYTES_OUT, e->bytes_out);
	if (e->aborted)
		board_count(slot, BC_CLIENT_ABORTS, 1);
	if (e->status >= 500)
		board_count(slot, BC_RESPONSES_5XX, 1);
	else if (e->status >= 400)
		board_count(slot, BC_RESPONSES_4XX, 1);
	else if (e->status >= 200)
		board_count(slot, BC_RESPONSES_2XX, 1);
}

struct line {
	struct log_field f[16];
	size_t n;
};

static void
add(struct line *l, struct log_field f)
{
	if (l->n < ARRAY_LEN(l->f))
		l->f[l->n++] = f;
}

static void
add_str(struct line *l, const char *key, struct str value)
{
	if (value.len > 0)
		add(l, LOG_STR(key, value));
}

static void
add_request(struct line *l, const struct request *req)
{
	add(l, LOG_INT("ms", (clock_mono_us() - req->started_us) / 1000));
	add(l, LOG_C("request_id", req->id));
	if (req->caller.is_master)
		add(l, LOG_C("key_id", "master"));
	else
		add_str(l, "key_id", req->caller.key_id);
	add_str(l, "provider", req->provider);
	add_str(l, "model", str_sub(req->model, 0, 255));
	add_str(l, "cause", str_sub(req->cause, 0, 255));
	if (req->code_runs > 0)
		add(l, LOG_INT("code_runs", req->code_runs));
}

void
access_log(struct worker_env *env, struct http_exchange *x, const struct request *req,
    const struct access_entry *e)
{
	if (env->slot != NULL)
		count(env->slot, e);
	const struct http_head *head = http_head(x);
	struct line l = {.n = 0};
	if (head != NULL && req != NULL) {
		add(&l, LOG_C("method", http_method_name(head->method)));
		add_str(&l, "path", str_sub(head->path, 0, PATH_MAX_BYTES));
		add_str(&l, "peer", head->peer);
	}
	add(&l, LOG_INT("status", e->status));
	add(&l, LOG_INT("bytes_in", e->bytes_in));
	add(&l, LOG_INT("bytes_out", e->bytes_out));
	if (req != NULL)
		add_request(&l, req);
	if (e->aborted)
		add(&l, LOG_INT("aborted", 1));
	log_write(LOG_INFO, "request", l.f, l.n);
}
