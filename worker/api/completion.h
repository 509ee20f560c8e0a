/* completion.h - POST /chat/completions and POST /messages: the way in to the turn pipeline
 *
 * Process: worker, loop thread. The caller is authenticated; no body byte was read yet. The
 * pipeline hangs its state on the request and answers it.
 */
#ifndef OTARI_WORKER_API_COMPLETION_H
#define OTARI_WORKER_API_COMPLETION_H

#include "worker/request.h"

void completion_start(struct request *req, enum wire wire);

#endif
