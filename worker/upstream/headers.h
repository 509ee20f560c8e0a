/* headers.h - the headers of one request to a provider
 *
 * Process: worker. Pure. Values are borrowed from the target and the arena.
 */
#ifndef OTARI_WORKER_UPSTREAM_HEADERS_H
#define OTARI_WORKER_UPSTREAM_HEADERS_H

#include "base/arena.h"
#include "base/http_client.h"
#include "worker/upstream/target.h"

#define UPSTREAM_HEADERS_MAX 64u

struct upstream_headers { /* zeroed: empty */
	struct http_client_header list[UPSTREAM_HEADERS_MAX];
	size_t count;
};

/* Replaces a header of that name. value STR_NULL: nothing happens. */
void upstream_header(struct upstream_headers *h, struct str name, struct str value);
/* What every request begins with: types, who we are, the wire's version, the credential. */
void upstream_headers_begin(struct upstream_headers *h, struct arena *a, const struct target *t,
    struct str content_type, struct str accept);
/* Configured headers come last and win; but for the type of a body that we made. */
void upstream_headers_end(struct upstream_headers *h, const struct target *t);

#endif
