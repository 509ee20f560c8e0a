/* executor.h - who runs the code that a request's tools declare: the provider, or our sandbox
 *
 * Process: worker. Pure; decided once, in the preamble, and used by attach and by the loop alike.
 * Rule:    three settings in this order: the workspace's pin, the request's header, the
 * deployment's default. `auto` means the provider when it runs that declaration itself for that
 * model and wire, else here.
 */
#ifndef OTARI_WORKER_TURN_EXECUTOR_H
#define OTARI_WORKER_TURN_EXECUTOR_H

#include <stdbool.h>

#include "base/str.h"
#include "ipc/snapshot.h"
#include "worker/dialect/conversation.h"

#define EXECUTOR_HEADER     "otari-code-execution"
#define EXECUTOR_HEADER_OLD "x-otari-code-execution"

/* Kinds of gateway tool; the values are the bits of a policy's tool list, and 1 << enum code_tool.
 */
enum tool_mask {
	TOOL_MASK_PYTHON = 1,
	TOOL_MASK_BASH = 2,
	TOOL_MASK_EDITOR = 4,
	TOOL_MASK_ALL = 7,
};

struct executor_policy { /* the workspace's; zeroed when it has none */
	bool is_configured, is_enabled;
	enum snap_executor pin; /* EXECUTOR_UNSET: none */
	bool has_tools;
	uint32_t tools;          /* enum tool_mask */
	bool image_is_withdrawn; /* it names a session image that is not allowed any more */
};

struct executor_input {
	struct str header;                    /* as sent; STR_NULL: none */
	const struct executor_policy *policy; /* NULL: it cannot be read, and nothing may run */
	enum snap_executor deployment;
	bool has_sandbox; /* configured, whether or not it works */
	struct str provider_type;
	int native_override; /* provider's native_code_execution: -1 by the table, 0, 1 */
	enum wire wire;      /* the client's */
	bool same_wire;      /* the provider is spoken to in the client's own wire */
	const struct conversation *conv;
};

enum executor_outcome {
	EXECUTOR_NONE,    /* nothing declared */
	EXECUTOR_FORWARD, /* the provider runs it, or nobody: untouched */
	EXECUTOR_HERE,    /* our sandbox runs it */
	EXECUTOR_REFUSED, /* status and message say why */
};

struct executor_decision {
	enum executor_outcome outcome;
	int status;
	char message[256];
	struct tool
	    *claimed; /* the provider's keyword that we run; NULL: an explicit declaration */
	struct tool *explicit_tool;
	uint32_t kinds;          /* HERE: enum tool_mask, what the model is shown; never 0 */
	bool native_blocks;      /* answer in the declaration's own block types */
	bool names_caller;       /* … which say who called */
	struct str purpose_hint; /* of the claimed entry, else of the explicit one folded into it */
};

enum code_family {
	CODE_FAMILY_NONE,
	CODE_FAMILY_EXPLICIT,  /* otari_code_execution */
	CODE_FAMILY_BARE,      /* code_execution */
	CODE_FAMILY_OPENAI,    /* code_interpreter */
	CODE_FAMILY_ANTHROPIC, /* code_execution_<anything> */
};

/* By tools[].type alone. */
enum code_family executor_family(struct str type);
/* What a declaration offers, enum tool_mask: all kinds from code_execution_20250825 on, Python
 * otherwise, also for a suffix that is no date. */
uint32_t executor_offers(struct str type);
/* Does this provider run this declaration itself in this wire? The whole table:
 * (code_execution_<date>, anthropic, messages) and (code_interpreter, openai, responses). */
bool executor_is_native(struct str type, struct str provider_type, enum wire wire);
/* Trimmed, any case. EXECUTOR_UNSET for anything outside the vocabulary (blank included). */
enum snap_executor executor_parse(struct str s);
/* Does the provider of this turn run a declaration of the request in a container of its own that
 * takes files by id? As of executor_is_native, in the client's own wire. */
bool executor_takes_files(
    const struct conversation *conv, struct str provider_type, enum wire provider_wire);
void executor_decide(const struct executor_input *in, struct executor_decision *ret);
/* Takes the claimed and the explicit declarations out of the conversation's tools. Returns whether
 * another one is left, which is the provider's. */
bool executor_apply(struct conversation *conv, const struct executor_decision *d);

#endif
