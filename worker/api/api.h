/* api.h - the HTTP API of a worker: routes, authentication, handlers, access log
 *
 * Process: worker, loop thread. Both sets of callbacks are for http_server_new with a struct
 * worker_env * as arg: the public listener, and the administrative one with /metrics and the health
 * details.
 */
#ifndef OTARI_WORKER_API_API_H
#define OTARI_WORKER_API_API_H

#include "worker/http/http.h"

const struct http_server_ops *api_public_ops(void);
const struct http_server_ops *api_admin_ops(void);

#endif
