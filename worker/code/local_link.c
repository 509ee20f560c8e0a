#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/code/local.h"

static void
hang_up(struct local_link *l)
{
	if (l->ev != NULL)
		event_free(l->ev);
	l->ev = NULL;
	fd_close(&l->fd);
}

static void
free_unless_used(struct local_link *l)
{
	if (l->is_current || l->sessions > 0)
		return;
	hang_up(l);
	mem_free(l);
}

static void
lost(struct local_link *l, const struct err *e)
{
	if (l->is_current)
		log_warn("the sandbox spawner is gone, waiting for the next", LOG_ERR(e));
	else
		log_warn("a replaced sandbox spawner is gone, with sessions that still ran",
		    LOG_ERR(e), LOG_INT("sessions", l->sessions));
	hang_up(l);
	if (l->is_current)
		local_link_lost(l->backend);
}

static void
on_spawner(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct local_link *l = arg;
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds = 0;
	struct err e;
	enum err_code rc = lease_recv(fd, &m, fds, &nfds, &e);
	if (rc == ERR_BUSY)
		return;
	if (rc != ERR_OK) {
		lost(l, &e);
		return;
	}
	if (m.type == LEASE_MSG_ANSWER) {
		local_answered(l, &m.answer, fds, nfds);
		return;
	}
	for (size_t i = 0; i < nfds; i++)
		fd_close(&fds[i]);
	if (m.type == LEASE_MSG_STATE) {
		if (l->is_current)
			local_told(l->backend, &m.state);
		return;
	}
	(void)err_set(&e, ERR_PROTO, "unexpected message %#x", m.type);
	lost(l, &e);
}

struct local_link *
local_link_new(struct local_backend *b, int spawner_fd)
{
	struct local_link *l = MEM_NEW(struct local_link);
	l->backend = b;
	l->fd = spawner_fd;
	l->is_current = true;
	l->ev = event_new(b->port.base, spawner_fd, EV_READ | EV_PERSIST, on_spawner, l);
	CHECK(l->ev != NULL);
	(void)fd_set_nonblock(spawner_fd, true);
	(void)fd_set_cloexec(spawner_fd, true);
	(void)event_add(l->ev, NULL);
	return l;
}

void
local_link_retire(struct local_link **lp)
{
	struct local_link *l = *lp;
	*lp = NULL;
	if (l == NULL)
		return;
	l->is_current = false;
	free_unless_used(l);
}

void
local_link_leave(struct local_link *l)
{
	CHECK(l->sessions > 0);
	l->sessions--;
	free_unless_used(l);
}

void
local_release(struct local_link *l, uint64_t lease_id)
{
	struct lease_release r = {.type = LEASE_MSG_RELEASE, .id = lease_id};
	struct err e;
	/* A full socket: init ends by itself when its control socket closes. */
	if (l != NULL && l->fd >= 0)
		(void)!lease_send(l->fd, &r, NULL, 0, &e);
}
