/* minted.h - ids that only the gateway makes, where a client sends them as if they were a
 * provider's
 *
 * Process: worker; pure; results in the conversation's arena. Blocks that come back as they were
 * shown are folded by the readers (fold.h). Some clients do more: they answer a call of ours as if
 * it were theirs to run, or keep it as a plain call, or name our container to a provider. No
 * provider knows ids "otari_…", so such calls and results become text, and the container goes.
 */
#ifndef OTARI_WORKER_DIALECT_MINTED_H
#define OTARI_WORKER_DIALECT_MINTED_H

#include <stdbool.h>

#include "base/json.h"
#include "worker/dialect/conversation.h"

bool id_is_minted(struct str id);
/* What a reader does last. */
void minted_become_text(struct conversation *c);
/* A container as a provider may see it: as it was sent, or without our id; STR_NULL: nothing is
 * left of it. */
struct str minted_container(struct arena *a, struct jval container);

#endif
