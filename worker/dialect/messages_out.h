/* messages_out.h - what the two halves of the Messages request writer share; private to
 * messages_out*.c */
#ifndef OTARI_WORKER_DIALECT_MESSAGES_OUT_H
#define OTARI_WORKER_DIALECT_MESSAGES_OUT_H

#include "base/json_write.h"
#include "worker/dialect/dialect.h"
#include "worker/dialect/fold.h"

struct messages_writer {
	struct conversation *conv;
	const struct encode_options *opt;
	struct jw w;
	struct fold fold;
	const struct part *refused; /* first part that this wire cannot carry at all */
};

/* "system" (when there is any) and "messages". */
void messages_write_messages(struct messages_writer *mw);
bool messages_part_is_sendable(struct messages_writer *mw, const struct part *p);
void messages_write_block(struct messages_writer *mw, const struct part *p);
static inline bool
messages_has_raw(const struct part *p)
{
	return p->raw.ptr != NULL && p->raw_wire == WIRE_MESSAGES;
}

#endif
