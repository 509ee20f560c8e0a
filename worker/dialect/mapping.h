/* mapping.h - the words in which the wire formats differ, as tables
 *
 * Process: worker; pure. Whoever looks for "what becomes of X on the other wire" starts here: stop
 * reasons, error types, reasoning effort, the types that declare code execution, and what becomes
 * of every top-level member of a request.
 */
#ifndef OTARI_WORKER_DIALECT_MAPPING_H
#define OTARI_WORKER_DIALECT_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "worker/dialect/turn_event.h"

/* --- stop reasons --- */
enum finish_reason finish_of_chat(struct str finish_reason); /* FINISH_OTHER: unknown word */
enum finish_reason finish_of_messages(struct str stop_reason);
/* Why a Responses answer is incomplete. */
enum finish_reason finish_of_responses(struct str reason);
const char *finish_to_chat(enum finish_reason r);
const char *finish_to_messages(enum finish_reason r);
const char *finish_to_responses(enum finish_reason r); /* NULL: it is complete */

/* --- errors --- */
const char *error_type_for(enum wire w, int status); /* the wire's own word */
const char *error_type_upstream(int status);         /* the word in `detail` */
int error_status_of(struct str type);                /* 0: unknown word */
int responses_error_status(struct str code);         /* of a failed answer; 0: unknown code */

/* --- reasoning effort: a word on Chat and Responses, a token budget on older Messages models ---
 */
struct str effort_of_budget(int64_t budget_tokens);
bool effort_known(struct str effort);
/* For servers that know only low, medium and high. */
struct str effort_common(struct str effort);

/* --- tools --- */
/* otari_code_execution, code_execution, code_interpreter, code_execution_<date> (§1.2 of the
 * behaviour): by type only, in every dialect. */
bool type_declares_code(struct str type);
/* Anthropic's tools that the client itself runs and whose schema the model was trained on: other
 * models are shown them as functions. NULL: not one of them. */
struct client_tool {
	const char *type_prefix, *name, *description, *schema;
};
const struct client_tool *client_tool_of(struct str type);

/* --- top-level members --- */
enum member_use {
	MEMBER_UNKNOWN,
	MEMBER_MAPPED,  /* has a place in the conversation; each writer writes it */
	MEMBER_GATEWAY, /* ours: never forwarded */
	MEMBER_HINT,    /* for one vendor's service only; leaving it out changes no answer */
};
enum member_use member_use(enum wire w, struct str key);
/* The i-th member that is known on this wire, for the page that lists them; NULL behind the last.
 */
const char *member_at(enum wire w, size_t i, enum member_use *ret_use);
/* Does this value say only what would hold without the member? */
bool member_is_default(enum wire w, struct str key, struct str raw);

#endif
