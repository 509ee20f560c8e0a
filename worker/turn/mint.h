/* mint.h - identifiers that only the gateway makes; a provider never sees the otari_ ones
 *
 * "otari_srvtoolu_" marks our executions on Messages, "otari_ci_" on Responses, "otari_cntr_"
 * containers.
 */
#ifndef OTARI_WORKER_TURN_MINT_H
#define OTARI_WORKER_TURN_MINT_H

#include <stdbool.h>

#include "base/arena.h"
#include "worker/dialect/conversation.h"

struct str mint_execution_id(struct arena *a, enum wire wire);
struct str mint_container_id(struct arena *a);
/* For a call of the client's own tools, in the form of its vendor. */
struct str mint_call_id(struct arena *a, enum wire wire);
/* Is this a call id that its maker gives once? A long random run of letters and digits is; what
 * counts, names the tool or is short may come again, and a false alarm costs nothing. */
bool mint_is_unique(struct str call_id);
struct str mint_file_id(struct arena *a); /* "file-" + 32 hex */

#endif
