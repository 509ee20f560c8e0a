/* tree.c - the processes of a spawner, as the host sees them */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/probes/probe.h"

void
probe_read_text(const char *path, char *text, size_t room)
{
	int fd = fd_open(path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);
	fd_close(&fd);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	text[n > 0 ? n : 0] = '\0';
}

size_t
probe_children(pid_t pid, pid_t *pids, size_t max)
{
	char path[64], list[4096];
	size_t n = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	probe_read_text(path, list, sizeof(list));
	char *at = list;
	for (long one; n < max && (one = strtol(at, &at, 10)) > 0;)
		pids[n++] = (pid_t)one;
	return n;
}

pid_t
probe_inner(const struct probe_host *h)
{
	pid_t pid;
	/* The kernel promises a whole list only of children that do not move. */
	for (int i = 0; i < 100; i++)
		if (probe_children(h->spawner, &pid, 1) == 1)
			return pid;
	return 0;
}

/* A session that is being made has the filler's title until it execs. */
static bool
is_session(pid_t pid)
{
	char path[64], text[4096];
	unsigned levels = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	probe_read_text(path, text, sizeof(text));
	const char *line = strstr(text, "\nNSpid:");
	for (line = line != NULL ? line + 1 : ""; *line != '\0' && *line != '\n'; line++)
		levels += *line == '\t';
	return levels > 2;
}

pid_t
probe_find_other(const struct probe_host *h, const char *title, pid_t but)
{
	pid_t pids[256];
	size_t n = probe_children(probe_inner(h), pids, ARRAY_LEN(pids));
	for (size_t i = 0; i < n; i++) {
		char path[64], text[512];
		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
		probe_read_text(path, text, sizeof(text));
		if (pids[i] != but && strstr(text, title) != NULL && !is_session(pids[i]))
			return pids[i];
	}
	return 0;
}

pid_t
probe_find(const struct probe_host *h, const char *title)
{
	return probe_find_other(h, title, 0);
}

int
probe_fds(pid_t pid)
{
	char path[64];
	int n = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

pid_t
probe_pid(const char *text)
{
	pid_t found = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d != NULL && found == 0 && (e = readdir(d)) != NULL;) {
		char path[64], got[16384]; /* a script may be in it */
		uint64_t pid;
		if (!str_u64(str_c(e->d_name), &pid) || pid > INT32_MAX)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
		probe_read_text(path, got, sizeof(got));
		struct str line = str_trim(str_c(got));
		if (str_ends(line, str_c(text)) && is_session((pid_t)pid))
			found = (pid_t)pid;
	}
	if (d != NULL)
		closedir(d);
	return found;
}

pid_t
probe_parent(pid_t pid)
{
	char path[64], text[4096];
	int parent = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	probe_read_text(path, text, sizeof(text));
	const char *line = strstr(text, "\nPPid:");
	return line != NULL && sscanf(line, "\nPPid:%d", &parent) == 1 ? parent : 0;
}

bool
probe_signal(const char *text)
{
	pid_t pid = probe_pid(text);
	return pid > 0 && kill(pid, SIGKILL) == 0;
}
