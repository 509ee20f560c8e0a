/* GET /health: one word for anybody, the processes and the reasons on the administrative listener.
 */
#include "base/clock.h"
#include "base/json_write.h"
#include "base/version.h"
#include "ipc/role.h"
#include "worker/api/handlers.h"
#include "worker/code/session.h"
#include "worker/env.h"

#define BODY_MAX_BYTES (512u * 1024u)

enum sandbox_state {
	SANDBOX_OFF,
	SANDBOX_TESTING,
	SANDBOX_READY,
	SANDBOX_REFUSED,
	SANDBOX_REMOTE, /* whether it can be reached shows when it is asked */
};

static enum sandbox_state
sandbox_state(const struct worker_env *env)
{
	if (env->code == NULL || env->board == NULL)
		return SANDBOX_OFF;
	if (code_backend_opens_early(env->code))
		return SANDBOX_REMOTE;
	uint32_t s = atomic_load_explicit(&env->board->sandbox_state, memory_order_relaxed);
	return s <= SANDBOX_REFUSED ? (enum sandbox_state)s : SANDBOX_REFUSED;
}

static const char *
sandbox_word(enum sandbox_state s)
{
	static const char *const words[] = {"off", "testing", "ready", "refused", "remote"};
	return words[s];
}

static const char *
health_word(const struct worker_env *env, enum sandbox_state s)
{
	return s == SANDBOX_REFUSED || env->policy == NULL ? "degraded" : "ok";
}

void
health_public(struct request *req)
{
	struct buf body = BUF_INIT(4096);
	struct jw w;
	enum sandbox_state s = sandbox_state(req->env);
	jw_init(&w, &body);
	jw_object(&w);
	jw_kcstr(&w, "status", health_word(req->env, s));
	jw_kcstr(&w, "sandbox", sandbox_word(s));
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}

static const char *
state_name(uint32_t state)
{
	static const char *const names[] = {"free", "starting", "ready", "draining", "dead"};
	return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

static void
write_process(struct jw *w, const struct board_slot *s, uint32_t state)
{
	uint64_t beat = atomic_load_explicit(&s->heartbeat_ms, memory_order_relaxed);
	uint32_t role = atomic_load_explicit(&s->role, memory_order_relaxed);
	jw_object(w);
	jw_kcstr(w, "role", role <= ROLE_SWEEPER ? role_name((enum role)role) : "unknown");
	jw_ki64(w, "number", atomic_load_explicit(&s->number, memory_order_relaxed));
	jw_ki64(w, "pid", atomic_load_explicit(&s->pid, memory_order_relaxed));
	jw_kcstr(w, "state", state_name(state));
	if (beat == 0)
		jw_knull(w, "heartbeat_age_ms");
	else
		jw_ki64(w, "heartbeat_age_ms", clock_mono_ms() - (int64_t)beat);
	jw_ki64(w, "policy_generation",
	    (int64_t)atomic_load_explicit(&s->policy_generation, memory_order_relaxed));
	jw_ki64(w, "keys_generation",
	    (int64_t)atomic_load_explicit(&s->keys_generation, memory_order_relaxed));
	jw_end_object(w);
}

void
health_details(struct request *req)
{
	const struct worker_env *env = req->env;
	struct buf body = BUF_INIT(BODY_MAX_BYTES);
	struct jw w;
	enum sandbox_state s = sandbox_state(env);
	jw_init(&w, &body);
	jw_object(&w);
	jw_kcstr(&w, "status", health_word(env, s));
	jw_kcstr(&w, "version", OTARI_VERSION);
	jw_kcstr(&w, "sandbox", sandbox_word(s));
	struct str why = STR("");
	if (env->code != NULL && !code_backend_ready(env->code, &why))
		jw_kstr(&w, "sandbox_reason", why);
	else
		jw_knull(&w, "sandbox_reason");
	jw_key(&w, "processes");
	jw_array(&w);
	for (uint32_t i = 0; env->board != NULL && i < BOARD_SLOTS; i++) {
		const struct board_slot *slot = &env->board->slot[i];
		uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
		if (state != BOARD_FREE)
			write_process(&w, slot, state);
	}
	jw_end_array(&w);
	jw_end_object(&w);
	request_reply_json(req, 200, &body);
	buf_done(&body);
}
