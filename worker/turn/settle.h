/* settle.h - what one request used, written down exactly once, whatever way the request ended
 *
 * Process: worker, loop thread.
 * Rule:    the record is in the spool before the client's last byte. When the spool cannot be
 * written (disk full) the record waits here, in a bounded queue, and is tried again on a timer;
 * while the queue is full new requests are refused with 503. Limits:  SETTLEMENT_QUEUE_MAX records.
 */
#ifndef OTARI_WORKER_TURN_SETTLE_H
#define OTARI_WORKER_TURN_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/dialect/turn_event.h"

struct event_base;
struct board_slot;
struct request;
struct settlement;
struct spool;
struct target;

#define SETTLEMENT_QUEUE_MAX 1024u

/* Spool and slot are borrowed and outlive it. */
MUST_CHECK enum err_code settlement_new(struct event_base *base, struct spool *spool,
    struct board_slot *slot, struct settlement **ret, struct err *reterr);
/* Records still waiting are tried once more; what is lost is counted and logged. */
void settlement_free(struct settlement **s);
bool settlement_is_full(const struct settlement *s);

struct settle_facts {
	const struct target *target; /* NULL: none was found */
	struct token_usage usage;    /* sum of all rounds */
	int status;                  /* as the client saw it; 499: it went away */
	struct str error;            /* empty: success */
	struct str end_user;
	uint32_t code_billed, code_errors;
};
/* Call once a request. */
void settle_request(struct request *req, const struct settle_facts *f);

#endif
