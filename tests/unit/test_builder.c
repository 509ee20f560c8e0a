/* A build: configuration, files and database in; snapshots and secrets out. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "builder/build.h"
#include "ipc/secrets.h"
#include "storage/sql/migrate.h"
#include "storage/sql/store_key.h"
#include "storage/sql/store_policy.h"
#include "storage/sql/store_setting.h"
#include "storage/sql/store_user.h"
#include "storage/sql/store_workspace.h"

TestSuite(builder, .timeout = 60);

#define ENVIRON "OTARI_MASTER_KEY=mk-0123456789abcdef\0"
#define ALL     (BUILD_POLICY | BUILD_KEYS)

static char dir[64];

static void
enter_directory(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/otari-builder-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	char run[96];
	(void)snprintf(run, sizeof(run), "%s/run", dir);
	cr_assert_eq(mkdir(run, 0700), 0);
}

static void
leave_directory(void)
{
	static const char *const names[] = {"run/otari.db", "run/otari.db-wal", "run/otari.db-shm",
	    "run/master.key", "run", "key", NULL};
	for (size_t i = 0; names[i] != NULL; i++) {
		char path[128];
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)remove(path);
	}
	(void)rmdir(dir);
}

static struct build_request
request(uint32_t what, uint64_t generation)
{
	return (struct build_request){.what = what,
	    .generation = generation,
	    .conf_path = STR("otari.conf"),
	    .cwd = str_c(dir),
	    .reload = true};
}

/* Files come from the disk, as the master would open them. */
static bool
run_build(struct build *b, const struct build_request *req, const char *conf, struct str environ)
{
	build_init(b, req);
	if (!build_parse(b, str_c(conf), environ))
		return false;
	for (uint32_t i = 0; i < b->wanted_count; i++) {
		int fd = fd_open(b->wanted[i].file.path.ptr, O_RDONLY, 0);
		build_give_file(b, i, fd, errno);
	}
	return build_run(b);
}

static void
must_build(struct build *b, const struct build_request *req, const char *conf)
{
	bool ok = run_build(b, req, conf, STR(ENVIRON));
	cr_assert(ok, "%.*s", STR_FMT(b->result.failure));
	cr_assert(b->result.ok && b->result.has_conf);
}

static int
fd_of(const struct build *b, enum build_fd kind)
{
	for (uint32_t i = 0; i < b->result.nfds; i++)
		if (b->result.fds[i] == (uint32_t)kind)
			return fd_dup(b->fds[i]);
	return -1;
}

static struct snapshot *
snapshot_of(const struct build *b, enum snap_kind kind)
{
	struct snapshot *s = NULL;
	struct err e = {0};
	int fd = fd_of(b, kind == SNAP_POLICY ? BUILD_FD_POLICY : BUILD_FD_KEYS);
	cr_assert_geq(fd, 0, "no such segment");
	cr_assert_eq(snapshot_map(fd, kind, &s, &e), ERR_OK, "%s", e.msg);
	return s;
}

static struct db *
open_db(void)
{
	struct db *db;
	struct err e = {0};
	char url[128];
	(void)snprintf(url, sizeof(url), "sqlite:///%s/run/otari.db", dir);
	cr_assert_eq(db_open(str_c(url), DB_OPEN_NOW, &db, &e), ERR_OK, "%s", e.msg);
	cr_assert_eq(migrate_run(db, NULL, &e), ERR_OK, "%s", e.msg);
	return db;
}

static void
key_hash(const char *key, char hex[SHA256_HEX + 1], unsigned char raw[SHA256_BYTES])
{
	sha256_of(str_c(key), raw);
	hex_encode(raw, SHA256_BYTES, hex);
}

static void
create_key(struct db *db, const char *key, const char *user, const char *models)
{
	char hex[SHA256_HEX + 1];
	unsigned char raw[SHA256_BYTES];
	struct err e = {0};
	key_hash(key, hex, raw);
	struct store_key row = {.id = str_c(key),
	    .hash_hex = str_c(hex),
	    .prefix = STR("gw-"),
	    .user_id = str_c(user),
	    .workspace_id = STR(STORE_WORKSPACE_DEFAULT),
	    .allowed_models_json = str_c(models),
	    .is_active = true,
	    .created_at_s = 1};
	cr_assert_eq(store_key_create(db, &row, NULL, &e), ERR_OK, "%s", e.msg);
}

static const struct snap_key *
find(struct snapshot *s, const char *key)
{
	char hex[SHA256_HEX + 1];
	unsigned char raw[SHA256_BYTES];
	key_hash(key, hex, raw);
	return snapshot_key(s, raw);
}

Test(builder, builds_from_an_empty_database, .init = enter_directory, .fini = leave_directory)
{
	struct build b;
	struct build_request req = request(ALL, 5);
	must_build(&b, &req, "sandbox_url: \"local:\"\nworkers: 3\n");
	cr_assert_eq(b.result.nfds, 4);
	cr_assert_eq(b.result.conf.workers, 3);
	cr_assert(str_ends(b.result.conf.state_dir, STR("/run")));
	cr_assert_geq(b.result.db_policy, 1);
	struct snapshot *s = snapshot_of(&b, SNAP_POLICY);
	const struct snap_policy *p = snapshot_policy(s);
	cr_assert_eq(snapshot_generation(s), 5);
	cr_assert(str_eq(snapshot_str(s, p->settings.sandbox_url), STR("local:")));
	cr_assert_eq(p->settings.max_body_bytes, 33554432);
	cr_assert_eq(p->settings.require_pricing, 2);
	cr_assert_eq(p->settings.keepalive_ms, 15000);
	unsigned char digest[SHA256_BYTES];
	sha256_of(STR("mk-0123456789abcdef"), digest);
	cr_assert(str_eq(snapshot_str(s, p->settings.master_key_sha256), str_n(digest, 32)));
	cr_assert_not_null(snapshot_workspace(s, STR(STORE_WORKSPACE_DEFAULT)));
	snapshot_put(&s);
	s = snapshot_of(&b, SNAP_KEYS);
	cr_assert_eq(snapshot_keys(s)->keys.count, 0);
	cr_assert_eq(snapshot_keys(s)->is_delta, 0);
	snapshot_put(&s);
	build_done(&b);
}

Test(builder, leaves_everything_alone_when_only_the_settings_are_asked, .init = enter_directory,
    .fini = leave_directory)
{
	struct build b;
	struct build_request req = request(BUILD_CONF, 1);
	must_build(&b, &req, "database_url: sqlite:////nonexistent/x.db\nuser: nobody\n");
	cr_assert_eq(b.result.nfds, 0);
	cr_assert_eq(b.wanted_count, 0);
	cr_assert(str_eq(b.result.conf.user, STR("nobody")));
	build_done(&b);
}

Test(builder, publishes_nothing_of_a_bad_configuration, .init = enter_directory,
    .fini = leave_directory)
{
	static const struct {
		const char *conf, *says;
		bool bad_conf;
	} rows[] = {
	    {"prot: 1\nworkers: many\n", "otari.conf:1: unknown key 'prot'", true},
	    {"prot: 1\nworkers: many\n", "otari.conf:2: workers: must be auto or", true},
	    {"a: [", "otari.conf:", true},
	    {"providers:\n  x: {api_base: \"http://h\", api_key_file: nokey}\n",
		"otari.conf:2: providers.x.api_key_file: ", true},
	    {"providers:\n  x: {api_base: \"http://h\", api_key_file: nokey}\n",
		"No such file or directory", true},
	    {"master_key_file: none\n", "exclude each other", true},
	    {"database_url: sqlite:////nonexistent/otari.db\n", "database: ", false},
	    {"keys:\n  - hash: "
	     "0000000000000000000000000000000000000000000000000000000000000001\n"
	     "    workspace: 11111111-1111-4111-8111-111111111111\n",
		"otari.conf:2: keys[0].workspace: there is no workspace", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct build b;
		struct build_request req = request(ALL, 1);
		cr_assert_not(run_build(&b, &req, rows[i].conf, STR(ENVIRON)), "row %zu", i);
		cr_assert_not(b.result.ok, "row %zu", i);
		cr_assert_eq(b.result.bad_conf, rows[i].bad_conf, "row %zu", i);
		cr_assert_eq(b.result.nfds, 0, "row %zu", i);
		cr_assert(strstr(b.result.failure.ptr, rows[i].says) != NULL, "row %zu: %s", i,
		    b.result.failure.ptr);
		build_done(&b);
	}
}

Test(builder, says_that_the_first_start_needs_the_database, .init = enter_directory,
    .fini = leave_directory)
{
	struct build b;
	struct build_request req = request(ALL, 1);
	req.first = true;
	cr_assert_not(
	    run_build(&b, &req, "database_url: sqlite:////nonexistent/x.db\n", STR(ENVIRON)));
	cr_assert(str_starts(b.result.failure, STR("the first start needs the database: ")), "%s",
	    b.result.failure.ptr);
	build_done(&b);
}

static void
write_file(const char *name, const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = fd_open(path, O_WRONLY | O_CREAT, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, str_c(text), NULL), ERR_OK);
	fd_close(&fd);
}

static bool
holds(int fd, const char *text)
{
	char *bytes;
	size_t n;
	cr_assert_geq(fd, 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(fd_read_all(fd, 1 << 24, &bytes, &n, NULL), ERR_OK);
	bool found = str_find(str_n(bytes, n), str_c(text)) != SIZE_MAX;
	mem_free(bytes);
	fd_close(&fd);
	return found;
}

Test(builder, gives_each_audience_its_own_secrets, .init = enter_directory, .fini = leave_directory)
{
	struct build b;
	struct build_request req = request(ALL, 1);
	write_file("key", "  sk-from-a-file \nsecond line\n");
	bool ok = run_build(&b, &req,
	    "providers:\n"
	    "  one: {api_base: \"http://127.0.0.1:1\", api_key: sk-in-line, wire: messages}\n"
	    "  two: {api_base: \"http://127.0.0.1:1/v1/\", api_key_file: key,"
	    " headers: {x-a: b}, models: [m1, m1]}\n"
	    "aliases: {fast: \"two:m1\"}\nrouting: {default_provider: one}\n",
	    STR(ENVIRON "OPENAI_API_KEY=sk-of-environment\0"));
	cr_assert(ok, "%.*s", STR_FMT(b.result.failure));
	struct secrets *w, *sw;
	cr_assert_eq(secrets_map(fd_of(&b, BUILD_FD_WORKER_SECRETS), &w, NULL), ERR_OK);
	cr_assert_eq(secrets_map(fd_of(&b, BUILD_FD_SWEEPER_SECRETS), &sw, NULL), ERR_OK);
	cr_assert(str_eq(secrets_get(w, STR("provider/one")), STR("sk-in-line")));
	cr_assert(str_eq(secrets_get(w, STR("provider/two")), STR("sk-from-a-file")));
	cr_assert(str_eq(secrets_get(w, STR("provider/openai")), STR("sk-of-environment")));
	cr_assert_not_null(secrets_get(sw, STR("database_url")).ptr);
	cr_assert_null(secrets_get(sw, STR("provider/one")).ptr);
	secrets_free(&w);
	secrets_free(&sw);
	static const char *const never[] = {
	    "sk-in-line", "sk-from-a-file", "sk-of-environment", "mk-0123456789abcdef", "sqlite:"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++) {
		cr_assert_not(holds(fd_of(&b, BUILD_FD_POLICY), never[i]), "%s", never[i]);
		cr_assert_not(holds(fd_of(&b, BUILD_FD_KEYS), never[i]), "%s", never[i]);
	}
	struct snapshot *s = snapshot_of(&b, SNAP_POLICY);
	const struct snap_provider *two = snapshot_provider(s, STR("two"));
	const struct snap_provider *one = snapshot_provider(s, STR("one"));
	cr_assert(two != NULL && two->headers.count == 1 && two->wire == SNAP_WIRE_CHAT);
	cr_assert(str_eq(snapshot_str(s, two->api_base), STR("http://127.0.0.1:1/v1")));
	cr_assert(str_eq(snapshot_str(s, one->api_base), STR("http://127.0.0.1:1/v1")));
	cr_assert(str_eq(snapshot_str(s, two->secret), STR("provider/two")));
	cr_assert_eq(snapshot_policy(s)->models.count, 1);
	cr_assert_not_null(snapshot_alias(s, STR("fast")));
	cr_assert(str_eq(snapshot_str(s, snapshot_policy(s)->default_provider), STR("one")));
	snapshot_put(&s);
	build_done(&b);
}

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

Test(builder, reconciles_what_is_declared, .init = enter_directory, .fini = leave_directory)
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

Test(builder, leaves_keys_of_the_api_alone, .init = enter_directory, .fini = leave_directory)
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

Test(builder, makes_small_deltas, .init = enter_directory, .fini = leave_directory)
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

Test(builder, builds_a_new_base_when_the_delta_grows, .init = enter_directory,
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

Test(builder, lets_the_file_beat_the_api, .init = enter_directory, .fini = leave_directory)
{
	struct db *db = open_db();
	struct err e = {0};
	struct store_setting set[] = {{STR("code_execution_executor"), STR("otari")},
	    {STR("sandbox_purpose_hint"), STR("from the API")}};
	cr_assert_eq(store_setting_apply(db, set, 2, NULL, &e), ERR_OK, "%s", e.msg);
	struct store_policy pol = {.workspace_id = STR(STORE_WORKSPACE_DEFAULT),
	    .enabled = false,
	    .executor = STR("provider"),
	    .max_iterations = 99,
	    .tools_json = STR("[\"bash_code_execution\", \"rockets\"]"),
	    .created_at_s = 1,
	    .updated_at_s = 1};
	cr_assert_eq(store_policy_put(db, &pol, NULL, &e), ERR_OK, "%s", e.msg);
	db_close(&db);
	for (int declared = 0; declared < 2; declared++) {
		struct build b;
		struct build_request req = request(BUILD_POLICY, 1);
		must_build(&b, &req,
		    declared == 0 ? ""
				  : "sandbox_purpose_hint: from the file\n"
				    "workspaces: {default: {code_execution: {executor: auto}}}\n");
		struct snapshot *s = snapshot_of(&b, SNAP_POLICY);
		const struct snap_settings *t = &snapshot_policy(s)->settings;
		const struct snap_workspace *w =
		    snapshot_workspace(s, STR(STORE_WORKSPACE_DEFAULT));
		cr_assert_eq(t->code_execution_executor, EXECUTOR_OTARI);
		cr_assert(str_eq(snapshot_str(s, t->sandbox_purpose_hint),
		    declared == 0 ? STR("from the API") : STR("from the file")));
		cr_assert_eq(w->policy_enabled, (uint32_t)declared);
		cr_assert_eq(w->executor, declared == 0 ? EXECUTOR_PROVIDER : EXECUTOR_AUTO);
		cr_assert_eq(w->max_iterations, declared == 0 ? 25 : 0);
		cr_assert_eq(w->tools_mask, declared == 0 ? 2 : 0);
		snapshot_put(&s);
		build_done(&b);
	}
}

Test(builder, refuses_another_database_under_a_running_service, .init = enter_directory,
    .fini = leave_directory)
{
	static const struct {
		const char *conf, *says; /* NULL: built */
	} rows[] = {
	    {"port: 1\n", NULL},
	    {"port: 1\nstate_dir: elsewhere\n",
		"otari.conf:2: state_dir: a change needs a restart"},
	    {"database_url: sqlite:///other.db\n",
		"otari.conf:1: database_url: a change needs a restart"},
	    {"database_url: sqlite:///otari.db\n", NULL},
	};
	struct build b;
	struct build_request req = request(ALL, 1);
	char identity[BUILD_IDENTITY_SIZE];
	must_build(&b, &req, "");
	cr_assert(str_copy(identity, sizeof(identity), b.result.identity));
	cr_assert_eq(strlen(identity), BUILD_IDENTITY_SIZE - 1);
	build_done(&b);
	req.identity = str_c(identity);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = run_build(&b, &req, rows[i].conf, STR(ENVIRON));
		cr_assert_eq(ok, rows[i].says == NULL, "row %zu: %s", i, b.result.failure.ptr);
		cr_assert(ok || strstr(b.result.failure.ptr, rows[i].says) != NULL, "row %zu: %s",
		    i, b.result.failure.ptr);
		build_done(&b);
	}
	/* A new password is no other database. */
	struct conf_report report;
	struct conf *c[2];
	struct str places[2];
	for (int i = 0; i < 2; i++) {
		struct conf_source src = {.file = "x",
		    .text = i == 0 ? STR("database_url: mysql://u:one@h/d\n")
				   : STR("database_url: mysql://u:two@w:3@h/d\n"),
		    .cwd = STR("/")};
		conf_report_init(&report, "x");
		cr_assert_eq(conf_load(&src, &report, &c[i], NULL), ERR_OK);
		places[i] = conf_database_place(c[i], c[i]->arena);
		conf_report_done(&report);
	}
	cr_assert(str_eq(places[0], STR("mysql://u:***@h/d")), "%.*s", STR_FMT(places[0]));
	cr_assert(str_eq(places[0], places[1]), "%.*s", STR_FMT(places[1]));
	conf_free(&c[0]);
	conf_free(&c[1]);
}

Test(builder, holds_no_descriptor_afterwards, .init = enter_directory, .fini = leave_directory)
{
	struct build_request req = request(ALL, 1);
	struct build b;
	must_build(&b, &req, "");
	build_done(&b);
	int before = fd_count_open();
	must_build(&b, &req, "");
	build_done(&b);
	cr_assert_not(run_build(&b, &req, "x: 1\n", STR(ENVIRON)));
	build_done(&b);
	cr_assert_eq(fd_count_open(), before);
	cr_assert_eq(snapshot_alive(), 0);
}
