/* recall.h - Responses: what a request goes on from, put in front of its input
 *
 * Process: worker. Pure; all results in the given arena. recall_load.h fetches what is named here.
 * Rule:    OpenAI's: previous_response_id stands for all items that went into that response and all
 *          that came out of it (not its instructions); an item_reference, which may lack a type,
 *          stands for the item of that id. What another provider made comes without its reasoning,
 *          which only its maker can read. Ids of recalled messages and calls are not sent on: no
 *          provider keeps them for us.
 * Limits:  RECALL_REFERENCES_MAX; STORE_RESPONSE_MAX_BYTES of text.
 */
#ifndef OTARI_WORKER_TURN_RECALL_H
#define OTARI_WORKER_TURN_RECALL_H

#include <stdbool.h>

#include "base/json.h"
#include "storage/sql/store_response.h"

#define RECALL_REFERENCES_MAX 256u

struct recall_wants {           /* in the arena */
	struct str previous_id; /* STR_NULL: none */
	struct str *references; /* distinct */
	size_t reference_count;
};

struct recall_found {
	const struct store_response *previous; /* NULL: none */
	/* references[i] is in holders[holder_of[i]] */
	const struct store_response *holders;
	const size_t *holder_of;
	size_t bytes; /* of all texts */
};

struct recalled {
	struct str body; /* for the reader; STR_NULL: as the client sent it */
	/* What is to be kept as the input of the answer: a JSON array whose items all have an id.
	 */
	struct str input;
	struct str *item_ids; /* of the items that this request brought */
	size_t item_count;
};

/* ERR_INPUT: too many references. */
MUST_CHECK enum err_code recall_read(
    struct arena *a, struct jval root, struct recall_wants *ret, struct err *reterr);
static inline bool
recall_is_empty(const struct recall_wants *w)
{
	return w->previous_id.ptr == NULL && w->reference_count == 0;
}

/* provider: the instance that will answer. keep: the answer is to be kept, `input` is wanted.
 * ERR_NOTFOUND: a holder does not hold its item; ERR_INPUT: an item is there twice; ERR_TOOLARGE.
 */
MUST_CHECK enum err_code recall_build(struct arena *a, struct jval root,
    const struct recall_wants *wants, const struct recall_found *found, struct str provider,
    bool keep, struct recalled *ret, struct err *reterr);

#endif
