#include "worker/turn/executor.h"

#include <stdarg.h>
#include <stdio.h>

/* The first date whose declaration means bash and the editor. */
#define FIRST_WITH_KINDS 20250825u
/* The first date whose server_tool_use blocks say who called. */
#define FIRST_WITH_CALLER 20260120u

enum code_family
executor_family(struct str type)
{
	if (str_eq(type, STR("otari_code_execution")))
		return CODE_FAMILY_EXPLICIT;
	if (str_eq(type, STR("code_execution")))
		return CODE_FAMILY_BARE;
	if (str_eq(type, STR("code_interpreter")))
		return CODE_FAMILY_OPENAI;
	if (str_starts(type, STR("code_execution_")))
		return CODE_FAMILY_ANTHROPIC;
	return CODE_FAMILY_NONE;
}

/* YYYYMMDD as a number, 0 when it is no date. */
static uint64_t
date_of(struct str s)
{
	uint64_t n;
	if (s.len != 8 || !str_u64(s, &n))
		return 0;
	uint64_t month = n / 100 % 100, day = n % 100;
	return month >= 1 && month <= 12 && day >= 1 && day <= 31 ? n : 0;
}

/* Is it code_execution_<date>, of that date or a later one? */
static bool
is_since(struct str type, uint64_t date)
{
	static const struct str prefix = STR_INIT("code_execution_");
	return str_starts(type, prefix) && date_of(str_from(type, prefix.len)) >= date;
}

uint32_t
executor_offers(struct str type)
{
	return is_since(type, FIRST_WITH_KINDS) ? TOOL_MASK_ALL : TOOL_MASK_PYTHON;
}

bool
executor_is_native(struct str type, struct str provider_type, enum wire wire)
{
	static const struct {
		enum code_family family;
		struct str provider;
		enum wire wire;
	} table[] = {
	    {CODE_FAMILY_ANTHROPIC, STR_INIT("anthropic"), WIRE_MESSAGES},
	    {CODE_FAMILY_OPENAI, STR_INIT("openai"), WIRE_RESPONSES},
	};
	enum code_family family = executor_family(type);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].family == family && table[i].wire == wire &&
		    str_eq_nocase(table[i].provider, provider_type))
			return true;
	return false;
}

bool
executor_takes_files(
    const struct conversation *conv, struct str provider_type, enum wire provider_wire)
{
	if (conv->wire != provider_wire)
		return false;
	for (const struct tool *t = conv->tools; t != NULL; t = t->next)
		if (t->kind == TOOL_CODE && executor_is_native(t->type, provider_type, conv->wire))
			return true;
	return false;
}

enum snap_executor
executor_parse(struct str s)
{
	static const struct {
		struct str word;
		enum snap_executor value;
	} words[] = {
	    {STR_INIT("auto"), EXECUTOR_AUTO},
	    {STR_INIT("otari"), EXECUTOR_OTARI},
	    {STR_INIT("provider"), EXECUTOR_PROVIDER},
	};
	s = str_trim(s);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq_nocase(s, words[i].word))
			return words[i].value;
	return EXECUTOR_UNSET;
}

static void refuse(struct executor_decision *d, int status, const char *fmt, ...) PRINTF(3, 4);

static void
refuse(struct executor_decision *d, int status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(d->message, sizeof(d->message), fmt, ap);
	va_end(ap);
	d->outcome = EXECUTOR_REFUSED;
	d->status = status;
}

static void
find_declarations(
    const struct conversation *conv, struct tool **ret_explicit, struct tool **ret_keyword)
{
	*ret_explicit = *ret_keyword = NULL;
	for (struct tool *t = conv->tools; t != NULL; t = t->next) {
		if (t->kind != TOOL_CODE)
			continue;
		struct tool **slot =
		    executor_family(t->type) == CODE_FAMILY_EXPLICIT ? ret_explicit : ret_keyword;
		if (*slot == NULL)
			*slot = t;
	}
}

/* The policy's vetoes, which apply only to what would run here. */
static void
check_policy(const struct executor_input *in, struct executor_decision *d)
{
	const struct executor_policy *p = in->policy;
	if (p->is_configured && p->has_tools)
		d->kinds &= p->tools;
	if (in->conv->has_mcp_server_ids)
		refuse(d, 400,
		    "code execution and MCP servers cannot be combined in one request: pick one");
	else if (p->is_configured && !p->is_enabled)
		refuse(d, 403, "code execution is not enabled for this workspace");
	else if (d->kinds == 0)
		refuse(d, 403,
		    "the workspace policy leaves out every tool kind that this declaration offers "
		    "(code_execution)");
	else if (p->is_configured && p->image_is_withdrawn)
		refuse(d, 403, "the workspace policy names a session image that is not allowed");
}

static void
decide_keyword(const struct executor_input *in, struct executor_decision *d, struct tool *keyword,
    enum snap_executor header)
{
	enum snap_executor pin = in->policy->pin;
	if (pin != EXECUTOR_UNSET && header != EXECUTOR_UNSET && header != pin) {
		refuse(d, 403,
		    "the workspace policy decides who runs code: it pins another value than "
		    "the header %s asks for",
		    EXECUTOR_HEADER);
		return;
	}
	enum snap_executor wish = in->deployment;
	if (header != EXECUTOR_UNSET)
		wish = header;
	if (pin != EXECUTOR_UNSET)
		wish = pin;
	bool native = in->same_wire &&
		      (in->native_override >= 0
			      ? in->native_override == 1
			      : executor_is_native(keyword->type, in->provider_type, in->wire));
	if (wish != EXECUTOR_OTARI && wish != EXECUTOR_PROVIDER)
		wish = native ? EXECUTOR_PROVIDER : EXECUTOR_OTARI;
	if (wish == EXECUTOR_PROVIDER) {
		d->outcome = EXECUTOR_FORWARD;
		if (d->explicit_tool != NULL)
			refuse(d, 400,
			    "otari_code_execution cannot be combined with a provider-native "
			    "declaration that the provider runs");
		return;
	}
	enum code_family family = executor_family(keyword->type);
	d->outcome = EXECUTOR_HERE;
	d->claimed = keyword;
	d->kinds = executor_offers(keyword->type);
	d->native_blocks = (family == CODE_FAMILY_ANTHROPIC && in->wire == WIRE_MESSAGES) ||
			   (family == CODE_FAMILY_OPENAI && in->wire == WIRE_RESPONSES);
	d->names_caller = is_since(keyword->type, FIRST_WITH_CALLER);
	d->purpose_hint = keyword->purpose_hint;
	if (d->purpose_hint.len == 0 && d->explicit_tool != NULL)
		d->purpose_hint = d->explicit_tool->purpose_hint;
}

void
executor_decide(const struct executor_input *in, struct executor_decision *d)
{
	*d = (struct executor_decision){.outcome = EXECUTOR_NONE};
	struct str sent = str_trim(in->header);
	enum snap_executor header = executor_parse(sent);
	if (sent.len > 0 && header == EXECUTOR_UNSET) {
		refuse(
		    d, 400, "the header %s must be one of auto, otari, provider", EXECUTOR_HEADER);
		return;
	}
	struct tool *keyword;
	find_declarations(in->conv, &d->explicit_tool, &keyword);
	if (d->explicit_tool == NULL && keyword == NULL)
		return;
	if (!in->has_sandbox) {
		d->outcome = EXECUTOR_FORWARD;
		if (d->explicit_tool != NULL || header == EXECUTOR_OTARI)
			refuse(d, 400,
			    "no sandbox is configured: set sandbox_url (OTARI_SANDBOX_URL)");
		return;
	}
	/* A pin that nobody sees could forbid what would be done. */
	if (in->policy == NULL) {
		refuse(d, 500, "the workspace's code execution policy cannot be read");
		return;
	}
	if (keyword != NULL) {
		decide_keyword(in, d, keyword, header);
	} else {
		d->outcome = EXECUTOR_HERE;
		d->kinds = TOOL_MASK_PYTHON;
		d->purpose_hint = d->explicit_tool->purpose_hint;
	}
	if (d->outcome == EXECUTOR_HERE)
		check_policy(in, d);
}

bool
executor_apply(struct conversation *conv, const struct executor_decision *d)
{
	bool is_left = false;
	if (d->outcome != EXECUTOR_HERE)
		return true;
	for (struct tool **link = &conv->tools; *link != NULL;) {
		struct tool *t = *link;
		bool is_explicit =
		    t->kind == TOOL_CODE && executor_family(t->type) == CODE_FAMILY_EXPLICIT;
		if (t == d->claimed || is_explicit) {
			*link = t->next;
			continue;
		}
		is_left = is_left || t->kind == TOOL_CODE;
		link = &t->next;
	}
	return is_left;
}
