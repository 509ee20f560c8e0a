#include "master/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "ipc/role.h"
#include "master/environment.h"
#include "master/master.h"

#define ARGS_MAX 20

struct args {
	char *argv[ARGS_MAX + 1];
	char text[10][24];
	size_t n, texts;
};

static void
add(struct args *a, const char *s)
{
	CHECK(a->n < ARGS_MAX);
	a->argv[a->n++] = (char *)(uintptr_t)s;
}

static void
add_number(struct args *a, const char *key, uint32_t v)
{
	CHECK(a->texts < ARRAY_LEN(a->text));
	char *t = a->text[a->texts++];
	(void)snprintf(t, sizeof(a->text[0]), "%u", v);
	add(a, key);
	add(a, t);
}

static const char *
level_name(uint32_t level)
{
	static const char *const names[] = {"error", "warn", "notice", "info", "debug"};
	return level < ARRAY_LEN(names) ? names[level] : "info";
}

static void
make_args(struct args *a, const struct master *m, const struct child *c, uint32_t slot)
{
	add(a, "otari");
	add(a, "--role");
	add(a, role_name(c->role));
	add_number(a, "--number", c->number);
	add_number(a, "--slot", slot);
	/* The spawner needs root for the uid range of its sandboxes and drops by its own rules. */
	if (m->is_root && c->role != ROLE_SPAWNER) {
		add_number(a, "--uid", m->uid);
		add_number(a, "--gid", m->gid);
	}
	add(a, "--log");
	add(a, m->conf_arena != NULL && m->conf.log_json ? "json" : "text");
	add(a, "--log-level");
	add(a, m->conf_arena != NULL ? level_name(m->conf.log_level) : "info");
}

/* In the child, between fork and exec: only calls that are safe there. */
static _Noreturn void
become(int exe_fd, const struct spawn_fd *fds, size_t n, char *const argv[], char *const envp[])
{
	int high[SPAWN_FDS_MAX];
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	for (int s = 1; s < NSIG; s++)
		(void)sigaction(s, &dfl, NULL);
	(void)setpgid(0, 0);
	/* First out of the way of the targets, then into place. */
	int exe = fcntl(exe_fd, F_DUPFD_CLOEXEC, 64);
	for (size_t i = 0; i < n; i++) {
		high[i] = fds[i].fd < 0 ? -1 : fcntl(fds[i].fd, F_DUPFD_CLOEXEC, 64);
		if (fds[i].fd >= 0 && high[i] < 0)
			_exit(126);
	}
	for (size_t i = 0; i < n; i++)
		if (high[i] >= 0 && !fd_dup_to(high[i], fds[i].target, false))
			_exit(126);
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)fexecve(exe, argv, envp);
	_exit(127);
}

static enum err_code
fork_role(struct master *m, struct child *c, uint32_t slot, const struct spawn_fd *fds, size_t nfds,
    int ctl, struct err *reterr)
{
	struct spawn_fd all[SPAWN_FDS_MAX] = {
	    {m->null_fd, 0},
	    {m->log_fd, 1},
	    {m->log_fd, 2},
	    {ctl, FD_CTL},
	    {m->board_fd, FD_BOARD},
	    {m->log_fd, FD_LOG},
	};
	size_t n = 6;
	CHECK(nfds <= SPAWN_FDS_MAX - n);
	for (size_t i = 0; i < nfds; i++)
		all[n++] = fds[i];
	struct args a = {0};
	make_args(&a, m, c, slot);
	/* A signal between fork and exec would reach the master's loop through the child. */
	sigset_t every, old;
	(void)sigfillset(&every);
	(void)sigprocmask(SIG_SETMASK, &every, &old);
	pid_t pid = fork();
	if (pid == 0)
		become(m->exe_fd, all, n, a.argv, environment_of_children());
	int saved = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	errno = saved;
	if (pid < 0)
		return err_set(reterr, ERR_IO, "fork");
	(void)setpgid(pid, pid);
	c->pid = pid;
	return ERR_OK;
}

enum err_code
spawn_role(struct master *m, enum role role, uint32_t number, const struct spawn_fd *fds,
    size_t nfds, struct child **ret, int *ret_ctl, struct err *reterr)
{
	int pair[2];
	struct board_slot *slot =
	    board_take(m->board, (uint32_t)role, number, (uint64_t)clock_mono_ms());
	if (slot == NULL)
		return err_set(reterr, ERR_BUSY, "the board is full");
	if (!fd_socketpair_seqpacket(pair, true)) {
		board_release(slot);
		return err_set(reterr, ERR_IO, "socketpair");
	}
	struct child *c = MEM_NEW(struct child);
	c->m = m;
	c->key = ++m->last_key;
	c->role = role;
	c->number = number;
	c->slot = slot;
	c->state = CHILD_STARTING;
	c->started_ms = clock_mono_ms();
	c->deadline_ms = c->started_ms + CHILD_READY_MS;
	enum err_code rc =
	    fork_role(m, c, (uint32_t)(slot - m->board->slot), fds, nfds, pair[1], reterr);
	fd_close(&pair[1]);
	if (rc != ERR_OK) {
		fd_close(&pair[0]);
		board_release(slot);
		mem_free(c);
		return rc;
	}
	slot->pid = (uint32_t)c->pid;
	TAILQ_INSERT_TAIL(&m->children, c, link);
	log_write(role == ROLE_BUILDER ? LOG_DEBUG : LOG_NOTICE, "child started",
	    (const struct log_field[]){
		LOG_C("child", child_label(c)), LOG_INT("child_pid", c->pid)},
	    2);
	*ret = c;
	*ret_ctl = pair[0];
	return ERR_OK;
}
