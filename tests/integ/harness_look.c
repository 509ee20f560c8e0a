/* harness_look.c - looking into a running daemon: its processes, its files, its database */
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/integ/harness.h"

static pid_t
parent_of(pid_t pid)
{
	char path[64], *text = NULL, *p;
	size_t len;
	pid_t parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(path, 4096, &text, &len, NULL) != ERR_OK)
		return 0;
	p = strrchr(text, ')');
	if (p != NULL && strlen(p) > 4 && p[2] != 'Z')
		parent = (pid_t)strtol(p + 4, NULL, 10);
	mem_free(text);
	return parent;
}

static bool
descends(pid_t pid, pid_t from)
{
	for (int depth = 0; pid > 1 && depth < 16; depth++) {
		if (pid == from)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

size_t
server_pids(struct server *s, const char *title, pid_t *pids, size_t max)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	cr_assert(proc != NULL);
	while ((e = readdir(proc)) != NULL && n < max) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		char path[300], *text = NULL;
		size_t len = 0;

		const struct server *other = s->opts.beside;
		if (other != NULL && (pid == other->fake_pid || descends(pid, other->pid)))
			continue;
		if (pid <= 1 || pid == getpid() || pid == s->fake_pid || pid == s->opts.keep ||
		    !descends(pid, getpid()))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		if (fd_read_file(path, 65536, &text, &len, NULL) == ERR_OK &&
		    str_find(str_n(text, len), str_c(title)) != SIZE_MAX)
			pids[n++] = pid;
		mem_free(text);
	}
	closedir(proc);
	return n;
}

int
count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

int64_t
server_sql(struct server *s, const char *sql)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *st = NULL;
	int64_t value = 0;

	cr_assert(sqlite3_open_v2(s->db_path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	cr_assert(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
	    sqlite3_errmsg(db));
	if (sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return value;
}

bool
server_wait_sql(struct server *s, const char *sql, int64_t n)
{
	int64_t end = clock_mono_ms() + wait_limit_ms();

	while (server_sql(s, sql) < n) {
		if (clock_mono_ms() > end)
			return false;
		pause_short();
	}
	return true;
}
