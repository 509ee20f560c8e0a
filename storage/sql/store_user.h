/* store_user.h - table users
 *
 * Process: worker (job threads), builder. Whole units. Times are UTC epoch seconds.
 */
#ifndef OTARI_STORAGE_SQL_STORE_USER_H
#define OTARI_STORAGE_SQL_STORE_USER_H

#include "base/arena.h"
#include "storage/sql/store_generation.h"

#define STORE_USER_DEFAULT "default" /* owner of keys that were made without a user */

struct store_user {
	struct str id;
	struct str alias; /* STR_NULL: none */
	bool blocked;
	int64_t created_at_s;
	int64_t changed_gen;
};

/* ERR_CONFLICT: the id exists. */
MUST_CHECK enum err_code store_user_create(struct db *db, const struct store_user *user,
    struct store_generation *ret_gen, struct err *reterr);
/* Makes it when it is new; inside the caller's unit, with the caller's keys generation. */
MUST_CHECK enum err_code store_user_ensure(
    struct db *db, struct str id, int64_t now_s, int64_t keys_gen, struct err *reterr);
MUST_CHECK enum err_code store_user_get(
    struct db *db, struct arena *a, struct str id, struct store_user *ret, struct err *reterr);
MUST_CHECK enum err_code store_user_list(struct db *db, struct arena *a, uint32_t skip,
    uint32_t limit, struct store_user **ret, size_t *ret_n, struct err *reterr);
MUST_CHECK enum err_code store_user_set_blocked(struct db *db, struct str id, bool blocked,
    struct store_generation *ret_gen, struct err *reterr);
/* For the builder; as store_key_scan. */
typedef enum err_code store_user_fn(const struct store_user *user, void *arg, struct err *reterr);
MUST_CHECK enum err_code store_user_scan(
    struct db *db, int64_t since_gen, store_user_fn *fn, void *arg, struct err *reterr);

#endif
