/* GET /metrics: the board in Prometheus' text format (exposition format 0.0.4). */
#include <inttypes.h>

#include "base/version.h"
#include "ipc/role.h"
#include "worker/api/handlers.h"
#include "worker/env.h"

#define BODY_MAX_BYTES (512u * 1024u)

static void
write_process(struct buf *out, const struct board_slot *s, uint32_t state)
{
	uint32_t role = atomic_load_explicit(&s->role, memory_order_relaxed);
	const char *name = role <= ROLE_SWEEPER ? role_name((enum role)role) : "unknown";
	uint32_t number = atomic_load_explicit(&s->number, memory_order_relaxed);
	buf_printf(out, "otari_process_state{role=\"%s\",number=\"%u\",pid=\"%u\"} %u\n", name,
	    number, atomic_load_explicit(&s->pid, memory_order_relaxed), state);
}

static void
write_generations(struct buf *out, const struct board_slot *s)
{
	uint32_t number = atomic_load_explicit(&s->number, memory_order_relaxed);
	buf_printf(out,
	    "otari_generation{segment=\"policy\",worker=\"%u\"} %" PRIu64 "\n"
	    "otari_generation{segment=\"keys\",worker=\"%u\"} %" PRIu64 "\n",
	    number, (uint64_t)atomic_load_explicit(&s->policy_generation, memory_order_relaxed),
	    number, (uint64_t)atomic_load_explicit(&s->keys_generation, memory_order_relaxed));
}

static void
write_board(struct buf *out, const struct board *b)
{
	for (unsigned c = 0; c < BC_COUNTER_MAX; c++) {
		const char *name = board_counter_name((enum board_counter)c);
		buf_printf(out, "# TYPE otari_%s counter\notari_%s %" PRIu64 "\n", name, name,
		    board_sum(b, (enum board_counter)c));
	}
	for (unsigned g = 0; g < BG_GAUGE_MAX; g++) {
		const char *name = board_gauge_name((enum board_gauge)g);
		buf_printf(out, "# TYPE otari_%s gauge\notari_%s %" PRIu64 "\n", name, name,
		    board_sum_gauge(b, (enum board_gauge)g));
	}
	buf_printf(out,
	    "# HELP otari_sandbox_state 0 off, 1 testing, 2 ready, 3 refused\n"
	    "# TYPE otari_sandbox_state gauge\notari_sandbox_state %u\n"
	    "# TYPE otari_start_time_seconds gauge\notari_start_time_seconds %" PRIu64 "\n",
	    atomic_load_explicit(&b->sandbox_state, memory_order_relaxed),
	    (uint64_t)atomic_load_explicit(&b->started_s, memory_order_relaxed));
}

static void
write_slots(struct buf *out, const struct board *b)
{
	buf_add(out, STR("# HELP otari_process_state 1 starting, 2 ready, 3 draining, 4 dead\n"
			 "# TYPE otari_process_state gauge\n"));
	for (uint32_t i = 0; i < BOARD_SLOTS; i++) {
		uint32_t state = atomic_load_explicit(&b->slot[i].state, memory_order_relaxed);
		if (state != BOARD_FREE)
			write_process(out, &b->slot[i], state);
	}
	buf_add(out, STR("# TYPE otari_generation gauge\n"));
	for (uint32_t i = 0; i < BOARD_SLOTS; i++) {
		const struct board_slot *s = &b->slot[i];
		uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
		if (state != BOARD_FREE &&
		    atomic_load_explicit(&s->role, memory_order_relaxed) == ROLE_WORKER)
			write_generations(out, s);
	}
}

void
metrics_show(struct request *req)
{
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	buf_add(
	    &body, STR("# TYPE otari_build_info gauge\notari_build_info{version=\"" OTARI_VERSION
		       "\"} 1\n"));
	if (req->env->board != NULL) {
		write_board(&body, req->env->board);
		write_slots(&body, req->env->board);
	}
	req->status = 200;
	http_reply(req->x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&body));
	buf_done(&body);
}
