/* store_file.h - table files: what the Files APIs show and where the bytes are
 *
 * Process: worker (job threads), sweeper. Whole units. Results are in arena a.
 * Times are UTC epoch milliseconds; 0 means none. A row exists only when its blob is whole.
 */
#ifndef OTARI_STORAGE_SQL_STORE_FILE_H
#define OTARI_STORAGE_SQL_STORE_FILE_H

#include "base/arena.h"
#include "storage/sql/db.h"

#define STORE_FILE_IDS_MAX  100u
#define STORE_FILE_PAGE_MAX 1000u

struct store_file {
	struct str id;
	struct str user_id;
	struct str workspace_id;
	struct str filename; /* the client's, any UTF-8 */
	struct str mime_type;
	struct str purpose;
	struct str sha256_hex;  /* STR_NULL: not known */
	struct str storage_ref; /* blob key; STR_NULL: the provider holds the bytes */
	struct str provider, provider_instance, provider_container_id; /* STR_NULL: none */
	struct str metadata_json;                                      /* STR_NULL: none */
	int64_t bytes;
	int64_t created_at_ms, expires_at_ms, deleted_at_ms;
};

/* Whose files: both must match. workspace_id STR_NULL: all of the user's (master key only). */
struct store_file_scope {
	struct str user_id;
	struct str workspace_id;
};

/* ERR_CONFLICT: the id exists (whoever owns it). */
MUST_CHECK enum err_code store_file_insert(
    struct db *db, const struct store_file *file, struct err *reterr);
/* Visible means: in scope, not deleted, not expired at now_ms. Else ERR_NOTFOUND. */
MUST_CHECK enum err_code store_file_get(struct db *db, struct arena *a,
    const struct store_file_scope *scope, struct str id, int64_t now_ms, struct store_file *ret,
    struct err *reterr);

struct store_file_query {
	struct store_file_scope scope;
	struct str purpose; /* STR_NULL: any */
	struct str
	    after_id; /* strictly past this file in the order asked; STR_NULL: from the start */
	struct str
	    before_id;  /* the page that ends just before this file; STR_NULL; not with after_id */
	uint32_t limit; /* 1..STORE_FILE_PAGE_MAX */
	bool ascending; /* by (created_at, id); default newest first */
	int64_t now_ms;
};
/* A cursor that the scope owns marks its position even when deleted or expired (until the sweep
 * takes the row); any other is ERR_NOTFOUND. *ret_more: there are more in the direction asked. */
MUST_CHECK enum err_code store_file_list(struct db *db, struct arena *a,
    const struct store_file_query *q, struct store_file **ret, size_t *ret_n, bool *ret_more,
    struct err *reterr);
/* The visible ones of up to STORE_FILE_IDS_MAX ids, newest first; the others are left out. */
MUST_CHECK enum err_code store_file_list_ids(struct db *db, struct arena *a,
    const struct store_file_scope *scope, const struct str *ids, size_t n_ids, int64_t now_ms,
    struct store_file **ret, size_t *ret_n, struct err *reterr);
/* Soft delete; *ret is the row as it was, so that the caller can take its blob away. */
MUST_CHECK enum err_code store_file_delete(struct db *db, struct arena *a,
    const struct store_file_scope *scope, struct str id, int64_t now_ms, struct store_file *ret,
    struct err *reterr);

/* Sweep: rows that were deleted or expired before before_ms, oldest first, strictly past *cursor.
 */
struct store_file_cursor {
	int64_t reap_at_ms; /* 0: start */
	struct str id;
};
struct store_file_dead {
	struct store_file_cursor at;
	struct str storage_ref; /* STR_NULL: nothing to delete */
};
MUST_CHECK enum err_code store_file_dead_batch(struct db *db, struct arena *a, int64_t before_ms,
    const struct store_file_cursor *cursor, uint32_t limit, struct store_file_dead **ret,
    size_t *ret_n, struct err *reterr);
/* Deletes those of these rows that were dead before before_ms; *ret_n (NULL allowed) counts them.
 */
MUST_CHECK enum err_code store_file_purge(struct db *db, const struct str *ids, size_t n,
    int64_t before_ms, size_t *ret_n, struct err *reterr);

#endif
