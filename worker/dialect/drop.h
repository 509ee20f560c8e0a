/* drop.h - names what a writer could not say; the names end up in the Otari-Dropped header */
#ifndef OTARI_WORKER_DIALECT_DROP_H
#define OTARI_WORKER_DIALECT_DROP_H

#include "worker/dialect/conversation.h"

/* "messages.<a>" or "messages.<a>.<b>" (b may be empty), with the client's wire in front. What is
 * no plain word becomes "other". */
void drop_named(struct conversation *c, const char *a, struct str b);
/* Every top-level member of the client's that the other wire has no place for. */
void drop_unmapped_members(struct conversation *c);

#endif
