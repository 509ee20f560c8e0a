/* sweep.h - the sweeper's passes, without its process: database and blobs in, counts out
 *
 * Blocking. Every pass may run beside the same pass of another host: all of it is idempotent.
 */
#ifndef OTARI_SWEEPER_SWEEP_H
#define OTARI_SWEEPER_SWEEP_H

#include "storage/blob/blob.h"
#include "storage/spool.h"
#include "storage/sql/db.h"

#define SWEEP_BATCH  200u
#define SWEEP_PASSES 10u
/* Deleted and expired rows stay a while as cursors of lists that are being read; not longer than
 * the interval of the sweep. */
#define SWEEP_GRACE_MS    (10 * 60 * 1000)
#define SWEEP_TEMPS_OLD_S (6 * 3600)

struct sweep_sum {
	uint64_t seen;      /* dead rows */
	uint64_t reclaimed; /* of them: blob and row are gone */
	uint64_t kept;      /* their blob could not be deleted; a later sweep tries again */
};
/* Files that were deleted or expired before before_ms: blob first, then row. Up to SWEEP_PASSES
 * batches; the cursor goes on past rows that cannot be reclaimed. blobs NULL: there are none.
 * Adds to *ret, also on failure. */
MUST_CHECK enum err_code sweep_files(struct db *db, struct blob_store *blobs, int64_t before_ms,
    struct sweep_sum *ret, struct err *reterr);

/* Responses that expired before now_s; up to SWEEP_PASSES batches. Adds to *ret, also on failure.
 */
MUST_CHECK enum err_code sweep_responses(
    struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr);
/* The same for tool results that were kept for a client's next request. */
MUST_CHECK enum err_code sweep_tool_results(
    struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr);
/* The same for the names of copies that a provider has taken away by now. */
MUST_CHECK enum err_code sweep_file_copies(
    struct db *db, int64_t now_s, uint64_t *ret, struct err *reterr);

struct sweep_usage {
	struct spool_drained spool;
	uint64_t added;   /* new rows; a record that is handed out twice is one */
	uint64_t refused; /* records that the database does not take; each is logged */
};
/* One drain of the spools into usage_logs. Adds to *ret, also on failure. */
MUST_CHECK enum err_code sweep_usage(
    struct db *db, const char *dir, struct sweep_usage *ret, struct err *reterr);

#endif
