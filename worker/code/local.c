#include "worker/code/local.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/mem.h"

/* The spawner answers at the deadline; this is for one that does not. */
#define ANSWER_SLACK_MS 3000

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
	if (b->link == NULL)
		return; /* code_backend_attach sends it */
	memcpy(r.workspace, o->workspace, sizeof(r.workspace));
	enum err_code rc = lease_send(b->link->fd, &r, NULL, 0, &e);
	if (rc == ERR_OK)
		o->is_sent = true;
	else if (rc == ERR_BUSY)
		open_fail_later(o, ERR_BUSY, "too many wait for a sandbox");
	/* else: the link sees the end */
}

static void
on_open_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct local_open *o = arg;
	struct err e = o->failed;
	if (e.code == ERR_OK) {
		local_release(backend_of(o)->link, o->id);
		if (backend_of(o)->state == LOCAL_GONE)
			(void)err_set(&e, ERR_UNSUPPORTED, "the sandbox spawner is not running");
		else
			(void)err_set(&e, ERR_BUSY, "all sandboxes are in use");
	}
	open_failed(o, &e);
}

static struct code_open *
local_open(struct code_backend *port, struct str workspace, struct str image, uint32_t queue_ms,
    code_on_open *on_open, void *arg)
{
	struct local_backend *b = (struct local_backend *)port;
	struct local_open *o = MEM_NEW(struct local_open);
	(void)image; /* there are none */
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
		local_release(backend_of(o)->link, o->id);
	open_free(o);
}

void
local_link_lost(struct local_backend *b)
{
	local_link_retire(&b->link);
	b->state = LOCAL_GONE;
	struct local_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		o->is_sent = false;
}

void
local_answered(struct local_link *l, const struct lease_answer *a, int fds[LEASE_FDS], size_t nfds)
{
	struct local_backend *b = l->backend;
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
			local_release(l, a->id);
	}
	if (o == NULL)
		return;
	if (is_lease) {
		if (!l->is_current) /* which was asked, too */
			local_release(b->link, o->id);
		code_on_open *on_open = o->port.on_open;
		void *arg = o->port.arg;
		struct code_session *s = local_session_new(l, o->id, fds);
		open_free(o);
		on_open(s, NULL, arg);
		return;
	}
	if (!l->is_current)
		return; /* the one that is current has been asked since */
	struct err e;
	(void)err_set(&e, a->status == LEASE_OK ? ERR_PROTO : codes[a->status], "%s", a->text);
	open_failed(o, &e);
}

void
local_told(struct local_backend *b, const struct lease_state *st)
{
	b->state = st->refused != 0 ? LOCAL_REFUSED : LOCAL_READY;
	memcpy(b->why, st->text, sizeof(b->why));
	b->memory_mib = st->memory_mib;
}

static void
local_attach(struct code_backend *port, int spawner_fd)
{
	struct local_backend *b = (struct local_backend *)port;
	struct local_open *o;
	local_link_retire(&b->link);
	b->state = spawner_fd < 0 ? LOCAL_GONE : LOCAL_STARTING;
	if (spawner_fd >= 0)
		b->link = local_link_new(b, spawner_fd);
	TAILQ_FOREACH(o, &b->opens, link) {
		if (o->failed.code != ERR_OK)
			continue;
		if (spawner_fd >= 0)
			open_send(o);
		else
			open_fail_later(o, ERR_UNSUPPORTED, "this host's sandbox was turned off");
	}
}

static void
local_free(struct code_backend *port)
{
	struct local_backend *b = (struct local_backend *)port;
	CHECK(TAILQ_EMPTY(&b->opens));
	local_link_retire(&b->link);
	mem_free(b);
}

static bool
local_is_idle(const struct code_backend *port)
{
	return TAILQ_EMPTY(&((const struct local_backend *)port)->opens);
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
    .converts = true,
    .has_files = true,
    .free = local_free,
    .attach = local_attach,
    .ready = local_ready,
    .is_idle = local_is_idle,
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
	b->state = LOCAL_GONE;
	b->next_id = 1;
	TAILQ_INIT(&b->opens);
	if (spawner_fd >= 0)
		local_attach(&b->port, spawner_fd);
	*ret = &b->port;
	return ERR_OK;
}
