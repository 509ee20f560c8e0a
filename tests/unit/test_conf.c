/* The configuration: every error with its line, environment, sections, shipped file and texts. */
#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/docs.h"
#include "conf/env.h"
#include "conf/master_key.h"

TestSuite(conf, .timeout = 20);

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct loaded {
	struct conf_report report;
	struct conf *conf;
	enum err_code rc;
};

static struct loaded
load_text(struct str text, struct str environ)
{
	struct loaded l = {0};
	struct conf_source src = {
	    .file = "otari.conf", .text = text, .environ = environ, .cwd = STR("/srv/o")};
	struct err e = {0};
	conf_report_init(&l.report, src.file);
	l.rc = conf_load(&src, &l.report, &l.conf, &e);
	cr_assert((l.rc == ERR_OK) == (l.report.error_count == 0));
	cr_assert(l.rc == ERR_OK || strcmp(e.msg, l.report.first.msg) == 0);
	return l;
}

static struct loaded
load(const char *text)
{
	return load_text(str_c(text), STR(""));
}

static void
done(struct loaded *l)
{
	conf_free(&l->conf);
	conf_report_done(&l->report);
}

static void
must_load(struct loaded *l)
{
	cr_assert_eq(l->rc, ERR_OK, "%s", l->report.errors.ptr);
}

/* --- errors ---------------------------------------------------------------------------------- */

static const struct {
	const char *text, *says;
} WRONG[] = {
    {"prot: 1\n", "otari.conf:1: unknown key 'prot'; did you mean 'port'?"},
    {"\n\nsandbox_memory: 1\n", "otari.conf:3: unknown key 'sandbox_memory'; did you mean "
				"'sandbox_memory_bytes'?"},
    {"zzzzzzzzzzzzzz: 1\n", "otari.conf:1: unknown key 'zzzzzzzzzzzzzz'"},
    {"port: 1\nport: 2\n", "otari.conf:2: 'port' occurs twice"},
    {"port: 65536\n", "otari.conf:1: port: must be a whole number from 0 to 65535, not '65536'"},
    {"port: -1\n", "otari.conf:1: port: must be a whole number"},
    {"port: 8e3\n", "otari.conf:1: port: must be a whole number"},
    {"port: [1]\n", "otari.conf:1: port: must be a single value, not a list"},
    {"port: 1MiB\n", "otari.conf:1: port: must be a whole number"},
    {"workers: 0\n", "otari.conf:1: workers: must be auto or a whole number from 1 to 256"},
    {"workers: many\n", "otari.conf:1: workers: must be auto or a whole number"},
    {"files_enabled: maybe\n", "otari.conf:1: files_enabled: must be true or false, not 'maybe'"},
    {"files_max_bytes: 18446744073709551615GiB\n", "otari.conf:1: files_max_bytes: must be"},
    {"code_execution_executor: both\n",
	"otari.conf:1: code_execution_executor: must be one of auto|otari|provider, not 'both'"},
    {"log_level: loud\n", "otari.conf:1: log_level: must be one of"},
    {"host: example.com\n", "otari.conf:1: host: must be a numeric address"},
    {"admin_listen: 80\n", "otari.conf:1: admin_listen: must be address:port"},
    {"admin_listen: 127.0.0.1:8000\n", "otari.conf:1: admin_listen: the public listener has port"},
    {"public_base_url: otari\n", "otari.conf:1: public_base_url: must start with http://"},
    {"tls_cert: a.pem\n", "otari.conf:1: tls_cert and tls_key are needed together"},
    {"x: 1\ntls_key: a.pem\n", "otari.conf:2: tls_cert and tls_key are needed together"},
    {"user: root\n", "otari.conf:1: user: must be a user other than root"},
    {"master_key: a b\n", "otari.conf:1: master_key: holds a character"},
    {"master_key: 0123456789abcdef\nmaster_key_file: x\n",
	"otari.conf:2: master_key and master_key_file exclude each other"},
    {"database_url: postgresql://u:p@h/d\n", "otari.conf:1: database_url: PostgreSQL is not"},
    {"database_url: postgresql+asyncpg://u:p@h/d\n", "PostgreSQL is not supported"},
    {"database_url: postgres://u:p@h/d\n", "PostgreSQL is not supported"},
    {"database_url: oracle://h\n", "otari.conf:1: database_url: 'oracle' is no database"},
    {"database_url: otari.db\n", "otari.conf:1: database_url: must be sqlite:///PATH"},
    {"database_url: \"sqlite://\"\n", "otari.conf:1: database_url: sqlite needs a file"},
    {"database_url: \"sqlite:///:memory:\"\n", "database_url: sqlite needs a file"},
    {"database_url: mysql://host\n", "otari.conf:1: database_url: must be mysql://"},
    {"database_url: ''\n", "otari.conf:1: database_url: must be"},
    {"database_url:\n", "otari.conf:1: database_url: must be"},
    {"files_backend: ftp\n", "otari.conf:1: files_backend: must be one of local|s3|url|fsspec"},
    {"files_backend: s3\n", "otari.conf:1: files_backend: s3 needs files_s3_bucket"},
    {"files_backend: fsspec\n", "otari.conf:1: files_backend: url needs files_url"},
    {"files_backend: s3\nfiles_s3_bucket: b\n", "files_backend: s3 is not built yet"},
    {"files_storage_options: [a]\n", "otari.conf:1: files_storage_options: must be a map"},
    {"sandbox_url: remote\n", "otari.conf:1: sandbox_url: must be local:, not 'remote'"},
    {"sandbox_url: http://h\n", "otari.conf:1: sandbox_url: a sandbox on another host is not"},
    {"sandbox_python: python3\n", "otari.conf:1: sandbox_python: must be an absolute path"},
    {"sandbox_file_bytes: 1GiB\n", "otari.conf:1: sandbox_file_bytes: more than"},
    {"sandbox_preload: [a, \"os; x\"]\n", "otari.conf:1: sandbox_preload: 'os; x' is no module"},
    {"sandbox_preload: pandas\n", "otari.conf:1: sandbox_preload: must be a list"},
    {"state_dir: /x/0123456789012345678901234567890123456789012345678901234567890123456789012345"
     "67890123456789012345678901234567890\n",
	"control_socket: '"},
    {"port: ${NOT_SET}\n", "otari.conf:1: port: the variable NOT_SET is not set"},
    {"host: ${BAD NAME}\n", "otari.conf:1: host: ${BAD NAME} names no variable"},
    {"host: ${OPEN\n", "otari.conf:1: host: ${ without }"},
    {"- a\n", "otari.conf:1: must hold `key: value` lines, not a list"},
    {"text\n", "otari.conf:1: must hold `key: value` lines"},
    {"budgets: {b: {max: 1}}\n", "otari.conf:1: budgets: not built yet"},
    {"pricing: [a]\n", "otari.conf:1: pricing: must be a map, not a list"},
    {"pricing:\n  gpt: {input_price_per_million: 1}\n", "otari.conf:2: pricing.gpt: must be "
							"provider:model"},
    {"pricing:\n  a:b: {input_price_per_million: -1}\n",
	"otari.conf:2: pricing.a:b.input_price_per_million: must be an amount"},
    {"pricing:\n  a:b: {input_price_per_million: nan}\n", "must be an amount"},
    {"pricing:\n  a:b: {input: 1}\n", "otari.conf:2: pricing.a:b: unknown key 'input'"},
    {"models: [gpt]\n", "otari.conf:1: models: 'gpt' must be provider:model"},
    {"models: [\"no:m\"]\n", "otari.conf:1: models: there is no provider 'no'"},
    {"aliases: {a: gpt}\n", "otari.conf:1: aliases.a: 'gpt' must be provider:model"},
    {"aliases:\n  a: \"no:m\"\n", "otari.conf:2: aliases.a: there is no provider 'no'"},
    {"aliases: {\"\": \"a:b\"}\n", "otari.conf:1: aliases.: must be 1 to 256"},
    {"routing: {default_provider: no}\n", "otari.conf:1: routing.default_provider: there is no"},
    {"routing: {default: no}\n", "otari.conf:1: routing: unknown key 'default'; did you mean "
				 "'default_provider'?"},
    {"providers: [openai]\n", "otari.conf:1: providers: must be a map, not a list"},
    {"providers:\n  \"a b\": {api_base: \"http://h\"}\n",
	"otari.conf:2: providers.a b: a provider's name is made of"},
    {"providers:\n  x: {}\n", "otari.conf:2: providers.x: api_base is missing ('x' is no known"},
    {"providers:\n  x: {api_bass: 1}\n",
	"otari.conf:2: providers.x: unknown key 'api_bass'; did you mean 'api_base'?"},
    {"providers:\n  x: {api_base: \"h\"}\n", "otari.conf:2: providers.x.api_base: must start"},
    {"providers:\n  x: {api_base: \"http://u:p@h\"}\n", "must not hold a user name"},
    {"providers:\n  openai:\n    wire: chat\n",
	"otari.conf:2: providers.openai: needs api_key or api_key_file (or the variable "
	"OPENAI_API_KEY)"},
    {"providers:\n  x: {api_base: \"http://h\", wire: soap}\n",
	"otari.conf:2: providers.x.wire: must be chat, messages or responses, not 'soap'"},
    {"providers:\n  x: {api_base: \"http://h\", api_key: a, api_key_file: b}\n",
	"otari.conf:2: providers.x: api_key and api_key_file exclude each other"},
    {"providers:\n  x: {api_base: \"http://h\", api_key: \"a\\nb\"}\n",
	"otari.conf:2: providers.x.api_key: holds a character"},
    {"providers:\n  x: {api_base: \"http://h\", headers: {host: a}}\n",
	"otari.conf:2: providers.x.headers.host: is set by Otari itself"},
    {"providers:\n  x: {api_base: \"http://h\", headers: [a]}\n",
	"otari.conf:2: providers.x.headers: must be a map"},
    {"providers:\n  x: {api_base: \"http://h\", timeouts: {connect_ms: 1}}\n",
	"otari.conf:2: providers.x.timeouts.connect_ms: must be a whole number from 100"},
    {"providers:\n  x: {api_base: \"http://h\", native_code_execution: perhaps}\n",
	"otari.conf:2: providers.x.native_code_execution: must be true or false"},
    {"providers:\n  x: {api_base: \"http://h\", proxy: \"socks://h\"}\n",
	"otari.conf:2: providers.x.proxy: must start with http://"},
    {"workspaces:\n  w: {id: x}\n", "otari.conf:2: workspaces.w.id: must be a UUID"},
    {"workspaces:\n  default: {id: 11111111-1111-4111-8111-111111111111}\n",
	"otari.conf:2: workspaces.default.id: the default workspace has its own"},
    {"workspaces:\n  a: {id: 11111111-1111-4111-8111-111111111111}\n"
     "  b: {id: 11111111-1111-4111-8111-111111111111}\n",
	"otari.conf:3: workspaces.b.id: already used in line 2"},
    {"workspaces:\n  w:\n    code_execution: {executor: me}\n",
	"otari.conf:3: workspaces.w.code_execution.executor: must be auto, otari or provider"},
    {"workspaces:\n  w:\n    code_execution: {max_iterations: 26}\n",
	"otari.conf:3: workspaces.w.code_execution.max_iterations: must be a whole number from 1 "
	"to "
	"25"},
    {"workspaces:\n  w:\n    code_execution: {exec_timeout_s: 0}\n", "from 1 to 60"},
    {"workspaces:\n  w:\n    code_execution: {tools: []}\n", "code_execution.tools: an empty list"},
    {"workspaces:\n  w:\n    code_execution: {tools: [rm]}\n",
	"code_execution.tools: 'rm' must be"},
    {"workspaces:\n  w:\n    code_execution: {image: x}\n",
	"code_execution.image: 'x' is not in sandbox_allowed_session_images"},
    {"workspaces:\n  w: 1\n", "otari.conf:2: workspaces.w: must be a map"},
    {"users: {\" a\": {}}\n", "otari.conf:1: users. a: must be"},
    {"users:\n  a: {blokked: true}\n", "otari.conf:2: users.a: unknown key 'blokked'; did you mean "
				       "'blocked'?"},
    {"keys: {a: b}\n", "otari.conf:1: keys: must be a list, not a map"},
    {"keys:\n  - name: x\n", "otari.conf:2: keys[0].hash: must be the SHA-256"},
    {"keys:\n  - hash: gw-abc\n", "otari.conf:2: keys[0].hash: this is a key; write its SHA-256"},
    {"keys:\n  - hash: " HASH "\n  - hash: " HASH "\n",
	"otari.conf:3: keys[1].hash: already used in line 2"},
    {"keys:\n  - hash: " HASH "\n    expires_at: soon\n",
	"otari.conf:2: keys[0].expires_at: must be a time"},
    {"keys:\n  - hash: " HASH "\n    workspace: nowhere\n",
	"otari.conf:2: keys[0].workspace: there is no workspace 'nowhere'"},
};

Test(conf, names_every_error_with_its_line)
{
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		struct loaded l = load(WRONG[i].text);
		cr_assert_eq(l.rc, ERR_INPUT, "row %zu loads: %s", i, WRONG[i].text);
		cr_assert(strstr(l.report.errors.ptr, WRONG[i].says) != NULL, "row %zu: %s", i,
		    l.report.errors.ptr);
		done(&l);
	}
}

Test(conf, shows_all_errors_of_a_file_at_once)
{
	struct loaded l = load("prot: 1\nport: x\nproviders:\n  a: {wire: b}\n  c: {}\n");
	cr_assert_eq(l.report.error_count, 5, "%s", l.report.errors.ptr);
	done(&l);
	struct buf many = BUF_INIT(1 << 20);
	for (int i = 0; i < 1000; i++)
		buf_printf(&many, "unknown_%d: 1\n", i);
	l = load_text(buf_str(&many), STR(""));
	cr_assert_eq(l.report.error_count, 1000);
	cr_assert_not(l.report.errors.overflowed);
	done(&l);
	buf_done(&many);
}

/* --- values ---------------------------------------------------------------------------------- */

Test(conf, has_defaults)
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

Test(conf, reads_values_of_every_type)
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

Test(conf, lets_the_environment_beat_the_file)
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

Test(conf, warns_of_unknown_variables_and_refuses_bad_ones)
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

Test(conf, takes_the_whole_file_from_a_variable)
{
	struct loaded l = load_text(STR("port: 1\n"), STR("OTARI_CONFIG_B64=cG9ydDogNTU1NQo=\0"));
	must_load(&l);
	cr_assert_eq(l.conf->port, 5555);
	done(&l);
}

Test(conf, expands_variables)
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

Test(conf, knows_services_and_finds_their_keys)
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

Test(conf, reads_sections)
{
	struct loaded l = load(
	    "providers:\n"
	    "  p:\n"
	    "    api_base: http://h:1\n"
	    "    wire: Responses\n"
	    "    native_code_execution: true\n"
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
	cr_assert(p->connect_ms == 200 && p->first_byte_ms == 300 && p->idle_ms == 400);
	cr_assert(p->headers.count == 1 && p->max_tokens_default == 9);
	cr_assert(str_eq(p->proxy, STR("http://proxy:3128")));
	cr_assert(str_eq(c->aliases[0].target, STR("p:m")) && c->aliases[0].line == 10);
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

/* --- texts ----------------------------------------------------------------------------------- */

Test(conf, hides_secrets_in_the_dump)
{
	struct loaded l = load("master_key: topsecret-0123456789\n"
			       "database_url: mysql://user:dbsecret@h/d\n"
			       "files_storage_options: {key: storagesecret}\n"
			       "providers:\n"
			       "  p: {api_base: \"http://h\", api_key: keysecret,"
			       " headers: {authorization: headersecret}}\n"
			       "workspaces: {w: {code_execution: {executor: otari}}}\n");
	must_load(&l);
	struct buf b = BUF_INIT(1 << 20);
	conf_dump(l.conf, &b);
	cr_assert(strstr(b.ptr, "secret") == NULL || strstr(b.ptr, "keysecret") == NULL);
	static const char *const never[] = {
	    "topsecret", "dbsecret", "storagesecret", "keysecret", "headersecret"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		cr_assert(strstr(b.ptr, never[i]) == NULL, "%s", never[i]);
	cr_assert(strstr(b.ptr, "database_url: \"mysql://user:***@h/d\"  # line 2") != NULL);
	cr_assert(strstr(b.ptr, "port: 8000  # default") != NULL);
	cr_assert(strstr(b.ptr, "      executor: otari") != NULL);
	buf_done(&b);
	done(&l);
}

/* Errors end up in logs and on terminals. */
Test(conf, shows_no_secret_in_errors)
{
	static const char *const rows[] = {
	    "master_key: \"sesame one\"\n",
	    "database_url: oracle://u:sesame@h/d\n",
	    "database_url: mysql://u:sesame@h\n",
	    "database_url: sesame\n",
	    "providers: {p: {api_base: \"http://h\", api_key: \"sesame\\n1\"}}\n",
	    "providers: {p: {api_base: \"http://u:sesame@h\"}}\n",
	    "providers: {p: {api_base: \"http://h\", headers: {a: \"sesame\\n\"}}}\n",
	    "keys: [{hash: gw-sesame}]\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loaded l = load(rows[i]);
		cr_assert_eq(l.rc, ERR_INPUT, "row %zu", i);
		cr_assert(strstr(l.report.errors.ptr, "sesame") == NULL, "row %zu: %s", i,
		    l.report.errors.ptr);
		done(&l);
	}
}

static void
check_golden(const char *path, void (*make)(struct buf *))
{
	struct buf b = BUF_INIT(1 << 20);
	char *text;
	size_t n;
	make(&b);
	cr_assert_not(b.overflowed);
	if (getenv("OTARI_TEST_UPDATE") != NULL) {
		int fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		cr_assert_eq(fd_write_all(fd, buf_str(&b), NULL), ERR_OK);
		fd_close(&fd);
	}
	cr_assert_eq(fd_read_file(path, 1 << 20, &text, &n, NULL), ERR_OK, "%s is missing", path);
	cr_assert(str_eq(str_n(text, n), buf_str(&b)),
	    "%s is not what the key table makes; run the test with OTARI_TEST_UPDATE=1", path);
	mem_free(text);
	buf_done(&b);
}

Test(conf, ships_texts_that_agree_with_the_key_table)
{
	check_golden("otari.conf", conf_example);
	check_golden("docs/otari.conf.5", conf_man);
}

Test(conf, ships_a_file_that_loads)
{
	char *text;
	size_t n;
	cr_assert_eq(fd_read_file("otari.conf", 1 << 20, &text, &n, NULL), ERR_OK);
	struct loaded l = load_text(str_n(text, n), STR("OPENAI_API_KEY=x\0"));
	must_load(&l);
	cr_assert(str_eq(l.conf->sandbox_url, STR("local:")));
	cr_assert_eq(l.report.warning_count, 0, "%s", l.report.warnings.ptr);
	done(&l);
	/* Every line that is commented out is a line that could be written. */
	struct buf b = BUF_INIT(1 << 20);
	struct str rest = str_n(text, n), line;
	while (str_split(&rest, '\n', &line)) {
		bool is_key = line.len > 1 && line.ptr[0] == '#' && line.ptr[1] != ' ' &&
			      !str_starts(line, STR("#\n"));
		bool is_member = str_starts(line, STR("#  "));
		if (is_key || is_member)
			line = str_from(line, 1);
		buf_add(&b, line);
		buf_addc(&b, '\n');
	}
	l = load_text(buf_str(&b), STR("OPENAI_API_KEY=sk\0"));
	/* Keys that are only a name mean "not set"; tls, files and budgets then stay as they are.
	 */
	must_load(&l);
	cr_assert_eq(l.conf->provider_count, 3);
	cr_assert_eq(l.conf->key_count, 1);
	done(&l);
	buf_done(&b);
	mem_free(text);
}

Test(conf, has_a_sound_key_table)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	for (size_t i = 0; i < n; i++) {
		cr_assert(keys[i].doc != NULL && keys[i].doc[0] != '\0', "%s", keys[i].name);
		cr_assert_eq(keys[i].doc[strlen(keys[i].doc) - 1], '.', "%s", keys[i].name);
		cr_assert_eq(
		    conf_key_find(str_c(keys[i].name)), &keys[i], "%s twice", keys[i].name);
		for (size_t j = 0; j < i; j++)
			cr_assert(keys[i].type == KT_SECTION || keys[j].type == KT_SECTION ||
				      keys[i].off != keys[j].off,
			    "%s and %s", keys[i].name, keys[j].name);
	}
	cr_assert_not_null(conf_effect_name(EFFECT_SPAWNER));
	cr_assert_str_eq(conf_key_nearest(STR("sandbox_queue")), "sandbox_queue_ms");
	cr_assert_str_eq(conf_key_nearest(STR("file_max_bytes")), "files_max_bytes");
	cr_assert_null(conf_key_nearest(STR("qqqq")));
	cr_assert_null(conf_key_nearest(STR("")));
}

/* --- otari -t and the master key ------------------------------------------------------------- */

static char *
run_test(const char *path, int *ret_status)
{
	static char out[65536];
	int fds[2];
	static char *env[] = {NULL, NULL};
	cr_assert(fd_pipe(fds, false));
	*ret_status = conf_test(path, env, fds[1]);
	fd_close(&fds[1]);
	ssize_t n = read(fds[0], out, sizeof(out) - 1);
	out[n > 0 ? n : 0] = '\0';
	fd_close(&fds[0]);
	return out;
}

Test(conf, tests_files_for_the_command_line)
{
	char path[] = "/tmp/otari-conf-XXXXXX";
	int fd = mkstemp(path), status;
	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, STR("port: 1\nprot: 2\n"), NULL), ERR_OK);
	char *out = run_test(path, &status), want[128];
	cr_assert_eq(status, 1);
	(void)snprintf(want, sizeof(want), "%s:2: unknown key 'prot'", path);
	cr_assert(strstr(out, want) != NULL && strstr(out, ": 1 error\n") != NULL, "%s", out);
	cr_assert_eq(ftruncate(fd, 8), 0);
	out = run_test(path, &status);
	cr_assert(status == 0 && strstr(out, "the configuration is good") != NULL, "%s", out);
	fd_close(&fd);
	(void)unlink(path);
	out = run_test(path, &status);
	cr_assert(status == 1 && strstr(out, "No such file") != NULL, "%s", out);
	out = run_test(NULL, &status);
	cr_assert_eq(status, 0, "%s", out);
}

Test(conf, makes_a_master_key_once)
{
	char dir[] = "/tmp/otari-mk-XXXXXX", path[64], other[64], *one, *two;
	size_t n1, n2;
	int fd;
	bool created;
	struct err e = {0};
	struct stat st;
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/master.key", dir);
	(void)snprintf(other, sizeof(other), "%s/link", dir);
	cr_assert_eq(master_key_open(path, &fd, &created, &e), ERR_OK, "%s", e.msg);
	cr_assert(created && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600);
	cr_assert_eq(st.st_nlink, 1);
	cr_assert_eq(fd_read_all(fd, 1024, &one, &n1, NULL), ERR_OK);
	fd_close(&fd);
	cr_assert(n1 == 68 && str_starts(str_n(one, n1), STR("gw-")) && one[67] == '\n');
	cr_assert_eq(master_key_open(path, &fd, &created, NULL), ERR_OK);
	cr_assert_not(created);
	cr_assert_eq(fd_read_all(fd, 1024, &two, &n2, NULL), ERR_OK);
	cr_assert(str_eq(str_n(one, n1), str_n(two, n2)));
	fd_close(&fd);
	cr_assert_eq(chmod(path, 0640), 0);
	cr_assert_eq(master_key_open(path, &fd, &created, NULL), ERR_INPUT);
	cr_assert_eq(chmod(path, 0600), 0);
	cr_assert_eq(symlink(path, other), 0);
	cr_assert_eq(master_key_open(other, &fd, &created, NULL), ERR_IO);
	cr_assert_eq(master_key_open(dir, &fd, &created, NULL), ERR_INPUT);
	cr_assert_eq(master_key_open("/nonexistent/master.key", &fd, &created, NULL), ERR_IO);
	(void)unlink(other);
	(void)unlink(path);
	cr_assert_eq(rmdir(dir), 0, "nothing is left beside it");
	mem_free(one);
	mem_free(two);
}
