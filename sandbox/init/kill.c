#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/init/init.h"

#define PASSES 100

static void
nap(void)
{
	nanosleep(&(struct timespec){0, 2000000}, NULL);
}

/* By a pidfd, which tells of a zombie's end too: what /proc says of a process that made itself
 * unreadable, or that a zygote forked into another Landlock domain, this one may not read. */
static bool
is_alive(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return errno != ESRCH;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	bool has_ended = poll(&p, 1, 0) == 1;
	close(fd);
	return !has_ended;
}

/* Kills every process but this one and `keep`; how many are not yet dead, or -1. */
static int
kill_others(pid_t keep)
{
	DIR *d = opendir("/proc");
	if (d == NULL)
		return -1;
	int alive = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		uint64_t pid = 0;
		size_t n = 0;
		for (; n < 9 && e->d_name[n] >= '0' && e->d_name[n] <= '9'; n++)
			pid = pid * 10 + (uint64_t)(e->d_name[n] - '0');
		if (n == 0 || e->d_name[n] != '\0' || pid <= 1 || (pid_t)pid == keep)
			continue;
		if (!is_alive((pid_t)pid))
			continue;
		alive++;
		(void)kill((pid_t)pid, SIGKILL);
	}
	closedir(d);
	return alive;
}

bool
kill_leftovers(void)
{
	/* kill(-1) reaches every process at one instant, also one that is just forking; a process
	 * that answers with a storm of SIGCONT costs more passes, not its life longer. */
	for (unsigned i = 0; i < PASSES; i++) {
		if (kill(-1, SIGSTOP) != 0 && errno == ESRCH)
			return true;
		/* Once reaped, its number may be another's. */
		int alive = kill_others(python.has_exited ? 0 : python.pid);
		reap();
		if (alive == 0)
			return true;
		if (alive < 0)
			break;
		if (i > 2)
			nap();
	}
	kill_all();
	return false;
}

/* A process that was stopped is one that waitid() finds stopped; one that was killed, at once not,
 * however long its end takes. */
bool
interpreter_is_gone(void)
{
	for (unsigned i = 0; i < 5 * PASSES && python.pid != 0 && !python.has_exited; i++) {
		siginfo_t si = {.si_pid = 0};
		if (waitid(P_PID, (id_t)python.pid, &si, WSTOPPED | WEXITED | WNOWAIT | WNOHANG) !=
		    0)
			break;
		if (si.si_pid != 0 && si.si_code == CLD_STOPPED)
			return false;
		reap();
		if (i > 2)
			nap();
	}
	return python.has_exited;
}

void
kill_all(void)
{
	for (unsigned i = 0; i < 50 * PASSES; i++) {
		(void)kill(-1, SIGKILL);
		reap();
		if (kill(-1, 0) != 0)
			return; /* nobody left */
		nap();
	}
	init_leave(71);
}
