/* store_usage.h - table usage_logs
 *
 * Process: sweeper (writes), worker (reads, later). Whole units.
 */
#ifndef OTARI_STORAGE_SQL_STORE_USAGE_H
#define OTARI_STORAGE_SQL_STORE_USAGE_H

#include "storage/sql/db.h"
#include "storage/usage.h"

/* One transaction; rows whose request id is there already are left alone. *ret_new (NULL allowed)
 * counts the new ones. */
MUST_CHECK enum err_code store_usage_insert(
    struct db *db, const struct usage *rows, size_t n, size_t *ret_new, struct err *reterr);
struct store_usage_total {
	int64_t requests, prompt_tokens, completion_tokens, cost_microusd;
};
/* Of one user (STR_NULL: all) from from_ms (inclusive) to to_ms (exclusive). */
MUST_CHECK enum err_code store_usage_total(struct db *db, struct str user_id, int64_t from_ms,
    int64_t to_ms, struct store_usage_total *ret, struct err *reterr);

#endif
