#include "worker/worker.h"

#include <sys/stat.h>

#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "ipc/chan.h"
#include "ipc/fds.h"
#include "ipc/payload.h"
#include "ipc/role.h"
#include "worker/code/session.h"
#include "worker/code/trial.h"
#include "worker/current.h"
#include "worker/env.h"
#include "worker/parts.h"
#include "worker/publish.h"

struct worker {
	struct role_env role;
	struct worker_env env;
	struct parts *parts; /* NULL: not serving yet */
	int spawner_fd;      /* came before parts; -1: none */
	struct event *deadline;
	struct code_trial *trial; /* the master asked for it */
	int exit_code;
};

static void
stop(struct worker *w, int exit_code)
{
	w->exit_code = exit_code;
	(void)event_base_loopbreak(w->role.base);
}

static void
fail(struct worker *w, const char *what, const struct err *e)
{
	log_error(what, LOG_ERR(e));
	stop(w, 1);
}

static bool
is_open(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0;
}

/* Everything is there for the first time: open all parts, then the sockets, then say READY. */
static void
serve(struct worker *w)
{
	struct err e;
	enum err_code rc = parts_open(&w->env, &w->spawner_fd, &w->parts, &e);
	if (rc == ERR_OK)
		rc = parts_listen(w->parts, FD_LISTEN, false, &e);
	if (rc == ERR_OK && is_open(FD_ADMIN))
		rc = parts_listen(w->parts, FD_ADMIN, true, &e);
	if (rc == ERR_OK && is_open(FD_SERVE))
		rc = parts_serve_sandbox(w->parts, FD_SERVE, &e);
	if (rc != ERR_OK) {
		fail(w, "a worker cannot start", &e);
		return;
	}
	role_ready(&w->role);
}

static void
on_spawner(struct worker *w, struct msg *m)
{
	int fd = msg_take_fd(m, 0);
	if (w->env.code != NULL && !code_backend_opens_early(w->env.code)) {
		code_backend_attach(w->env.code, fd);
	} else {
		fd_close(&w->spawner_fd);
		w->spawner_fd = fd;
	}
}

static enum err_code
on_listen(struct worker *w, struct msg *m, struct err *reterr)
{
	struct listen_note n;
	enum err_code rc = listen_note_decode(m->payload, &n, reterr);
	if (rc != ERR_OK)
		return rc;
	if (w->parts == NULL)
		return err_set(reterr, ERR_PROTO, "a socket before the settings");
	if (w->env.draining)
		return ERR_OK;
	if (n.is_serve)
		return parts_serve_sandbox(w->parts, m->nfds > 0 ? msg_take_fd(m, 0) : -1, reterr);
	return parts_listen(w->parts, msg_take_fd(m, 0), n.is_admin, reterr);
}

static void
on_trial(void *arg, bool ok, const char *text)
{
	struct worker *w = arg;
	struct buf b = BUF_INIT(LIMIT_MSG_BYTES);
	const struct tried t = {.ok = ok, .text = str_c(text)};
	w->trial = NULL;
	tried_encode(&b, &t);
	chan_send(w->role.ctl, MSG_TRIED, 0, buf_str(&b), NULL, 0);
	buf_done(&b);
}

static void
try_code(struct worker *w)
{
	struct str why = STR("no sandbox is configured");
	struct code_backend *code = w->env.code;
	if (code == NULL || !code_backend_ready(code, &why)) {
		char text[256];
		(void)str_copy(text, sizeof(text), str_sub(why, 0, sizeof(text) - 1));
		on_trial(w, false, text);
	} else if (w->trial == NULL) {
		w->trial = code_trial_start(code, STR(""), on_trial, w);
	}
}

static void
on_drained(void *arg)
{
	stop(arg, 0);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct worker *w = arg;
	log_warn("not drained in time, the rest is broken off",
	    LOG_INT("requests", w->env.slot->gauges[BG_REQUESTS_ACTIVE]));
	stop(w, 0);
}

static void
drain(struct worker *w)
{
	if (w->env.draining)
		return;
	w->env.draining = true;
	role_draining(&w->role);
	chan_send(w->role.ctl, MSG_LEAVING, 0, STR_NULL, NULL, 0);
	if (w->parts == NULL) {
		stop(w, 0);
		return;
	}
	uint32_t ms = snapshot_policy(w->env.policy)->settings.drain_timeout_ms;
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	w->deadline = evtimer_new(w->role.base, on_deadline, w);
	if (w->deadline != NULL)
		(void)event_add(w->deadline, &t);
	parts_drain(w->parts, on_drained, w);
}

/* Settings are taken over in place; a few need a new process. The master starts it and lets this
 * one drain when it is ready. */
static enum err_code
on_snapshot(struct worker *w, struct msg *m, struct err *reterr)
{
	bool needs_successor = false;
	enum err_code rc = current_take(&w->env, m, &needs_successor, reterr);
	if (rc != ERR_OK)
		return rc;
	if (w->parts == NULL) {
		if (current_is_complete(&w->env) && !w->env.draining)
			serve(w);
		return ERR_OK;
	}
	/* Secrets came before it (master/snapshots.c): by themselves they would go, for a moment,
	 * to where the policy of before says. */
	if (m->type == MSG_POLICY)
		parts_reconfigure(w->parts, &w->spawner_fd);
	if (needs_successor)
		chan_send(w->role.ctl, MSG_RECYCLE, 0, STR_NULL, NULL, 0);
	return ERR_OK;
}

static enum err_code
handle(struct worker *w, struct msg *m, struct err *reterr)
{
	switch (m->type) {
	case MSG_POLICY:
	case MSG_KEYS:
	case MSG_SECRETS:
		return on_snapshot(w, m, reterr);
	case MSG_PUBLISHED:
		return publish_on_answer(&w->env, m, reterr);
	case MSG_LISTEN:
		return on_listen(w, m, reterr);
	case MSG_SPAWNER:
		on_spawner(w, m);
		return ERR_OK;
	case MSG_TRY:
		try_code(w);
		return ERR_OK;
	case MSG_DRAIN:
		drain(w);
		return ERR_OK;
	case MSG_HELLO:
	case MSG_READY:
	case MSG_ACK:
	case MSG_PUBLISH:
	case MSG_REOPEN:
	case MSG_LEAVING:
	case MSG_RECYCLE:
	case MSG_BUILD:
	case MSG_BUILT:
	case MSG_FILE_WANTED:
	case MSG_FILE:
	case MSG_TRIED:
	case MSG_TYPE_MAX:
		break;
	}
	return err_set(reterr, ERR_PROTO, "unexpected message %s", msg_name(m->type));
}

static void
on_msg(struct chan *c, struct msg *m, void *arg)
{
	struct worker *w = arg;
	struct err e = {0};
	(void)c;
	if (m == NULL)
		stop(w, 1); /* the master is gone */
	else if (handle(w, m, &e) != ERR_OK)
		fail(w, "a message of the master cannot be used", &e);
}

int
worker_main(int argc, char **argv)
{
	struct worker w = {.spawner_fd = -1};
	struct err e = {0};
	if (role_start(argc, argv, on_msg, &w, &w.role, &e) != ERR_OK) {
		log_error("a worker cannot start", LOG_ERR(&e));
		return 1;
	}
	w.env.number = w.role.number;
	w.env.base = w.role.base;
	w.env.ctl = w.role.ctl;
	w.env.board = w.role.board;
	w.env.slot = w.role.slot;
	(void)event_base_dispatch(w.role.base);
	if (w.deadline != NULL)
		event_free(w.deadline);
	code_trial_cancel(&w.trial);
	if (w.parts != NULL)
		parts_close(&w.parts);
	fd_close(&w.spawner_fd);
	current_drop(&w.env);
	role_done(&w.role);
	return w.exit_code;
}
