/* declared.h - what otari.conf or the environment decides is read-only here
 *
 * Process: worker, loop thread. By the snapshot in force.
 */
#ifndef OTARI_WORKER_API_DECLARED_H
#define OTARI_WORKER_API_DECLARED_H

#include "worker/request.h"

/* kind: "workspace", "policy", "key" or "setting"; id: as the API names it. Where it is declared,
 * or STR_NULL: it is the API's. Points into the snapshot. */
struct str declared_where(struct request *req, const char *kind, struct str id);
/* True: declared, and answered with a 409 that names file and line. subject begins its text. */
bool declared_refuse(struct request *req, const char *kind, struct str id, const char *subject);

#endif
