/* drop.h - names what a writer could not say; the names end up in the Otari-Dropped header */
#ifndef OTARI_WORKER_DIALECT_DROP_H
#define OTARI_WORKER_DIALECT_DROP_H

#include "base/err.h"
#include "worker/dialect/conversation.h"

/* "messages.<a>" or "messages.<a>.<b>" (b may be empty), with the client's wire in front. What is
 * no plain word becomes "other". */
void drop_named(struct conversation *c, const char *a, struct str b);
/* Every top-level member of the client's that the other wire has no place for. */
void drop_unmapped_members(struct conversation *c);
void drop_verbosity(struct conversation *c); /* when the client asked for one */
/* ERR_INPUT when the request builds on what only a Responses provider would hold: an earlier
 * response that nobody put in front of the input, a conversation, a stored prompt. For writers of
 * other wires. */
MUST_CHECK enum err_code refuse_kept_elsewhere(const struct conversation *c, struct err *reterr);

#endif
