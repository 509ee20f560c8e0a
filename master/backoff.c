#include "master/backoff.h"

uint32_t
backoff_next(struct backoff *b, bool was_ready, int64_t ready_ms)
{
	if (was_ready && ready_ms >= BACKOFF_GOOD_LIFE_MS)
		b->failures = 0;
	uint32_t n = b->failures;
	if (b->failures < 31)
		b->failures++;
	if (was_ready) {
		if (n == 0)
			return 0;
		n--;
	}
	uint64_t delay = (uint64_t)BACKOFF_FIRST_MS << n;
	return delay > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : (uint32_t)delay;
}
