/* shell.c - the shell of one call
 *
 * A short command is the argument of -c; one that is longer than an argument may be, or holds a
 * NUL, comes through a pipe that the shell closes before the command begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* Below the kernel's limit of one argument, 128 KiB. */
#define ARGUMENT_MAX (96u << 10)

/* The first one of these that is there. */
static const char *const paths[] = {"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", NULL};

/* One line, so that the lines of the command keep their numbers in what the shell says of errors.
 */
#define READ_COMMAND "eval \"exec 3<&-;$(cat <&3)\""

struct shell shell = {.feed = -1};

int
shell_start(const char *command, size_t n)
{
	bool is_short = n <= ARGUMENT_MAX && memchr(command, '\0', n) == NULL;
	const char *const argv[] = {"bash", "-c", is_short ? command : READ_COMMAND, NULL};
	int feed[2] = {-1, -1};
	if (!is_short && pipe2(feed, O_CLOEXEC) != 0)
		return errno;
	struct spawn s = {paths, argv, {feed[0]}, is_short ? 0 : 1};
	pid_t pid = spawn(&s);
	int e = pid < 0 ? errno : 0;
	if (feed[0] >= 0)
		close(feed[0]);
	if (e != 0) {
		if (feed[1] >= 0)
			close(feed[1]);
		return e;
	}
	if (feed[1] >= 0)
		(void)fcntl(feed[1], F_SETFL, O_NONBLOCK);
	shell = (struct shell){.pid = pid, .feed = feed[1], .rest = str_n(command, n)};
	return 0;
}

static void
end_feed(void)
{
	close(shell.feed);
	shell.feed = -1;
}

void
shell_write(void)
{
	while (shell.feed >= 0 && shell.rest.len > 0) {
		size_t want = shell.rest.len < 65536 ? shell.rest.len : 65536;
		ssize_t n = write(shell.feed, shell.rest.ptr, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* it has closed it: whatever it is doing, it is not reading */
			end_feed();
			return;
		}
		shell.rest = str_n(shell.rest.ptr + n, shell.rest.len - (size_t)n);
	}
	if (shell.feed >= 0)
		end_feed();
}

void
shell_interrupt(void)
{
	/* Its session is its process group; not reaped, so the number is still its own. */
	(void)kill(-shell.pid, SIGINT);
	(void)kill(-shell.pid, SIGCONT);
}

void
shell_forget(void)
{
	if (shell.feed >= 0)
		end_feed();
	shell = (struct shell){.feed = -1};
}
