/* fastpath.h - may a request's bytes be forwarded as they are, and with which splices
 *
 * Process: worker. Pure. Same wire on both sides, and nothing in the body that the gateway must
 * understand: no code declaration, no gateway-only member, no id that we minted, no file reference.
 * What it is unsure of does not fit. A document inline is for whoever knows the provider to decide.
 */
#ifndef OTARI_WORKER_TURN_FASTPATH_H
#define OTARI_WORKER_TURN_FASTPATH_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "worker/dialect/conversation.h"

struct fastpath {
	struct jval root;
	struct str body;
	enum wire wire;
	bool stream;
	bool wants_usage;       /* Chat stream: the client itself asked for the usage chunk */
	bool may_hold_document; /* inline; false: it holds none */
};

bool fastpath_fits(struct jval root, struct str body, enum wire wire, struct fastpath *ret);
/* The body with the provider's model name and, on a Chat stream, stream_options.include_usage. */
void fastpath_write(const struct fastpath *f, struct str model, struct buf *out);

#endif
