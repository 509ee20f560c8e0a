/* snapshots.h - the sealed segments that are in force, kept for children that start later
 *
 * Process: master. Forwarded by descriptor and never mapped here.
 */
#ifndef OTARI_MASTER_SNAPSHOTS_H
#define OTARI_MASTER_SNAPSHOTS_H

#include <stdint.h>

#include "base/err.h"
#include "ipc/build.h"

struct child;
struct master;
struct msg;
struct snapshots;

struct snapshots *snapshots_new(void);
void snapshots_free(struct snapshots **s);
/* Takes the descriptors of a successful build out of its message and sends them on. Only sealed
 * ones are accepted. */
MUST_CHECK enum err_code snapshots_install(
    struct master *m, const struct build_result *r, struct msg *msg, struct err *reterr);
/* To a child that has just been started; a worker becomes a target of publications. */
void snapshots_send_all(struct master *m, struct child *c);
/* What the next build is told about the keys base in force. */
void snapshots_describe(const struct master *m, struct build_request *q);
uint64_t snapshots_generation(const struct master *m);
/* Has a build already seen these counters of the database? Masks as in publish.h of what not. */
uint32_t snapshots_missing(const struct master *m, uint64_t db_policy, uint64_t db_keys);

#endif
