/* spawner.h - the role that makes sandboxes and lends them to the workers
 *
 * Process: spawner, entered right after exec with a clean environment and the descriptors of
 * ipc/fds.h: FD_CTL, FD_LOG, FD_INIT_EXE. Waits for SETTINGS, builds its namespaces, tests a
 * session, reports SELFTEST (also when it must refuse), then serves until FD_CTL ends.
 */
#ifndef OTARI_SANDBOX_SPAWNER_SPAWNER_H
#define OTARI_SANDBOX_SPAWNER_SPAWNER_H

/* The arguments are only for the processes' titles. */
int spawner_main(
    int argc, char **argv); /* exit code: 0 told to stop, 1 failed, 2 do not start again */
/* The same without some walls (JAIL_WITHOUT_*): for the probes alone. */
int spawner_main_without(unsigned walls, int argc, char **argv);

#endif
