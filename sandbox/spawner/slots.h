/* slots.h - the numbers of the sessions: each has its own user id and limits. Pure.
 *
 * Process: spawner. A number that was given back is the last one to be taken again, so that a late
 *          message about the one before finds nobody.
 */
#ifndef OTARI_SANDBOX_SPAWNER_SLOTS_H
#define OTARI_SANDBOX_SPAWNER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct session;

struct slots {
	struct session **at; /* by number; NULL: free */
	uint32_t *free;      /* ring */
	uint32_t count, free_count, first;
};

void slots_init(struct slots *s, uint32_t count);
bool slots_take(struct slots *s, uint32_t *ret); /* false: none is free */
void slots_give(struct slots *s, uint32_t slot);
void slots_done(struct slots *s);

#endif
