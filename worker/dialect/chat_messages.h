/* chat_messages.h - messages of a Chat request into the conversation; private to chat_in.c
 *
 * Chat's tool messages that follow one another become the results of one user message.
 */
#ifndef OTARI_WORKER_DIALECT_CHAT_MESSAGES_H
#define OTARI_WORKER_DIALECT_CHAT_MESSAGES_H

#include "worker/dialect/dialect.h"

struct chat_reader {
	struct conversation *conv;
	struct message *results; /* user message that collects tool messages, while they last */
	struct str function_id;  /* of the last function_call; a function message answers it */
	uint32_t functions;
};

MUST_CHECK enum err_code chat_read_message(
    struct chat_reader *r, struct jval v, struct err *reterr);
MUST_CHECK enum err_code chat_read_part(
    struct conversation *c, struct jval v, struct part *p, struct err *reterr);

#endif
