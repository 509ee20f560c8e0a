/* usage.h - token counts out of a provider's usage object, and their sum
 *
 * Process: worker. Pure. Counts that are not there, not whole numbers or negative are -1.
 */
#ifndef OTARI_WORKER_DIALECT_USAGE_H
#define OTARI_WORKER_DIALECT_USAGE_H

#include "base/json.h"
#include "worker/dialect/turn_event.h"

/* The usage object of a wire → the canonical counts: Messages' input_tokens leaves cached tokens
 * out, Chat's prompt_tokens and Responses' input_tokens hold them; ours holds them. raw is set to
 * the object's span. */
void usage_read(enum wire wire, struct jval object, struct token_usage *ret);
/* A later report of the same answer: what it gives replaces what was there (streams repeat
 * themselves). */
void usage_update(struct token_usage *have, const struct token_usage *later);

#endif
