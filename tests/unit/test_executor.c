#include <criterion/criterion.h>

#include "worker/turn/executor.h"

TestSuite(executor, .timeout = 10);

#define KINDS TOOL_MASK_ALL /* of a dated declaration */

Test(executor, families_are_told_by_type_alone)
{
	static const struct {
		const char *type;
		enum code_family family;
	} rows[] = {
	    {"otari_code_execution", CODE_FAMILY_EXPLICIT},
	    {"code_execution", CODE_FAMILY_BARE},
	    {"code_interpreter", CODE_FAMILY_OPENAI},
	    {"code_execution_20250522", CODE_FAMILY_ANTHROPIC},
	    {"code_execution_20991231", CODE_FAMILY_ANTHROPIC},
	    {"code_execution_x", CODE_FAMILY_ANTHROPIC},
	    {"function", CODE_FAMILY_NONE},
	    {"Code_Execution", CODE_FAMILY_NONE},
	    {"code_interpreter_2", CODE_FAMILY_NONE},
	    {"", CODE_FAMILY_NONE},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(
		    executor_family(str_c(rows[i].type)), rows[i].family, "%s", rows[i].type);
}

Test(executor, dates_from_20250825_on_offer_more_than_python)
{
	static const struct {
		const char *type;
		uint32_t kinds;
	} rows[] = {
	    {"code_execution_20250825", KINDS},
	    {"code_execution_20260120", KINDS},
	    {"code_execution_20991231", KINDS},
	    {"code_execution_20250522", TOOL_MASK_PYTHON},
	    {"code_execution_20250824", TOOL_MASK_PYTHON},
	    {"code_execution_20259901", TOOL_MASK_PYTHON},
	    {"code_execution_202508255", TOOL_MASK_PYTHON},
	    {"code_execution_+2025082", TOOL_MASK_PYTHON},
	    {"code_execution_latest", TOOL_MASK_PYTHON},
	    {"code_execution_", TOOL_MASK_PYTHON},
	    {"code_execution", TOOL_MASK_PYTHON},
	    {"code_interpreter", TOOL_MASK_PYTHON},
	    {"otari_code_execution", TOOL_MASK_PYTHON},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
		    executor_offers(str_c(rows[i].type)), rows[i].kinds, "%s", rows[i].type);
}

Test(executor, native_means_exactly_two_pairings)
{
	static const struct {
		const char *type, *provider;
		enum wire wire;
		bool native;
	} rows[] = {
	    {"code_execution_20250825", "anthropic", WIRE_MESSAGES, true},
	    {"code_execution_20250825", "Anthropic", WIRE_MESSAGES, true},
	    {"code_interpreter", "openai", WIRE_RESPONSES, true},
	    {"code_interpreter", "OPENAI", WIRE_RESPONSES, true},
	    {"code_execution_20250825", "anthropic", WIRE_CHAT, false},
	    {"code_execution_20250825", "anthropic", WIRE_RESPONSES, false},
	    {"code_execution_20250825", "openai", WIRE_MESSAGES, false},
	    {"code_execution_20250825", "bedrock", WIRE_MESSAGES, false},
	    {"code_interpreter", "openai", WIRE_CHAT, false},
	    {"code_interpreter", "openai", WIRE_MESSAGES, false},
	    {"code_interpreter", "azure", WIRE_RESPONSES, false},
	    {"code_execution", "anthropic", WIRE_MESSAGES, false},
	    {"code_execution", "openai", WIRE_RESPONSES, false},
	    {"otari_code_execution", "anthropic", WIRE_MESSAGES, false},
	    {"code_execution_20250825", "", WIRE_MESSAGES, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(
		    executor_is_native(str_c(rows[i].type), str_c(rows[i].provider), rows[i].wire),
		    rows[i].native, "row %zu %s %s", i, rows[i].type, rows[i].provider);
}

Test(executor, words_are_trimmed_and_any_case)
{
	static const struct {
		const char *s;
		enum snap_executor v;
	} rows[] = {
	    {"auto", EXECUTOR_AUTO},
	    {"OTARI", EXECUTOR_OTARI},
	    {" provider\t", EXECUTOR_PROVIDER},
	    {"anthropic", EXECUTOR_UNSET},
	    {"", EXECUTOR_UNSET},
	    {" ", EXECUTOR_UNSET},
	    {"auto otari", EXECUTOR_UNSET},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(executor_parse(str_c(rows[i].s)), rows[i].v, "'%s'", rows[i].s);
}

/* One row of the decision: E explicit declaration, K keyword's type, header, pin, deployment,
 * sandbox there. */
struct row {
	const char *name;
	bool explicit_;
	const char *keyword, *header;
	enum snap_executor pin, deployment;
	bool sandbox;
	const char *provider;
	enum wire wire;
	enum executor_outcome outcome;
	int status;
	bool native_blocks;
	const char *says;
};
#define A     EXECUTOR_AUTO
#define O     EXECUTOR_OTARI
#define P     EXECUTOR_PROVIDER
#define U     EXECUTOR_UNSET
#define DATED "code_execution_20250825"

static const struct row rows[] = {
    {"nothing declared", false, NULL, NULL, U, U, true, "openai", WIRE_CHAT, EXECUTOR_NONE, 0,
	false, NULL},
    {"auto: dated on anthropic is forwarded", false, DATED, NULL, U, U, true, "anthropic",
	WIRE_MESSAGES, EXECUTOR_FORWARD, 0, false, NULL},
    {"auto: dated on another model runs here", false, DATED, NULL, U, U, true, "openai",
	WIRE_MESSAGES, EXECUTOR_HERE, 0, true, NULL},
    {"auto: bare on anthropic runs here, plain", false, "code_execution", NULL, U, U, true,
	"anthropic", WIRE_MESSAGES, EXECUTOR_HERE, 0, false, NULL},
    {"no sandbox: keyword forwarded", false, DATED, NULL, U, U, false, "openai", WIRE_MESSAGES,
	EXECUTOR_FORWARD, 0, false, NULL},
    {"no sandbox: deployment otari does not raise", false, DATED, NULL, U, O, false, "openai",
	WIRE_MESSAGES, EXECUTOR_FORWARD, 0, false, NULL},
    {"header otari on anthropic", false, DATED, "otari", U, U, true, "anthropic", WIRE_MESSAGES,
	EXECUTOR_HERE, 0, true, NULL},
    {"header provider and bare", false, "code_execution", "provider", U, U, true, "openai",
	WIRE_MESSAGES, EXECUTOR_FORWARD, 0, false, NULL},
    {"header outside the vocabulary", false, DATED, "anthropic", U, U, true, "openai",
	WIRE_MESSAGES, EXECUTOR_REFUSED, 400, false, EXECUTOR_HEADER},
    {"bad header without any declaration", false, NULL, "nonsense", U, U, true, "openai", WIRE_CHAT,
	EXECUTOR_REFUSED, 400, false, EXECUTOR_HEADER},
    {"blank header is none", false, DATED, "  ", U, U, true, "openai", WIRE_MESSAGES, EXECUTOR_HERE,
	0, true, NULL},
    {"header otari, no sandbox", false, DATED, "otari", U, U, false, "openai", WIRE_MESSAGES,
	EXECUTOR_REFUSED, 400, false, "no sandbox is configured"},
    {"explicit, no sandbox", true, NULL, NULL, U, U, false, "openai", WIRE_CHAT, EXECUTOR_REFUSED,
	400, false, "no sandbox is configured"},
    {"deployment provider", false, DATED, NULL, U, P, true, "openai", WIRE_MESSAGES,
	EXECUTOR_FORWARD, 0, false, NULL},
    {"deployment provider: explicit still runs here", true, NULL, NULL, U, P, true, "openai",
	WIRE_MESSAGES, EXECUTOR_HERE, 0, false, NULL},
    {"deployment otari on anthropic", false, DATED, NULL, U, O, true, "anthropic", WIRE_MESSAGES,
	EXECUTOR_HERE, 0, true, NULL},
    {"header beats deployment", false, DATED, "provider", U, O, true, "openai", WIRE_MESSAGES,
	EXECUTOR_FORWARD, 0, false, NULL},
    {"pin otari beats deployment", false, DATED, NULL, O, P, true, "anthropic", WIRE_MESSAGES,
	EXECUTOR_HERE, 0, true, NULL},
    {"pin otari, header provider", false, DATED, "provider", O, U, true, "openai", WIRE_MESSAGES,
	EXECUTOR_REFUSED, 403, false, "pins"},
    {"pin otari, header auto is a disagreement too", false, DATED, "auto", O, U, true, "openai",
	WIRE_MESSAGES, EXECUTOR_REFUSED, 403, false, "decides"},
    {"pin auto is a real pin", false, DATED, "otari", A, U, true, "openai", WIRE_MESSAGES,
	EXECUTOR_REFUSED, 403, false, "pins"},
    {"pin provider, header otari, only explicit", true, NULL, "otari", P, U, true, "openai",
	WIRE_CHAT, EXECUTOR_HERE, 0, false, NULL},
    {"pin and header agree", false, DATED, "provider", P, U, true, "openai", WIRE_MESSAGES,
	EXECUTOR_FORWARD, 0, false, NULL},
    {"explicit beside a claimed keyword folds in", true, DATED, NULL, U, U, true, "openai",
	WIRE_MESSAGES, EXECUTOR_HERE, 0, true, NULL},
    {"explicit beside a provider-kept keyword", true, DATED, NULL, U, U, true, "anthropic",
	WIRE_MESSAGES, EXECUTOR_REFUSED, 400, false, "cannot be combined with a provider-native"},
    {"responses: interpreter on openai forwarded", false, "code_interpreter", NULL, U, U, true,
	"openai", WIRE_RESPONSES, EXECUTOR_FORWARD, 0, false, NULL},
    {"responses: interpreter brought here", false, "code_interpreter", "otari", U, U, true,
	"openai", WIRE_RESPONSES, EXECUTOR_HERE, 0, true, NULL},
    {"responses: dated is plain", false, DATED, NULL, U, U, true, "openai", WIRE_RESPONSES,
	EXECUTOR_HERE, 0, false, NULL},
    {"chat: interpreter on openai runs here, plain", false, "code_interpreter", NULL, U, U, true,
	"openai", WIRE_CHAT, EXECUTOR_HERE, 0, false, NULL},
    {"messages: interpreter is plain", false, "code_interpreter", NULL, U, U, true, "mistral",
	WIRE_MESSAGES, EXECUTOR_HERE, 0, false, NULL},
    {"unknown provider", false, DATED, NULL, U, U, true, "", WIRE_MESSAGES, EXECUTOR_HERE, 0, true,
	NULL},
};

static void
build(struct arena *a, const struct row *r, struct conversation *conv)
{
	*conv = (struct conversation){.arena = a, .wire = r->wire};
	struct tool **end = &conv->tools;
	const char *types[] = {
	    r->explicit_ ? "otari_code_execution" : NULL, r->keyword, "function"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (types[i] == NULL)
			continue;
		struct tool *t = ARENA_NEW(a, struct tool);
		t->kind = i == 2 ? TOOL_FUNCTION : TOOL_CODE;
		t->type = str_c(types[i]);
		t->name = i == 2 ? STR("code_execution") : STR("");
		t->purpose_hint = i == 0 ? STR("count things") : STR("");
		*end = t;
		end = &t->next;
	}
}

Test(executor, every_row_of_the_decision)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct arena *a = arena_new(1 << 16);
		struct conversation conv;
		struct executor_decision d;
		build(a, r, &conv);
		struct executor_policy policy = {
		    .is_configured = r->pin != U, .is_enabled = true, .pin = r->pin};
		struct executor_input in = {
		    .header = str_c(r->header),
		    .policy = &policy,
		    .deployment = r->deployment,
		    .has_sandbox = r->sandbox,
		    .provider_type = str_c(r->provider),
		    .native_override = -1,
		    .wire = r->wire,
		    .same_wire = true,
		    .conv = &conv,
		};
		executor_decide(&in, &d);
		cr_assert_eq(
		    d.outcome, r->outcome, "%s: outcome %d (%s)", r->name, d.outcome, d.message);
		cr_assert_eq(d.status, r->status, "%s: status %d", r->name, d.status);
		cr_assert_eq(d.native_blocks, r->native_blocks, "%s: blocks", r->name);
		if (r->says != NULL)
			cr_assert_neq(str_find(str_c(d.message), str_c(r->says)), SIZE_MAX,
			    "%s: says %s", r->name, d.message);
		arena_free(&a);
	}
}

Test(executor, policy_vetoes_only_what_would_run_here)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation conv;
	struct executor_decision d;
	struct row here = {"", false, DATED, NULL, U, U, true, "openai", WIRE_MESSAGES, 0, 0, 0, 0};
	build(a, &here, &conv);
	struct executor_policy policy = {.is_configured = true, .is_enabled = false};
	struct executor_input in = {.policy = &policy,
	    .has_sandbox = true,
	    .provider_type = STR("openai"),
	    .native_override = -1,
	    .wire = WIRE_MESSAGES,
	    .same_wire = true,
	    .conv = &conv};
	executor_decide(&in, &d);
	cr_assert_eq(d.status, 403, "disabled");
	policy.pin = EXECUTOR_PROVIDER;
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_FORWARD, "disabled, but the provider runs it");
	policy = (struct executor_policy){
	    .is_configured = true, .is_enabled = true, .has_tools = true, .tools = TOOL_MASK_BASH};
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_HERE, "bash is one of the kinds of a dated declaration");
	cr_assert_eq(d.kinds, TOOL_MASK_BASH);
	conv.tools->type = STR("code_execution_20250522");
	executor_decide(&in, &d);
	cr_assert_eq(d.status, 403, "tool kinds leave python out");
	policy.tools = TOOL_MASK_PYTHON | TOOL_MASK_EDITOR;
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_HERE, "python allowed");
	cr_assert_eq(d.kinds, TOOL_MASK_PYTHON);
	conv.tools->type = STR(DATED);
	executor_decide(&in, &d);
	cr_assert_eq(d.kinds, KINDS & (TOOL_MASK_PYTHON | TOOL_MASK_EDITOR));
	policy.has_tools = false;
	executor_decide(&in, &d);
	cr_assert_eq(d.kinds, KINDS);
	policy.image_is_withdrawn = true;
	executor_decide(&in, &d);
	cr_assert_eq(d.status, 403, "image withdrawn");
	policy.image_is_withdrawn = false;
	conv.has_mcp_server_ids = true;
	executor_decide(&in, &d);
	cr_assert_eq(d.status, 400, "with MCP servers");
	/* 123: unresolvable workspace */
	in.policy = NULL;
	executor_decide(&in, &d);
	cr_assert_eq(d.status, 500, "no policy can be read");
	in.has_sandbox = false;
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_FORWARD, "none is read without a sandbox");
	in.has_sandbox = true;
	conv.tools = NULL;
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_NONE, "no tool, no policy");
	arena_free(&a);
}

Test(executor, a_swapped_wire_is_never_native)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation conv;
	struct executor_decision d;
	struct row r = {"", false, DATED, NULL, U, U, true, "anthropic", WIRE_MESSAGES, 0, 0, 0, 0};
	build(a, &r, &conv);
	struct executor_policy policy = {.is_enabled = true};
	struct executor_input in = {.policy = &policy,
	    .has_sandbox = true,
	    .provider_type = STR("anthropic"),
	    .native_override = -1,
	    .wire = WIRE_MESSAGES,
	    .same_wire = false,
	    .conv = &conv};
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_HERE);
	in.same_wire = true;
	in.native_override = 0;
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_HERE, "provider configured as not native");
	in.native_override = 1;
	in.provider_type = STR("compatible");
	executor_decide(&in, &d);
	cr_assert_eq(d.outcome, EXECUTOR_FORWARD, "provider configured as native");
	arena_free(&a);
}

Test(executor, claiming_takes_out_the_first_keyword_and_every_explicit_entry)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation conv;
	struct executor_decision d;
	struct row r = {"", true, DATED, NULL, U, U, true, "openai", WIRE_MESSAGES, 0, 0, 0, 0};
	build(a, &r, &conv);
	struct executor_policy policy = {.is_enabled = true};
	struct executor_input in = {.policy = &policy,
	    .has_sandbox = true,
	    .provider_type = STR("openai"),
	    .native_override = -1,
	    .wire = WIRE_MESSAGES,
	    .same_wire = true,
	    .conv = &conv};
	executor_decide(&in, &d);
	cr_assert(str_eq(d.purpose_hint, STR("count things")));
	executor_apply(&conv, &d);
	cr_assert_not_null(conv.tools);
	cr_assert(str_eq(conv.tools->type, STR("function")), "the client's own tool stays");
	cr_assert_null(conv.tools->next);
	arena_free(&a);
}
