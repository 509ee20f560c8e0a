/* schedule.h - what the sweeper does when. Pure; times are monotonic milliseconds. */
#ifndef OTARI_SWEEPER_SCHEDULE_H
#define OTARI_SWEEPER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum sweep_task {
	SWEEP_DRAIN,   /* spools into the database */
	SWEEP_POLL,    /* the generation row, for changes that other hosts made */
	SWEEP_FILES,   /* dead files; off when the interval is 0 */
	SWEEP_TEMPS,   /* what broken uploads left */
	SWEEP_EXPIRED, /* kept answers and tool results past their time */
	SWEEP_TASK_MAX
};

struct schedule {
	int64_t due_ms[SWEEP_TASK_MAX];
	int64_t every_ms[SWEEP_TASK_MAX]; /* 0: never */
	uint32_t failures[SWEEP_TASK_MAX];
};

/* The first sweep of files comes after one interval, everything else at once. */
void schedule_init(struct schedule *s, int64_t now_ms);
void schedule_set_files_every_s(struct schedule *s, uint32_t every_s, int64_t now_ms);
bool schedule_is_due(const struct schedule *s, enum sweep_task t, int64_t now_ms);
/* After a failure drain and poll wait longer each time, up to 15 s. */
void schedule_ran(struct schedule *s, enum sweep_task t, bool ok, int64_t now_ms);
/* Until the next task; never negative. */
int64_t schedule_wait_ms(const struct schedule *s, int64_t now_ms);

#endif
