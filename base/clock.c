#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int64_t fake_wall_ms;

static int64_t
now_us(clockid_t id)
{
	struct timespec ts;
	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
clock_mono_us(void)
{
	return now_us(CLOCK_MONOTONIC);
}

int64_t
clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

int64_t
clock_wall_ms(void)
{
	int64_t fake = atomic_load(&fake_wall_ms);
	return fake != 0 ? fake : now_us(CLOCK_REALTIME) / 1000;
}

int64_t
clock_wall_s(void)
{
	return clock_wall_ms() / 1000;
}

void
clock_fake_wall_ms(int64_t ms)
{
	atomic_store(&fake_wall_ms, ms);
}

void
clock_rfc3339(int64_t epoch_s, char dst[CLOCK_RFC3339_SIZE])
{
	time_t t = (time_t)epoch_s;
	struct tm tm;
	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(dst, CLOCK_RFC3339_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(dst, CLOCK_RFC3339_SIZE, "1970-01-01T00:00:00Z");
}

void
clock_rfc3339_ms(int64_t epoch_ms, char dst[CLOCK_RFC3339_SIZE])
{
	char s[CLOCK_RFC3339_SIZE];
	clock_rfc3339(epoch_ms / 1000, s);
	(void)snprintf(dst, CLOCK_RFC3339_SIZE, "%.19s.%03dZ", s, (int)(epoch_ms % 1000));
}
