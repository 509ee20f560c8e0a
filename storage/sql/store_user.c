#include "storage/sql/store_user.h"

#include "storage/sql/store_util.h"

#define COLS "id, alias, blocked, created_at_s, changed_gen"

static const char SQL_INSERT[] = "INSERT INTO users (" COLS ") VALUES (?, ?, ?, ?, ?)";
static const char SQL_ENSURE_SQLITE[] =
    "INSERT INTO users (" COLS ") VALUES (?, NULL, 0, ?, ?) ON CONFLICT (id) DO NOTHING";
static const char SQL_ENSURE_MYSQL[] =
    "INSERT INTO users (" COLS ") VALUES (?, NULL, 0, ?, ?) ON DUPLICATE KEY UPDATE id = id";
static const char SQL_GET[] = "SELECT " COLS " FROM users WHERE id = ?";
static const char SQL_LIST[] = "SELECT " COLS " FROM users ORDER BY id LIMIT ? OFFSET ?";
static const char SQL_BLOCK[] = "UPDATE users SET blocked = ?, changed_gen = ? WHERE id = ?";
static const char SQL_SCAN_ALL[] = "SELECT " COLS " FROM users WHERE id > ? ORDER BY id LIMIT ?";
static const char SQL_SCAN_SINCE[] =
    "SELECT " COLS " FROM users WHERE changed_gen > ? ORDER BY changed_gen";

#define SCAN_PAGE 2000

static void
read_row(struct db_rows *rows, struct store_user *u)
{
	*u = (struct store_user){
	    .id = db_col_text(rows, 0),
	    .alias = db_col_text(rows, 1),
	    .blocked = db_col_i64(rows, 2) != 0,
	    .created_at_s = db_col_i64(rows, 3),
	    .changed_gen = db_col_i64(rows, 4),
	};
}

static void
copy_row(struct arena *a, struct db_rows *rows, struct store_user *u)
{
	read_row(rows, u);
	u->id = store_copy(a, rows, 0);
	u->alias = store_copy(a, rows, 1);
}

struct create_arg {
	const struct store_user *user;
	struct store_generation gen;
};

static enum err_code
create_unit(struct db *db, void *arg, struct err *reterr)
{
	struct create_arg *c = arg;
	const struct store_user *u = c->user;
	enum err_code rc = store_generation_bump(db, STORE_SEG_KEYS, &c->gen, reterr);
	if (rc != ERR_OK)
		return rc;
	return db_exec(db, SQL_INSERT,
	    DB_ARGS(DB_TEXT(u->id), DB_TEXT(u->alias), DB_I64(u->blocked), DB_I64(u->created_at_s),
		DB_I64(c->gen.keys)),
	    reterr);
}

enum err_code
store_user_create(struct db *db, const struct store_user *user, struct store_generation *ret_gen,
    struct err *reterr)
{
	struct create_arg c = {.user = user};
	enum err_code rc = STORE_CHECK(reterr, {"user_id", user->id, STORE_NAME_MAX_BYTES},
	    {"alias", user->alias, STORE_NAME_MAX_BYTES});
	if (rc == ERR_OK)
		rc = db_unit(db, DB_WRITE, create_unit, &c, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = c.gen;
	return rc;
}

enum err_code
store_user_ensure(struct db *db, struct str id, int64_t now_s, int64_t keys_gen, struct err *reterr)
{
	return db_exec(db, db_pick(db, SQL_ENSURE_SQLITE, SQL_ENSURE_MYSQL),
	    DB_ARGS(DB_TEXT(id), DB_I64(now_s), DB_I64(keys_gen)), reterr);
}

struct get_arg {
	struct arena *arena;
	struct str id;
	struct store_user user;
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
		rc = err_set(reterr, ERR_NOTFOUND, "no such user");
	if (rc == ERR_OK)
		copy_row(g->arena, rows, &g->user);
	db_rows_end(&rows);
	return rc != ERR_OK ? rc : store_check_arena(g->arena, reterr);
}

enum err_code
store_user_get(
    struct db *db, struct arena *a, struct str id, struct store_user *ret, struct err *reterr)
{
	struct get_arg g = {.arena = a, .id = id};
	enum err_code rc = db_unit(db, DB_READ, get_unit, &g, reterr);
	if (rc == ERR_OK)
		*ret = g.user;
	return rc;
}

struct list_arg {
	struct arena *arena;
	uint32_t skip, limit;
	struct store_user *items;
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
store_user_list(struct db *db, struct arena *a, uint32_t skip, uint32_t limit,
    struct store_user **ret, size_t *ret_n, struct err *reterr)
{
	struct list_arg l = {.arena = a, .skip = skip, .limit = limit};
	enum err_code rc = db_unit(db, DB_READ, list_unit, &l, reterr);
	if (rc == ERR_OK) {
		*ret = l.items;
		*ret_n = l.n;
	}
	return rc;
}

struct block_arg {
	struct str id;
	bool blocked;
	struct store_generation gen;
};

static enum err_code
block_unit(struct db *db, void *arg, struct err *reterr)
{
	struct block_arg *b = arg;
	enum err_code rc = store_generation_bump(db, STORE_SEG_KEYS, &b->gen, reterr);
	if (rc == ERR_OK)
		rc = db_exec(db, SQL_BLOCK,
		    DB_ARGS(DB_I64(b->blocked), DB_I64(b->gen.keys), DB_TEXT(b->id)), reterr);
	if (rc == ERR_OK && db_affected(db) == 0)
		rc = err_set(reterr, ERR_NOTFOUND, "no such user");
	return rc;
}

enum err_code
store_user_set_blocked(struct db *db, struct str id, bool blocked, struct store_generation *ret_gen,
    struct err *reterr)
{
	struct block_arg b = {.id = id, .blocked = blocked};
	enum err_code rc = db_unit(db, DB_WRITE, block_unit, &b, reterr);
	if (rc == ERR_OK && ret_gen != NULL)
		*ret_gen = b.gen;
	return rc;
}

struct scan_arg {
	int64_t since_gen;
	store_user_fn *fn;
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
		struct store_user u;
		read_row(rows, &u);
		if (!str_copy(last_id, id_size, u.id))
			return err_set(reterr, ERR_INTERNAL, "database: a user's id is too long");
		rc = s->fn(&u, s->arg, reterr);
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
	char last_id[256] = "";
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
store_user_scan(struct db *db, int64_t since_gen, store_user_fn *fn, void *arg, struct err *reterr)
{
	struct scan_arg s = {since_gen, fn, arg};
	return db_unit(db, DB_READ, scan_unit, &s, reterr);
}
