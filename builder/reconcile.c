#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "builder/build.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"

/* --- workspaces and users -------------------------------------------------------------------- */

static enum err_code
ensure_workspace(struct build *b, const struct conf_workspace *w, struct err *reterr)
{
	struct store_workspace row;
	enum err_code rc = store_workspace_get(b->db, b->arena, w->id, &row, reterr);
	if (rc != ERR_NOTFOUND)
		return rc;
	row = (struct store_workspace){w->id, w->name, clock_wall_s()};
	rc = store_workspace_create(b->db, &row, NULL, reterr);
	/* Another host with the same file was quicker. */
	return rc == ERR_CONFLICT ? ERR_OK : rc;
}

static enum err_code
ensure_user(struct build *b, const struct conf_user *u, struct err *reterr)
{
	struct store_user row;
	enum err_code rc = store_user_get(b->db, b->arena, u->id, &row, reterr);
	if (rc == ERR_OK) {
		if (!u->blocked_set || row.blocked == u->blocked)
			return ERR_OK;
		return store_user_set_blocked(b->db, u->id, u->blocked, NULL, reterr);
	}
	if (rc != ERR_NOTFOUND)
		return rc;
	row = (struct store_user){
	    .id = u->id, .alias = u->alias, .blocked = u->blocked, .created_at_s = clock_wall_s()};
	rc = store_user_create(b->db, &row, NULL, reterr);
	return rc == ERR_CONFLICT ? ERR_OK : rc;
}

/* --- keys ------------------------------------------------------------------------------------ */

static struct str
models_json(struct build *b, const struct conf_key_entry *k)
{
	if (!k->allowed_set)
		return STR_NULL;
	struct buf out = BUF_INIT(1u << 20);
	struct jw w;
	jw_init(&w, &out);
	jw_array(&w);
	for (uint32_t i = 0; i < k->allowed_models.count; i++)
		jw_str(&w, k->allowed_models.items[i]);
	jw_end_array(&w);
	struct str json = arena_str(b->arena, buf_str(&out));
	buf_done(&out);
	return json;
}

static struct store_key
wanted_row(struct build *b, const struct conf_key_entry *k)
{
	const struct conf_workspace *w = conf_workspace(b->conf, k->workspace);
	struct str workspace = w != NULL ? w->id
			       : k->workspace.ptr == NULL || str_eq(k->workspace, STR("default"))
				   ? STR(STORE_WORKSPACE_DEFAULT)
				   : k->workspace;
	return (struct store_key){.id = k->id,
	    .hash_hex = k->hash_hex,
	    .prefix = STR(""),
	    .name = k->name,
	    .user_id = k->user_id.ptr != NULL ? k->user_id : STR(STORE_USER_DEFAULT),
	    .workspace_id = workspace,
	    .allowed_models_json = models_json(b, k),
	    .metadata_json = STR(STORE_KEY_DECLARED),
	    .is_active = k->active,
	    .created_at_s = clock_wall_s(),
	    .expires_at_s = k->expires_at_s};
}

static bool
same_text(struct str a, struct str b)
{
	return (a.ptr == NULL) == (b.ptr == NULL) && str_eq(a, b);
}

static bool
is_same(const struct store_key *a, const struct store_key *b)
{
	return same_text(a->hash_hex, b->hash_hex) && same_text(a->name, b->name) &&
	       same_text(a->user_id, b->user_id) && same_text(a->workspace_id, b->workspace_id) &&
	       same_text(a->allowed_models_json, b->allowed_models_json) &&
	       a->is_active == b->is_active && a->expires_at_s == b->expires_at_s;
}

struct replace_arg {
	struct arena *arena;
	const struct store_key *wanted;
};

static enum err_code
replace_unit(struct db *db, void *arg, struct err *reterr)
{
	struct replace_arg *r = arg;
	struct store_key found;
	enum err_code rc = store_key_get(db, r->arena, r->wanted->id, &found, reterr);
	if (rc == ERR_OK && is_same(&found, r->wanted))
		return ERR_OK;
	if (rc == ERR_OK)
		rc = store_key_delete(db, r->wanted->id, NULL, reterr);
	if (rc != ERR_OK && rc != ERR_NOTFOUND)
		return rc;
	return store_key_create(db, r->wanted, NULL, reterr);
}

static enum err_code
ensure_key(struct build *b, const struct conf_key_entry *k, uint32_t i, struct err *reterr)
{
	struct store_key found, wanted = wanted_row(b, k);
	enum err_code rc = store_key_get(b->db, b->arena, k->id, &found, reterr);
	if (rc == ERR_OK && is_same(&found, &wanted))
		return ERR_OK;
	if (rc != ERR_OK && rc != ERR_NOTFOUND)
		return rc;
	struct replace_arg r = {b->arena, &wanted};
	rc = db_unit(b->db, DB_WRITE, replace_unit, &r, reterr);
	if (rc == ERR_CONFLICT) {
		conf_warning(&b->report, k->line,
		    "keys[%u]: the database has this key under another id, which stays", i);
		return ERR_OK;
	}
	if (rc == ERR_NOTFOUND)
		conf_error(&b->report, k->line, "keys[%u].workspace: there is no workspace '%.*s'",
		    i, STR_FMT(wanted.workspace_id));
	return rc;
}

/* --- keys that the file no longer has -------------------------------------------------------- */

struct stale {
	struct build *b;
	struct str *ids;
	uint32_t count, cap;
};

static bool
is_declared(const struct conf *c, struct str id)
{
	for (uint32_t i = 0; i < c->key_count; i++)
		if (str_eq(c->keys[i].id, id))
			return true;
	return false;
}

static enum err_code
on_key(const struct store_key *row, void *arg, struct err *reterr)
{
	struct stale *s = arg;
	if (!str_eq(row->metadata_json, STR(STORE_KEY_DECLARED)) ||
	    is_declared(s->b->conf, row->id))
		return ERR_OK;
	if (s->count == s->cap) {
		uint32_t cap = s->cap != 0 ? s->cap * 2 : 16;
		struct str *ids = ARENA_NEW_ARRAY(s->b->arena, struct str, cap);
		if (ids == NULL)
			return err_set(reterr, ERR_NOMEM, "too many keys to take away");
		if (s->count > 0)
			memcpy(ids, s->ids, s->count * sizeof(*ids));
		s->ids = ids;
		s->cap = cap;
	}
	s->ids[s->count++] = arena_str(s->b->arena, row->id);
	return ERR_OK;
}

static enum err_code
find_stale_unit(struct db *db, void *arg, struct err *reterr)
{
	struct stale *s = arg;
	s->count = 0;
	return store_key_scan(db, 0, on_key, s, reterr);
}

static enum err_code
delete_stale_keys(struct build *b, struct err *reterr)
{
	struct stale s = {.b = b};
	enum err_code rc = db_unit(b->db, DB_READ, find_stale_unit, &s, reterr);
	for (uint32_t i = 0; rc == ERR_OK && i < s.count; i++) {
		rc = store_key_delete(b->db, s.ids[i], NULL, reterr);
		if (rc == ERR_NOTFOUND)
			rc = ERR_OK;
	}
	return rc;
}

enum err_code
reconcile_declared(struct build *b, struct err *reterr)
{
	const struct conf *c = b->conf;
	enum err_code rc = ERR_OK;
	for (uint32_t i = 0; rc == ERR_OK && i < c->workspace_count; i++)
		rc = ensure_workspace(b, &c->workspaces[i], reterr);
	for (uint32_t i = 0; rc == ERR_OK && i < c->user_count; i++)
		rc = ensure_user(b, &c->users[i], reterr);
	for (uint32_t i = 0; rc == ERR_OK && i < c->key_count; i++)
		rc = ensure_key(b, &c->keys[i], i, reterr);
	if (rc == ERR_OK)
		rc = delete_stale_keys(b, reterr);
	if (rc != ERR_OK)
		err_prefix(reterr, "declared workspaces, users and keys: ");
	return rc;
}
