/* answer.h - what a scripted model says, before it is written in a wire format
 *
 * Process: the demo model and the tests' fake provider. Pure.
 * Owns:    its texts (answer_init/answer_done).
 */
#ifndef OTARI_TOOLS_DEMO_MODEL_ANSWER_H
#define OTARI_TOOLS_DEMO_MODEL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"

#define ANSWER_CALLS_MAX 320

struct answer_call {
	char id[ID_SIZE];
	char name[128];
	struct buf arguments; /* JSON text */
};

struct answer {
	char id[ID_SIZE];
	char model[256];
	struct buf reasoning, text; /* empty: none */
	struct answer_call calls[ANSWER_CALLS_MAX];
	size_t call_count;
	bool cut; /* ended by the token limit */
	int64_t input_tokens, cached_tokens, output_tokens;
};

void answer_init(struct answer *a, const char *id_prefix, struct str model);
void answer_done(struct answer *a);
/* NULL when there are ANSWER_CALLS_MAX already. */
struct answer_call *answer_add_call(struct answer *a, const char *id_prefix, const char *name);
/* An object with one text as the arguments of a call: {"NAME": …}, {"code": …}. */
void answer_call_member(struct answer_call *c, const char *name, struct str value);
void answer_call_code(struct answer_call *c, struct str code);
/* Estimates the output tokens, if they are not set. */
void answer_count(struct answer *a);

/* Cuts the next fragment of about `bytes` off *rest, never inside a UTF-8 sequence; false at the
 * end. */
bool answer_fragment(struct str *rest, size_t bytes, struct str *ret);

#endif
