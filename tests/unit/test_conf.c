/* What is wrong with a configuration: every error with its file and line. */
#include <criterion/criterion.h>

#include "tests/unit/conf_fixture.h"

TestSuite(conf, .timeout = 20);

static const struct {
	const char *text, *says;
} WRONG[] = {
    {"prot: 1\n", "otari.conf:1: unknown key 'prot'; did you mean 'port'?"},
    {"\n\nsandbox_memory: 1\n", "otari.conf:3: unknown key 'sandbox_memory'; did you mean "
				"'sandbox_memory_bytes'?"},
    {"\"a\\nb\\e[1m\": 1\n", "otari.conf:1: unknown key 'a?b?[1m'"},
    {"providers:\n  x: {api_base: \"http://h\", provider_type: \"a b\"}\n",
	"otari.conf:2: providers.x.provider_type: must be made of"},
    {"zzzzzzzzzzzzzz: 1\n", "otari.conf:1: unknown key 'zzzzzzzzzzzzzz'"},
    {"port: 1\nport: 2\n", "otari.conf:2: 'port' occurs twice"},
    {"port: 65536\n", "otari.conf:1: port: must be a whole number from 0 to 65535, not '65536'"},
    {"port: -1\n", "otari.conf:1: port: must be a whole number"},
    {"port: 8e3\n", "otari.conf:1: port: must be a whole number"},
    {"port: [1]\n", "otari.conf:1: port: must be a single value, not a list"},
    {"port: 1MiB\n", "otari.conf:1: port: must be a whole number"},
    {"workers: 0\n", "otari.conf:1: workers: must be auto or a whole number from 1 to 256"},
    {"sandbox_max_sessions: 64001\n", "otari.conf:1: sandbox_max_sessions: must be auto or a"},
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
    {"sandbox_url: remote\n",
	"otari.conf:1: sandbox_url: must be local: or http(s)://…, not 'remote'"},
    {"sandbox_url: http://u:p@h\n", "otari.conf:1: sandbox_url: "},
    {"sandbox_url: https://h\nsandbox_token: a\nsandbox_token_file: b\n",
	"otari.conf:3: sandbox_token and sandbox_token_file exclude each other"},
    {"sandbox_url: https://h\nsandbox_token: \"a b\"\n",
	"otari.conf:2: sandbox_token: holds a character"},
    {"sandbox_url: https://h\nsandbox_serve: 127.0.0.1:1\n",
	"otari.conf:2: sandbox_serve: only this host's own sandbox can be lent"},
    {"sandbox_url: local\nsandbox_serve: 0.0.0.0:1\n",
	"otari.conf:2: sandbox_serve: without sandbox_serve_token anybody"},
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
	"otari.conf:2: providers.a b: must be made of"},
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
	"otari.conf:2: providers.x.native_code_execution: must be auto, true or false"},
    {"providers:\n  x: {api_base: \"http://h\", native_documents: pdf}\n",
	"otari.conf:2: providers.x.native_documents: must be auto, true or false, not 'pdf'"},
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
