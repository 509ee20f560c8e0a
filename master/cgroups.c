#include "master/cgroups.h"

#include <poll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "master/master.h"
#include "sandbox/cgroup/cgroup.h"

#define SWEEPS_MAX 20u /* ticks */
#define END_STEPS  50
#define END_MS     20

void
cgroups_step_aside(struct master *m)
{
	struct cgroup_places p;
	const struct child *c;
	size_t n = 0, room = 1;
	if (m->has_stepped_aside)
		return;
	m->has_stepped_aside = true;
	TAILQ_FOREACH(c, &m->children, link)
		room++;
	pid_t *pids = MEM_NEW_ARRAY(pid_t, room);
	pids[n++] = getpid();
	TAILQ_FOREACH(c, &m->children, link)
		pids[n++] = c->pid;
	cgroup_read_places(&p);
	if (cgroup_step_aside(&p, pids, n)) {
		m->cgroup_own = mem_strdup(p.v2.own);
		log_notice("moved into a cgroup below our own, to make others for sandboxes",
		    LOG_C("own", p.v2.own));
	}
	mem_free(pids);
}

static bool
sweep(void)
{
	struct cgroup_places p;
	cgroup_read_places(&p);
	return cgroup_sweep(&p);
}

void
cgroups_sweep(struct master *m)
{
	m->cgroup_sweeps = sweep() ? 0 : SWEEPS_MAX;
}

void
cgroups_tick(struct master *m)
{
	if (m->cgroup_sweeps > 0 && (sweep() || --m->cgroup_sweeps == 0))
		m->cgroup_sweeps = 0;
}

void
cgroups_end(struct master *m)
{
	for (int i = 0; m->cgroup_sweeps > 0 && i < END_STEPS; i++) {
		if (sweep())
			break;
		(void)poll(NULL, 0, END_MS);
	}
	if (m->cgroup_own != NULL)
		cgroup_step_back(m->cgroup_own);
	mem_free(m->cgroup_own);
	m->cgroup_own = NULL;
}
