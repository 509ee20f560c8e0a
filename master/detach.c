#include "master/detach.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define REPORT_MAX 1024u

/* One byte of exit code, then a text for the terminal. */
static _Noreturn void
wait_for_report(int fd)
{
	char *text;
	size_t len;
	int code = 1;
	if (fd_read_all(fd, REPORT_MAX, &text, &len, NULL) == ERR_OK && len > 0) {
		code = (unsigned char)text[0];
		if (len > 1)
			(void)fprintf(stderr, "otari: %.*s\n", (int)(len - 1), text + 1);
	} else {
		(void)fprintf(stderr, "otari: the daemon ended before it was ready\n");
	}
	_exit(code);
}

int
detach_start(void)
{
	int p[2];
	if (!fd_pipe(p, false)) {
		perror("otari: pipe");
		exit(1);
	}
	pid_t pid = fork();
	if (pid < 0) {
		perror("otari: fork");
		exit(1);
	}
	if (pid > 0) {
		fd_close(&p[1]);
		wait_for_report(p[0]);
	}
	fd_close(&p[0]);
	(void)setsid();
	return p[1];
}

void
detach_report(int fd, int exit_code, const char *text)
{
	if (fd < 0)
		return;
	char report[REPORT_MAX];
	report[0] = (char)exit_code;
	int n = snprintf(report + 1, sizeof(report) - 1, "%s", exit_code != 0 ? text : "");
	size_t len = n < (int)sizeof(report) - 1 ? (size_t)n + 1 : sizeof(report) - 1;
	(void)(fd_write_all(fd, str_n(report, len), NULL) == ERR_OK);
	fd_close(&fd);
	int null = fd_open("/dev/null", O_RDWR, 0);
	for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
		(void)fd_dup_to(null, i, false);
	fd_close(&null);
}
