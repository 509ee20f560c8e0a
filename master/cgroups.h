/* cgroups.h - the master's part in the cgroups of sandbox sessions (sandbox/cgroup)
 *
 * Process: master, which keeps the right to do so.
 */
#ifndef OTARI_MASTER_CGROUPS_H
#define OTARI_MASTER_CGROUPS_H

struct master;

/* Before the first spawner: makes room in our own cgroup (v2), if it is ours alone. */
void cgroups_step_aside(struct master *m);
/* A spawner ended: what it made is removed, now or on the next ticks, when all in it has died. */
void cgroups_sweep(struct master *m);
void cgroups_tick(struct master *m);
void cgroups_end(struct master *m); /* all children are gone; waits for a second at most */

#endif
