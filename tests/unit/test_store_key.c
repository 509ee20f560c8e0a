#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/arena.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_policy.h"
#include "storage/sql/store_setting.h"
#include "storage/sql/store_usage.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"
#include "tests/unit/dbfix.h"

#define ARENA (8u * 1024u * 1024u)

static struct store_key
sample(const char *id, const char *hash)
{
	return (struct store_key){
	    .id = str_c(id),
	    .hash_hex = str_c(hash),
	    .prefix = STR("gw-abcdefg"),
	    .name = STR_NULL,
	    .user_id = STR(STORE_USER_DEFAULT),
	    .workspace_id = STR(STORE_WORKSPACE_DEFAULT),
	    .is_active = true,
	    .created_at_s = 100,
	};
}

struct seen {
	int n;
	char text[512];
};

static enum err_code
note_key(const struct store_key *k, void *arg, struct err *reterr)
{
	struct seen *s = arg;
	(void)reterr;
	s->n++;
	size_t at = strlen(s->text);
	(void)snprintf(s->text + at, sizeof(s->text) - at, "%.*s ", STR_FMT(k->id));
	return ERR_OK;
}

static enum err_code
note_gone(struct str hash, void *arg, struct err *reterr)
{
	struct seen *s = arg;
	(void)reterr;
	s->n++;
	size_t at = strlen(s->text);
	(void)snprintf(s->text + at, sizeof(s->text) - at, "%.*s ", STR_FMT(hash));
	return ERR_OK;
}

static enum err_code
note_user(const struct store_user *u, void *arg, struct err *reterr)
{
	struct seen *s = arg;
	(void)reterr;
	s->n += u->blocked ? 100 : 1;
	return ERR_OK;
}

static void
keys(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	struct store_generation g0, g1, g2;
	cr_assert_eq(store_generation_read(f->db, &g0, &err), ERR_OK);
	struct store_key k = sample("k1", "h1"), out;
	k.name = STR("\xf0\x9f\x94\x91");
	k.user_id = STR("new-user");
	k.expires_at_s = 4102444800;
	k.allowed_models_json = STR("[\"openai:gpt\"]");
	cr_assert_eq(store_key_create(f->db, &k, &g1, &err), ERR_OK, "%s: %s", f->name, err.msg);
	cr_assert(g1.keys == g0.keys + 1 && g1.policy == g0.policy);
	cr_assert_eq(store_key_get(f->db, a, STR("k1"), &out, &err), ERR_OK);
	cr_assert(
	    str_eq(out.name, k.name) && str_eq(out.allowed_models_json, k.allowed_models_json));
	cr_assert(out.is_active && out.expires_at_s == 4102444800 && out.last_used_at_s == 0);
	cr_assert(out.changed_gen == g1.keys && out.metadata_json.ptr == NULL);
	struct store_user u;
	cr_assert_eq(store_user_get(f->db, a, STR("new-user"), &u, &err), ERR_OK);
	cr_assert_not(u.blocked);

	struct store_key bad = sample("k1", "h9");
	cr_assert_eq(store_key_create(f->db, &bad, NULL, &err), ERR_CONFLICT);
	bad = sample("k9", "h1");
	cr_assert_eq(store_key_create(f->db, &bad, NULL, &err), ERR_CONFLICT);
	bad = sample("k9", "h9");
	bad.workspace_id = STR("none");
	bad.user_id = STR("nobody");
	cr_assert_eq(store_key_create(f->db, &bad, NULL, &err), ERR_NOTFOUND);
	cr_assert_eq(
	    store_user_get(f->db, a, STR("nobody"), &u, &err), ERR_NOTFOUND, "rolled back");
	cr_assert_eq(store_generation_read(f->db, &g2, &err), ERR_OK);
	cr_assert_eq(g2.keys, g1.keys, "a refused change is no change");

	k = sample("k2", "h2");
	k.created_at_s = 101;
	cr_assert_eq(store_key_create(f->db, &k, &g2, &err), ERR_OK);
	struct seen s = {0};
	cr_assert_eq(store_key_scan(f->db, 0, note_key, &s, &err), ERR_OK);
	cr_assert_str_eq(s.text, "k1 k2 ");
	s = (struct seen){0};
	cr_assert_eq(store_key_scan(f->db, g1.keys, note_key, &s, &err), ERR_OK);
	cr_assert_str_eq(s.text, "k2 ", "the delta");
	cr_assert_eq(store_key_delete(f->db, STR("k2"), &g2, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(store_key_delete(f->db, STR("k2"), NULL, &err), ERR_NOTFOUND);
	s = (struct seen){0};
	cr_assert_eq(store_key_scan_gone(f->db, g1.keys, note_gone, &s, &err), ERR_OK);
	cr_assert_str_eq(s.text, "h2 ");
	s = (struct seen){0};
	cr_assert_eq(store_key_scan_gone(f->db, g2.keys, note_gone, &s, &err), ERR_OK);
	cr_assert_eq(s.n, 0);
	/* Back again under the same hash: no longer gone. */
	cr_assert_eq(store_key_create(f->db, &k, NULL, &err), ERR_OK);
	s = (struct seen){0};
	cr_assert_eq(store_key_scan_gone(f->db, 0, note_gone, &s, &err), ERR_OK);
	cr_assert_eq(s.n, 0);
	cr_assert_eq(store_key_touch(f->db, STR("k2"), 5000, &err), ERR_OK);
	cr_assert_eq(store_key_touch(f->db, STR("k2"), 5010, &err), ERR_OK);
	struct store_key *items = NULL;
	size_t n = 0;
	cr_assert_eq(store_key_list(f->db, a, 0, 10, &items, &n, &err), ERR_OK);
	cr_assert(n == 2 && str_eq(items[0].id, STR("k2")) && str_eq(items[1].id, STR("k1")));
	cr_assert_eq(items[0].last_used_at_s, 5000, "to the minute");
	cr_assert_eq(store_key_list(f->db, a, 1, 10, &items, &n, &err), ERR_OK);
	cr_assert(n == 1 && str_eq(items[0].id, STR("k1")));

	cr_assert_eq(store_user_set_blocked(f->db, STR("new-user"), true, &g1, &err), ERR_OK);
	cr_assert_eq(store_user_set_blocked(f->db, STR("none"), true, NULL, &err), ERR_NOTFOUND);
	s = (struct seen){0};
	cr_assert_eq(store_user_scan(f->db, 0, note_user, &s, &err), ERR_OK);
	cr_assert_eq(s.n, 101);
	s = (struct seen){0};
	cr_assert_eq(store_user_scan(f->db, g1.keys - 1, note_user, &s, &err), ERR_OK);
	cr_assert_eq(s.n, 100);
	u = (struct store_user){.id = STR("new-user"), .created_at_s = 1};
	cr_assert_eq(store_user_create(f->db, &u, NULL, &err), ERR_CONFLICT);
	arena_free(&a);
}

Test(store_key, makes_lists_and_deletes_keys_with_their_generations, .timeout = 60)
{
	dbfix_each(keys);
}

static enum err_code
many_keys(struct db *db, void *arg, struct err *reterr)
{
	(void)arg;
	for (int i = 0; i < 2100; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "m%04d", i);
		struct store_key k = sample(id, id);
		enum err_code rc = store_key_create(db, &k, NULL, reterr);
		if (rc != ERR_OK)
			return rc;
	}
	return ERR_OK;
}

static void
scan_many(struct dbfix *f)
{
	struct err err = {0};
	struct seen s = {0};
	cr_assert_eq(db_unit(f->db, DB_WRITE, many_keys, NULL, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(store_key_scan(f->db, 0, note_key, &s, &err), ERR_OK);
	cr_assert_eq(s.n, 2100, "over two pages");
}

Test(store_key, scans_more_than_a_page, .timeout = 60)
{
	dbfix_each(scan_many);
}

static void
policies(struct dbfix *f)
{
	struct arena *a = arena_new(ARENA);
	struct err err = {0};
	struct store_generation g0, g;
	cr_assert_eq(store_generation_read(f->db, &g0, &err), ERR_OK);
	struct store_workspace ws = {STR("ws-1"), STR("Team \xf0\x9f\x90\x99"), 7}, got;
	cr_assert_eq(store_workspace_create(f->db, &ws, &g, &err), ERR_OK);
	cr_assert_eq(g.policy, g0.policy + 1);
	cr_assert_eq(store_workspace_create(f->db, &ws, NULL, &err), ERR_CONFLICT);
	cr_assert_eq(store_workspace_get(f->db, a, ws.id, &got, &err), ERR_OK);
	cr_assert(str_eq(got.name, ws.name) && got.created_at_s == 7);
	struct store_policy p = {
	    .workspace_id = STR("none"),
	    .enabled = true,
	    .executor = STR("otari"),
	    .max_iterations = 5,
	    .tools_json = STR("[\"code_execution\"]"),
	    .created_at_s = 10,
	    .updated_at_s = 10,
	};
	struct store_policy q;
	cr_assert_eq(store_policy_put(f->db, &p, NULL, &err), ERR_NOTFOUND);
	p.workspace_id = ws.id;
	cr_assert_eq(store_policy_get(f->db, a, ws.id, &q, &err), ERR_NOTFOUND);
	cr_assert_eq(store_policy_put(f->db, &p, &g, &err), ERR_OK, "%s", err.msg);
	p = (struct store_policy){.workspace_id = ws.id,
	    .default_purpose_hint = STR("hint"),
	    .created_at_s = 20,
	    .updated_at_s = 20};
	cr_assert_eq(store_policy_put(f->db, &p, &g, &err), ERR_OK);
	cr_assert_eq(store_policy_get(f->db, a, ws.id, &q, &err), ERR_OK);
	cr_assert(!q.enabled && q.executor.ptr == NULL && q.max_iterations == 0 &&
		      q.tools_json.ptr == NULL && str_eq(q.default_purpose_hint, STR("hint")),
	    "a whole replacement");
	cr_assert(q.created_at_s == 10 && q.updated_at_s == 20);
	cr_assert_eq(store_policy_delete(f->db, ws.id, &g, &err), ERR_OK);
	cr_assert_eq(store_policy_delete(f->db, ws.id, &g, &err), ERR_OK, "again");
	cr_assert_eq(store_policy_put(f->db, &p, &g, &err), ERR_OK);

	struct store_key k = sample("k1", "h1");
	k.workspace_id = ws.id;
	cr_assert_eq(store_key_create(f->db, &k, NULL, &err), ERR_OK);
	cr_assert_eq(store_workspace_delete(f->db, ws.id, false, NULL, &err), ERR_CONFLICT);
	cr_assert_eq(store_key_delete(f->db, k.id, NULL, &err), ERR_OK);
	cr_assert_eq(store_workspace_delete(f->db, ws.id, false, &g, &err), ERR_OK);
	cr_assert_eq(store_workspace_delete(f->db, ws.id, true, NULL, &err), ERR_NOTFOUND);
	cr_assert_eq(store_workspace_delete(f->db, STR(STORE_WORKSPACE_DEFAULT), true, NULL, &err),
	    ERR_CONFLICT);
	struct store_policy *ps = NULL;
	struct store_workspace *wss = NULL;
	size_t n = 9;
	cr_assert_eq(store_policy_list(f->db, a, &ps, &n, &err), ERR_OK);
	cr_assert_eq(n, 0, "the policy went with its workspace");
	cr_assert_eq(store_workspace_list(f->db, a, &wss, &n, &err), ERR_OK);
	cr_assert(n == 1 && str_eq(wss[0].id, STR(STORE_WORKSPACE_DEFAULT)));

	struct store_setting set[] = {{STR("a"), STR("1")}, {STR("b"), STR("")}}, *list = NULL;
	cr_assert_eq(store_setting_apply(f->db, set, 2, &g, &err), ERR_OK);
	set[0].value = STR_NULL;
	set[1].value = STR("2");
	cr_assert_eq(store_setting_apply(f->db, set, 2, &g, &err), ERR_OK);
	cr_assert_eq(store_setting_list(f->db, a, &list, &n, &err), ERR_OK);
	cr_assert(n == 1 && str_eq(list[0].key, STR("b")) && str_eq(list[0].value, STR("2")));
	arena_free(&a);
}

Test(store_policy, replaces_whole_policies_and_follows_the_workspace, .timeout = 60)
{
	dbfix_each(policies);
}

static void
usage(struct dbfix *f)
{
	struct err err = {0};
	struct usage rows[300];
	char ids[300][16];
	for (int i = 0; i < 300; i++) {
		(void)snprintf(ids[i], sizeof(ids[i]), "r%d", i);
		rows[i] = (struct usage){
		    .request_id = str_c(ids[i]),
		    .user_id = i % 3 == 0 ? STR("eve") : STR("bob"),
		    .model = STR("m"),
		    .ts_ms = 1000 + i,
		    .prompt_tokens = 10,
		    .completion_tokens = 1,
		    .cost_microusd = 3000000000,
		    .error = STR("\xff\xf0 not text"),
		};
	}
	size_t added = 0;
	cr_assert_eq(store_usage_insert(f->db, rows, 200, &added, &err), ERR_OK, "%s", err.msg);
	cr_assert_eq(added, 200);
	cr_assert_eq(store_usage_insert(f->db, rows, 300, &added, &err), ERR_OK);
	cr_assert_eq(added, 100, "%s: those that were there are left alone", f->name);
	struct store_usage_total t;
	cr_assert_eq(store_usage_total(f->db, STR_NULL, 0, INT64_MAX, &t, &err), ERR_OK);
	cr_assert(t.requests == 300 && t.prompt_tokens == 3000 && t.completion_tokens == 300);
	cr_assert_eq(t.cost_microusd, 900000000000);
	cr_assert_eq(store_usage_total(f->db, STR("eve"), 1000, 1030, &t, &err), ERR_OK);
	cr_assert_eq(t.requests, 10);
	cr_assert_eq(store_usage_total(f->db, STR("none"), 0, INT64_MAX, &t, &err), ERR_OK);
	cr_assert(t.requests == 0 && t.cost_microusd == 0);
}

Test(store_usage, counts_every_request_once, .timeout = 60)
{
	dbfix_each(usage);
}
