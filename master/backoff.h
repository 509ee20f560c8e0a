/* backoff.h - how long to wait before a child is started again. Pure.
 *
 * Process: master. 1 s doubling to 60 s for a child that dies young or before READY; a child that
 * lived well for BACKOFF_GOOD_LIFE_MS starts the count anew and is followed at once.
 */
#ifndef OTARI_MASTER_BACKOFF_H
#define OTARI_MASTER_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_MS     1000u
#define BACKOFF_MAX_MS       60000u
#define BACKOFF_GOOD_LIFE_MS 10000

struct backoff {
	uint32_t failures; /* in a row */
};

/* A child ended. was_ready: it had said READY, ready_ms ago. Returns the delay in ms; 0: at once.
 * One death after READY is followed at once; only a second one in a row waits. */
uint32_t backoff_next(struct backoff *b, bool was_ready, int64_t ready_ms);

#endif
