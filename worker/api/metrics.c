/* GET /metrics: the board in Prometheus' text format (exposition format 0.0.4). */
#include <inttypes.h>
#include <string.h>

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
		/* Members of one family follow each other. */
		if (c <= BC_KILLS_TIMEOUT || c > BC_KILLS_DIED)
			buf_printf(
			    out, "# TYPE otari_%.*s counter\n", (int)strcspn(name, "{"), name);
		buf_printf(
		    out, "otari_%s %" PRIu64 "\n", name, board_sum(b, (enum board_counter)c));
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
write_layers(struct buf *out, const struct board_sandbox *s)
{
	buf_add(out, STR("# HELP otari_sandbox_layer 1: the wall is in that state\n"
			 "# TYPE otari_sandbox_layer gauge\n"));
	for (uint32_t l = 0; l < SB_LAYERS_; l++) {
		uint32_t now = atomic_load_explicit(&s->layer[l], memory_order_relaxed);
		for (uint32_t k = SB_ACTIVE; now != SB_UNKNOWN && k <= SB_MISSING; k++)
			buf_printf(out, "otari_sandbox_layer{layer=\"%s\",state=\"%s\"} %d\n",
			    lease_layer_name((enum sandbox_layer)l), lease_layer_state_name(k),
			    k == now);
	}
	buf_add(out, STR("# HELP otari_sandbox_zygote 1: it is in that state\n"
			 "# TYPE otari_sandbox_zygote gauge\n"));
	uint32_t z = atomic_load_explicit(&s->zygote, memory_order_relaxed);
	for (uint32_t k = 0; k < LEASE_ZYGOTE_STATES_; k++)
		buf_printf(
		    out, "otari_sandbox_zygote{state=\"%s\"} %d\n", lease_zygote_name(k), k == z);
}

static void
write_pool(struct buf *out, const struct board_sandbox *s)
{
	const struct {
		const char *name, *type;
		uint64_t value;
	} rows[] = {{"pool_leased", "gauge", s->leased}, {"pool_starting", "gauge", s->starting},
	    {"pool_max", "gauge", s->max}, {"waiting", "gauge", s->waiting},
	    {"sessions_failed_total", "counter", s->failed},
	    {"zygotes_failed_total", "counter", s->zygotes_failed}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		buf_printf(out, "# TYPE otari_sandbox_%s %s\notari_sandbox_%s %" PRIu64 "\n",
		    rows[i].name, rows[i].type, rows[i].name, rows[i].value);
	uint64_t sum = 0;
	buf_add(
	    out, STR("# HELP otari_sandbox_session_seconds how long a session takes to be made\n"
		     "# TYPE otari_sandbox_session_seconds histogram\n"));
	for (size_t i = 0; i < LEASE_TIMES; i++) {
		sum += atomic_load_explicit(&s->times[i], memory_order_relaxed);
		if (i < LEASE_TIMES - 1)
			buf_printf(out,
			    "otari_sandbox_session_seconds_bucket{le=\"%.3f\"} %" PRIu64 "\n",
			    lease_time_ms(i) / 1e3, sum);
	}
	buf_printf(out,
	    "otari_sandbox_session_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n"
	    "otari_sandbox_session_seconds_sum %.6f\notari_sandbox_session_seconds_count %" PRIu64
	    "\n",
	    sum, (double)s->made_us / 1e6, sum);
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
		write_layers(&body, &req->env->board->sandbox);
		write_pool(&body, &req->env->board->sandbox);
		write_slots(&body, req->env->board);
	}
	req->status = 200;
	http_reply(req->x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&body));
	buf_done(&body);
}
