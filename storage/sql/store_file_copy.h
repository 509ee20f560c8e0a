/* store_file_copy.h - table file_copies: what a provider calls its copy of a file of ours, while it
 * keeps it
 *
 * Process: worker (job threads), sweeper. Whole units. Results are in arena a.
 * Rule:    whose file it is was found out before; a copy is found by the file's id and the account
 *          at the provider. Of two copies of one file the later one counts.
 */
#ifndef OTARI_STORAGE_SQL_STORE_FILE_COPY_H
#define OTARI_STORAGE_SQL_STORE_FILE_COPY_H

#include "base/arena.h"
#include "storage/sql/db.h"

struct store_file_copy {
	struct str file_id, account, copy_id;
	int64_t expires_at_s;
};

MUST_CHECK enum err_code store_file_copy_put(
    struct db *db, const struct store_file_copy *c, struct err *reterr);
/* ERR_NOTFOUND: none, or expired at now_s. */
MUST_CHECK enum err_code store_file_copy_get(struct db *db, struct arena *a, struct str file_id,
    struct str account, int64_t now_s, struct str *ret_copy_id, struct err *reterr);
/* Removes up to limit rows that expired before now_s; *ret_n counts them. */
MUST_CHECK enum err_code store_file_copy_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr);

#endif
