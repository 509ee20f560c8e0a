#include "storage/sql/store_util.h"

#include <string.h>

#include "base/utf8.h"

#define FIRST_ITEMS 16u

struct str
store_copy(struct arena *a, struct db_rows *rows, unsigned col)
{
	struct str s = db_col_text(rows, col);
	return s.ptr == NULL ? STR_NULL : arena_str(a, s);
}

void *
store_grow(struct arena *a, void *items, size_t n, size_t item_size)
{
	bool is_full = n == 0 || (n >= FIRST_ITEMS && (n & (n - 1)) == 0);
	if (!is_full)
		return items;
	void *bigger = arena_array(a, n == 0 ? FIRST_ITEMS : 2 * n, item_size);
	if (bigger != NULL && n > 0)
		memcpy(bigger, items, n * item_size);
	return bigger;
}

enum err_code
store_check_arena(const struct arena *a, struct err *reterr)
{
	return arena_overflowed(a)
		   ? err_set(reterr, ERR_NOMEM, "database: the result is over the memory limit")
		   : ERR_OK;
}

enum err_code
store_check_values(const struct store_value *v, size_t n, struct err *reterr)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].value.len > v[i].max_bytes)
			return err_set(reterr, ERR_INPUT, "%s is longer than %zu bytes", v[i].name,
			    v[i].max_bytes);
		if (!utf8_valid(v[i].value))
			return err_set(reterr, ERR_INPUT, "%s is not valid UTF-8", v[i].name);
	}
	return ERR_OK;
}

struct sweep_arg {
	const char *sqlite, *mysql;
	int64_t now_s;
	uint32_t limit;
	size_t n;
};

static enum err_code
sweep_unit(struct db *db, void *arg, struct err *reterr)
{
	struct sweep_arg *s = arg;
	enum err_code rc = db_exec(db, db_pick(db, s->sqlite, s->mysql),
	    DB_ARGS(DB_I64(s->now_s), DB_I64(s->limit)), reterr);
	s->n = rc == ERR_OK ? (size_t)db_affected(db) : 0;
	return rc;
}

enum err_code
store_sweep(struct db *db, const char *sqlite, const char *mysql, int64_t now_s, uint32_t limit,
    size_t *ret_n, struct err *reterr)
{
	struct sweep_arg s = {sqlite, mysql, now_s, limit, 0};
	enum err_code rc = db_unit(db, DB_WRITE_REPEATABLE, sweep_unit, &s, reterr);
	if (rc == ERR_OK)
		*ret_n = s.n;
	return rc;
}
