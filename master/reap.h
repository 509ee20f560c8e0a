/* reap.h - takes the status of every process that ended. Process: master, on SIGCHLD.
 *
 * As pid 1 of a container it also takes those of strangers' orphans.
 */
#ifndef OTARI_MASTER_REAP_H
#define OTARI_MASTER_REAP_H

struct master;

void reap_all(struct master *m);

#endif
