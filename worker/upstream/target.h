/* target.h - where a model lives: its provider, wire format and credential, copied for one request
 *
 * Process: worker. Reads the policy snapshot and the secrets; what it returns lives in the
 * request's arena, so that the snapshot can be let go before the provider is called.
 */
#ifndef OTARI_WORKER_UPSTREAM_TARGET_H
#define OTARI_WORKER_UPSTREAM_TARGET_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "ipc/secrets.h"
#include "ipc/snapshot.h"
#include "worker/dialect/conversation.h"

struct target_header {
	struct str name, value;
};

struct target {
	struct str asked;         /* model as the client wrote it */
	bool is_alias;            /* the answer then carries `asked` as its model */
	struct str instance;      /* configured provider: usage's `provider` */
	struct str provider_type; /* decides what is native */
	struct str model;         /* as the provider names it */
	struct str api_base;      /* no trailing slash */
	struct str key;           /* secret; empty: none */
	struct str proxy;         /* empty: none */
	enum wire wire;
	int native_override;  /* runs code itself: -1 by the table, 0, 1 */
	int native_documents; /* reads documents itself: likewise */
	struct target_header *headers;
	size_t header_count;
	uint32_t connect_ms, first_byte_ms, idle_ms;
	int64_t max_tokens_default;
	bool runs_no_code; /* for this request: the gateway does, and shows it no declaration */
};

/* Do this provider's bytes keep to their own wire, so that clients of that wire may read them
 * unread by us? Mistral's chunks leave out roles and call indices that OpenAI's clients insist on.
 */
bool target_is_faithful(const struct target *t);
/* ERR_INPUT: no model; ERR_NOTFOUND: no such provider or model; the text is fit for the client. */
MUST_CHECK enum err_code target_resolve(struct arena *a, struct snapshot *policy,
    const struct secrets *secrets, struct str model, struct target *ret, struct err *reterr);

#endif
