/* store_setting.h - table runtime_settings: what the API sets over the configuration
 *
 * Process: worker (job threads), builder. Whole units.
 */
#ifndef OTARI_STORAGE_SQL_STORE_SETTING_H
#define OTARI_STORAGE_SQL_STORE_SETTING_H

#include "base/arena.h"
#include "storage/sql/store_generation.h"

struct store_setting {
	struct str key;
	struct str value; /* STR_NULL in a change: take the override away */
};

/* All of the changes or none. */
MUST_CHECK enum err_code store_setting_apply(struct db *db, const struct store_setting *changes,
    size_t n, struct store_generation *ret_gen, struct err *reterr);
MUST_CHECK enum err_code store_setting_list(
    struct db *db, struct arena *a, struct store_setting **ret, size_t *ret_n, struct err *reterr);

#endif
