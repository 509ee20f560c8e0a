/* store_generation.h - the change counters that other hosts poll and snapshots carry
 *
 * Process: worker (job threads), builder. Every change that a snapshot shows takes the counter's
 * row first, inside its own transaction: changes become visible in the order of their numbers, and
 * whoever reads number n sees every change up to n.
 */
#ifndef OTARI_STORAGE_SQL_STORE_GENERATION_H
#define OTARI_STORAGE_SQL_STORE_GENERATION_H

#include "storage/sql/db.h"

struct store_generation {
	int64_t policy; /* workspaces, policies, settings */
	int64_t keys;   /* keys, users */
};

enum store_segment { STORE_SEG_POLICY = 1, STORE_SEG_KEYS = 2, STORE_SEG_BOTH = 3 };

/* Raises the counters of these segments; joins the unit it is called in. ret NULL allowed. */
MUST_CHECK enum err_code store_generation_bump(
    struct db *db, enum store_segment segments, struct store_generation *ret, struct err *reterr);
/* Whole unit; cheap enough to poll every second. */
MUST_CHECK enum err_code store_generation_read(
    struct db *db, struct store_generation *ret, struct err *reterr);

#endif
