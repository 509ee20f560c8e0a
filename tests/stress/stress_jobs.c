/* stress_jobs.c - the worker's thread pool under TSan: submit, cancel, full queue, end while busy
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/mem.h"
#include "worker/jobs.h"

#define JOBS    20000u
#define QUEUE   64u
#define THREADS 4u

struct world {
	struct event_base *base;
	struct jobs *pool;
	_Atomic unsigned opened, closed, ran;
	unsigned submitted, refused, done, cancelled;
};

struct task {
	struct job job;
	struct world *w;
	unsigned input, output; /* handed back and forth without a lock of their own */
};

static void *
on_open(void *arg)
{
	struct world *w = arg;
	atomic_fetch_add(&w->opened, 1);
	return w;
}

static void
on_close(void *context)
{
	struct world *w = context;
	atomic_fetch_add(&w->closed, 1);
}

static void
run(struct job *j, void *context)
{
	struct task *t = j->arg;
	struct world *w = context;
	t->output = t->input * 3;
	atomic_fetch_add(&w->ran, 1);
}

static void
done(struct job *j, bool cancelled)
{
	struct task *t = j->arg;
	struct world *w = t->w;
	w->done++;
	if (cancelled)
		w->cancelled++;
	else
		CHECK(t->output == t->input * 3);
	mem_free(t);
}

static void
on_feed(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;
	(void)fd, (void)what;
	for (int i = 0; i < 100 && w->submitted < JOBS; i++) {
		struct task *t = MEM_NEW(struct task);
		struct err e;
		t->w = w;
		t->input = w->submitted;
		t->job = (struct job){.run = run, .done = done, .arg = t};
		if (jobs_submit(w->pool, &t->job, &e) != ERR_OK) {
			CHECK(e.code == ERR_BUSY);
			mem_free(t);
			w->refused++;
			break;
		}
		if (w->submitted++ % 7 == 0)
			jobs_cancel(&t->job);
		CHECK(jobs_queued(w->pool) <= QUEUE);
	}
	if (w->submitted == JOBS)
		(void)event_base_loopbreak(w->base);
}

int
main(void)
{
	struct world w = {0};
	struct jobs_config cfg = {"stress", THREADS, QUEUE, on_open, on_close, &w};
	struct timeval soon = {0, 50};
	w.base = event_base_new();
	CHECK(jobs_new(w.base, &cfg, &w.pool, NULL) == ERR_OK);
	struct event *feed = event_new(w.base, -1, EV_PERSIST, on_feed, &w);
	(void)event_add(feed, &soon);
	(void)event_base_dispatch(w.base);
	jobs_free(&w.pool); /* with a queue that is not empty */
	CHECK(w.done == w.submitted && w.opened == w.closed && w.opened <= THREADS);
	CHECK(w.ran + w.cancelled >= w.submitted);
	event_free(feed);
	event_base_free(w.base);
	(void)printf("jobs: %u done, %u ran, %u cancelled, %u refused\n", w.done, w.ran,
	    w.cancelled, w.refused);
	return 0;
}
