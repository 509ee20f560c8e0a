#include "storage/sql/store_key.h"

#include "base/clock.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_util.h"

#define COLS                                                                                       \
	"id, key_hash, key_prefix, key_name, user_id, workspace_id, allowed_models, metadata,"     \
	" is_active, created_at_s, expires_at_s, last_used_at_s, changed_gen"
#define SCAN_PAGE         1000
#define TOUCH_EVERY_S     60
#define TOMBSTONES_KEEP_S (7 * 24 * 3600)

static const char SQL_WORKSPACE[] = "SELECT COUNT(*) FROM workspaces WHERE id = ?";
static const char SQL_INSERT[] =
    "INSERT INTO api_keys (" COLS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char SQL_UNDEAD[] = "DELETE FROM key_tombstones WHERE key_hash = ?";
static const char SQL_GET[] = "SELECT " COLS " FROM api_keys WHERE id = ?";
static const char SQL_LIST[] =
    "SELECT " COLS " FROM api_keys ORDER BY created_at_s DESC, id DESC LIMIT ? OFFSET ?";
static const char SQL_DELETE[] = "DELETE FROM api_keys WHERE id = ?";
static const char SQL_TOMBSTONE_SQLITE[] =
    "INSERT INTO key_tombstones (key_hash, changed_gen, deleted_at_s)"
    " SELECT key_hash, ?, ? FROM api_keys WHERE id = ?"
    " ON CONFLICT (key_hash) DO UPDATE SET changed_gen = excluded.changed_gen";
static const char SQL_TOMBSTONE_MYSQL[] =
    "REPLACE INTO key_tombstones (key_hash, changed_gen, deleted_at_s)"
    " SELECT key_hash, ?, ? FROM api_keys WHERE id = ?";
static const char SQL_TOMBSTONES_OLD[] = "DELETE FROM key_tombstones WHERE deleted_at_s < ?";
static const char SQL_SCAN_ALL[] = "SELECT " COLS " FROM api_keys WHERE id > ? ORDER BY id LIMIT ?";
static const char SQL_SCAN_SINCE[] =
    "SELECT " COLS " FROM api_keys WHERE changed_gen > ? ORDER BY changed_gen";
static const char SQL_SCAN_USERS[] =
    "SELECT " COLS " FROM api_keys WHERE changed_gen <= ?"
    " AND user_id IN (SELECT users.id FROM users WHERE users.changed_gen > ?)";
static const char SQL_GONE[] = "SELECT key_hash FROM key_tombstones WHERE changed_gen > ?";
static const char SQL_TOUCH[] = "UPDATE api_keys SET last_used_at_s = ? WHERE id = ?"
				" AND (last_used_at_s IS NULL OR last_used_at_s < ?)";

static void
read_row(struct db_rows *rows, struct store_key *k)
{
	*k = (struct store_key){
	    .id = db_col_text(rows, 0),
	    .hash_hex = db_col_text(rows, 1),
	    .prefix = db_col_text(rows, 2),
	    .name = db_col_text(rows, 3),
	    .user_id = db_col_text(rows, 4),
	    .workspace_id = db_col_text(rows, 5),
	    .allowed_models_json = db_col_text(rows, 6),
	    .metadata_json = db_col_text(rows, 7),
	    .is_active = db_col_i64(rows, 8) != 0,
	    .created_at_s = db_col_i64(rows, 9),
	    .expires_at_s = db_col_i64(rows, 10),
	    .last_used_at_s = db_col_i64(rows, 11),
	    .changed_gen = db_col_i64(rows, 12),
	};
}

static void
copy_row(struct arena *a, struct db_rows *rows, struct store_key *k)
{
	read_row(rows, k);
	k->id = store_copy(a, rows, 0);
	k->hash_hex = store_copy(a, rows, 1);
	k->prefix = store_copy(a, rows, 2);
	k->name = store_copy(a, rows, 3);
	k->user_id = store_copy(a, rows, 4);
	k->workspace_id = store_copy(a, rows, 5);
	k->allowed_models_json = store_copy(a, rows, 6);
	k->metadata_json = store_copy(a, rows, 7);
}

struct create_arg {
	const struct store_key *key;
	struct store_generation gen;
};

static enum err_code
create_unit(struct db *db, void *arg, struct err *reterr)
{
	struct create_arg *c = arg;
	const struct store_key *k = c->key;
	enum err_code rc = store_generation_bump(db, STORE_SEG_KEYS, &c->gen, reterr);
	if (rc != ERR_OK)
		return rc;
	int64_t has_workspace = 0;
	rc = db_query_i64(
	    db, SQL_WORKSPACE, DB_ARGS(DB_TEXT(k->workspace_id)), &has_workspace, reterr);
	if (rc == ERR_OK && has_workspace == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such workspace");
	if (rc == ERR_OK)
		rc = store_user_ensure(db, k->user_id, k->created_at_s, c->gen.keys, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_UNDEAD, DB_ARGS(DB_TEXT(k->hash_hex)), reterr);
	if (rc != ERR_OK)
		return rc;
	return db_exec(db, SQL_INSERT,
	    DB_ARGS(DB_TEXT(k->id), DB_TEXT(k->hash_hex), DB_TEXT(k->prefix), DB_TEXT(k->name),
		DB_TEXT(k->user_id), DB_TEXT(k->workspace_id), DB_TEXT(k->allowed_models_json),
		DB_TEXT(k->metadata_json), DB_I64(k->is_active), DB_I64(k->created_at_s),
		DB_TIME(k->expires_at_s), DB_TIME(k->last_used_at_s), DB_I64(c->gen.keys)),
	    reterr);
}

enum err_code
store_key_create(struct db *db, const struct store_key *key, struct store_generation *ret_gen,
    struct err *reterr)
{
	struct create_arg c = {.key = key};
	enum err_code rc = STORE_CHECK(reterr, {"id", key->id, STORE_ID_MAX_BYTES},
	    {"key hash", key->hash_hex, STORE_ID_MAX_BYTES}, {"key prefix", key->prefix, 32},
	    {"key_name", key->name, STORE_NAME_MAX_BYTES},
	    {"user_id", key->user_id, STORE_NAME_MAX_BYTES},
	    {"workspace_id", key->workspace_id, STORE_ID_MAX_BYTES},
	    {"allowed_models", key->allowed_models_json, STORE_JSON_MAX_BYTES},
	    {"metadata", key->metadata_json, STORE_JSON_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, create_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

struct get_arg {
	struct arena *arena;
	struct str id;
	struct store_key key;
};

static enum err_code
get_unit(struct db *db, void *arg, struct err *reterr)
{
	struct get_arg *g = arg;
	struct db_rows *rows;
	enum err_code rc = db_query(db, SQL_GET, DB_ARGS(DB_TEXT(g->id)), &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row = false;
	rc = db_next(rows, &has_row, reterr);
	if (rc == ERR_OK && !has_row)
		rc = err_set(reterr, ERR_NOTFOUND, "no such key");
	if (rc == ERR_OK)
		copy_row(g->arena, rows, &g->key);
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(g->arena, reterr);
}

enum err_code
store_key_get(
    struct db *db, struct arena *a, struct str id, struct store_key *ret, struct err *reterr)
{
	struct get_arg g = {.arena = a, .id = id};
	enum err_code rc = db_unit(db, DB_READ, get_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret = g.key;
	return rc;
}

struct list_arg {
	struct arena *arena;
	uint32_t skip, limit;
	struct store_key *items;
	size_t n;
};

static enum err_code
list_unit(struct db *db, void *arg, struct err *reterr)
{
	struct list_arg *l = arg;
	struct db_rows *rows;
	enum err_code rc =
	    db_query(db, SQL_LIST, DB_ARGS(DB_I64(l->limit), DB_I64(l->skip)), &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	l->items = NULL;
	l->n = 0;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		l->items = store_grow(l->arena, l->items, l->n, sizeof(*l->items));
		if (l->items == NULL)
			break;
		copy_row(l->arena, rows, &l->items[l->n++]);
	}
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(l->arena, reterr);
}

enum err_code
store_key_list(struct db *db, struct arena *a, uint32_t skip, uint32_t limit,
    struct store_key **ret, size_t *ret_n, struct err *reterr)
{
	struct list_arg l = {.arena = a, .skip = skip, .limit = limit};
	enum err_code rc = db_unit(db, DB_READ, list_unit, &l, reterr);
	if (rc == ERR_OK) {
		*ret = l.items;
		*ret_n = l.n;
	}
	return rc;
}

struct delete_arg {
	struct str id;
	struct store_generation gen;
};

static enum err_code
delete_unit(struct db *db, void *arg, struct err *reterr)
{
	struct delete_arg *d = arg;
	int64_t now_s = clock_wall_s();
	enum err_code rc = store_generation_bump(db, STORE_SEG_KEYS, &d->gen, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, db_pick(db, SQL_TOMBSTONE_SQLITE, SQL_TOMBSTONE_MYSQL),
		    DB_ARGS(DB_I64(d->gen.keys), DB_I64(now_s), DB_TEXT(d->id)), reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_DELETE, DB_ARGS(DB_TEXT(d->id)), reterr);
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such key");
	/* Every snapshot was built anew since then. */
	if (rc == ERR_OK)
		rc = db_exec(
		    db, SQL_TOMBSTONES_OLD, DB_ARGS(DB_I64(now_s - TOMBSTONES_KEEP_S)), reterr);
	return rc;
}

enum err_code
store_key_delete(struct db *db, struct str id, struct store_generation *ret_gen, struct err *reterr)
{
	struct delete_arg d = {.id = id};
	enum err_code rc = db_unit(db, DB_WRITE, delete_unit, &d, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = d.gen;
	return rc;
}

struct scan_arg {
	int64_t since_gen;
	store_key_fn *fn;
	store_key_gone_fn *gone_fn;
	void *arg;
};

/* Hands out the rows of an open result; *ret_n counts them, last_id keeps the last one's id. */
static enum err_code
hand_out(struct db_rows *rows, struct scan_arg *s, char *last_id, size_t id_size, size_t *ret_n,
    struct err *reterr)
{
	enum err_code rc;
	bool has_row;
	*ret_n = 0;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		struct store_key k;
		read_row(rows, &k);
		if (!str_copy(last_id, id_size, k.id))
			return err_set(reterr, ERR_INTERNAL, "database: a key's id is too long");
		rc = s->fn(&k, s->arg, reterr);
		if (rc != ERR_OK)
			return rc;
		(*ret_n)++;
	}
	return rc;
}

static enum err_code
scan_unit(struct db *db, void *arg, struct err *reterr)
{
	struct scan_arg *s = arg;
	char last_id[128] = "";
	size_t n;
	do { /* pages, so that the client library never holds all of them */
		struct db_rows *rows;
		enum err_code rc =
		    s->since_gen > 0
			? db_query(db, SQL_SCAN_SINCE, DB_ARGS(DB_I64(s->since_gen)), &rows, reterr)
			: db_query(db, SQL_SCAN_ALL,
			      DB_ARGS(DB_TEXT(str_c(last_id)), DB_I64(SCAN_PAGE)), &rows, reterr);
		if (rc != ERR_OK)
			return rc;
		rc = hand_out(rows, s, last_id, sizeof(last_id), &n, reterr);
		db_rows_end(&rows);
		if (rc != ERR_OK)
			return rc;
	} while (s->since_gen <= 0 && n == SCAN_PAGE);
	return ERR_OK;
}

enum err_code
store_key_scan(struct db *db, int64_t since_gen, store_key_fn *fn, void *arg, struct err *reterr)
{
	struct scan_arg s = {.since_gen = since_gen, .fn = fn, .arg = arg};
	return db_unit(db, DB_READ, scan_unit, &s, reterr);
}

static enum err_code
users_unit(struct db *db, void *arg, struct err *reterr)
{
	struct scan_arg *s = arg;
	char last_id[128];
	size_t n;
	struct db_rows *rows;
	enum err_code rc = db_query(
	    db, SQL_SCAN_USERS, DB_ARGS(DB_I64(s->since_gen), DB_I64(s->since_gen)), &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	rc = hand_out(rows, s, last_id, sizeof(last_id), &n, reterr);
	db_rows_end(&rows);
	return rc;
}

enum err_code
store_key_scan_users(
    struct db *db, int64_t since_gen, store_key_fn *fn, void *arg, struct err *reterr)
{
	struct scan_arg s = {.since_gen = since_gen, .fn = fn, .arg = arg};
	return db_unit(db, DB_READ, users_unit, &s, reterr);
}

static enum err_code
gone_unit(struct db *db, void *arg, struct err *reterr)
{
	struct scan_arg *s = arg;
	struct db_rows *rows;
	enum err_code rc = db_query(db, SQL_GONE, DB_ARGS(DB_I64(s->since_gen)), &rows, reterr);
	if (rc != ERR_OK)
		return rc;
	bool has_row;
	while ((rc = db_next(rows, &has_row, reterr)) == ERR_OK && has_row) {
		rc = s->gone_fn(db_col_text(rows, 0), s->arg, reterr);
		if (rc != ERR_OK)
			break;
	}
	db_rows_end(&rows);
	return rc;
}

enum err_code
store_key_scan_gone(
    struct db *db, int64_t since_gen, store_key_gone_fn *fn, void *arg, struct err *reterr)
{
	struct scan_arg s = {.since_gen = since_gen, .gone_fn = fn, .arg = arg};
	return db_unit(db, DB_READ, gone_unit, &s, reterr);
}

struct touch_arg {
	struct str id;
	int64_t used_at_s;
};

static enum err_code
touch_unit(struct db *db, void *arg, struct err *reterr)
{
	struct touch_arg *t = arg;
	return db_exec(db, SQL_TOUCH,
	    DB_ARGS(DB_I64(t->used_at_s), DB_TEXT(t->id), DB_I64(t->used_at_s - TOUCH_EVERY_S)),
	    reterr);
}

enum err_code
store_key_touch(struct db *db, struct str id, int64_t used_at_s, struct err *reterr)
{
	struct touch_arg t = {id, used_at_s};
	return db_unit(db, DB_WRITE_REPEATABLE, touch_unit, &t, reterr);
}
