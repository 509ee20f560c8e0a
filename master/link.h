/* link.h - the master's end of its talk with the spawner, and the report of its self-test
 *
 * Process: master. Protocol: ipc/lease.h.
 */
#ifndef OTARI_MASTER_LINK_H
#define OTARI_MASTER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/lease.h"
#include "ipc/master_conf.h"

struct child;
struct master;
struct link;

/* Starts a spawner in its seat; errors are logged. False: none was started. */
bool link_start_spawner(struct master *m);
/* The settings changed: starts another beside the one that runs. Once its self-test is over the
 * workers get sockets to it and the old one drains, for drain_timeout_ms at most. */
void link_replace_spawner(struct master *m);
/* A socket for worker c to the spawner that runs; -1 when none does. The caller owns it. */
int link_add_worker(struct master *m, const struct child *c);
/* Gives c a socket to the spawner by message. */
void link_send_socket(struct master *m, struct child *c);
void link_remove_worker(struct master *m, const struct child *c);
/* The spawner writes to the master's log file from now on. */
void link_reopen_log(struct master *m);
/* The sandbox is not wanted any more: what runs goes on, as with one that is replaced. */
void link_retire(struct master *m);
/* Tells every spawner to end. */
void link_stop(struct master *m);
/* The spawner's process ended. */
void link_lost(struct master *m, struct child *spawner);
/* NULL before the first self-test. */
const struct lease_selftest *link_selftest(const struct master *m);
/* NULL before the first. */
const struct lease_stats *link_stats(const struct master *m);
bool link_is_wanted(const struct master_conf *c);
void link_settings(const struct master_conf *c, struct sandbox_settings *ret);

#endif
