/* messages_blocks.h - content blocks of a Messages request into parts; private to messages_in.c */
#ifndef OTARI_WORKER_DIALECT_MESSAGES_BLOCKS_H
#define OTARI_WORKER_DIALECT_MESSAGES_BLOCKS_H

#include "worker/dialect/dialect.h"
#include "worker/dialect/fold.h"

struct messages_reader {
	struct conversation *conv;
	struct fold fold;
	bool folded; /* the message that is being read lost or changed a block */
};

/* Appends the parts of `content` (string, array or absent) to the list at *end. */
MUST_CHECK enum err_code messages_read_content(
    struct messages_reader *r, struct jval content, struct part **end, struct err *reterr);

#endif
