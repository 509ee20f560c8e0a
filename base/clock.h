/* clock.h - time. Monotonic for durations and deadlines, wall for what is stored (UTC epoch). */
#ifndef OTARI_BASE_CLOCK_H
#define OTARI_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_mono_us(void);
int64_t clock_mono_ms(void);
int64_t clock_wall_s(void);
int64_t clock_wall_ms(void);
/* Tests only: wall clock answers this until 0 is set. */
void clock_fake_wall_ms(int64_t ms);
/* "2026-11-30T10:00:00Z" (20 chars + NUL) of an epoch second; with ms: "…00.123Z". */
#define CLOCK_RFC3339_SIZE 32
void clock_rfc3339(int64_t epoch_s, char dst[CLOCK_RFC3339_SIZE]);
void clock_rfc3339_ms(int64_t epoch_ms, char dst[CLOCK_RFC3339_SIZE]);

#endif
