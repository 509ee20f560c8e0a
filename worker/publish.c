/* publish.c - a committed change is brought into force by the master; the request waits for it
 *
 * Process: worker, loop thread.
 */
#include "worker/publish.h"

#include <sys/queue.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/chan.h"
#include "ipc/payload.h"
#include "worker/env.h"

/* The master answers in time as a rule; it forgets who drains. */
#define SLACK_MS 1000
#define TICK_MS  250

struct waiter {
	TAILQ_ENTRY(waiter) link;
	uint32_t id;
	int64_t deadline_ms;
	void (*done)(void *arg, const struct err *err);
	void *arg;
};

struct publish {
	struct worker_env *env;
	struct event *tick;
	uint32_t last_id;
	TAILQ_HEAD(, waiter) waiters;
};

static void
end(struct publish *p, struct waiter *w, const char *error)
{
	struct err e = {0};
	if (error != NULL)
		(void)err_set(&e, ERR_UNCERTAIN, "saved, not in force: %s", error);
	TAILQ_REMOVE(&p->waiters, w, link);
	w->done(w->arg, error != NULL ? &e : NULL);
	mem_free(w);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct publish *p = arg;
	int64_t now = clock_mono_ms();
	struct waiter *next;
	for (struct waiter *w = TAILQ_FIRST(&p->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, link);
		if (now > w->deadline_ms)
			end(p, w, "the master does not answer");
	}
}

struct publish *
publish_new(struct worker_env *env)
{
	struct publish *p = MEM_NEW(struct publish);
	struct timeval every = {0, TICK_MS * 1000};
	p->env = env;
	TAILQ_INIT(&p->waiters);
	p->tick = event_new(env->base, -1, EV_PERSIST, on_tick, p);
	CHECK(p->tick != NULL && event_add(p->tick, &every) == 0);
	return p;
}

void
publish_free(struct publish **pp)
{
	struct publish *p = *pp;
	if (p == NULL)
		return;
	for (struct waiter *w; (w = TAILQ_FIRST(&p->waiters)) != NULL;)
		end(p, w, "this worker ends");
	event_free(p->tick);
	mem_free(p);
	*pp = NULL;
}

void
publish_request(struct worker_env *env, enum publish_what what,
    void (*done)(void *arg, const struct err *err), void *arg)
{
	struct publish *p = env->publish;
	struct waiter *w = MEM_NEW(struct waiter);
	uint32_t timeout_ms = snapshot_policy(env->policy)->settings.publish_timeout_ms;
	/* 0 is no id. */
	if (++p->last_id == 0)
		p->last_id = 1;
	*w = (struct waiter){.id = p->last_id,
	    .deadline_ms = clock_mono_ms() + timeout_ms + SLACK_MS,
	    .done = done,
	    .arg = arg};
	TAILQ_INSERT_TAIL(&p->waiters, w, link);
	struct buf b = BUF_INIT(64);
	publish_ask_encode(&b, &(struct publish_ask){.what = (uint32_t)what});
	chan_send(env->ctl, MSG_PUBLISH, w->id, buf_str(&b), NULL, 0);
	buf_done(&b);
}

enum err_code
publish_on_answer(struct worker_env *env, struct msg *m, struct err *reterr)
{
	struct published a;
	struct waiter *w;
	enum err_code rc = published_decode(m->payload, &a, reterr);
	if (rc != ERR_OK || env->publish == NULL)
		return rc;
	char text[256];
	if (!str_copy(text, sizeof(text), str_sub(a.error, 0, sizeof(text) - 1)))
		text[0] = '\0';
	TAILQ_FOREACH(w, &env->publish->waiters, link)
		if (w->id == m->id)
			break;
	if (w != NULL)
		end(env->publish, w, a.in_force ? NULL : text);
	return ERR_OK;
}
