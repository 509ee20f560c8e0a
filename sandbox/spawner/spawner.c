#include "sandbox/spawner/spawner.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "ipc/fds.h"
#include "sandbox/spawner/broker.h"

#define EXIT_DO_NOT_RESPAWN 2
#define NOBODY              65534 /* of the host */
#define NOBODY_INSIDE       1     /* of a range */

/* Nothing but what the spawner needs stays open, readable or inherited. */
static bool
start_clean(void)
{
	log_setup(FD_LOG, true, LOG_NOTICE, "spawner");
	(void)clearenv();
	(void)prctl(PR_SET_NAME, "otari");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* FD_CTL tells if the master died before */
	/* For the zygote as well: sandbox/jail/session_locks.c says why. Root may, whatever it was.
	 */
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = FD_CTL; fd < FD_FIRST_FREE; fd++) {
		int unwanted = fd;
		if (fd == FD_CTL || fd == FD_LOG || fd == FD_INIT_EXE)
			(void)fd_set_cloexec(fd, true);
		else
			fd_close(&unwanted);
	}
	return fd_close_from(FD_FIRST_FREE) && fd_set_nonblock(FD_CTL, false) &&
	       fd_set_cloexec(FD_INIT_EXE, true);
}

static bool
get_settings(struct broker *b)
{
	union lease_msg m;
	int fds[LEASE_FDS];
	size_t nfds = 0;
	struct err e;
	enum err_code rc = lease_recv(FD_CTL, &m, fds, &nfds, &e);
	if (rc == ERR_OK && m.type == LEASE_MSG_SETTINGS && nfds == 0) {
		b->settings = m.settings.settings;
		return true;
	}
	if (rc == ERR_OK)
		(void)err_set(&e, ERR_PROTO, "the master did not begin with the settings");
	log_error("no sandbox settings", LOG_ERR(&e));
	return false;
}

/* Refuses for good, in whatever namespaces it stands. */
static int
refuse(struct broker *b, const struct jail_fail *f)
{
	/* It goes on reading what workers send: not as root. */
	if (geteuid() == 0) {
		(void)setgroups(0, NULL);
		if (setresgid(NOBODY, NOBODY, NOBODY) != 0)
			(void)!setresgid(NOBODY_INSIDE, NOBODY_INSIDE, NOBODY_INSIDE);
		if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
			(void)!setresuid(NOBODY_INSIDE, NOBODY_INSIDE, NOBODY_INSIDE);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	report_refuse(b, f);
	b->is_tested = true;
	return broker_run(b, -1);
}

static int
run_inner(struct broker *b, int parent_fd)
{
	struct jail_fail f;
	struct err e;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* and parent_fd, if the parent died before this */
	(void)prctl(PR_SET_DUMPABLE, 0);
	cgroup_drop_locks(&b->cgroup); /* the process above holds them */
	int exe = FD_INIT_EXE;
	bool ok = jail_enter_rootfs(&b->settings, exe, zygote_library(), &f);
	fd_close(&exe);
	if (ok && (b->jail.init_fd = fd_open("/init", O_PATH, 0)) < 0)
		ok = jail_failed(&f, SB_MOUNT_NS, "open of otari-init");
	if (ok && jail_filter_build(&b->jail.filter, &e) != ERR_OK) {
		log_error("system call filter", LOG_ERR(&e));
		errno = ENOSYS;
		ok = jail_failed(&f, SB_SECCOMP, "filter");
	}
	if (!ok) {
		report_refuse(b, &f);
		b->is_tested = true;
	}
	return broker_run(b, parent_fd);
}

/* Waits for the inner process; the master knows this one. */
static int
wait_inner(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int
spawner_main(int argc, char **argv)
{
	return spawner_main_without(0, argc, argv);
}

int
spawner_main_without(unsigned walls, int argc, char **argv)
{
	static struct broker broker; /* large report; zero is its start state */
	struct broker *b = &broker;
	struct jail_fail f;
	int life[2];
	if (!start_clean())
		return EXIT_DO_NOT_RESPAWN;
	if (!get_settings(b))
		return 1;
	log_setup(
	    FD_LOG, b->settings.log_json != 0, (enum log_level)b->settings.log_level, "spawner");
	if (!fd_set_nonblock(FD_CTL, true))
		return 1;
	b->jail.settings = &b->settings;
	b->argc = argc;
	b->argv = argv;
	b->jail.without = walls;
	if (!bounds_make(b, &f))
		return refuse(b, &f);
	if (!jail_enter_userns(b->settings.uid_base, &b->jail.has_range, &f) || !jail_unshare(&f))
		return refuse(b, &f);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user cleared it */
	if (!fd_pipe(life, false))
		return 1;
	pid_t pid = fork();
	if (pid < 0) {
		jail_failed(&f, SB_PID_NS, "fork");
		return refuse(b, &f);
	}
	if (pid == 0) {
		fd_close(&life[1]);
		_exit(run_inner(b, life[0]));
	}
	fd_close(&life[0]);
	int ctl = FD_CTL, exe = FD_INIT_EXE;
	fd_close(&ctl);
	fd_close(&exe);
	/* At once: a leak checker cannot look into this process any more. */
	_exit(wait_inner(pid));
}
