#include "master/control.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "master/control_status.h"
#include "master/dispatch.h"
#include "master/master.h"

#define ANSWER_MAX_BYTES (128u * 1024u)
/* A reload may wait for a database as long as its build may take. */
#define RELOAD_WAIT_MS 60000
/* A trial of a remote sandbox: what its steps may take, and less than otarictl waits. */
#define TRIAL_WAIT_S 65

struct client {
	struct control *control;
	int fd; /* -1: the place is free */
	struct event *ev;
	uint64_t key; /* names it for publish.c */
	bool may_change, may_read_conf;
	bool awaits_trial;
};

struct control {
	struct master *m;
	struct event *trial_late; /* a trial runs when it is pending */
	int fd;
	struct event *ev;
	char path[PATH_MAX];
	struct client client[CONTROL_CLIENTS_MAX];
};

static void
close_client(struct client *c)
{
	publish_leave(&c->control->m->publish, c->key);
	c->awaits_trial = false;
	event_free(c->ev);
	c->ev = NULL;
	fd_close(&c->fd);
}

/* A client that does not read its answer is dropped. */
static void
answer(struct client *c, struct buf *b)
{
	if (b->overflowed || fd_send_msg(c->fd, b->ptr, b->len, NULL, 0) < 0)
		close_client(c);
}

static void
answer_result(struct client *c, const char *error)
{
	struct buf b = BUF_INIT(ANSWER_MAX_BYTES);
	control_write_result(&b, c->control->m, error);
	answer(c, &b);
	buf_done(&b);
}

static void
run_reload(struct client *c)
{
	struct master *m = c->control->m;
	if (m->phase < MASTER_START || master_is_stopping(m)) {
		answer_result(c, "not now: starting or stopping");
		return;
	}
	publish_ask(&m->publish, c->key, 1, PUBLISH_DO_RELOAD | PUBLISH_DO_KEYS | PUBLISH_DO_POLICY,
	    clock_mono_ms() + RELOAD_WAIT_MS);
}

static void
answer_sandbox(struct client *c, const struct control_trial *trial)
{
	struct buf b = BUF_INIT(ANSWER_MAX_BYTES);
	control_write_sandbox(&b, c->control->m, trial);
	answer(c, &b);
	buf_done(&b);
}

/* Who asks while a trial runs hears of that one. */
static void
run_check(struct client *c)
{
	struct control *k = c->control;
	const struct timeval limit = {TRIAL_WAIT_S, 0};
	const struct control_trial nobody = {.text = STR_INIT("no worker is ready to try it")};
	if (!control_is_remote(k->m)) {
		answer_sandbox(c, NULL);
		return;
	}
	c->awaits_trial = true;
	if (event_pending(k->trial_late, EV_TIMEOUT, NULL))
		return;
	if (dispatch_send_try(k->m))
		(void)event_add(k->trial_late, &limit);
	else
		control_tried(k->m, nobody.ok, nobody.text);
}

static void
on_trial_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	const struct control *k = arg;
	control_tried(k->m, false, STR("the worker that tries it does not answer"));
}

static void
run_drain(struct client *c)
{
	struct master *m = c->control->m;
	log_notice("stop asked on the control socket");
	answer_result(c, NULL);
	master_stop(m);
}

/* The text may hold secrets: only for whom they are no news. */
static void
run_conf(struct client *c)
{
	struct master *m = c->control->m;
	struct buf b = BUF_INIT(ANSWER_MAX_BYTES);
	if (!c->may_read_conf || m->conf_fd < 0) {
		answer_result(c, "permission denied: only root may read the configuration");
		return;
	}
	control_write_result(&b, m, NULL);
	if (fd_send_msg(c->fd, b.ptr, b.len, &m->conf_fd, 1) < 0)
		close_client(c);
	buf_done(&b);
}

static void
run_command(struct client *c, struct str command)
{
	struct buf b = BUF_INIT(ANSWER_MAX_BYTES);
	struct master *m = c->control->m;
	bool changes = str_eq(command, STR("reload")) || str_eq(command, STR("drain"));
	if (changes && !c->may_change)
		answer_result(c, "permission denied: only root and otari's own user may do that");
	else if (str_eq(command, STR("reload")))
		run_reload(c);
	else if (str_eq(command, STR("drain")))
		run_drain(c);
	else if (str_eq(command, STR("conf")))
		run_conf(c);
	else if (str_eq(command, STR("sandbox check")))
		run_check(c);
	else if (control_write_report(&b, m, command))
		answer(c, &b);
	else
		answer_result(c, "unknown command");
	buf_done(&b);
}

static void
on_client(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct client *c = arg;
	char text[CONTROL_COMMAND_MAX];
	size_t nfds = 0;
	ssize_t n = fd_recv_msg(fd, text, sizeof(text), NULL, &nfds);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		close_client(c);
	else
		run_command(c, str_trim(str_n(text, (size_t)n)));
}

static void
judge_peer(struct client *c)
{
	const struct master *m = c->control->m;
	struct ucred u;
	socklen_t len = sizeof(u);
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &u, &len) != 0)
		u.uid = (uid_t)-1;
	c->may_read_conf = u.uid == 0 || u.uid == geteuid();
	c->may_change = c->may_read_conf || (m->has_user && u.uid == m->uid);
}

static void
on_accept(evutil_socket_t lfd, short what, void *arg)
{
	(void)what;
	struct control *k = arg;
	int fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct client *c = &k->client[i];
		if (c->fd >= 0)
			continue;
		c->control = k;
		c->fd = fd;
		c->key = ++k->m->last_key;
		c->awaits_trial = false;
		judge_peer(c);
		c->ev = event_new(k->m->base, fd, EV_READ | EV_PERSIST, on_client, c);
		CHECK(c->ev != NULL && event_add(c->ev, NULL) == 0);
		return;
	}
	fd_close(&fd);
}

/* A path of any length: the socket is named relative to its directory, which is held open. */
static bool
make_address(const char *path, int *ret_dir, struct sockaddr_un *ret)
{
	char dir[PATH_MAX];
	size_t slash = str_rchr(str_c(path), '/');
	*ret_dir = -1;
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (slash == SIZE_MAX || !str_copy(dir, sizeof(dir), str_n(path, slash + 1)))
		return false;
	*ret_dir = fd_open(dir, O_PATH | O_DIRECTORY, 0);
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", *ret_dir,
	    path + slash + 1);
	return *ret_dir >= 0 && n > 0 && (size_t)n < sizeof(ret->sun_path);
}

/* Somebody listening there is another master; a socket without one was left behind by a crash. */
static bool
is_served(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool served =
	    fd >= 0 && connect(fd, (const struct sockaddr *)a, (socklen_t)sizeof(*a)) == 0;
	fd_close(&fd);
	return served;
}

static enum err_code
open_socket(struct control *k, const struct sockaddr_un *a, struct err *reterr)
{
	struct master *m = k->m;
	if (is_served(a))
		return err_set(reterr, ERR_BUSY, "another otari answers on %s", k->path);
	(void)unlink(k->path);
	k->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old = umask(0117);
	bool ok = k->fd >= 0 && bind(k->fd, (const struct sockaddr *)a, (socklen_t)sizeof(*a)) == 0;
	int saved = errno;
	(void)umask(old);
	errno = saved;
	if (ok && m->has_user)
		ok = lchown(k->path, (uid_t)-1, m->gid) == 0;
	if (!ok || listen(k->fd, (int)CONTROL_CLIENTS_MAX) != 0)
		return err_set(reterr, ERR_IO, "control socket %s", k->path);
	return ERR_OK;
}

enum err_code
control_start(struct master *m, struct err *reterr)
{
	struct sockaddr_un a;
	int dir = -1;
	if (m->conf.control_socket.ptr == NULL)
		return ERR_OK;
	struct control *k = MEM_NEW(struct control);
	k->m = m;
	k->fd = -1;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		k->client[i].fd = -1;
	m->control = k;
	enum err_code rc = ERR_OK;
	if (!str_copy(k->path, sizeof(k->path), m->conf.control_socket) ||
	    !make_address(k->path, &dir, &a))
		rc = err_set(reterr, ERR_IO, "control_socket %s", k->path);
	if (rc == ERR_OK)
		rc = open_socket(k, &a, reterr);
	fd_close(&dir);
	if (rc != ERR_OK) {
		fd_close(&k->fd);
		mem_free(k);
		m->control = NULL;
		return rc;
	}
	k->ev = event_new(m->base, k->fd, EV_READ | EV_PERSIST, on_accept, k);
	k->trial_late = evtimer_new(m->base, on_trial_late, k);
	CHECK(k->trial_late != NULL);
	CHECK(k->ev != NULL && event_add(k->ev, NULL) == 0);
	return ERR_OK;
}

void
control_stop(struct master *m)
{
	struct control *k = m->control;
	m->control = NULL;
	if (k == NULL)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (k->client[i].fd >= 0)
			close_client(&k->client[i]);
	event_free(k->ev);
	event_free(k->trial_late);
	fd_close(&k->fd);
	(void)unlink(k->path);
	mem_free(k);
}

bool
control_published(struct master *m, uint64_t who, const char *error)
{
	struct control *k = m->control;
	for (size_t i = 0; k != NULL && i < CONTROL_CLIENTS_MAX; i++)
		if (k->client[i].fd >= 0 && k->client[i].key == who) {
			answer_result(&k->client[i], error);
			return true;
		}
	return false;
}

void
control_tried(struct master *m, bool ok, struct str text)
{
	struct control *k = m->control;
	const struct control_trial t = {ok, text};
	if (k == NULL)
		return;
	(void)event_del(k->trial_late);
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		struct client *c = &k->client[i];
		if (c->fd < 0 || !c->awaits_trial)
			continue;
		c->awaits_trial = false;
		answer_sandbox(c, &t);
	}
}
