#include "storage/sql/store_setting.h"

#include "base/clock.h"
#include "storage/sql/store_util.h"

static const char SQL_PUT_SQLITE[] =
    "INSERT INTO runtime_settings (setting_key, setting_value, updated_at_s) VALUES (?, ?, ?)"
    " ON CONFLICT (setting_key) DO UPDATE SET setting_value = excluded.setting_value,"
    " updated_at_s = excluded.updated_at_s";
static const char SQL_PUT_MYSQL[] =
    "INSERT INTO runtime_settings (setting_key, setting_value, updated_at_s) VALUES (?, ?, ?)"
    " ON DUPLICATE KEY UPDATE setting_value = VALUES(setting_value),"
    " updated_at_s = VALUES(updated_at_s)";
static const char SQL_DELETE[] = "DELETE FROM runtime_settings WHERE setting_key = ?";
static const char SQL_LIST[] =
    "SELECT setting_key, setting_value FROM runtime_settings ORDER BY setting_key";

struct apply_arg {
	const struct store_setting *changes;
	size_t n;
	struct store_generation gen;
};

static enum err_code
apply_unit(struct db *db, void *arg, struct err *reterr)
{
	struct apply_arg *p = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_POLICY, &p->gen, reterr);
	for (size_t i = 0; rc == ERR_OK && i < p->n; i++) {
		const struct store_setting *c = &p->changes[i];
		if (c->value.ptr == NULL)
			rc = db_exec(db, SQL_DELETE, DB_ARGS(DB_TEXT(c->key)), reterr);
		else
			rc = db_exec(db, db_pick(db, SQL_PUT_SQLITE, SQL_PUT_MYSQL),
			    DB_ARGS(DB_TEXT(c->key), DB_TEXT(c->value), DB_I64(clock_wall_s())),
			    reterr);
	}
	return rc;
}

enum err_code
store_setting_apply(struct db *db, const struct store_setting *changes, size_t n,
    struct store_generation *ret_gen, struct err *reterr)
{
	struct apply_arg p = {.changes = changes, .n = n};
	enum err_code rc = ERR_OK;
	for (size_t i = 0; rc == ERR_OK && i < n; i++)
		rc = STORE_CHECK(reterr, {"setting", changes[i].key, STORE_FILE_ID_MAX_BYTES},
		    {"value", changes[i].value, STORE_TEXT_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, apply_unit, &p, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = p.gen;
	return rc;
}

struct list_arg {
	struct arena *arena;
	struct store_setting *items;
	size_t n;
};

static enum err_code
list_unit(struct db *db, void *arg, struct err *reterr)
{
	struct list_arg *l = arg;
	struct db_rows *rows;
	enum err_code rc = db_query(db, SQL_LIST, DB_NO_ARGS, &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	l->items = NULL;
	l->n = 0;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		l->items = store_grow(l->arena, l->items, l->n, sizeof(*l->items));
		if (l->items == NULL)
			break;
		l->items[l->n++] = (struct store_setting){
		    store_copy(l->arena, rows, 0), store_copy(l->arena, rows, 1)};
	}
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(l->arena, reterr);
}

enum err_code
store_setting_list(
    struct db *db, struct arena *a, struct store_setting **ret, size_t *ret_n, struct err *reterr)
{
	struct list_arg l = {.arena = a};
	enum err_code rc = db_unit(db, DB_READ, list_unit, &l, reterr);
	if (rc == ERR_OK) {
		*ret = l.items;
		*ret_n = l.n;
	}
	return rc;
}
