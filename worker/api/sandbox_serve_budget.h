/* sandbox_serve_budget.h - who may hold how much of a lent sandbox's memory and connections. Pure.
 *
 * Process: worker, loop thread.
 * Owns:    an account a session and a client, while anything is held on it; a claim is its
 *          holder's.
 * Rule:    what has arrived is counted, never what was announced, and answers until they are read.
 *          All who know the token are gateways, but one must not keep the others out: a client (an
 *          IPv4 address, an IPv6 /64) has half of what there is, and a session less.
 * Limits:  below.
 */
#ifndef OTARI_WORKER_API_SANDBOX_SERVE_BUDGET_H
#define OTARI_WORKER_API_SANDBOX_SERVE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Uploads and programs that arrive or wait for their session, answers that were not read. */
#define SERVE_BODIES_MAX_BYTES  (512ull << 20)
#define SERVE_CLIENT_MAX_BYTES  (SERVE_BODIES_MAX_BYTES / 2)
#define SERVE_SESSION_MAX_BYTES (SERVE_CLIENT_MAX_BYTES / 4 * 3)
/* Calls that arrive, wait, or whose answer was not read. */
#define SERVE_SESSION_MAX_CALLS 16u

enum serve_verdict {
	SERVE_ADMITTED,
	SERVE_SESSION_FULL,
	SERVE_CLIENT_FULL,
	SERVE_FULL, /* all clients together */
};

struct serve_account;
struct serve_budget;

struct serve_claim { /* zeroed: none */
	struct serve_budget *budget;
	struct serve_account *client, *session; /* references */
	uint64_t bytes;
};

struct serve_budget *serve_budget_new(void);
void serve_budget_free(struct serve_budget **b); /* when nothing is claimed any more */
uint64_t serve_budget_bytes(const struct serve_budget *b);

struct serve_account *serve_account_new(void); /* of a session; one reference */
void serve_account_put(struct serve_account **a);
bool serve_account_is_idle(const struct serve_account *a); /* no call of it is under way */

/* One call. peer: "address:port"; client_calls: how many a client may have. Nothing is claimed
 * unless it is admitted. */
enum serve_verdict serve_claim_begin(struct serve_budget *b, struct str peer,
    struct serve_account *session, uint32_t client_calls, struct serve_claim *ret);
/* More bytes came. They are counted in any case, until the end of the claim. */
enum serve_verdict serve_claim_add(struct serve_claim *c, uint64_t bytes);
void serve_claim_end(struct serve_claim *c); /* one that is none is allowed */

#endif
