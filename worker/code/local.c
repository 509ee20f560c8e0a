#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/code/backend.h"

#define BACKEND_MAGIC 0x434f4445u
/* The spawner answers at the deadline; this is for one that does not. */
#define ANSWER_SLACK_MS 3000

static void on_spawner(evutil_socket_t fd, short what, void *arg);

static void
set_timer(struct event *ev, uint32_t ms)
{
	struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
	(void)event_add(ev, &t);
}

static void
open_free(struct code_open *o)
{
	TAILQ_REMOVE(&o->backend->opens, o, link);
	event_free(o->ev);
	mem_free(o);
}

static void
open_failed(struct code_open *o, const struct err *e)
{
	code_on_open *on_open = o->on_open;
	void *arg = o->arg;
	open_free(o);
	on_open(NULL, e, arg);
}

/* Fails it on a later turn of the loop. */
static void
open_fail_later(struct code_open *o, enum err_code code, const char *why)
{
	(void)err_set(&o->failed, code, "%s", why);
	set_timer(o->ev, 0);
}

static void
open_send(struct code_open *o)
{
	struct code_backend *b = o->backend;
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
	struct code_open *o = arg;
	struct err e = o->failed;
	if (e.code == ERR_OK) {
		local_release(o->backend, o->id);
		if (o->backend->state == CODE_STATE_GONE)
			(void)err_set(&e, ERR_UNSUPPORTED, "the sandbox spawner is not running");
		else
			(void)err_set(&e, ERR_BUSY, "all sandboxes are in use");
	}
	open_failed(o, &e);
}

struct code_open *
code_session_open(struct code_backend *b, struct str workspace, uint32_t queue_ms,
    code_on_open *on_open, void *arg)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	struct code_open *o = MEM_NEW(struct code_open);
	o->backend = b;
	o->id = b->next_id++;
	o->queue_ms = queue_ms != 0 ? queue_ms : b->cfg.queue_ms;
	o->on_open = on_open;
	o->arg = arg;
	(void)str_copy(o->workspace, sizeof(o->workspace), workspace);
	o->ev = evtimer_new(b->base, on_open_timer, o);
	CHECK(o->ev != NULL);
	TAILQ_INSERT_TAIL(&b->opens, o, link);
	if (b->state == CODE_STATE_REFUSED) {
		open_fail_later(o, ERR_UNSUPPORTED, b->why);
		return o;
	}
	set_timer(o->ev, o->queue_ms + ANSWER_SLACK_MS);
	open_send(o);
	return o;
}

void
code_open_cancel(struct code_open **op)
{
	struct code_open *o = *op;
	*op = NULL;
	if (o == NULL)
		return;
	if (o->is_sent)
		local_release(o->backend, o->id);
	open_free(o);
}

void
local_release(struct code_backend *b, uint64_t lease_id)
{
	struct lease_release r = {.type = LEASE_MSG_RELEASE, .id = lease_id};
	struct err e;
	/* A full socket: init ends by itself when its control socket closes. */
	if (b->fd >= 0)
		(void)!lease_send(b->fd, &r, NULL, 0, &e);
}

static void
spawner_lost(struct code_backend *b, const struct err *e)
{
	if (b->ev != NULL)
		event_free(b->ev);
	b->ev = NULL;
	fd_close(&b->fd);
	b->state = CODE_STATE_GONE;
	if (e != NULL)
		log_warn("the sandbox spawner is gone, waiting for the next", LOG_ERR(e));
	struct code_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		o->is_sent = false;
}

static void
take_answer(struct code_backend *b, const struct lease_answer *a, int fds[LEASE_FDS], size_t nfds)
{
	static const enum err_code codes[] = {[LEASE_BUSY] = ERR_BUSY,
	    [LEASE_REFUSED] = ERR_UNSUPPORTED,
	    [LEASE_FAILED] = ERR_INTERNAL};
	struct code_open *o;
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
		code_on_open *on_open = o->on_open;
		void *arg = o->arg;
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
take_state(struct code_backend *b, const struct lease_state *st)
{
	b->state = st->refused != 0 ? CODE_STATE_REFUSED : CODE_STATE_READY;
	memcpy(b->why, st->text, sizeof(b->why));
}

static void
on_spawner(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct code_backend *b = arg;
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

enum err_code
code_backend_new_local(struct event_base *base, int spawner_fd, const struct code_config *cfg,
    struct code_backend **ret, struct err *reterr)
{
	(void)reterr;
	struct code_backend *b = MEM_NEW(struct code_backend);
	b->magic = BACKEND_MAGIC;
	b->base = base;
	b->cfg = *cfg;
	b->fd = -1;
	b->state = CODE_STATE_GONE;
	b->next_id = 1;
	TAILQ_INIT(&b->opens);
	if (spawner_fd >= 0)
		code_backend_attach(b, spawner_fd);
	*ret = b;
	return ERR_OK;
}

void
code_backend_attach(struct code_backend *b, int spawner_fd)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	spawner_lost(b, NULL);
	b->fd = spawner_fd;
	b->state = CODE_STATE_STARTING;
	b->ev = event_new(b->base, spawner_fd, EV_READ | EV_PERSIST, on_spawner, b);
	CHECK(b->ev != NULL);
	(void)fd_set_nonblock(spawner_fd, true);
	(void)fd_set_cloexec(spawner_fd, true);
	(void)event_add(b->ev, NULL);
	struct code_open *o;
	TAILQ_FOREACH(o, &b->opens, link)
		if (o->failed.code == ERR_OK)
			open_send(o);
}

void
code_backend_set_config(struct code_backend *b, const struct code_config *cfg)
{
	b->cfg = *cfg;
}

void
code_backend_free(struct code_backend **bp)
{
	struct code_backend *b = *bp;
	*bp = NULL;
	if (b == NULL)
		return;
	CHECK_MAGIC(b, BACKEND_MAGIC);
	CHECK(TAILQ_EMPTY(&b->opens) && b->session_count == 0);
	spawner_lost(b, NULL);
	b->magic = 0;
	mem_free(b);
}

bool
code_backend_ready(const struct code_backend *b, struct str *ret_why_not)
{
	CHECK_MAGIC(b, BACKEND_MAGIC);
	*ret_why_not = STR("");
	switch (b->state) {
	case CODE_STATE_STARTING:
	case CODE_STATE_READY:
		return true;
	case CODE_STATE_REFUSED:
		*ret_why_not = str_c(b->why);
		return false;
	case CODE_STATE_GONE:
		break;
	}
	*ret_why_not = STR("the sandbox spawner is not running");
	return false;
}

size_t
code_backend_open_count(const struct code_backend *b)
{
	return b->session_count;
}
