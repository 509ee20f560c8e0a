#include "worker/jobs.h"

#include <sys/eventfd.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"

struct list {
	struct job *first, **last;
};

struct jobs {
	char name[12];
	struct jobs_config cfg;
	struct event *ev;
	int wake_fd; /* counts finished jobs; readable wakes the loop */
	pthread_t *threads;
	uint32_t started;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work;
	struct list queue, finished;
	uint32_t queued;
	uint32_t named; /* threads that have taken a number */
	bool is_stopping;
};

static void
list_init(struct list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void
list_add(struct list *l, struct job *j)
{
	j->next = NULL;
	*l->last = j;
	l->last = &j->next;
}

static struct job *
list_take(struct list *l)
{
	struct job *j = l->first;
	if (j == NULL)
		return NULL;
	l->first = j->next;
	if (l->first == NULL)
		l->last = &l->first;
	return j;
}

static struct job *
list_take_all(struct list *l)
{
	struct job *j = l->first;
	list_init(l);
	return j;
}

static void
wake_loop(struct jobs *p)
{
	uint64_t one = 1;
	/* It fails only when the counter is full, and then the loop is awake anyway. */
	ssize_t ignored = write(p->wake_fd, &one, sizeof(one));
	(void)ignored;
}

static struct job *
next_job(struct jobs *p)
{
	(void)pthread_mutex_lock(&p->lock);
	while (p->queue.first == NULL && !p->is_stopping)
		(void)pthread_cond_wait(&p->work, &p->lock);
	struct job *j = p->is_stopping ? NULL : list_take(&p->queue);
	if (j != NULL)
		p->queued--;
	(void)pthread_mutex_unlock(&p->lock);
	return j;
}

static void *
run_thread(void *arg)
{
	struct jobs *p = arg;
	char name[16];
	(void)pthread_mutex_lock(&p->lock);
	(void)snprintf(name, sizeof(name), "%s %u", p->name, ++p->named);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_setname_np(pthread_self(), name);
	void *context = p->cfg.thread_open != NULL ? p->cfg.thread_open(p->cfg.arg) : NULL;
	for (struct job *j; (j = next_job(p)) != NULL;) {
		j->run(j, context);
		(void)pthread_mutex_lock(&p->lock);
		list_add(&p->finished, j);
		(void)pthread_mutex_unlock(&p->lock);
		wake_loop(p);
	}
	if (p->cfg.thread_close != NULL)
		p->cfg.thread_close(context);
	return NULL;
}

/* Loop thread. done may submit new jobs and may free its own. */
static void
end_jobs(struct job *j, bool all_cancelled)
{
	for (struct job *next; j != NULL; j = next) {
		next = j->next;
		j->done(j, all_cancelled || j->cancelled);
	}
}

static void
on_finished(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct jobs *p = arg;
	uint64_t n;
	ssize_t ignored = read(fd, &n, sizeof(n));
	(void)ignored;
	(void)pthread_mutex_lock(&p->lock);
	struct job *j = list_take_all(&p->finished);
	(void)pthread_mutex_unlock(&p->lock);
	end_jobs(j, false);
}

/* Signals are the loop's; a pool thread never runs a handler. */
static bool
start_threads(struct jobs *p)
{
	sigset_t every, old;
	(void)sigfillset(&every);
	(void)pthread_sigmask(SIG_SETMASK, &every, &old);
	while (p->started < p->cfg.threads &&
	       pthread_create(&p->threads[p->started], NULL, run_thread, p) == 0)
		p->started++;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return p->started == p->cfg.threads;
}

enum err_code
jobs_new(
    struct event_base *base, const struct jobs_config *cfg, struct jobs **ret, struct err *reterr)
{
	CHECK(cfg->threads > 0 && cfg->queue_max > 0);
	struct jobs *p = MEM_NEW(struct jobs);
	p->cfg = *cfg;
	(void)snprintf(p->name, sizeof(p->name), "%s", cfg->name);
	p->threads = MEM_NEW_ARRAY(pthread_t, cfg->threads);
	list_init(&p->queue);
	list_init(&p->finished);
	CHECK(pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->work, NULL) == 0);
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd >= 0)
		p->ev = event_new(base, p->wake_fd, EV_READ | EV_PERSIST, on_finished, p);
	enum err_code rc = ERR_OK;
	if (p->ev == NULL || event_add(p->ev, NULL) != 0)
		rc = err_set(reterr, ERR_IO, "%s jobs: event", cfg->name);
	else if (!start_threads(p))
		rc = err_set(reterr, ERR_IO, "%s jobs: thread", cfg->name);
	if (rc != ERR_OK)
		jobs_free(&p);
	else
		*ret = p;
	return rc;
}

static enum err_code
add_job(struct jobs *p, struct job *j, uint32_t queue_max, struct err *reterr)
{
	j->cancelled = false;
	(void)pthread_mutex_lock(&p->lock);
	bool is_full = p->queued >= queue_max || p->is_stopping;
	if (!is_full) {
		list_add(&p->queue, j);
		p->queued++;
		(void)pthread_cond_signal(&p->work);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return is_full ? err_set(reterr, ERR_BUSY, "%s jobs: the queue is full", p->name) : ERR_OK;
}

enum err_code
jobs_submit(struct jobs *p, struct job *j, struct err *reterr)
{
	return add_job(p, j, p->cfg.queue_max, reterr);
}

enum err_code
jobs_submit_cleanup(struct jobs *p, struct job *j, struct err *reterr)
{
	return add_job(p, j, UINT32_MAX, reterr);
}

void
jobs_cancel(struct job *j)
{
	j->cancelled = true;
}

uint32_t
jobs_queued(const struct jobs *p)
{
	struct jobs *q = (struct jobs *)(uintptr_t)p;
	(void)pthread_mutex_lock(&q->lock);
	uint32_t n = q->queued;
	(void)pthread_mutex_unlock(&q->lock);
	return n;
}

void
jobs_free(struct jobs **pp)
{
	struct jobs *p = *pp;
	if (p == NULL)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->is_stopping = true;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
	for (uint32_t i = 0; i < p->started; i++)
		(void)pthread_join(p->threads[i], NULL);
	end_jobs(list_take_all(&p->finished), false);
	end_jobs(list_take_all(&p->queue), true);
	*pp = NULL;
	if (p->ev != NULL)
		event_free(p->ev);
	fd_close(&p->wake_fd);
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->work);
	mem_free(p->threads);
	mem_free(p);
}
