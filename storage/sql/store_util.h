/* store_util.h - what the table files share. Private to storage/sql. */
#ifndef OTARI_STORAGE_SQL_STORE_UTIL_H
#define OTARI_STORAGE_SQL_STORE_UTIL_H

#include "base/arena.h"
#include "storage/sql/db.h"

/* A column's text in the arena; STR_NULL stays STR_NULL. */
struct str store_copy(struct arena *a, struct db_rows *rows, unsigned col);
/* An array in the arena that grows by doubling; NULL when the arena is over its cap. */
void *store_grow(struct arena *a, void *items, size_t n, size_t item_size);
MUST_CHECK enum err_code store_check_arena(const struct arena *a, struct err *reterr);

#endif
