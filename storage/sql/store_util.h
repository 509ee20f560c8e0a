/* store_util.h - what the table files share. Private to storage/sql. */
#ifndef OTARI_STORAGE_SQL_STORE_UTIL_H
#define OTARI_STORAGE_SQL_STORE_UTIL_H

#include "base/arena.h"
#include "storage/sql/db.h"

/* What a column holds, on both databases alike: SQLite knows no lengths, and MySQL counts
 * characters here and bytes there. */
#define STORE_ID_MAX_BYTES       64u /* workspaces, keys */
#define STORE_FILE_ID_MAX_BYTES  128u
#define STORE_NAME_MAX_BYTES     255u /* users, names, purposes, MIME types */
#define STORE_FILENAME_MAX_BYTES 512u
#define STORE_JSON_MAX_BYTES     (256u * 1024u)
#define STORE_TEXT_MAX_BYTES     16384u

struct store_value {
	const char *name;
	struct str value; /* STR_NULL is fine here; the column decides */
	size_t max_bytes;
};
/* ERR_INPUT naming the value that is too long or not UTF-8. */
MUST_CHECK enum err_code store_check_values(
    const struct store_value *v, size_t n, struct err *reterr);
#define STORE_CHECK(reterr, ...)                                                                   \
	store_check_values((const struct store_value[]){__VA_ARGS__},                              \
	    sizeof((const struct store_value[]){__VA_ARGS__}) / sizeof(struct store_value),        \
	    (reterr))

/* A column's text in the arena; STR_NULL stays STR_NULL. */
struct str store_copy(struct arena *a, struct db_rows *rows, unsigned col);
/* An array in the arena that grows by doubling; NULL when the arena is over its cap. */
void *store_grow(struct arena *a, void *items, size_t n, size_t item_size);
MUST_CHECK enum err_code store_check_arena(const struct arena *a, struct err *reterr);

/* Deletes what has expired, at most limit rows: both statements take the time and the limit. */
MUST_CHECK enum err_code store_sweep(struct db *db, const char *sqlite, const char *mysql,
    int64_t now_s, uint32_t limit, size_t *ret_n, struct err *reterr);

#endif
