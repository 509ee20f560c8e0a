/* spawn.c - how a process of the session starts under init
 *
 * It comes out as the code may have it: the limits and the user of init, default signals, a session
 * of its own, the environment of init.h, 0 to 2 and the descriptors that it is given from 3 on.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* Above every number that is handed on. */
#define OUT_OF_THE_WAY 16

static const char *const environment[] = {INIT_ENVIRONMENT("2"), NULL};

static void
default_signals(void)
{
	/* As the kernel takes it, all zero: sigaction() refuses the two signals that libc keeps for
	 * itself, and whoever was started by posix_spawn() found these ignored. */
	static const uint64_t standard[8];
	sigset_t none;
	sigemptyset(&none);
	/* What was ignored above would stay so behind exec. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, standard, NULL, (size_t)(NSIG - 1) / 8);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Out of memory on the host: it goes before anything of the host's. Its own /proc/self is closed to
 * it as long as it is not dumpable, as init is. */
static void
first_to_go(void)
{
	(void)prctl(PR_SET_DUMPABLE, 1);
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

static bool
arrange(const struct spawn *s, int *status)
{
	int moved[SPAWN_FDS];
	*status = fcntl(*status, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	for (unsigned i = 0; i < s->fd_count; i++)
		moved[i] = fcntl(s->fds[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
	for (unsigned i = 0; i < s->fd_count; i++)
		if (moved[i] < 0 || dup2(moved[i], 3 + (int)i) < 0)
			return false;
	return *status >= 0 && syscall(SYS_close_range, 3 + s->fd_count, *status - 1, 0) == 0 &&
	       syscall(SYS_close_range, *status + 1, ~0u, 0) == 0;
}

static _Noreturn void
become(const struct spawn *s, int status)
{
	default_signals();
	setsid();
	(void)setpriority(PRIO_PROCESS, 0, 10);
	if (arrange(s, &status)) {
		first_to_go();
		for (const char *const *p = s->paths; *p != NULL; p++) {
			execve(*p, (char *const *)(uintptr_t)s->argv,
			    (char *const *)(uintptr_t)environment);
			if (errno != ENOENT)
				break;
		}
	}
	int e = errno;
	(void)!write(status, &e, sizeof(e));
	_exit(127);
}

/* Ends by exec or with the errno. */
static int
read_status(int fd)
{
	int e = 0;
	ssize_t n;
	do
		n = read(fd, &e, sizeof(e));
	while (n < 0 && errno == EINTR);
	return n == sizeof(e) ? e : 0;
}

pid_t
spawn(const struct spawn *s)
{
	int status[2];
	if (pipe2(status, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		become(s, status[1]);
	int e = pid < 0 ? errno : 0;
	close(status[1]);
	if (pid > 0)
		e = read_status(status[0]);
	close(status[0]);
	if (e == 0)
		return pid;
	errno = e; /* one that could not exec is a zombie of ours, for reap() */
	return -1;
}
