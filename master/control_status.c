#include "master/control_status.h"

#include <sys/utsname.h>

#include <unistd.h>

#include "base/clock.h"
#include "base/json_write.h"
#include "base/version.h"
#include "ipc/board.h"
#include "ipc/role.h"
#include "master/link.h"
#include "master/master.h"
#include "master/snapshots.h"

static const char *
phase_name(enum master_phase p)
{
	static const char *const names[] = {
	    [MASTER_READ_CONF] = "starting",
	    [MASTER_BUILD] = "starting",
	    [MASTER_START] = "starting",
	    [MASTER_RUN] = "running",
	    [MASTER_DRAIN] = "draining",
	    [MASTER_END] = "ending",
	};
	return names[p];
}

/* On another host: whether it can be reached is seen by the workers. */
bool
control_is_remote(const struct master *m)
{
	return m->conf.sandbox.url.len > 0 && !link_is_wanted(&m->conf);
}

static const char *
sandbox_state_name(const struct master *m)
{
	static const char *const names[] = {"off", "testing", "ready", "refused"};
	uint32_t state = m->board->sandbox_state;
	if (control_is_remote(m))
		return "remote";
	return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

void
control_write_result(struct buf *out, const struct master *m, const char *error)
{
	struct jw w;
	jw_init(&w, out);
	jw_object(&w);
	jw_kbool(&w, "ok", error == NULL);
	if (error != NULL)
		jw_kcstr(&w, "error", error);
	jw_ki64(&w, "generation", (int64_t)snapshots_generation(m));
	jw_end_object(&w);
}

static void
write_child(struct jw *w, const struct child *c, int64_t now_ms)
{
	struct board_slot *s = c->slot;
	jw_object(w);
	jw_kcstr(w, "role", role_name(c->role));
	jw_ki64(w, "number", c->number);
	jw_ki64(w, "pid", c->pid);
	jw_kcstr(w, "state", child_state_name(c->state));
	jw_ki64(w, "age_s", (now_ms - c->started_ms) / 1000);
	jw_ki64(w, "starts", c->seat != NULL ? (int64_t)c->seat->starts : 1);
	if (c->role == ROLE_WORKER) {
		jw_ki64(w, "policy_generation", (int64_t)s->policy_generation);
		jw_ki64(w, "keys_generation", (int64_t)s->keys_generation);
		jw_ki64(w, "connections", (int64_t)s->gauges[BG_CONNECTIONS]);
		jw_ki64(w, "requests_active", (int64_t)s->gauges[BG_REQUESTS_ACTIVE]);
		jw_ki64(w, "requests", (int64_t)s->counters[BC_REQUESTS]);
		jw_ki64(w, "heartbeat_age_ms", now_ms - (int64_t)s->heartbeat_ms);
	}
	jw_end_object(w);
}

/* What the layers do not say: the kernel, the ready-made interpreters, the sessions there are. */
static void
write_state(struct jw *w, const struct master *m, const struct lease_selftest *r)
{
	const struct lease_stats *s = link_stats(m);
	struct utsname u;
	if (uname(&u) == 0)
		jw_kcstr(w, "kernel", u.release);
	jw_kcstr(w, "ids", r->layer[SB_UID_RANGE].state == SB_ACTIVE ? "range" : "one");
	if (s == NULL)
		return;
	jw_key(w, "zygote");
	jw_object(w);
	jw_kcstr(w, "state", lease_zygote_name(s->zygote));
	if (s->zygote_text[0] != '\0')
		jw_kcstr(w, "text", s->zygote_text);
	jw_ki64(w, "interpreters", s->zygote_forks);
	jw_ki64(w, "failures", (int64_t)s->zygotes_failed);
	jw_end_object(w);
	jw_key(w, "pool");
	jw_object(w);
	jw_ki64(w, "ready", s->ready);
	jw_ki64(w, "leased", s->leased);
	jw_ki64(w, "starting", s->starting);
	jw_ki64(w, "waiting", s->waiting);
	jw_ki64(w, "max", s->max);
	jw_ki64(w, "made", (int64_t)s->made);
	jw_ki64(w, "made_mean_us", s->made > 0 ? (int64_t)(s->made_us / s->made) : 0);
	jw_ki64(w, "failed", (int64_t)s->failed);
	jw_ki64(w, "memory_kills", (int64_t)s->memory_kills);
	jw_end_object(w);
}

static void
write_sandbox(struct jw *w, const struct master *m, const struct control_trial *trial)
{
	const struct lease_selftest *r = link_selftest(m);
	jw_object(w);
	jw_kcstr(w, "state", sandbox_state_name(m));
	if (control_is_remote(m)) {
		jw_kstr(w, "url", m->conf.sandbox.url);
		if (trial != NULL) {
			jw_kbool(w, "runs_code", trial->ok);
			jw_kstr(w, "text", trial->text);
		}
	} else if (r != NULL) {
		jw_kcstr(w, "text", r->text);
		write_state(w, m, r);
		jw_key(w, "layers");
		jw_array(w);
		for (size_t i = 0; i < SB_LAYERS_; i++) {
			const struct sandbox_layer_report *l = &r->layer[i];
			enum sandbox_layer layer = (enum sandbox_layer)i;
			jw_object(w);
			jw_kcstr(w, "name", lease_layer_name(layer));
			jw_kcstr(w, "state", lease_layer_state_name(l->state));
			if (l->sys_errno != 0)
				jw_ki64(w, "errno", l->sys_errno);
			if (l->text[0] != '\0')
				jw_kcstr(w, "text", l->text);
			if (l->state == SB_MISSING || l->state == SB_DEGRADED)
				jw_kcstr(w, "hint", lease_layer_hint(layer, l->sys_errno));
			jw_end_object(w);
		}
		jw_end_array(w);
	}
	jw_end_object(w);
}

static void
write_status(struct jw *w, struct master *m)
{
	int64_t now_ms = clock_mono_ms();
	jw_kcstr(w, "version", OTARI_VERSION);
	jw_kcstr(w, "phase", phase_name(m->phase));
	jw_ki64(w, "pid", getpid());
	jw_ki64(w, "started_s", (int64_t)m->board->started_s);
	jw_kcstr(w, "conf", m->opt.conf_path);
	jw_kstr(w, "host", m->conf.host);
	jw_ki64(w, "port", m->port);
	if (m->admin_fd >= 0)
		jw_ki64(w, "admin_port", m->admin_port);
	if (m->serve_fd >= 0)
		jw_ki64(w, "sandbox_serve_port", m->serve_port);
	jw_ki64(w, "generation", (int64_t)snapshots_generation(m));
	jw_kbool(w, "is_settled", publish_is_settled(&m->publish));
	jw_ki64(w, "last_reload_s", m->last_reload_s);
	if (m->last_error[0] != '\0')
		jw_kcstr(w, "last_reload_error", m->last_error);
	jw_key(w, "sandbox");
	jw_object(w);
	jw_kcstr(w, "state", sandbox_state_name(m));
	jw_end_object(w);
	jw_key(w, "children");
	jw_array(w);
	struct child *c;
	TAILQ_FOREACH(c, &m->children, link)
		if (c->role != ROLE_BUILDER)
			write_child(w, c, now_ms);
	jw_end_array(w);
}

bool
control_write_report(struct buf *out, struct master *m, struct str command)
{
	struct jw w;
	jw_init(&w, out);
	jw_object(&w);
	jw_kbool(&w, "ok", true);
	if (str_eq(command, STR("status"))) {
		write_status(&w, m);
	} else if (str_eq(command, STR("generation"))) {
		jw_ki64(&w, "generation", (int64_t)snapshots_generation(m));
	} else {
		return false;
	}
	jw_end_object(&w);
	return true;
}

void
control_write_sandbox(struct buf *out, const struct master *m, const struct control_trial *trial)
{
	struct jw w;
	jw_init(&w, out);
	jw_object(&w);
	jw_kbool(&w, "ok", true);
	jw_key(&w, "sandbox");
	write_sandbox(&w, m, trial);
	jw_end_object(&w);
}
