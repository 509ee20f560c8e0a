/* A build: configuration, files and database in; policy snapshot and secrets out. */
#include <criterion/criterion.h>

#include "tests/unit/builder_fixture.h"

TestSuite(builder, .timeout = 60);

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
		static const char *const whats[] = {"setting/sandbox_purpose_hint",
		    "policy/" STORE_WORKSPACE_DEFAULT, "workspace/" STORE_WORKSPACE_DEFAULT};
		for (size_t i = 0; i < ARRAY_LEN(whats); i++) {
			struct str where = snapshot_declared(s, str_c(whats[i]));
			cr_assert(declared == 0 ? where.ptr == NULL
						: str_eq(where, i == 0 ? STR("otari.conf:1")
								       : STR("otari.conf:2")),
			    "%s: %.*s", whats[i], STR_FMT(where));
		}
		snapshot_put(&s);
		build_done(&b);
	}
}

Test(
    builder, gives_every_workspace_its_own_policy, .init = enter_directory, .fini = leave_directory)
{
	enum { COUNT = 23 };
	struct db *db = open_db();
	struct err e = {0};
	for (int i = 0; i < COUNT; i++) {
		char id[16];
		/* neither in the order of their ids nor all with a policy */
		(void)snprintf(id, sizeof(id), "w-%02d", i * 7 % COUNT);
		struct store_workspace w = {str_c(id), str_c(id), i};
		cr_assert_eq(store_workspace_create(db, &w, NULL, &e), ERR_OK, "%s", e.msg);
		struct store_policy p = {.workspace_id = w.id,
		    .enabled = true,
		    .max_iterations = 1 + i * 7 % COUNT,
		    .created_at_s = 1,
		    .updated_at_s = 1};
		if (i % 3 != 0)
			cr_assert_eq(store_policy_put(db, &p, NULL, &e), ERR_OK, "%s", e.msg);
	}
	db_close(&db);
	struct build b;
	struct build_request req = request(BUILD_POLICY, 1);
	must_build(&b, &req, "");
	struct snapshot *s = snapshot_of(&b, SNAP_POLICY);
	for (int i = 0; i < COUNT; i++) {
		char id[16];
		int n = i * 7 % COUNT;
		(void)snprintf(id, sizeof(id), "w-%02d", n);
		const struct snap_workspace *w = snapshot_workspace(s, str_c(id));
		cr_assert_not_null(w);
		cr_assert_eq(w->policy_configured, i % 3 != 0, "%s", id);
		cr_assert_eq(w->max_iterations, i % 3 != 0 ? 1 + n : 0, "%s", id);
	}
	snapshot_put(&s);
	build_done(&b);
}

Test(builder, says_where_things_are_declared, .init = enter_directory, .fini = leave_directory)
{
	static const char conf[] =
	    "sandbox_allowed_session_images: [a, b]\n"
	    "workspaces:\n"
	    "  one: {id: 11111111-1111-4111-8111-111111111111}\n"
	    "keys:\n"
	    "  - hash: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	    "    workspace: one\n";
	struct build b;
	struct build_request req = request(ALL, 1);
	bool ok = run_build(&b, &req, conf, STR(ENVIRON "OTARI_CODE_EXECUTION_EXECUTOR= OTARI \0"));
	cr_assert(ok, "%.*s", STR_FMT(b.result.failure));
	struct snapshot *s = snapshot_of(&b, SNAP_POLICY);
	cr_assert(
	    str_eq(snapshot_declared(s, STR("workspace/11111111-1111-4111-8111-111111111111")),
		STR("otari.conf:3")));
	cr_assert_null(snapshot_declared(s, STR("policy/11111111-1111-4111-8111-111111111111")).ptr,
	    "it declares none");
	struct str key = arena_printf(b.arena, "key/%.*s", STR_FMT(b.conf->keys[0].id));
	cr_assert(str_eq(snapshot_declared(s, key), STR("otari.conf:5")));
	cr_assert(str_eq(snapshot_declared(s, STR("setting/code_execution_executor")),
	    STR("the environment variable OTARI_CODE_EXECUTION_EXECUTOR")));
	cr_assert_null(snapshot_declared(s, STR("setting/tools_header")).ptr);
	cr_assert_eq(snapshot_policy(s)->settings.code_execution_executor, EXECUTOR_OTARI);
	cr_assert(snapshot_has_image(s, STR("a")) && snapshot_has_image(s, STR("b")));
	cr_assert(!snapshot_has_image(s, STR("c")) && !snapshot_has_image(s, STR_NULL));
	snapshot_put(&s);
	build_done(&b);
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
