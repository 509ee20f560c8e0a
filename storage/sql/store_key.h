/* store_key.h - table api_keys
 *
 * Process: worker (job threads) for the API, builder for snapshots. Every function is a whole unit
 * (db.h). Results are in arena a. Times are UTC epoch seconds; 0 means none.
 */
#ifndef OTARI_STORAGE_SQL_STORE_KEY_H
#define OTARI_STORAGE_SQL_STORE_KEY_H

#include "base/arena.h"
#include "storage/sql/store_generation.h"

/* metadata_json of a key that otari.conf declares: the builder makes and removes these, and nobody
 * else does. */
#define STORE_KEY_DECLARED "{\"declared\":\"otari.conf\"}"

struct store_key {
	struct str id;
	struct str hash_hex; /* SHA-256 of the whole key, 64 lower-case hex digits */
	struct str prefix;   /* first 10 characters, for display */
	struct str name;     /* STR_NULL: none */
	struct str user_id;
	struct str workspace_id;
	struct str allowed_models_json; /* array; STR_NULL: every model */
	struct str metadata_json;       /* object; STR_NULL: none */
	bool is_active;
	int64_t created_at_s, expires_at_s, last_used_at_s;
	int64_t changed_gen; /* keys generation of the last change; set by the store */
};

/* Makes the user when it is new. ERR_NOTFOUND: no such workspace; ERR_CONFLICT: the id or hash
 * exists. *ret_gen (NULL allowed): the generation that holds the change. */
MUST_CHECK enum err_code store_key_create(struct db *db, const struct store_key *key,
    struct store_generation *ret_gen, struct err *reterr);
MUST_CHECK enum err_code store_key_get(
    struct db *db, struct arena *a, struct str id, struct store_key *ret, struct err *reterr);
/* Newest first. */
MUST_CHECK enum err_code store_key_list(struct db *db, struct arena *a, uint32_t skip,
    uint32_t limit, struct store_key **ret, size_t *ret_n, struct err *reterr);
/* Leaves a tombstone, so that a delta takes the key out of the snapshots. ERR_NOTFOUND. */
MUST_CHECK enum err_code store_key_delete(
    struct db *db, struct str id, struct store_generation *ret_gen, struct err *reterr);
/* For the builder: calls fn for every key changed after since_gen (0: all), in no order; the key is
 * borrowed for the call. fn's error ends the scan. Joins the caller's DB_READ unit. */
typedef enum err_code store_key_fn(const struct store_key *key, void *arg, struct err *reterr);
MUST_CHECK enum err_code store_key_scan(
    struct db *db, int64_t since_gen, store_key_fn *fn, void *arg, struct err *reterr);
/* Keys that did not change after since_gen themselves, but whose user did; joins likewise. Reads
 * the whole table inside the database. */
MUST_CHECK enum err_code store_key_scan_users(
    struct db *db, int64_t since_gen, store_key_fn *fn, void *arg, struct err *reterr);
/* The hashes deleted after since_gen; joins likewise. */
typedef enum err_code store_key_gone_fn(struct str hash_hex, void *arg, struct err *reterr);
MUST_CHECK enum err_code store_key_scan_gone(
    struct db *db, int64_t since_gen, store_key_gone_fn *fn, void *arg, struct err *reterr);
/* Last use, to the minute at best; not part of a snapshot, no generation. An unknown id is fine. */
MUST_CHECK enum err_code store_key_touch(
    struct db *db, struct str id, int64_t used_at_s, struct err *reterr);

#endif
