/* origin.h - marks in what a client keeps for us, so that it goes back only where it came from
 *
 * Pure. Reasoning of a Chat server is shown on Messages as a thinking block whose signature says in
 * which member it came ("otari_rs_reasoning_content"). No provider ever sees that signature: a
 * Messages provider would refuse it, a Chat server gets the text back in its own member.
 */
#ifndef OTARI_WORKER_DIALECT_ORIGIN_H
#define OTARI_WORKER_DIALECT_ORIGIN_H

#include <stdbool.h>

#include "base/str.h"

#define ORIGIN_SIGNATURE "otari_rs_"

/* *ret_member: "reasoning_content" or "reasoning". */
static inline bool
origin_of_signature(struct str signature, struct str *ret_member)
{
	if (!str_starts(signature, STR(ORIGIN_SIGNATURE)))
		return false;
	*ret_member = str_eq(str_from(signature, sizeof(ORIGIN_SIGNATURE) - 1), STR("reasoning"))
			  ? STR("reasoning")
			  : STR("reasoning_content");
	return true;
}

#endif
