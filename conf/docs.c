#include "conf/docs.h"

#include <stdlib.h>
#include <string.h>

#include "conf/keys.h"
#include "conf/presets.h"

/* --- values as text -------------------------------------------------------------------------- */

static void
put_default(struct buf *dst, const struct conf_key *k)
{
	uint64_t v;
	if (k->dflt == NULL)
		return;
	buf_add(dst, str_c(k->dflt));
	if (k->unit != NULL && strcmp(k->unit, "bytes") == 0 && str_u64(str_c(k->dflt), &v) &&
	    v >= 1u << 20 && v % (1u << 20) == 0)
		buf_printf(dst, "  # %llu MiB", (unsigned long long)(v >> 20));
}

static const char *
type_name(const struct conf_key *k)
{
	switch (k->type) {
	case KT_STR:
	case KT_SECRET:
		return "text";
	case KT_DB_URL:
	case KT_URL:
		return "URL";
	case KT_WRITTEN:
		return "path (relative to state_dir)";
	case KT_READ:
		return "path (relative to the folder of otari.conf)";
	case KT_LISTEN:
		return "address:port, or none";
	case KT_BOOL:
		return "true or false";
	case KT_UINT:
		return "number";
	case KT_AUTO:
		return k->dflt != NULL ? "number, or auto" : "number, or none";
	case KT_ENUM:
		return "one of";
	case KT_LIST:
		return "list";
	case KT_PAIRS:
		return "map";
	case KT_SECTION:
		return "section";
	}
	return "";
}

/* --- the example ----------------------------------------------------------------------------- */

static const char EXAMPLE_HEAD[] =
    "# otari.conf - the configuration of Otari\n"
    "#\n"
    "# Every key is here with its default. `otari -t` checks the file; SIGHUP or\n"
    "# `otarictl reload` puts it in force. See otari.conf(5).\n"
    "#\n"
    "# Each scalar key can be set by the environment as well, which beats the file:\n"
    "# OTARI_PORT=9000. Values may hold ${NAME} and ${NAME:-default}; $$ is a dollar sign.\n"
    "# Paths that Otari writes are relative to state_dir, those it reads to this file's folder.\n"
    "# Sizes are in bytes and may be written as 64MiB.\n";

static const char EXAMPLE_SECTIONS[] =
    "# Services that serve models. A known name brings its address and wire format; its key may\n"
    "# also come from the usual variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, MISTRAL_API_KEY, …),\n"
    "# then nothing needs to be written here.\n"
    "#providers:\n"
    "#  openai:\n"
    "#    api_key: ${OPENAI_API_KEY}\n"
    "#  anthropic:\n"
    "#    api_key_file: anthropic.key\n"
    "#  local:\n"
    "#    provider_type: ollama         # decides what the service can do by itself\n"
    "#    api_base: http://127.0.0.1:11434/v1\n"
    "#    wire: chat                    # chat, messages or responses\n"
    "#    native_code_execution: auto   # auto: by provider_type, or true, false\n"
    "#    native_documents: auto        # the same: does it read PDF and the like by itself?\n"
    "#    headers: {x-team: research}\n"
    "#    timeouts: {connect_ms: 5000, first_byte_ms: 600000, idle_ms: 300000}\n"
    "#    proxy: http://127.0.0.1:3128\n"
    "#    models: [llama3.2]            # listed by GET /v1/models\n"
    "#    max_tokens_default: 4096      # for the messages wire\n"
    "\n"
    "# Other names of models.\n"
    "#aliases:\n"
    "#  fast: openai:gpt-4o-mini\n"
    "\n"
    "#routing:\n"
    "#  default_provider: openai        # for a model that names no provider\n"
    "\n"
    "# Models that GET /v1/models lists.\n"
    "#models: [\"openai:gpt-4o\", \"anthropic:claude-sonnet-4-5\"]\n"
    "\n"
    "# Workspaces and who runs code for them. `default` is the one that always exists.\n"
    "#workspaces:\n"
    "#  default:\n"
    "#    code_execution:\n"
    "#      enabled: true\n"
    "#      executor: auto              # auto, otari or provider\n"
    "#      max_iterations: 10          # 1..25\n"
    "#      exec_timeout_s: 60          # 1..60\n"
    "#      tools: [code_execution, bash_code_execution, text_editor_code_execution]\n"
    "\n"
    "#users:\n"
    "#  alice: {alias: Alice, blocked: false}\n"
    "\n"
    "# API keys by the SHA-256 of the key: printf %s KEY | sha256sum\n"
    "#keys:\n"
    "#  - hash: 0000000000000000000000000000000000000000000000000000000000000000\n"
    "#    name: notebook\n"
    "#    user: alice\n"
    "#    workspace: default\n"
    "#    allowed_models: [\"openai:gpt-4o\"]\n"
    "#    expires_at: 2027-01-31T00:00:00Z\n"
    "\n"
    "# Prices in USD for a million tokens.\n"
    "#pricing:\n"
    "#  openai:gpt-4o: {input_price_per_million: 2.5, output_price_per_million: 10}\n";

static void
put_example_key(struct buf *dst, const struct conf_key *k)
{
	buf_printf(dst, "# %s", k->doc);
	if (k->type == KT_ENUM)
		buf_printf(dst, " (%s)", k->choices);
	else if (k->unit != NULL)
		buf_printf(dst, " (%s)", k->unit);
	buf_addc(dst, '\n');
	/* The one key that is not left at its default: the sandbox is on. */
	if (strcmp(k->name, "sandbox_url") == 0) {
		buf_add(dst, STR("sandbox_url: \"local:\"\n"));
		return;
	}
	buf_printf(dst, "#%s:", k->name);
	if (k->dflt != NULL)
		buf_addc(dst, ' ');
	put_default(dst, k);
	buf_addc(dst, '\n');
}

void
conf_example(struct buf *dst)
{
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	buf_add(dst, str_c(EXAMPLE_HEAD));
	for (size_t i = 0; i < n; i++) {
		if (keys[i].group != NULL)
			buf_printf(dst, "\n# --- %s ---\n\n", keys[i].group);
		if (keys[i].type == KT_SECTION)
			break;
		put_example_key(dst, &keys[i]);
	}
	buf_add(dst, str_c(EXAMPLE_SECTIONS));
}

/* --- the man page ---------------------------------------------------------------------------- */

/* roff: a backslash, and a dot or quote at the start of a line, would be commands; a plain minus
 * would be typeset as a hyphen. */
static void
put_roff(struct buf *dst, const char *text)
{
	if (*text == '.' || *text == '\'')
		buf_add(dst, STR("\\&"));
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			buf_add(dst, STR("\\e"));
		else if (*text == '-')
			buf_add(dst, STR("\\-"));
		else
			buf_addc(dst, *text);
	}
}

static void
put_limits(struct buf *dst, const struct conf_key *k)
{
	buf_add(dst, STR(".br\n"));
	put_roff(dst, type_name(k));
	if (k->type == KT_ENUM) {
		buf_addc(dst, ' ');
		put_roff(dst, k->choices);
	}
	if (k->unit != NULL)
		buf_printf(dst, ", %s", k->unit);
	if (k->type == KT_UINT || k->type == KT_AUTO)
		buf_printf(
		    dst, ", %llu to %llu", (unsigned long long)k->min, (unsigned long long)k->max);
	if (k->dflt != NULL) {
		buf_add(dst, STR("; default "));
		put_roff(dst, k->dflt);
	}
	buf_printf(dst, "; change: %s\n", conf_effect_name(k->effect));
}

static const char MAN_HEAD[] =
    ".TH OTARI.CONF 5 \"\" Otari \"File formats\"\n"
    ".SH NAME\n"
    "otari.conf \\- configuration of the Otari gateway\n"
    ".SH DESCRIPTION\n"
    "One YAML file of keys and values. What is not written has its default. An unknown key, a key\n"
    "that occurs twice and a value out of range are errors that name the file and the line;\n"
    ".B otari \\-t\n"
    "finds them all. A file with an error is never put in force: a running service goes on with\n"
    "what it has.\n"
    ".PP\n"
    "Every key that holds a single value or a list of texts can be set by the environment, as\n"
    "OTARI_ and the name in upper case, lists with commas. The environment beats the file, which\n"
    "beats the default. OTARI_CONFIG_YAML or OTARI_CONFIG_B64 hold a whole file.\n"
    ".PP\n"
    "Values may hold ${NAME}, replaced by that variable, and ${NAME:\\-default}; $$ is one $.\n"
    ".PP\n"
    "Paths of what Otari writes are relative to\n"
    ".BR state_dir ;\n"
    "paths of what it reads are relative to the folder of the file. Sizes are in bytes and may be\n"
    "written with KiB, MiB or GiB.\n"
    ".PP\n"
    "Under\n"
    ".I change\n"
    "is how a new value takes effect at a reload: snapshot (the next request), recycle workers\n"
    "(workers are replaced one by one), new spawner (new code sessions; those that run finish in "
    "the old one), restart.\n"
    ".SH KEYS\n";

static const char MAN_SECTIONS[] =
    ".SH SECTIONS\n"
    ".TP\n.B providers\n"
    "Map of instance names; a model is asked for as instance:model. Members: provider_type (the\n"
    "service; default: the name), api_base (with the version, as in https://api.openai.com/v1),\n"
    "api_key or api_key_file, wire (chat, messages, responses), native_code_execution,\n"
    "native_documents, headers, timeouts {connect_ms, first_byte_ms, idle_ms}, proxy, models,\n"
    "max_tokens_default. native_documents: auto sends a document as it is where the service of "
    "that\n"
    "provider_type is known to read its format, true always, false never; else its text is sent.\n"
    ".TP\n.B aliases\n"
    "Map of names to provider:model.\n"
    ".TP\n.B routing\n"
    "default_provider: the instance for a model that names none.\n"
    ".TP\n.B workspaces\n"
    "Map of names; members id (a UUID; default: made of the name) and code_execution {enabled,\n"
    "executor, default_purpose_hint, max_iterations, exec_timeout_s, image, tools}.\n"
    ".TP\n.B users\n"
    "Map of ids; members alias and blocked.\n"
    ".TP\n.B keys\n"
    "List; members hash (SHA\\-256 of the key, 64 hex digits), name, user, workspace,\n"
    "allowed_models, active, expires_at.\n"
    ".TP\n.B pricing\n"
    "Map of provider:model; members input_price_per_million and output_price_per_million.\n"
    ".TP\n.B budgets\n"
    "Not built yet; an error when written.\n"
    ".PP\n"
    "What the file declares is read\\-only for the administrative API. A workspace, user or key\n"
    "that is taken out of the file stays in the database until it is deleted there.\n"
    ".SH SERVICES\n"
    "Known values of provider_type, with address, wire and the variable that holds the key.\n";

void
conf_man(struct buf *dst)
{
	static const char *const wires[] = {"chat", "messages", "responses"};
	size_t n;
	const struct conf_key *keys = conf_keys(&n);
	buf_add(dst, str_c(MAN_HEAD));
	for (size_t i = 0; i < n; i++) {
		if (keys[i].type == KT_SECTION)
			continue;
		if (keys[i].group != NULL && strcmp(keys[i].group, "Sections") != 0)
			buf_printf(dst, ".SS %s\n", keys[i].group);
		buf_printf(dst, ".TP\n.B %s\n", keys[i].name);
		put_roff(dst, keys[i].doc);
		buf_addc(dst, '\n');
		put_limits(dst, &keys[i]);
	}
	buf_add(dst, str_c(MAN_SECTIONS));
	const struct conf_preset *presets = conf_presets(&n);
	for (size_t i = 0; i < n; i++) {
		buf_printf(dst, ".TP\n.B %s\n", presets[i].type);
		put_roff(dst, presets[i].api_base);
		buf_printf(dst, ", %s", wires[presets[i].wire]);
		if (presets[i].key_variable != NULL)
			buf_printf(dst, ", %s", presets[i].key_variable);
		if (presets[i].other_variable != NULL)
			buf_printf(dst, " or %s", presets[i].other_variable);
		buf_addc(dst, '\n');
	}
	buf_add(dst, STR(".SH SEE ALSO\n.BR otari (8),\n.BR otarictl (8)\n"));
}
