/* mint.h - identifiers that only the gateway makes; a provider never sees the otari_ ones
 *
 * "otari_srvtoolu_" marks our executions on Messages, "otari_ci_" on Responses, "otari_cntr_"
 * containers.
 */
#ifndef OTARI_WORKER_TURN_MINT_H
#define OTARI_WORKER_TURN_MINT_H

#include "base/arena.h"
#include "worker/dialect/conversation.h"

struct str mint_execution_id(struct arena *a, enum wire wire);
struct str mint_container_id(struct arena *a);
struct str mint_file_id(struct arena *a); /* "file-" + 32 hex */

#endif
