/* stand_in.h - text that stands for a part which a wire has no form for
 *
 * Process: worker; pure; results in the conversation's arena. What even text cannot say is named in
 * the conversation's dropped list.
 */
#ifndef OTARI_WORKER_DIALECT_STAND_IN_H
#define OTARI_WORKER_DIALECT_STAND_IN_H

#include "worker/dialect/conversation.h"
#include "worker/dialect/fold.h"

/* Title, context and text (or address) of a document. */
struct str stand_in_document(struct conversation *c, const struct part *p);
/* A file that the provider does not hold; what: "image", "document". */
struct str stand_in_file(struct conversation *c, const struct part *p, const char *what);
/* An execution that the provider of another wire made is still part of the story; anything else is
 * dropped and "" comes back. fold: the writer's, one for the whole conversation. */
struct str stand_in_opaque(struct conversation *c, struct fold *fold, const struct part *p);

#endif
