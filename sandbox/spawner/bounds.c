/* bounds.c - the cgroups of the sessions, as the spawner uses them */
#include <errno.h>
#include <stdio.h>

#include <event2/event.h>

#include "base/log.h"
#include "sandbox/spawner/broker.h"

uint32_t
bounds_slots(const struct broker *b)
{
	return b->settings.max_sessions + BROKER_SPARE_SLOTS;
}

bool
bounds_make(struct broker *b, struct jail_fail *f)
{
	const struct sandbox_settings *s = &b->settings;
	struct cgroup_places places;
	struct cgroup_wish wish = {.memory_bytes = s->memory_bytes,
	    .pids = s->pids,
	    .cpu_percent = s->cpu_percent,
	    .slots = bounds_slots(b)};
	if (s->no_cgroup != 0) {
		b->cgroup = (struct cgroup){.why = "turned off"};
	} else {
		cgroup_read_places(&places);
		(void)cgroup_sweep(&places); /* of one that was killed */
		if (cgroup_make(&b->cgroup, &places, &wish))
			return true;
	}
	if (s->require_cgroup == 0)
		return true;
	errno = b->cgroup.sys_errno;
	return jail_failed(f, SB_MEMORY_CGROUP, b->cgroup.why);
}

void
bounds_report(struct broker *b)
{
	static const struct {
		enum cgroup_controller controller;
		enum sandbox_layer layer;
		const char *with, *without;
	} rows[] = {
	    {CGROUP_PIDS, SB_PIDS_CGROUP, "processes of a session are counted",
		"the limit of processes (RLIMIT_NPROC) alone"},
	    {CGROUP_CPU, SB_CPU_CGROUP, "processor time of a session is bounded",
		"sandbox_cpu does not apply"},
	};
	char text[96];
	const struct cgroup *c = &b->cgroup;
	if (cgroup_bounds(c, CGROUP_MEMORY)) {
		(void)snprintf(
		    text, sizeof(text), "cgroup v%u: memory of a session is bounded", c->version);
		report_set(b, SB_MEMORY_CGROUP, SB_ACTIVE, 0, text);
	} else {
		(void)snprintf(
		    text, sizeof(text), "limits per process and a watch: %.55s", b->cgroup.why);
		report_set(b, SB_MEMORY_CGROUP, SB_DEGRADED, b->cgroup.sys_errno, text);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_there = cgroup_bounds(c, rows[i].controller);
		report_set(b, rows[i].layer, is_there ? SB_ACTIVE : SB_DEGRADED, 0,
		    is_there ? rows[i].with : rows[i].without);
	}
	if (b->settings.cpu_percent == 0)
		report_set(b, SB_CPU_CGROUP, SB_ACTIVE, 0, "no bound was asked for");
}

void
bounds_lost(struct broker *b)
{
	const struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED)
			return; /* it is still in its own: when it has ended */
	log_error("somebody removed the cgroups of the sandboxes, the spawner starts again");
	b->exit_code = 1;
	(void)event_base_loopbreak(b->base);
}

bool
bounds_take_slot(struct broker *b, uint32_t *ret)
{
	/* The kernel may still be at the end of the last session's files. */
	for (uint32_t n = b->slots.free_count; n > 0; n--) {
		if (!slots_take(&b->slots, ret))
			return false;
		if (cgroup_slot_is_clean(&b->cgroup, *ret))
			return true;
		if (cgroup_slot_is_lost(&b->cgroup, *ret)) {
			slots_give(&b->slots, *ret);
			bounds_lost(b);
			return false;
		}
		slots_give(&b->slots, *ret);
	}
	return false;
}

bool
bounds_hold(struct broker *b, const struct session *s)
{
	return !cgroup_bounds(&b->cgroup, CGROUP_MEMORY) ||
	       cgroup_slot_usage(&b->cgroup, s->slot) > 0;
}

void
bounds_session_gone(struct broker *b, const struct session *s)
{
	uint64_t kills = cgroup_slot_kills(&b->cgroup, s->slot);
	if (kills > 0) {
		b->stats.memory_kills++;
		stats_changed(b);
		log_notice("a sandbox session met its memory limit", LOG_INT("slot", s->slot),
		    LOG_INT("killed", kills), LOG_INT("limit_bytes", b->settings.memory_bytes));
	}
}
