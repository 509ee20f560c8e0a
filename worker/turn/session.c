/* The code session of a turn: opened, and given the files that the request brought.
 *
 * `local` opens at the first call of a tool, so that a request that declares one and never calls it
 * costs nothing; `remote` before the model is asked, so that its failure is an HTTP error. */
#include "worker/code/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "ipc/board.h"
#include "worker/env.h"
#include "worker/http/http.h"
#include "worker/request.h"
#include "worker/turn/seed.h"
#include "worker/turn/turn.h"

static void
on_seeded(void *arg, const struct err *err)
{
	struct turn *t = arg;
	t->seeding = NULL;
	if (err == NULL)
		t->session_then(t);
	else
		turn_fail(t, err->code == ERR_BUSY ? 503 : 502, NULL, str_c(err->msg));
}

static void
refused(struct turn *t, const struct err *e)
{
	board_count(t->req->env->slot, BC_LEASE_REFUSALS, 1);
	log_warn("no code session", LOG_C("request_id", t->req->id), LOG_ERR(e));
	if (!t->has_begun && e->code == ERR_BUSY)
		http_reply_header(t->req->x, "Retry-After",
		    arena_printf(
			t->req->arena, "%u", code_backend_retry_after_s(t->req->env->code)));
	if (e->code == ERR_UPSTREAM || e->code == ERR_TIMEOUT)
		turn_fail(t, 502, NULL, STR("the code sandbox is unreachable"));
	else
		turn_failf(t, e->code == ERR_PROTO ? 502 : 503,
		    "the code sandbox is not available: %s", e->msg);
}

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct turn *t = arg;
	struct err err;
	t->opening = NULL;
	t->session = s;
	if (s == NULL) {
		refused(t, e);
		return;
	}
	board_count(t->req->env->slot, BC_LEASES, 1);
	board_count(
	    t->req->env->slot, BC_LEASE_WAIT_US, (uint64_t)(clock_mono_us() - t->opening_us));
	if (seed_start(t->req, s, &t->files, on_seeded, t, &t->seeding, &err) != ERR_OK)
		turn_fail(t, 503, NULL, STR("the gateway is busy"));
	else if (t->seeding == NULL)
		t->session_then(t);
}

void
turn_with_session(struct turn *t, void (*then)(struct turn *t))
{
	if (t->session != NULL) {
		then(t);
		return;
	}
	t->session_then = then;
	t->session_is_used = false;
	t->opening_us = clock_mono_us();
	t->opening = code_session_open_image(t->req->env->code, t->plan.workspace_id, t->plan.image,
	    t->plan.limits.queue_ms, on_open, t);
}

void
turn_begin(struct turn *t)
{
	if (t->plan.decision.outcome == EXECUTOR_HERE &&
	    code_backend_opens_early(t->req->env->code))
		turn_with_session(t, turn_round);
	else
		turn_round(t);
}

void
turn_session_close(struct turn *t)
{
	code_open_cancel(&t->opening);
	seed_cancel(&t->seeding);
	code_session_close(&t->session);
}
