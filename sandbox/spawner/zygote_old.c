/* zygote_old.c - a zygote that has served its time, until another one is ready */
#include <sys/socket.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "sandbox/spawner/broker.h"
#include "sandbox/zygote/zygote.h"

#define ANSWER_S 3 /* one fork */

static void
hang_up(struct zygote_old *o)
{
	event_free(o->ev);
	fd_close(&o->fd);
	if (o->pid > 0)
		(void)kill(o->pid, SIGKILL); /* reaped as any child */
	*o = (struct zygote_old){.fd = -1};
}

void
zygote_old_end(struct broker *b)
{
	struct zygote_old *o = &b->old_zygote;
	if (o->ev == NULL)
		return;
	if (o->in_flight > 0)
		zygote_forget_starting(b);
	hang_up(o);
}

static void
lose(struct broker *b, const char *why)
{
	log_warn("the old zygote failed", LOG_C("why", why), LOG_INT("errno", errno));
	zygote_old_end(b);
	lend_step(b);
}

static void
on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct broker *b = arg;
	struct zygote_old *o = &b->old_zygote;
	struct zygote_answer a;
	if ((what & EV_READ) == 0) {
		errno = ETIMEDOUT;
		lose(b, "it does not answer");
		return;
	}
	ssize_t n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(a) || o->in_flight == 0) {
		lose(b, "it ended, or speaks nonsense");
		return;
	}
	/* A fork that went wrong is seen by its session, which gets no interpreter. */
	if (--o->in_flight > 0)
		return; /* the time for the next one runs from now */
	(void)event_remove_timer(o->ev);
	if (o->is_leaving)
		hang_up(o);
}

bool
zygote_old_keep(struct broker *b, pid_t pid, int fd)
{
	struct zygote_old *o = &b->old_zygote;
	zygote_old_end(b);
	struct event *ev = event_new(b->base, fd, EV_READ | EV_PERSIST, on_answer, b);
	if (ev == NULL || event_add(ev, NULL) != 0) {
		if (ev != NULL)
			event_free(ev);
		return false;
	}
	*o = (struct zygote_old){.pid = pid, .fd = fd, .ev = ev};
	return true;
}

void
zygote_old_give(struct broker *b, struct session *s)
{
	struct zygote_old *o = &b->old_zygote;
	if (o->ev == NULL) {
		session_kill(s); /* it failed meanwhile */
		return;
	}
	if (zygote_ask(b, o->fd, s)) {
		const struct timeval limit = {ANSWER_S, 0};
		if (o->in_flight++ == 0)
			(void)event_add(o->ev, &limit);
		return;
	}
	session_kill(s);
	zygote_old_end(b);
}

void
zygote_old_leave(struct broker *b)
{
	struct zygote_old *o = &b->old_zygote;
	o->is_leaving = true;
	if (o->in_flight == 0)
		zygote_old_end(b);
}
