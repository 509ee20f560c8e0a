#include "worker/turn/settle.h"

#include <stdio.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "storage/spool.h"
#include "worker/env.h"
#include "worker/request.h"
#include "worker/upstream/target.h"

#define RETRY_MS 500

struct waiting { /* an encoded record that the spool did not take */
	struct waiting *next;
	size_t len;
	unsigned char bytes[LIMIT_SPOOL_RECORD_BYTES];
};

struct settlement {
	struct spool *spool;
	struct board_slot *slot;
	struct event *timer;
	struct waiting *first, **end;
	uint32_t count;
};

static bool
append(struct settlement *s, const struct usage *u)
{
	struct err err;
	if (spool_append(s->spool, u, &err) != ERR_OK) {
		log_warn("usage record waits in memory", LOG_ERR(&err),
		    LOG_INT("waiting", s->count + 1));
		return false;
	}
	board_count(s->slot, BC_USAGE_RECORDS, 1);
	return true;
}

static void
retry(struct settlement *s)
{
	while (s->first != NULL) {
		struct waiting *w = s->first;
		struct usage u;
		size_t len;
		if (spool_decode(str_n(w->bytes, w->len), &u, &len) == SPOOL_RECORD &&
		    !append(s, &u))
			return;
		s->first = w->next;
		if (s->first == NULL)
			s->end = &s->first;
		s->count--;
		mem_free(w);
	}
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct settlement *s = arg;
	retry(s);
	spool_tick(s->spool);
}

enum err_code
settlement_new(struct event_base *base, struct spool *spool, struct board_slot *slot,
    struct settlement **ret, struct err *reterr)
{
	struct settlement *s = MEM_NEW(struct settlement);
	s->spool = spool;
	s->slot = slot;
	s->end = &s->first;
	s->timer = event_new(base, -1, EV_PERSIST, on_timer, s);
	const struct timeval every = {0, RETRY_MS * 1000};
	if (s->timer == NULL || event_add(s->timer, &every) != 0) {
		settlement_free(&s);
		return err_set(reterr, ERR_INTERNAL, "settlement timer");
	}
	*ret = s;
	return ERR_OK;
}

void
settlement_free(struct settlement **sp)
{
	struct settlement *s = *sp;
	if (s == NULL)
		return;
	*sp = NULL;
	retry(s);
	if (s->count > 0) {
		log_error("usage records are lost", LOG_INT("records", s->count));
		board_count(s->slot, BC_USAGE_LOST, s->count);
	}
	while (s->first != NULL) {
		struct waiting *w = s->first;
		s->first = w->next;
		mem_free(w);
	}
	if (s->timer != NULL)
		event_free(s->timer);
	mem_free(s);
}

bool
settlement_is_full(const struct settlement *s)
{
	return s->count >= SETTLEMENT_QUEUE_MAX;
}

static void
settlement_add(struct settlement *s, const struct usage *u)
{
	if (s->first == NULL && append(s, u))
		return;
	if (settlement_is_full(s)) { /* requests that were under way when it filled up */
		log_error("usage record is lost: spool and queue are full",
		    LOG_STR("request_id", u->request_id));
		board_count(s->slot, BC_USAGE_LOST, 1);
		return;
	}
	struct waiting *w = MEM_NEW(struct waiting);
	w->len = spool_encode(u, w->bytes);
	*s->end = w;
	s->end = &w->next;
	s->count++;
}

static int64_t
known(int64_t tokens)
{
	return tokens > 0 ? tokens : 0;
}

void
settle_request(struct request *req, const struct settle_facts *f)
{
	char tools[128];
	struct str tools_json = STR_NULL;
	if (f->code_billed + f->code_errors > 0) {
		int n = snprintf(tools, sizeof(tools),
		    "{\"code_execution\":{\"billed\":%u,\"errors\":%u,\"unit_rate\":0}}",
		    f->code_billed, f->code_errors);
		tools_json = str_n(tools, (size_t)n);
	}
	struct usage u = {
	    .request_id = str_c(req->id),
	    .user_id = req->caller.user_id,
	    .key_id = req->caller.key_id,
	    .workspace_id = req->caller.workspace_id,
	    .endpoint = str_c(req->endpoint),
	    .provider = f->target != NULL ? f->target->instance : STR(""),
	    .model = f->target != NULL ? f->target->model : STR(""),
	    .status = f->error.len == 0 ? STR("success") : STR("error"),
	    .end_user = f->end_user.len > 0 ? f->end_user : STR_NULL,
	    .tools_json = tools_json,
	    .error = f->error.len > 0 ? f->error : STR_NULL,
	    .ts_ms = clock_wall_ms(),
	    .status_code = f->status,
	    .latency_ms = (clock_mono_us() - req->started_us) / 1000,
	    .prompt_tokens = known(f->usage.input),
	    .completion_tokens = known(f->usage.output),
	    .cache_read_tokens = known(f->usage.cache_read),
	    .cache_write_tokens = known(f->usage.cache_write),
	    .reasoning_tokens = known(f->usage.reasoning),
	};
	settlement_add(req->env->settlement, &u);
}
