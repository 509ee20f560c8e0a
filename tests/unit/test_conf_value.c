/* What a good configuration says: defaults, types, environment, services, sections. */
#include <criterion/criterion.h>

#include "base/log.h"
#include "conf/env.h"
#include "tests/unit/conf_fixture.h"

TestSuite(conf_value, .timeout = 20);

Test(conf_value, has_defaults)
{
	struct loaded l = load("");
	must_load(&l);
	const struct conf *c = l.conf;
	cr_assert(str_eq(c->host, STR("0.0.0.0")) && c->port == 8000);
	cr_assert(str_eq(c->state_dir, STR("/srv/o/run")));
	cr_assert(str_eq(c->control_socket, STR("/srv/o/run/control.sock")));
	cr_assert(str_eq(c->pid_file, STR("/srv/o/run/otari.pid")));
	cr_assert(str_eq(c->files_local_dir, STR("/srv/o/run/otari-files")));
	cr_assert(str_eq(c->database_url, STR("sqlite:////srv/o/run/otari.db")), "%.*s",
	    STR_FMT(c->database_url));
	cr_assert(str_eq(c->admin_listen, STR("127.0.0.1:8001")));
	cr_assert_eq(c->require_pricing, 2);
	cr_assert_eq(c->code_execution_executor, EXECUTOR_UNSET);
	cr_assert_null(c->sandbox_url.ptr);
	cr_assert_eq(c->files_max_bytes, 536870912);
	cr_assert_eq(c->files_retention_hours, 0);
	cr_assert(c->files_enabled && !c->reject_user_mismatch);
	cr_assert_eq(conf_origin_of(c, "port")->from, FROM_DEFAULT);
	struct master_conf m;
	conf_master(c, &m);
	cr_assert(m.workers >= 1 && m.log_json && m.log_level == LOG_INFO);
	cr_assert_eq(m.sandbox.pids, 64);
	cr_assert_eq(l.report.warning_count, 1); /* no provider */
	done(&l);
	struct conf_source src = {.file = "/etc/otari/otari.conf",
	    .text = STR("tls_cert: c\ntls_key: /k\n"),
	    .environ = STR(""),
	    .cwd = STR("/"),
	    .as_root = true};
	conf_report_init(&l.report, src.file);
	cr_assert_eq(conf_load(&src, &l.report, &l.conf, NULL), ERR_OK);
	cr_assert(str_eq(l.conf->state_dir, STR("/var/lib/otari")));
	cr_assert(str_eq(l.conf->tls_cert, STR("/etc/otari/c")));
	cr_assert(str_eq(l.conf->tls_key, STR("/k")));
	done(&l);
}

Test(conf_value, reads_values_of_every_type)
{
	struct loaded l = load("port: 9000\nworkers: 3\nfiles_max_bytes: 64MiB\n"
			       "files_enabled: No\nrequire_pricing: FALSE\n"
			       "code_execution_executor: ' Otari '\nadmin_listen: none\n"
			       "sandbox_url: \"local\"\nsandbox_preload: [numpy, pandas]\n"
			       "state_dir: ./x\npid_file: /run/o.pid\nlog_file: log\n"
			       "files_storage_options: {key: v}\npublic_base_url: https://h/\n"
			       "host: '::'\nlog_level: debug\nlog_format: text\n"
			       "files_retention_hours: none\nsandbox_max_sessions: 7\n"
			       "database_url: mysql+pymysql://u:p@h:1/d?ssl=1\n");
	must_load(&l);
	const struct conf *c = l.conf;
	cr_assert(c->port == 9000 && c->workers == 3 && c->files_max_bytes == 64u << 20);
	cr_assert(!c->files_enabled && c->require_pricing == 0);
	cr_assert_eq(c->code_execution_executor, EXECUTOR_OTARI);
	cr_assert_null(c->admin_listen.ptr);
	cr_assert(str_eq(c->sandbox_url, STR("local:")));
	cr_assert(str_eq(c->state_dir, STR("/srv/o/x")));
	cr_assert(str_eq(c->pid_file, STR("/run/o.pid")));
	cr_assert(str_eq(c->log_file, STR("/srv/o/x/log")));
	cr_assert(str_eq(c->database_url, STR("mysql://u:p@h:1/d?ssl=1")));
	cr_assert(str_eq(c->public_base_url, STR("https://h")));
	cr_assert_eq(c->files_storage_options.count, 1);
	cr_assert_eq(c->files_output_max_bytes, 64u << 20);
	struct master_conf m;
	conf_master(c, &m);
	cr_assert(str_eq(m.sandbox.preload, STR("numpy,pandas")) && !m.log_json);
	cr_assert_eq(m.log_level, LOG_DEBUG);
	cr_assert_eq(m.sandbox.max_sessions, 7);
	const struct conf_origin *o = conf_origin_of(c, "files_max_bytes");
	cr_assert(o->from == FROM_FILE && o->line == 3);
	done(&l);
}

/* --- environment ----------------------------------------------------------------------------- */

Test(conf_value, lets_the_environment_beat_the_file)
{
	struct loaded l = load_text(STR("port: 1\nhost: 127.0.0.1\nfiles_max_bytes: 5\n"
					"sandbox_url: \"local:\"\nmaster_key: ${MK}\n"
					"tools_header: a$$b${X:-none}$\n"),
	    STR("OTARI_PORT=2\0OTARI_SANDBOX_URL=\0OTARI_FILES_MAX_BYTES=\0"
		"OTARI_SANDBOX_PRELOAD=a, b,,c\0MK=0123456789abcdef\0NOEQUALS\0=x\0"
		"OTARI_TEST_X=1\0OTARI_RECORDED=/r\0OTARI_ROLE_USER=1\0PORT=7\0"));
	must_load(&l);
	cr_assert_eq(l.conf->port, 2);
	cr_assert_eq(conf_origin_of(l.conf, "port")->from, FROM_ENVIRON);
	cr_assert_null(l.conf->sandbox_url.ptr);
	cr_assert_eq(l.conf->files_max_bytes, 5);
	cr_assert_eq(l.conf->sandbox_preload.count, 3);
	cr_assert(str_eq(l.conf->master_key, STR("0123456789abcdef")));
	cr_assert(str_eq(l.conf->tools_header, STR("a$bnone$")));
	cr_assert_eq(l.report.warning_count, 1, "%s", l.report.warnings.ptr);
	done(&l);
}

Test(conf_value, warns_of_unknown_variables_and_refuses_bad_ones)
{
	struct loaded l = load_text(STR(""), STR("OTARI_PROT=1\0"));
	must_load(&l);
	cr_assert(
	    strstr(l.report.warnings.ptr,
		"environment: OTARI_PROT is no known setting; did you mean that of 'port'?") !=
		NULL,
	    "%s", l.report.warnings.ptr);
	done(&l);
	static const struct {
		struct str environ;
		const char *says;
	} rows[] = {
	    {STR_INIT("OTARI_PORT=x\0"), "environment: OTARI_PORT: must be a whole number"},
	    {STR_INIT("OTARI_PROVIDERS=x\0"), "environment: OTARI_PROVIDERS: can only be set in"},
	    {STR_INIT("OTARI_CODE_EXECUTION_EXECUTOR=x\0"),
		"environment: OTARI_CODE_EXECUTION_EXECUTOR: must be one of"},
	    {STR_INIT("OTARI_DATABASE_URL=postgresql://h/d\0"),
		"environment: database_url: Postgre"},
	    {STR_INIT("OTARI_CONFIG_B64=%%%\0"), "environment: OTARI_CONFIG_B64: not base64"},
	    {STR_INIT("OTARI_CONFIG_YAML=prot: 1\0"), ":1: unknown key 'prot'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		l = load_text(STR("port: 1\n"), rows[i].environ);
		cr_assert_eq(l.rc, ERR_INPUT, "row %zu", i);
		cr_assert(strstr(l.report.errors.ptr, rows[i].says) != NULL, "row %zu: %s", i,
		    l.report.errors.ptr);
		done(&l);
	}
}

Test(conf_value, takes_the_whole_file_from_a_variable)
{
	struct loaded l = load_text(STR("port: 1\n"), STR("OTARI_CONFIG_B64=cG9ydDogNTU1NQo=\0"));
	must_load(&l);
	cr_assert_eq(l.conf->port, 5555);
	done(&l);
}

Test(conf_value, expands_variables)
{
	static const struct {
		const char *text, *out; /* NULL: refused */
	} rows[] = {
	    {"", ""},
	    {"plain", "plain"},
	    {"${A}", "1"},
	    {"x${A}y${B}", "x1y2"},
	    {"$A", "$A"},
	    {"$$", "$"},
	    {"$${A}", "${A}"},
	    {"$", "$"},
	    {"${N:-d}", "d"},
	    {"${E:-d}", "d"},
	    {"${E}", ""},
	    {"${A:-d}", "1"},
	    {"${N:-}", ""},
	    {"${N}", NULL},
	    {"${", NULL},
	    {"${}", NULL},
	    {"${1A}", NULL},
	    {"${A", NULL},
	    {"${N:-${A}}", "${A}"},
	};
	struct arena *a = arena_new(65536);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str out = STR_NULL;
		enum err_code rc =
		    env_expand(a, STR("A=1\0B=2\0E=\0"), str_c(rows[i].text), &out, NULL);
		cr_assert_eq(rc == ERR_OK, rows[i].out != NULL, "%s", rows[i].text);
		cr_assert(rc != ERR_OK || str_eq(out, str_c(rows[i].out)), "%s: %.*s", rows[i].text,
		    STR_FMT(out));
	}
	arena_free(&a);
}

/* --- providers ------------------------------------------------------------------------------- */

Test(conf_value, knows_services_and_finds_their_keys)
{
	struct loaded l =
	    load_text(STR("providers:\n"
			  "  openai:\n"
			  "  mine: {provider_type: Anthropic, api_key: k}\n"
			  "  box: {provider_type: ollama}\n"
			  "  team: {provider_type: openai, api_base: \"https://p.local/v1\"}\n"),
		STR("OPENAI_API_KEY= sk-o \0ANTHROPIC_API_KEY=sk-a\0MISTRAL_API_KEY=sk-m\0"
		    "GOOGLE_API_KEY=sk-g\0GROQ_API_KEY=\0"));
	must_load(&l);
	const struct conf *c = l.conf;
	const struct conf_provider *p = conf_provider(c, STR("openai"));
	cr_assert(str_eq(p->api_key, STR("sk-o")) && p->key_from_environ && p->line == 2);
	cr_assert(str_eq(p->api_base, STR("https://api.openai.com/v1")));
	cr_assert(p->wire == SNAP_WIRE_CHAT && p->native_code_execution == -1);
	cr_assert_eq(p->native_documents, -1);
	p = conf_provider(c, STR("mine"));
	cr_assert(str_eq(p->type, STR("anthropic")) && p->wire == SNAP_WIRE_MESSAGES);
	cr_assert(str_eq(p->api_key, STR("k")) && !p->key_from_environ);
	cr_assert(str_eq(conf_provider(c, STR("box"))->api_base, STR("http://127.0.0.1:11434/v1")));
	/* A service's key goes to that service and nowhere else. */
	cr_assert_null(conf_provider(c, STR("team"))->api_key.ptr);
	p = conf_provider(c, STR("mistral"));
	cr_assert(p != NULL && p->line == 0 && str_eq(p->api_key, STR("sk-m")));
	cr_assert(str_eq(conf_provider(c, STR("gemini"))->api_key, STR("sk-g")));
	cr_assert_null(conf_provider(c, STR("anthropic")));
	cr_assert_null(conf_provider(c, STR("groq")));
	cr_assert_eq(c->provider_count, 6);
	cr_assert_eq(l.report.warning_count, 0, "%s", l.report.warnings.ptr);
	done(&l);
}

Test(conf_value, reads_sections)
{
	struct loaded l = load(
	    "providers:\n"
	    "  p:\n"
	    "    api_base: http://h:1\n"
	    "    wire: Responses\n"
	    "    native_code_execution: true\n"
	    "    native_documents: no\n"
	    "    headers: {X-A: b}\n"
	    "    timeouts: {connect_ms: 200, first_byte_ms: 300, idle_ms: 400}\n"
	    "    proxy: http://proxy:3128/\n"
	    "    max_tokens_default: 9\n"
	    "aliases: {fast: \"p:m\"}\n"
	    "routing: {default_provider: p}\n"
	    "models: [\"p:m\", \"p:n\"]\n"
	    "workspaces:\n"
	    "  research:\n"
	    "  default: {code_execution: {enabled: false, default_purpose_hint: '  '}}\n"
	    "users: {alice: {alias: A}, bob: }\n"
	    "keys:\n"
	    "  - {hash: " HASH ", user: alice, workspace: research, expires_at: 2030-01-01,"
	    " allowed_models: []}\n"
	    "pricing: {\"p:m\": {input_price_per_million: 0.5, output_price_per_million: 2}}\n");
	must_load(&l);
	const struct conf *c = l.conf;
	const struct conf_provider *p = &c->providers[0];
	cr_assert(p->wire == SNAP_WIRE_RESPONSES && p->native_code_execution == 1);
	cr_assert_eq(p->native_documents, 0);
	cr_assert(p->connect_ms == 200 && p->first_byte_ms == 300 && p->idle_ms == 400);
	cr_assert(p->headers.count == 1 && p->max_tokens_default == 9);
	cr_assert(str_eq(p->proxy, STR("http://proxy:3128")));
	cr_assert(str_eq(c->aliases[0].target, STR("p:m")) && c->aliases[0].line == 11);
	cr_assert(c->models.count == 2 && str_eq(c->default_provider, STR("p")));
	cr_assert_eq(c->workspace_count, 2);
	cr_assert_not(c->workspaces[0].has_policy);
	cr_assert(c->workspaces[1].has_policy && !c->workspaces[1].policy.enabled);
	cr_assert_null(c->workspaces[1].policy.default_purpose_hint.ptr);
	cr_assert_eq(c->user_count, 2);
	const struct conf_key_entry *k = &c->keys[0];
	cr_assert(k->active && k->allowed_set && k->allowed_models.count == 0);
	cr_assert_eq(k->expires_at_s, 1893456000);
	cr_assert(c->prices[0].input_per_million == 0.5);
	/* Ids are the same wherever the file is read. */
	struct loaded again = load("workspaces: {research: }\n");
	must_load(&again);
	cr_assert(str_eq(again.conf->workspaces[0].id, c->workspaces[0].id));
	cr_assert_neq(c->workspaces[0].id.ptr[0], '\0');
	done(&again);
	done(&l);
}
