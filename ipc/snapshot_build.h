/* snapshot_build.h - makes a snapshot image: strings and tables in, a sealed memfd out
 *
 * Process: builder, and tests of everything that reads snapshots. Not thread-safe.
 * Use:     new → str/table for every part → end with the root. Tables may be given in any order;
 * end sorts what is looked up and refuses duplicates.
 * Limits:  LIMIT_SNAPSHOT_BYTES (ERR_TOOLARGE from end).
 */
#ifndef OTARI_IPC_SNAPSHOT_BUILD_H
#define OTARI_IPC_SNAPSHOT_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/snapshot.h"

struct snap_build;

struct snap_build *snap_build_new(enum snap_kind kind, uint64_t generation);
void snap_build_free(struct snap_build **b); /* NULL allowed */
/* Same text, same place. STR_NULL gives an absent string, "" an empty one. */
struct snap_str snap_build_str(struct snap_build *b, struct str s);
/* Without looking for an earlier one: for texts that are unique anyway. */
struct snap_str snap_build_str_unique(struct snap_build *b, struct str s);
/* Copies count records. With count 0 the table is empty but there (off is not 0). */
struct snap_table snap_build_table(
    struct snap_build *b, const void *records, uint32_t count, size_t record_size);
#define SNAP_TABLE(b, records, count) snap_build_table((b), (records), (count), sizeof(*(records)))

/* root: struct snap_policy or struct snap_keys, by the kind given to new. Frees b, also on failure.
 * The caller owns *ret_fd. ERR_CONFLICT names a duplicate, ERR_TOOLARGE, ERR_IO. */
MUST_CHECK enum err_code snap_build_end_policy(
    struct snap_build **b, const struct snap_policy *root, int *ret_fd, struct err *reterr);
MUST_CHECK enum err_code snap_build_end_keys(
    struct snap_build **b, const struct snap_keys *root, int *ret_fd, struct err *reterr);

#endif
