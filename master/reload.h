/* reload.h - one build: the builder process, the files it asks for, what comes of its answer
 *
 * Process: master. Called by publish.c, which sees to it that one build runs at a time.
 */
#ifndef OTARI_MASTER_RELOAD_H
#define OTARI_MASTER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct child;
struct master;
struct msg;
struct reload;

struct reload *reload_new(struct master *m);
void reload_free(struct reload **r);
/* what: masks of publish.h; 0: the configuration alone. The end is told to publish_built (what 0:
 * to master_conf_known or master_fail). */
void reload_start(struct master *m, uint32_t what, uint64_t generation);
bool reload_is_running(const struct master *m);
/* Messages of the builder. */
MUST_CHECK enum err_code reload_on_file_wanted(
    struct child *c, struct msg *msg, struct err *reterr);
MUST_CHECK enum err_code reload_on_built(struct child *c, struct msg *msg, struct err *reterr);
void reload_on_closed(struct child *c);
/* It was reaped. True: the child must be kept until its channel closes. */
bool reload_on_ended(struct child *c, int wait_status);
/* The sweeper saw these counters in the database. */
void reload_on_counters(struct master *m, uint64_t db_policy, uint64_t db_keys);

#endif
