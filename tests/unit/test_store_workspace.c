/* Workspaces in both databases: names, and what a deletion takes with it. */
#include <string.h>

#include <criterion/criterion.h>

#include "storage/sql/store_key.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"
#include "tests/unit/dbfix.h"

#define ARENA (1u << 20)
#define ONE   "11111111-1111-4111-8111-111111111111"
#define TWO   "22222222-2222-4222-8222-222222222222"

static const struct store_workspace one = {STR_INIT(ONE), STR_INIT("Research"), 5};
static const struct store_workspace two = {STR_INIT(TWO), STR_INIT("Research"), 6};

static void
names(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	struct store_generation g0, g;
	struct store_workspace got, second = two;
	cr_assert_eq(store_generation_read(f->db, &g0, &err), ERR_OK);
	cr_assert_eq(store_workspace_add(f->db, &one, &g, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(g.policy, g0.policy + 1);
	cr_assert_eq(store_workspace_add(f->db, &two, NULL, &err), ERR_CONFLICT);
	cr_assert_eq(
	    store_workspace_get(f->db, a, two.id, &got, &err), ERR_NOTFOUND, "rolled back");
	second.name = STR("Sales \xf0\x9f\x90\x99");
	cr_assert_eq(store_workspace_add(f->db, &second, NULL, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(
	    store_workspace_rename(f->db, two.id, one.name, NULL, &err), ERR_CONFLICT, "taken");
	cr_assert_eq(store_workspace_rename(f->db, one.id, one.name, &g, &err), ERR_OK, "its own");
	cr_assert_eq(g.policy, g0.policy + 3, "a refused change has no number");
	cr_assert_eq(store_workspace_rename(f->db, two.id, STR("Support"), NULL, &err), ERR_OK);
	cr_assert_eq(store_workspace_get(f->db, a, two.id, &got, &err), ERR_OK);
	cr_assert(str_eq(got.name, STR("Support")) && got.created_at_s == 6);
	cr_assert_eq(store_workspace_rename(f->db, STR("no"), STR("x"), NULL, &err), ERR_NOTFOUND);
	arena_free(&a);
}

Test(store_workspace, has_one_name_of_a_kind, .timeout = 60)
{
	dbfix_each(names);
}

static void
put_key(struct dbfix *f, const char *id, bool active, int64_t expires, struct str metadata)
{
	struct err err = {0};
	struct store_key k = {.id = str_c(id),
	    .hash_hex = str_c(id),
	    .prefix = STR("gw-"),
	    .user_id = STR(STORE_USER_DEFAULT),
	    .workspace_id = one.id,
	    .metadata_json = metadata,
	    .is_active = active,
	    .created_at_s = 1,
	    .expires_at_s = expires};
	cr_assert_eq(store_key_create(f->db, &k, NULL, &err), ERR_OK, "%s", err.msg);
}

static void
deletion(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	struct store_key k;
	struct store_generation g;
	cr_assert_eq(store_workspace_add(f->db, &one, NULL, &err), ERR_OK);
	put_key(f, "off", false, 0, STR_NULL);
	put_key(f, "old", true, 1, STR_NULL);
	put_key(f, "on", true, 0, STR_NULL);
	put_key(f, "file", false, 0, STR(STORE_KEY_DECLARED));
	cr_assert_eq(store_workspace_delete(f->db, one.id, true, NULL, &err), ERR_CONFLICT);
	cr_assert(strstr(err.msg, "declares belong to this workspace: 1") != NULL, "%s", err.msg);
	cr_assert_eq(store_key_delete(f->db, STR("file"), NULL, &err), ERR_OK);
	cr_assert_eq(store_workspace_delete(f->db, one.id, false, NULL, &err), ERR_CONFLICT);
	cr_assert(strstr(err.msg, "active API keys belong to this workspace: 1") != NULL,
	    "only what opens the door: %s", err.msg);
	cr_assert_eq(store_key_get(f->db, a, STR("on"), &k, &err), ERR_OK);
	cr_assert(k.is_active, "a refusal changes nothing");
	cr_assert_eq(store_workspace_delete(f->db, one.id, true, &g, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(store_key_get(f->db, a, STR("on"), &k, &err), ERR_OK);
	cr_assert(!k.is_active && k.changed_gen == g.keys, "in the next delta");
	cr_assert_eq(store_key_get(f->db, a, STR("off"), &k, &err), ERR_OK);
	cr_assert(!k.is_active && k.changed_gen != g.keys);
	arena_free(&a);
}

Test(store_workspace, stops_its_keys_when_it_goes, .timeout = 60)
{
	dbfix_each(deletion);
}
