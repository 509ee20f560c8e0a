/* names.h - names and ids that fit one wire and not another. Pure; results in the arena.
 *
 * Rewriting depends on the text alone, so that both halves of a pair agree, different ones stay
 * different, and the next request says the same again. What fits is never touched.
 */
#ifndef OTARI_WORKER_DIALECT_NAMES_H
#define OTARI_WORKER_DIALECT_NAMES_H

#include "base/arena.h"
#include "worker/dialect/conversation.h"

/* Messages: [A-Za-z0-9_-]{1,64}. */
struct str id_for_messages(struct arena *a, struct str id);
/* Call ids of Responses: the same set. */
struct str id_for_responses(struct arena *a, struct str id);
/* Mistral: nine of [A-Za-z0-9]. */
struct str id_for_mistral(struct arena *a, struct str id);
/* Chat and Responses take tool names of 64 characters, Messages of 128: the long ones are cut and
 * marked. */
struct str name_for_chat(struct arena *a, struct str name);
/* The client's tool that the model was shown as `name`; name itself when there is none. */
struct str name_from_chat(struct arena *a, const struct conversation *request, struct str name);

#endif
