#include "worker/code/local.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

/* The spawner answers at the deadline; this is for one that does not. */
#define ANSWER_SLACK_MS 3000

static void on_spawner(evutil_socket_t fd, short what, void *arg);

static struct local_backend *
backend_of(const struct local_open *o)
{
	return (struct local_backend *)o->port.backend;
}

static void
set_timer(struct event *ev, uint32_t ms)
{
	struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
	(void)event_add(ev, &t);
}

static void
open_free(struct local_open *o)
{
	TAILQ_REMOVE(&backend_of(o)->opens, o, link);
	event_free(o->ev);
	mem_free(o);
}

static void
open_failed(struct local_open *o, const struct err *e)
{
	code_on_open *on_open = o->port.on_open;
	void *arg = o->port.arg;
	open_free(o);
	on_open(NULL, e, arg);
}

/* Fails it on a later turn of the loop. */
static void
open_fail_later(struct local_open *o, enum err_code code, const char *why)
{
	(void)err_set(&o->failed, code, "%s", why);
	set_timer(o->ev, 0);
}

static void
open_send(struct local_open *o)
{
	struct local_backend *b = backend_of(o);
	struct lease_request r = {.type = LEASE_MSG_LEASE, .queue_ms = o->queue_ms, .id = o->id};
	struct err e;
	if (b->fd < 0)
		return; /* code_backend_attach sends it */
	memcpy(r.workspace, o->workspace, sizeof(r.workspace));
	enum err_code rc = lease_send(b->fd, &r, NULL, 0, &e);
	if (rc == ERR_OK)
		o->is_sent = true;
	else if (rc == ERR_BUSY)
		open_fail_later(o, ERR_BUSY, "too many wait for a sandbox");
	/* else: on_spawner sees the end */
}

static void
on_open_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_open *o = arg;
	struct err e = o->failed;
	if (e.code == ERR_OK) {
		local_release(backend_of(o), o->id);
		if (backend_of(o)->state == LOCAL_GONE)
			(void)err_set(&e, ERR_UNSUPPORTED, "the sandbox spawner is not running");
		else
			(void)err_set(&e, ERR_BUSY, "all sandboxes are in use");
	}
	open_failed(o, &e);
}

static struct code_open *
local_open(struct code_backend *port, struct str workspace, uint32_t queue_ms,
    code_on_open *on_open, void *arg)
{
	struct local_backend *b = (struct local_backend *)port;
	struct local_open *o = MEM_NEW(struct local_open);
	o->port = (struct code_open){port, on_open, arg};
	o->id = b->next_id++;
	o->queue_ms = queue_ms;
	(void)str_copy(o->workspace, sizeof(o->workspace), workspace);
	o->ev = evtimer_new(b->port.base, on_open_timer, o);
	CHECK(o->ev != NULL);
	TAILQ_INSERT_TAIL(&b->opens, o, link);
	if (b->state == LOCAL_REFUSED) {
		open_fail_later(o, ERR_UNSUPPORTED, b->why);
		return &o->port;
	}
	set_timer(o->ev, o->queue_ms + ANSWER_SLACK_MS);
	open_send(o);
	return &o->port;
}

static void
local_open_cancel(struct code_open *port)
{
	struct local_open *o = (struct local_open *)port;
	if (o->is_sent)
		local_release(backend_of(o), o->id);
	open_free(o);
}

void
local_release(struct local_backend *b, uint64_t lease_id)
{
	struct lease_release r = {.type = LEASE_MSG_RELEASE, .id = lease_id};
	struct err e;
	/* A full socket: init ends by itself when its control socket closes. */
	if (b->fd >= 0)
		(void)!lease_send(b->fd, &r, NULL, 0, &e);
}

static void
spawner_lost(struct local_backend *b, const struct err *e)
{
	if (b->ev != NULL)
		event_free(b->ev);
	b->ev = NULL;
	fd_close(&b->fd);
	b->state = LOCAL_GONE;
	if (e != NULL)
		log_warn("the sandbox spawner is gone, waiting for the next", LOG_ERR(e));
	struct local_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		o->is_sent = false;
}

static void
take_answer(struct local_backend *b, const struct lease_answer *a, int fds[LEASE_FDS], size_t nfds)
{
	static const enum err_code codes[] = {[LEASE_BUSY] = ERR_BUSY,
	    [LEASE_REFUSED] = ERR_UNSUPPORTED,
	    [LEASE_FAILED] = ERR_INTERNAL};
	struct local_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		if (o->id == a->id && o->failed.code == ERR_OK)
			break;
	bool is_lease = a->status == LEASE_OK && nfds == LEASE_FDS;
	if (o == NULL || !is_lease) {
		for (size_t i = 0; i < nfds; i++)
			fd_close(&fds[i]);
		if (is_lease)
			local_release(b, a->id);
	}
	if (o == NULL)
		return;
	if (is_lease) {
		code_on_open *on_open = o->port.on_open;
		void *arg = o->port.arg;
		struct code_session *s = local_session_new(b, o->id, fds);
		open_free(o);
		on_open(s, NULL, arg);
		return;
	}
	struct err e;
	(void)err_set(&e, a->status == LEASE_OK ? ERR_PROTO : codes[a->status], "%s", a->text);
	open_failed(o, &e);
}

static void
take_state(struct local_backend *b, const struct lease_state *st)
{
	b->state = st->refused != 0 ? LOCAL_REFUSED : LOCAL_READY;
	memcpy(b->why, st->text, sizeof(b->why));
}

static void
on_spawner(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct local_backend *b = arg;
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds = 0;
	struct err e;
	enum err_code rc = lease_recv(fd, &m, fds, &nfds, &e);
	if (rc == ERR_BUSY)
		return;
	if (rc != ERR_OK) {
		spawner_lost(b, &e);
		return;
	}
	if (m.type == LEASE_MSG_ANSWER) {
		take_answer(b, &m.answer, fds, nfds);
		return;
	}
	for (size_t i = 0; i < nfds; i++)
		fd_close(&fds[i]);
	if (m.type == LEASE_MSG_STATE) {
		take_state(b, &m.state);
		return;
	}
	(void)err_set(&e, ERR_PROTO, "unexpected message %#x", m.type);
	spawner_lost(b, &e);
}

static void
local_attach(struct code_backend *port, int spawner_fd)
{
	struct local_backend *b = (struct local_backend *)port;
	spawner_lost(b, NULL);
	b->fd = spawner_fd;
	b->state = LOCAL_STARTING;
	b->ev = event_new(port->base, spawner_fd, EV_READ | EV_PERSIST, on_spawner, b);
	CHECK(b->ev != NULL);
	(void)fd_set_nonblock(spawner_fd, true);
	(void)fd_set_cloexec(spawner_fd, true);
	(void)event_add(b->ev, NULL);
	struct local_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		if (o->failed.code == ERR_OK)
			open_send(o);
}

static void
local_free(struct code_backend *port)
{
	struct local_backend *b = (struct local_backend *)port;
	CHECK(TAILQ_EMPTY(&b->opens));
	spawner_lost(b, NULL);
	mem_free(b);
}

static bool
local_ready(const struct code_backend *port, struct str *ret_why_not)
{
	const struct local_backend *b = (const struct local_backend *)port;
	switch (b->state) {
	case LOCAL_STARTING:
	case LOCAL_READY:
		return true;
	case LOCAL_REFUSED:
		*ret_why_not = str_c(b->why);
		return false;
	case LOCAL_GONE:
		break;
	}
	*ret_why_not = STR("the sandbox spawner is not running");
	return false;
}

static const struct code_backend_ops local_ops = {
    .free = local_free,
    .attach = local_attach,
    .ready = local_ready,
    .open = local_open,
    .open_cancel = local_open_cancel,
    .start = local_session_start,
    .more = local_put_more,
    .in_flight = local_put_in_flight,
    .fail = local_session_fail,
    .go_on = local_session_go_on,
    .paused = local_session_paused,
    .resumed = local_session_resumed,
    .stop = local_session_stop,
    .close = local_session_close,
};

enum err_code
code_backend_new_local(struct event_base *base, int spawner_fd, const struct code_config *cfg,
    struct code_backend **ret, struct err *reterr)
{
	(void)reterr;
	struct local_backend *b = MEM_NEW(struct local_backend);
	code_backend_init(&b->port, &local_ops, base, cfg);
	b->fd = -1;
	b->state = LOCAL_GONE;
	b->next_id = 1;
	TAILQ_INIT(&b->opens);
	if (spawner_fd >= 0)
		local_attach(&b->port, spawner_fd);
	*ret = &b->port;
	return ERR_OK;
}
