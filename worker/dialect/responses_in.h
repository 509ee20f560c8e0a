/* responses_in.h - items of a Responses input into messages; private to its readers
 *
 * Every item is a message of its own, so that it goes back to its wire byte for byte; only outputs
 * that follow one another become the results of one user message, and content parts that stand
 * where items should become one user message. Writers of other wires join what one side said.
 */
#ifndef OTARI_WORKER_DIALECT_RESPONSES_IN_H
#define OTARI_WORKER_DIALECT_RESPONSES_IN_H

#include "worker/dialect/dialect.h"

#define RESPONSES_TOOLS_MAX 4096u

struct responses_reader {
	struct conversation *conv;
	struct message *results; /* collects outputs, while they last */
	struct message *bare;    /* collects content parts without a message, while they last */
	bool ends_folded;        /* the last item was an execution of ours */
	uint32_t tools;          /* read so far, RESPONSES_TOOLS_MAX at most */
};

MUST_CHECK enum err_code responses_read_item(
    struct responses_reader *r, struct jval v, struct err *reterr);
/* One content part into p, which is zeroed. */
MUST_CHECK enum err_code responses_read_part(
    struct conversation *c, struct jval v, struct part *p, struct err *reterr);
/* Is this the type of a content part that a user may send? */
bool responses_is_input_part(struct str type);
/* A list of tools; in_input: they stand in an item, where their own wire has them. */
MUST_CHECK enum err_code responses_read_tools(
    struct responses_reader *r, struct jval object, bool in_input, struct err *reterr);
MUST_CHECK enum err_code responses_read_choice(
    struct conversation *c, struct jval root, struct err *reterr);

#endif
