/* beta.h - which names of a client's anthropic-beta headers go to a provider
 *
 * Process: worker. Pure.
 * Rule:    to Anthropic all of them: it alone knows them, also those that we never heard of. To a
 *          provider that speaks its wire but is another none, since such servers refuse a name that
 *          they do not know and a request must not fail for that alone; what a name would have
 *          switched on is a field of the body, and those are named when they are dropped. A
 * provider that wants some all the same has them in its configured headers.
 */
#ifndef OTARI_WORKER_UPSTREAM_BETA_H
#define OTARI_WORKER_UPSTREAM_BETA_H

#include <stdbool.h>

#include "base/arena.h"
#include "worker/http/http.h"

/* One value for all anthropic-beta headers of this head, STR_NULL: send none. without_code: nobody
 * but the gateway runs code for this request, so the names of code execution stay here. */
struct str beta_header(
    struct arena *a, const struct http_head *head, struct str provider_type, bool without_code);

#endif
