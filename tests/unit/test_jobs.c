#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "worker/jobs.h"

struct world {
	struct event_base *base;
	struct jobs *pool;
	unsigned done, cancelled;
	_Atomic bool gate_open;
	char thread_name[16];
};

static void
run_wait(struct job *j, void *context)
{
	struct world *w = j->arg;
	(void)context;
	while (!w->gate_open)
		sched_yield();
	(void)pthread_getname_np(pthread_self(), w->thread_name, sizeof(w->thread_name));
}

static void
done(struct job *j, bool cancelled)
{
	struct world *w = j->arg;
	w->done++;
	w->cancelled += cancelled;
}

static void
start(struct world *w, uint32_t queue_max)
{
	struct jobs_config cfg = {.name = "sql", .threads = 1, .queue_max = queue_max};
	*w = (struct world){.base = event_base_new()};
	cr_assert_eq(jobs_new(w->base, &cfg, &w->pool, NULL), ERR_OK);
}

Test(jobs, a_full_queue_says_busy, .timeout = 10)
{
	struct world w;
	struct job j[8];
	start(&w, 2);
	unsigned accepted = 0;
	for (size_t i = 0; i < ARRAY_LEN(j); i++) {
		j[i] = (struct job){.run = run_wait, .done = done, .arg = &w};
		struct err e;
		enum err_code rc = jobs_submit(w.pool, &j[i], &e);
		if (rc == ERR_OK)
			accepted++;
		else
			cr_assert_eq(rc, ERR_BUSY);
	}
	cr_assert(accepted == 2 || accepted == 3, "%u", accepted);
	w.gate_open = true;
	while (w.done < accepted)
		event_base_loop(w.base, EVLOOP_ONCE);
	cr_assert_eq(w.cancelled, 0);
	cr_assert_str_eq(w.thread_name, "sql 1");
	jobs_free(&w.pool);
	event_base_free(w.base);
}

Test(jobs, a_cancelled_one_runs_to_its_end_and_says_so, .timeout = 10)
{
	struct world w;
	struct job j = {.run = run_wait, .done = done, .arg = &w};
	start(&w, 4);
	cr_assert_eq(jobs_submit(w.pool, &j, NULL), ERR_OK);
	jobs_cancel(&j);
	w.gate_open = true;
	while (w.done == 0)
		event_base_loop(w.base, EVLOOP_ONCE);
	cr_assert_eq(w.cancelled, 1);
	jobs_free(&w.pool);
	event_base_free(w.base);
}

Test(jobs, the_end_hands_every_job_back, .timeout = 10)
{
	struct world w;
	struct job j[4];
	start(&w, 8);
	w.gate_open = true;
	for (size_t i = 0; i < ARRAY_LEN(j); i++) {
		j[i] = (struct job){.run = run_wait, .done = done, .arg = &w};
		cr_assert_eq(jobs_submit(w.pool, &j[i], NULL), ERR_OK);
	}
	jobs_free(&w.pool);
	cr_assert_null(w.pool);
	cr_assert_eq(w.done, 4);
	event_base_free(w.base);
}
