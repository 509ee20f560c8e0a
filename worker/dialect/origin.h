/* origin.h - marks in what a client keeps for us, so that it goes back only where it came from
 *
 * Process: worker; pure. A client keeps the reasoning that it was shown and sends it with the next
 * request. Each wire has one member for what only the model's provider can read: Messages'
 * `signature`, Responses' `encrypted_content`. When the provider speaks another wire than the
 * client, that member holds one of our marks. No provider ever sees a mark: the readers turn it
 * back into what the provider had sent, and the writers send that to the same wire only.
 *
 * otari_rs_reasoning_content, otari_rs_reasoning  a Chat server's reasoning, by its member's name
 * otari_rs_m.SIGNATURE       a thinking block of Messages; its text stands beside the mark
 * otari_rs_d.DATA            a redacted_thinking block of Messages
 * otari_rs_r.ID.ENCRYPTED    a reasoning item of Responses with encrypted_content (perhaps empty)
 */
#ifndef OTARI_WORKER_DIALECT_ORIGIN_H
#define OTARI_WORKER_DIALECT_ORIGIN_H

#include <stdbool.h>

#include "base/arena.h"
#include "worker/dialect/conversation.h"

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

/* The mark for reasoning that came from `from`. name: the Chat member ("" is reasoning_content);
 * id: of the Responses item; secret: signature, redacted data or encrypted_content. is_redacted
 * tells Messages' two kinds apart. */
struct str origin_mark(struct arena *a, enum wire from, struct str name, struct str id,
    struct str secret, bool is_redacted);
/* True when mark is one of ours: then p (PART_REASONING, its text in place) is what its provider
 * had sent, with raw_wire saying which wire that was and no raw span. */
bool origin_restore(struct part *p, struct str mark);

#endif
