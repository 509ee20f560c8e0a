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

/* What the kernel says of the interpreter without forgetting it; 0: nothing yet. */
static int
look(int what)
{
	siginfo_t si = {.si_pid = 0};
	if (python.pid == 0 || python.has_exited ||
	    waitid(P_PID, (id_t)python.pid, &si, what | WNOHANG) != 0 || si.si_pid == 0)
		return 0;
	return si.si_code;
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
		if (alive == 0) {
			/* Whatever the death of the last one set off in the interpreter. */
			(void)kill(-1, SIGSTOP);
			(void)look(WCONTINUED);
			return true;
		}
		if (alive < 0)
			break;
		if (i > 2)
			nap();
	}
	kill_all();
	return false;
}

bool
interpreter_is_stopped(void)
{
	return look(WSTOPPED | WNOWAIT) == CLD_STOPPED;
}

/* One that was stopped is found stopped; one that was killed, at once not, however long its end
 * takes. */
bool
interpreter_is_gone(void)
{
	struct timespec pause = {0, 20000};
	for (unsigned i = 0; i < 5 * PASSES && python.pid != 0 && !python.has_exited; i++) {
		if (interpreter_is_stopped())
			return false;
		reap();
		nanosleep(&pause, NULL);
		pause.tv_nsec += pause.tv_nsec < 2000000 ? pause.tv_nsec : 0;
	}
	return python.pid != 0;
}

void
wake_interpreter(void)
{
	(void)kill(python.pid, SIGCONT);
	(void)look(WCONTINUED);
}

bool
interpreter_woke(void)
{
	return look(WCONTINUED | WNOWAIT) == CLD_CONTINUED;
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
