#include "sandbox/spawner/session.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/mem.h"

/* A cold interpreter on a busy host. */
#define START_TIMEOUT_S 30

static void
fail(struct session *s, enum sandbox_layer layer, int sys_errno, const char *step)
{
	struct jail_fail f = {(uint32_t)layer, sys_errno, ""};
	(void)snprintf(f.step, sizeof(f.step), "%s", step);
	session_kill(s);
	s->ops->failed(s->arg, s, &f);
}

static void
close_born(struct session *s)
{
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->born_fds[i]);
}

static void
on_status(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct session *s = arg;
	struct jail_fail f;
	ssize_t n = read(fd, &f, sizeof(f));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	(void)event_del(s->ev_status);
	if (n != sizeof(f)) { /* the end: otari-init runs */
		if (s->is_born && s->state == SESSION_STARTING && s->zygote_seq == 0) {
			s->ops->built(s->arg, s);
			close_born(s);
		}
		return;
	}
	f.step[sizeof(f.step) - 1] = '\0';
	session_kill(s);
	s->ops->failed(s->arg, s, &f);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	fail(arg, SB_INTERPRETER, ETIMEDOUT, "session start");
}

/* False: the session is dying, stop. */
static bool
take_frame(struct session *s, uint8_t type, struct str payload)
{
	struct frame_ready r;
	if (type != FRAME_READY) {
		s->ops->frame(s->arg, s, type, payload);
		return s->state != SESSION_DYING;
	}
	if (s->state != SESSION_STARTING || !frame_ready_get(payload, &r)) {
		fail(s, SB_INTERPRETER, EPROTO, "otari-init");
		return false;
	}
	s->state = SESSION_IDLE;
	(void)event_del(s->ev_late);
	s->ops->ready(s->arg, s, r.sys_errno);
	return s->state != SESSION_DYING;
}

static void
on_ctl(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct session *s = arg;
	ssize_t n = recv(fd, s->in + s->in_len, sizeof(s->in) - s->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		/* The status pipe may hold the reason: let it speak first. */
		(void)event_del(s->ev_ctl);
		on_status(s->status_fd, 0, s);
		if (s->state == SESSION_STARTING)
			fail(s, SB_INTERPRETER, EPIPE, "otari-init ended");
		return;
	}
	s->in_len += (size_t)n;
	size_t pos = 0;
	struct frame_head h;
	while (s->in_len - pos >= FRAME_HEAD) {
		uint8_t raw[FRAME_HEAD];
		memcpy(raw, s->in + pos, FRAME_HEAD);
		if (!frame_head_get(raw, &h) || FRAME_HEAD + h.len > sizeof(s->in)) {
			fail(s, SB_INTERPRETER, EPROTO, "otari-init");
			return;
		}
		if (s->in_len - pos < FRAME_HEAD + h.len)
			break;
		pos += FRAME_HEAD + h.len;
		if (!take_frame(s, h.type, str_n(s->in + pos - h.len, h.len)))
			return;
		if (s->state == SESSION_LEASED)
			return;
	}
	memmove(s->in, s->in + pos, s->in_len - pos);
	s->in_len -= pos;
}

struct ends {
	int mine[LEASE_FDS], theirs[LEASE_FDS], status[2];
	int request[2]; /* init's, the interpreter's; -1: init starts one itself */
};

static bool
make_ends(struct ends *e, bool is_born)
{
	int yes = 1;
	e->request[0] = e->request[1] = -1;
	for (int i = 0; i < LEASE_FDS; i++)
		e->mine[i] = e->theirs[i] = -1;
	e->status[0] = e->status[1] = -1;
	int pair[2];
	if (!fd_socketpair_stream(pair, false))
		return false;
	e->mine[LEASE_FD_CTL] = pair[0];
	e->theirs[LEASE_FD_CTL] = pair[1];
	for (int i = LEASE_FD_OUT; i <= LEASE_FD_ERR; i++) {
		if (!fd_pipe(pair, false))
			return false;
		e->mine[i] = pair[0];
		e->theirs[i] = pair[1];
	}
	/* Init learns the interpreter's pid from the kernel. */
	if (is_born &&
	    (!fd_socketpair_stream(e->request, false) ||
		setsockopt(e->request[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0))
		return false;
	return fd_pipe(e->status, false) && fd_set_nonblock(e->status[0], true);
}

static void
close_ends(struct ends *e, bool all)
{
	for (int i = 0; i < LEASE_FDS; i++) {
		fd_close(&e->theirs[i]);
		if (all)
			fd_close(&e->mine[i]);
	}
	fd_close(&e->status[1]);
	fd_close(&e->request[0]);
	fd_close(&e->request[1]);
	if (all)
		fd_close(&e->status[0]);
}

static bool
listen_to(struct session *s, struct event_base *base)
{
	struct timeval late = {START_TIMEOUT_S, 0};
	s->ev_ctl = event_new(base, s->fds[LEASE_FD_CTL], EV_READ | EV_PERSIST, on_ctl, s);
	s->ev_status = event_new(base, s->status_fd, EV_READ | EV_PERSIST, on_status, s);
	s->ev_late = evtimer_new(base, on_late, s);
	return s->ev_ctl != NULL && s->ev_status != NULL && s->ev_late != NULL &&
	       event_add(s->ev_ctl, NULL) == 0 && event_add(s->ev_status, NULL) == 0 &&
	       event_add(s->ev_late, &late) == 0;
}

enum err_code
session_new(struct event_base *base, const struct jail *j, uint32_t slot, bool is_born,
    const struct session_ops *ops, void *arg, struct session **ret, struct err *reterr)
{
	struct ends e;
	if (!make_ends(&e, is_born)) {
		enum err_code rc = err_set(reterr, ERR_IO, "descriptors of a session");
		close_ends(&e, true);
		return rc;
	}
	struct session *s = MEM_NEW(struct session);
	struct jail_pipes p = {e.theirs[LEASE_FD_CTL], e.theirs[LEASE_FD_OUT],
	    e.theirs[LEASE_FD_ERR], e.request[0], e.status[1]};
	s->state = SESSION_STARTING;
	s->slot = slot;
	s->ops = ops;
	s->arg = arg;
	s->pid = jail_clone(j, slot, &p, &s->pidfd);
	if (s->pid < 0) {
		enum err_code rc = err_set(reterr, ERR_IO, "clone of a session");
		close_ends(&e, true);
		mem_free(s);
		return rc;
	}
	memcpy(s->fds, e.mine, sizeof(s->fds));
	s->status_fd = e.status[0];
	for (int i = 0; i < LEASE_FDS; i++)
		s->born_fds[i] = -1;
	s->is_born = is_born;
	if (is_born) {
		const int born[LEASE_FDS] = {
		    e.request[1], e.theirs[LEASE_FD_OUT], e.theirs[LEASE_FD_ERR]};
		memcpy(s->born_fds, born, sizeof(born));
		e.request[1] = e.theirs[LEASE_FD_OUT] = e.theirs[LEASE_FD_ERR] = -1;
	}
	close_ends(&e, false);
	*ret = s;
	if (!listen_to(s, base))
		session_kill(s); /* it is reaped like any other */
	return ERR_OK;
}

void
session_handed_over(struct session *s)
{
	s->state = SESSION_LEASED;
	event_free(s->ev_ctl);
	s->ev_ctl = NULL;
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->fds[i]);
}

void
session_ask_selftest(struct session *s)
{
	uint8_t head[FRAME_HEAD];
	frame_head_put(head, FRAME_SELFTEST, 0);
	if (send(s->fds[LEASE_FD_CTL], head, sizeof(head), MSG_NOSIGNAL) != (ssize_t)sizeof(head))
		fail(s, SB_INTERPRETER, EPIPE, "otari-init");
}

void
session_kill(struct session *s)
{
	if (s->state == SESSION_DYING)
		return;
	s->state = SESSION_DYING;
	(void)syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
	if (s->ev_ctl != NULL)
		(void)event_del(s->ev_ctl);
	if (s->ev_status != NULL)
		(void)event_del(s->ev_status);
	if (s->ev_late != NULL)
		(void)event_del(s->ev_late);
	for (int i = 0; i < LEASE_FDS; i++)
		fd_close(&s->fds[i]);
	close_born(s);
}

void
session_free(struct session **sp)
{
	struct session *s = *sp;
	*sp = NULL;
	if (s == NULL)
		return;
	session_kill(s);
	if (s->ev_ctl != NULL)
		event_free(s->ev_ctl);
	if (s->ev_status != NULL)
		event_free(s->ev_status);
	if (s->ev_late != NULL)
		event_free(s->ev_late);
	fd_close(&s->pidfd);
	fd_close(&s->status_fd);
	mem_free(s);
}
