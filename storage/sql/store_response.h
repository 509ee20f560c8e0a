/* store_response.h - tables responses, response_chunks, response_items: answers that a client may
 * come back to
 *
 * Process: worker (job threads), sweeper. Whole units. Results are in arena a.
 * Kept:    two JSON texts a response: `input`, the array of all items that went in (those of
 * earlier responses that it went on from included, so that each stands alone), and `response`, the
 * object as the client got it. Texts are cut into chunks of STORE_RESPONSE_CHUNK_BYTES, so that no
 * value is large. Limits:  STORE_RESPONSE_MAX_BYTES a text, STORE_RESPONSE_ITEMS_MAX items with an
 * id. Times are UTC epoch seconds; 0 means never.
 */
#ifndef OTARI_STORAGE_SQL_STORE_RESPONSE_H
#define OTARI_STORAGE_SQL_STORE_RESPONSE_H

#include "base/arena.h"
#include "storage/sql/db.h"

#define STORE_RESPONSE_CHUNK_BYTES (512u * 1024u)
#define STORE_RESPONSE_MAX_BYTES   (64u * 1024u * 1024u)
#define STORE_RESPONSE_ITEMS_MAX   4096u

struct store_response_scope { /* whose; both must match */
	struct str user_id, workspace_id;
};

struct store_response {
	struct str id;
	struct store_response_scope scope;
	struct str provider; /* instance that answered: what its ids and ciphers mean to */
	int64_t created_at_s, expires_at_s;
	struct str input_json, response_json;
	const struct str *item_ids; /* that item references may name */
	size_t item_count;
};

/* ERR_CONFLICT: the id exists. ERR_TOOLARGE: over a limit. */
MUST_CHECK enum err_code store_response_insert(
    struct db *db, const struct store_response *r, struct err *reterr);
/* ERR_NOTFOUND: not there, not the scope's, or expired at now_s. item_ids are not filled in. */
MUST_CHECK enum err_code store_response_get(struct db *db, struct arena *a,
    const struct store_response_scope *scope, struct str id, int64_t now_s,
    struct store_response *ret, struct err *reterr);
/* The latest response of the scope that holds the item. ERR_NOTFOUND. */
MUST_CHECK enum err_code store_response_of_item(struct db *db, struct arena *a,
    const struct store_response_scope *scope, struct str item_id, int64_t now_s, struct str *ret_id,
    struct err *reterr);
MUST_CHECK enum err_code store_response_delete(
    struct db *db, const struct store_response_scope *scope, struct str id, struct err *reterr);
/* Removes up to limit responses that expired before now_s; *ret_n counts them. */
MUST_CHECK enum err_code store_response_sweep(
    struct db *db, int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr);

#endif
