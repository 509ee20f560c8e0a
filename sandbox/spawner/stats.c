/* stats.c - tells the master what this spawner has and does, for the operator */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "ipc/fds.h"
#include "sandbox/spawner/broker.h"

#define PERIOD_MS 1000

static enum lease_zygote
zygote_of(const struct broker *b)
{
	switch (b->zygote.state) {
	case ZYGOTE_NONE:
		return LEASE_ZYGOTE_NONE;
	case ZYGOTE_OFF:
		return LEASE_ZYGOTE_OFF;
	case ZYGOTE_RESTING:
		return LEASE_ZYGOTE_RESTING;
	case ZYGOTE_LOADING:
	case ZYGOTE_PLACING:
	case ZYGOTE_TESTING:
		return LEASE_ZYGOTE_LOADING;
	case ZYGOTE_READY:
		return LEASE_ZYGOTE_READY;
	}
	return LEASE_ZYGOTE_NONE;
}

static void
count_sessions(const struct broker *b, struct lease_stats *st)
{
	const struct session *s;
	st->ready = st->leased = st->starting = 0;
	TAILQ_FOREACH(s, &b->sessions, link) {
		if (s == b->test || s == b->zygote.place)
			continue;
		st->ready += s->state == SESSION_IDLE;
		st->leased += s->state == SESSION_LEASED;
		st->starting += s->state <= SESSION_STARTING;
	}
}

void
stats_tell(struct broker *b)
{
	struct lease_stats *st = &b->stats;
	struct err e;
	st->type = LEASE_MSG_STATS;
	st->zygote = zygote_of(b);
	st->zygote_forks = b->zygote.forks;
	st->waiting = (uint32_t)b->queue.waiting;
	st->max = b->settings.max_sessions;
	st->is_draining = b->is_draining;
	count_sessions(b, st);
	(void)snprintf(st->zygote_text, sizeof(st->zygote_text), "%s",
	    st->zygote == LEASE_ZYGOTE_READY ? "" : b->zygote.why);
	/* A master that is busy gets the next one. */
	if (lease_send(FD_CTL, st, NULL, 0, &e) != ERR_OK)
		stats_changed(b);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	stats_tell(arg);
}

void
stats_changed(struct broker *b)
{
	struct timeval t = {PERIOD_MS / 1000, PERIOD_MS % 1000 * 1000};
	if (!b->is_tested || b->report.refused != 0)
		return;
	if (b->ev_stats == NULL)
		b->ev_stats = evtimer_new(b->base, on_time, b);
	if (b->ev_stats != NULL && !evtimer_pending(b->ev_stats, NULL))
		(void)evtimer_add(b->ev_stats, &t);
}

void
stats_made(struct broker *b, const struct session *s)
{
	int64_t us = clock_mono_us() - s->ordered_us;
	size_t i = 0;
	while (i < LEASE_TIMES - 1 && us > (int64_t)lease_time_ms(i) * 1000)
		i++;
	b->stats.times[i]++;
	b->stats.made++;
	b->stats.made_us += us > 0 ? (uint64_t)us : 0;
}
