#include "sweeper/schedule.h"

#define DRAIN_EVERY_MS   500
#define POLL_EVERY_MS    1000
#define TEMPS_EVERY_MS   (60 * 60 * 1000)
#define EXPIRED_EVERY_MS (10 * 60 * 1000)
#define BACKOFF_MAX_MS   15000

void
schedule_init(struct schedule *s, int64_t now_ms)
{
	*s = (struct schedule){
	    .every_ms =
		{
		    [SWEEP_DRAIN] = DRAIN_EVERY_MS,
		    [SWEEP_POLL] = POLL_EVERY_MS,
		    [SWEEP_TEMPS] = TEMPS_EVERY_MS,
		    [SWEEP_EXPIRED] = EXPIRED_EVERY_MS,
		},
	};
	for (int t = 0; t < SWEEP_TASK_MAX; t++)
		s->due_ms[t] = now_ms;
}

void
schedule_set_files_every_s(struct schedule *s, uint32_t every_s, int64_t now_ms)
{
	int64_t every_ms = (int64_t)every_s * 1000;
	if (every_ms == s->every_ms[SWEEP_FILES])
		return;
	s->every_ms[SWEEP_FILES] = every_ms;
	s->due_ms[SWEEP_FILES] = now_ms + every_ms;
}

bool
schedule_is_due(const struct schedule *s, enum sweep_task t, int64_t now_ms)
{
	return s->every_ms[t] > 0 && now_ms >= s->due_ms[t];
}

void
schedule_ran(struct schedule *s, enum sweep_task t, bool ok, int64_t now_ms)
{
	int64_t wait_ms = s->every_ms[t];
	s->failures[t] = ok ? 0 : s->failures[t] + 1;
	if (t == SWEEP_DRAIN || t == SWEEP_POLL)
		for (uint32_t i = 0; i < s->failures[t] && wait_ms < BACKOFF_MAX_MS; i++)
			wait_ms *= 2;
	if (s->failures[t] > 0 && wait_ms > BACKOFF_MAX_MS && s->every_ms[t] < BACKOFF_MAX_MS)
		wait_ms = BACKOFF_MAX_MS;
	s->due_ms[t] = now_ms + wait_ms;
}

int64_t
schedule_wait_ms(const struct schedule *s, int64_t now_ms)
{
	int64_t wait_ms = TEMPS_EVERY_MS;
	for (int t = 0; t < SWEEP_TASK_MAX; t++)
		if (s->every_ms[t] > 0 && s->due_ms[t] - now_ms < wait_ms)
			wait_ms = s->due_ms[t] - now_ms;
	return wait_ms > 0 ? wait_ms : 0;
}
