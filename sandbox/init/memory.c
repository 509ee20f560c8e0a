#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/init/init.h"

static bool has_events;
static uint64_t before;

/* Processes that the kernel killed in this session's cgroup; the text is the kernel's. */
static uint64_t
kills(void)
{
	char text[512];
	ssize_t n = has_events ? pread(INIT_MEMORY, text, sizeof(text) - 1, 0) : 0;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = strstr(text, "oom_kill ");
	while (at != NULL && at != text && at[-1] != '\n')
		at = strstr(at + 1, "oom_kill ");
	uint64_t v = 0;
	for (at = at == NULL ? "" : at + strlen("oom_kill "); *at >= '0' && *at <= '9'; at++)
		v = v * 10 + (uint64_t)(*at - '0');
	return v;
}

static bool
was_signalled(void)
{
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	/* One of the code's own has a sender, or says by its code that the sender wrote the rest.
	 */
	return sigtimedwait(&set, &info, &(struct timespec){0, 0}) == SIGUSR1 &&
	       info.si_code == SI_USER && info.si_pid == 0;
}

void
memory_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	has_events = fcntl(INIT_MEMORY, F_SETFD, FD_CLOEXEC) == 0;
}

void
memory_start(void)
{
	(void)was_signalled();
	before = kills();
}

bool
memory_was_met(void)
{
	return was_signalled() || kills() > before;
}
