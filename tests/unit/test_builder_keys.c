/* A build's keys: base and delta, and what the file declares against what the API made. */
#include <criterion/criterion.h>

#include "tests/unit/builder_fixture.h"
#include "tests/unit/dbfix.h"

TestSuite(builder_keys, .timeout = 60);

static const char DECLARED[] =
    "workspaces:\n"
    "  research:\n"
    "    code_execution: {executor: otari, max_iterations: 3, tools: [code_execution]}\n"
    "users:\n"
    "  alice: {blocked: true}\n"
    "keys:\n"
    "  - hash: %s\n"
    "    user: alice\n"
    "    workspace: research\n"
    "    allowed_models: [\"a:b\"]\n"
    "    active: %s\n";

Test(builder_keys, reconciles_what_is_declared, .init = enter_directory, .fini = leave_directory)
{
	char hex[SHA256_HEX + 1], conf[1024];
	unsigned char raw[SHA256_BYTES];
	key_hash("gw-secret", hex, raw);
	struct build_request req = request(ALL, 1);
	for (int round = 0; round < 3; round++) { /* the third changes nothing */
		struct build b;
		(void)snprintf(conf, sizeof(conf), DECLARED, hex, round == 0 ? "false" : "true");
		must_build(&b, &req, conf);
		struct snapshot *keys = snapshot_of(&b, SNAP_KEYS);
		struct snapshot *policy = snapshot_of(&b, SNAP_POLICY);
		const struct snap_key *k = snapshot_key(keys, raw);
		cr_assert_eq(k != NULL, round > 0, "round %d", round);
		const struct conf_workspace *w = conf_workspace(b.conf, STR("research"));
		const struct snap_workspace *sw = snapshot_workspace(policy, w->id);
		cr_assert(sw != NULL && sw->policy_configured == 1 && sw->policy_enabled == 1);
		cr_assert(sw->executor == EXECUTOR_OTARI && sw->max_iterations == 3);
		cr_assert(sw->tools_set == 1 && sw->tools_mask == 1);
		if (k != NULL) {
			cr_assert_eq(k->user_blocked, 1);
			cr_assert(str_eq(snapshot_str(keys, k->workspace_id), w->id));
			cr_assert_eq(k->allowed_models.count, 1);
		}
		static uint64_t counters[3];
		counters[round] = b.result.db_keys;
		cr_assert(round < 2 || counters[2] == counters[1], "an unchanged file writes");
		snapshot_put(&keys);
		snapshot_put(&policy);
		build_done(&b);
	}
	/* Without a reload nothing is taken away; with one, the key goes and the user stays. */
	struct build b;
	req.reload = false;
	must_build(&b, &req, "");
	struct snapshot *keys = snapshot_of(&b, SNAP_KEYS);
	cr_assert_not_null(snapshot_key(keys, raw));
	snapshot_put(&keys);
	build_done(&b);
	req.reload = true;
	must_build(&b, &req, "");
	keys = snapshot_of(&b, SNAP_KEYS);
	cr_assert_null(snapshot_key(keys, raw));
	snapshot_put(&keys);
	build_done(&b);
	struct db *db = open_db();
	struct arena *a = arena_new(65536);
	struct store_user u;
	cr_assert_eq(store_user_get(db, a, STR("alice"), &u, NULL), ERR_OK);
	arena_free(&a);
	db_close(&db);
}

Test(builder_keys, leaves_keys_of_the_api_alone, .init = enter_directory, .fini = leave_directory)
{
	struct db *db = open_db();
	create_key(db, "gw-api", "bob", "[\"x:y\", 5]");
	create_key(db, "gw-all", "bob", NULL);
	create_key(db, "gw-broken", "bob", "no json");
	db_close(&db);
	struct build b;
	struct build_request req = request(ALL, 1);
	must_build(&b, &req, "");
	struct snapshot *s = snapshot_of(&b, SNAP_KEYS);
	cr_assert_eq(snapshot_keys(s)->keys.count, 3);
	cr_assert_eq(find(s, "gw-api")->allowed_models.count, 1);
	cr_assert_eq(find(s, "gw-all")->allowed_models.off, 0);
	const struct snap_key *broken = find(s, "gw-broken");
	cr_assert(broken->allowed_models.off != 0 && broken->allowed_models.count == 0);
	snapshot_put(&s);
	build_done(&b);
}

Test(builder_keys, makes_small_deltas, .init = enter_directory, .fini = leave_directory)
{
	struct db *db = open_db();
	struct build b;
	create_key(db, "gw-1", "alice", NULL);
	create_key(db, "gw-2", "bob", NULL);
	create_key(db, "gw-3", "bob", NULL);
	struct build_request req = request(BUILD_KEYS, 10);
	must_build(&b, &req, "");
	cr_assert_not(b.result.keys_is_delta);
	cr_assert_eq(b.result.nfds, 1);
	req = request(BUILD_KEYS, 11);
	req.reload = false;
	req.keys_base = 10;
	req.keys_since = b.result.db_keys;
	req.keys_base_count = b.result.keys_count;
	build_done(&b);

	create_key(db, "gw-4", "bob", NULL);
	cr_assert_eq(store_key_delete(db, STR("gw-1"), NULL, NULL), ERR_OK);
	must_build(&b, &req, "");
	cr_assert(b.result.keys_is_delta);
	struct snapshot *s = snapshot_of(&b, SNAP_KEYS);
	cr_assert(snapshot_keys(s)->is_delta == 1 && snapshot_keys(s)->base_generation == 10);
	cr_assert(find(s, "gw-4") != NULL && find(s, "gw-4")->is_active == 1);
	cr_assert(find(s, "gw-1") != NULL && find(s, "gw-1")->is_active == 0);
	cr_assert_null(find(s, "gw-2"));
	snapshot_put(&s);
	build_done(&b);

	/* A blocked user takes all of its keys along. */
	cr_assert_eq(store_user_set_blocked(db, STR("bob"), true, NULL, NULL), ERR_OK);
	must_build(&b, &req, "");
	s = snapshot_of(&b, SNAP_KEYS);
	cr_assert_eq(snapshot_keys(s)->keys.count, 4);
	cr_assert_eq(find(s, "gw-2")->user_blocked, 1);
	snapshot_put(&s);
	build_done(&b);

	static const char *const why[] = {"a reload", "an old base", "no base"};
	for (int i = 0; i < 3; i++) {
		struct build_request again = req;
		again.reload = i == 0;
		again.keys_base_age_s = i == 1 ? 100000 : 0;
		again.keys_base = i == 2 ? 0 : 10;
		must_build(&b, &again, "");
		cr_assert_not(b.result.keys_is_delta, "%s", why[i]);
		cr_assert_eq(b.result.keys_count, 3, "%s", why[i]);
		build_done(&b);
	}
	db_close(&db);
}

Test(builder_keys, builds_a_new_base_when_the_delta_grows, .init = enter_directory,
    .fini = leave_directory)
{
	struct db *db = open_db();
	struct build b;
	for (int i = 0; i < 300; i++) {
		char key[32];
		(void)snprintf(key, sizeof(key), "gw-%d", i);
		create_key(db, key, "alice", NULL);
	}
	struct build_request req = request(BUILD_KEYS, 2);
	req.reload = false;
	req.keys_base = 1;
	req.keys_since = 1;
	req.keys_base_count = 1000;
	must_build(&b, &req, "");
	cr_assert_not(b.result.keys_is_delta);
	cr_assert_eq(b.result.keys_count, 300);
	build_done(&b);
	req.keys_base_count = 10000;
	must_build(&b, &req, "");
	cr_assert(b.result.keys_is_delta);
	build_done(&b);
	db_close(&db);
}

static void
on_database(struct dbfix *f)
{
	char hex[SHA256_HEX + 1], conf[2048], declared[1024];
	unsigned char raw[SHA256_BYTES];
	struct build b;
	struct build_request req = request(ALL, 1);
	uint64_t counter = 0;
	req.cwd = str_c(f->dir);
	key_hash("gw-secret", hex, raw);
	(void)snprintf(declared, sizeof(declared), DECLARED, hex, "true");
	create_key(f->db, "gw-api", "b\xC3\xB6", "[\"x:y\"]");
	for (int round = 0; round < 3; round++) {
		(void)snprintf(conf, sizeof(conf), "database_url: \"%s\"\n%s", f->url,
		    round < 2 ? declared : "");
		must_build(&b, &req, conf);
		struct snapshot *s = snapshot_of(&b, SNAP_KEYS);
		cr_assert_eq(snapshot_key(s, raw) != NULL, round < 2, "%s, %d", f->name, round);
		const struct snap_key *api = find(s, "gw-api");
		cr_assert(str_eq(snapshot_str(s, api->user_id), STR("b\xC3\xB6")), "%s", f->name);
		cr_assert(round != 1 || counter == b.result.db_keys, "%s: an unchanged file writes",
		    f->name);
		counter = b.result.db_keys;
		snapshot_put(&s);
		build_done(&b);
	}
	req = request(BUILD_KEYS, 2);
	req.reload = false;
	req.keys_base = 1;
	req.keys_since = counter;
	req.keys_base_count = 1;
	create_key(f->db, "gw-new", "carol", NULL);
	cr_assert_eq(store_key_delete(f->db, STR("gw-api"), NULL, NULL), ERR_OK);
	must_build(&b, &req, conf);
	cr_assert(b.result.keys_is_delta && b.result.keys_count == 2, "%s", f->name);
	build_done(&b);
}

Test(builder_keys, are_the_same_on_every_database, .init = enter_directory, .fini = leave_directory)
{
	dbfix_each(on_database);
}
