/* program.c - the one program of a call: a shell, or an extractor of text
 *
 * It may be fed through a pipe on 3; the interpreter has nothing to do with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* Below the kernel's limit of one argument, 128 KiB. */
#define ARGUMENT_MAX (96u << 10)

/* One line, so that the lines of the command keep their numbers in what the shell says of errors.
 */
#define READ_COMMAND "eval \"exec 3<&-;$(cat <&3)\""

struct program the_program = {.feed = -1};

int
program_start(const char *const *paths, const char *const *argv, struct str feed)
{
	int ends[2] = {-1, -1};
	if (feed.ptr != NULL && pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	struct spawn s = {paths, argv, {ends[0]}, feed.ptr != NULL ? 1 : 0};
	pid_t pid = spawn(&s);
	int e = pid < 0 ? errno : 0;
	if (ends[0] >= 0)
		close(ends[0]);
	if (e != 0) {
		if (ends[1] >= 0)
			close(ends[1]);
		return e;
	}
	if (ends[1] >= 0)
		(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
	the_program = (struct program){.pid = pid, .feed = ends[1], .rest = feed};
	return 0;
}

/* A short command is the argument of -c; one that is longer than an argument may be, or holds a
 * NUL, comes through the pipe, which the shell closes before the command begins. */
int
program_start_shell(const char *command, size_t n)
{
	static const char *const paths[] = {
	    "/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", NULL};
	bool is_short = n <= ARGUMENT_MAX && memchr(command, '\0', n) == NULL;
	const char *const argv[] = {"bash", "-c", is_short ? command : READ_COMMAND, NULL};
	return program_start(paths, argv, is_short ? STR_NULL : str_n(command, n));
}

static void
end_feed(void)
{
	close(the_program.feed);
	the_program.feed = -1;
}

void
program_write(void)
{
	while (the_program.feed >= 0 && the_program.rest.len > 0) {
		size_t want = the_program.rest.len < 65536 ? the_program.rest.len : 65536;
		ssize_t n = write(the_program.feed, the_program.rest.ptr, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) { /* it has closed it: whatever it is doing, it is not reading */
			end_feed();
			return;
		}
		the_program.rest =
		    str_n(the_program.rest.ptr + n, the_program.rest.len - (size_t)n);
	}
	if (the_program.feed >= 0)
		end_feed();
}

void
program_interrupt(void)
{
	/* Its session is its process group; not reaped, so the number is still its own. */
	(void)kill(-the_program.pid, SIGINT);
	(void)kill(-the_program.pid, SIGCONT);
}

void
program_forget(void)
{
	if (the_program.feed >= 0)
		end_feed();
	the_program = (struct program){.feed = -1};
}
