/* watch.c - bounds the memory of a whole session where no cgroup does
 *
 * RLIMIT_AS bounds one process only. So the processes of every leased session are summed up a few
 * times a second: first what each has resident for itself (cheap, but counts pages that forks share
 * more than once), and only over the limit the proportional share, which is exact. A session over
 * it loses everything but its init: the call ends as one whose interpreter died.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/spawner/broker.h"

#define PERIOD_US 200000

struct process {
	pid_t pid, parent;
	pid_t thread;   /* that has its memory: the first, unless that one has ended */
	uint64_t bytes; /* anonymous or shared memory, resident or swapped out */
	struct session *session;
};

struct processes {
	struct process *p;
	size_t count, room;
};

static ssize_t
read_proc(pid_t pid, const char *name, char *dst, size_t room)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	int fd = fd_open(path, O_RDONLY, 0);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, dst, room - 1);
	fd_close(&fd);
	dst[n > 0 ? n : 0] = '\0';
	return n;
}

static bool
field(const char *text, const char *name, unsigned long long *ret)
{
	char key[32];
	(void)snprintf(key, sizeof(key), "\n%s:", name);
	const char *p = strstr(text, key);
	return p != NULL && sscanf(p + strlen(key), "%llu", ret) == 1;
}

/* What is of the whole process is told of each of its threads that lives; 0: of none. */
static pid_t
find_living(pid_t pid, char *text, size_t room)
{
	char path[64];
	pid_t found = 0;
	uint64_t tid;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d != NULL && found == 0 && (e = readdir(d)) != NULL;)
		if (str_u64(str_c(e->d_name), &tid) && tid <= INT32_MAX && (pid_t)tid != pid &&
		    read_proc((pid_t)tid, "status", text, room) > 0 &&
		    strstr(text, "\nRssAnon:") != NULL)
			found = (pid_t)tid;
	if (d != NULL)
		closedir(d);
	return found;
}

static bool
look_at(pid_t pid, struct process *ret)
{
	char text[4096];
	pid_t thread = pid;
	unsigned long long parent, anon = 0, shmem = 0, swap = 0;
	/* The name in the first line is of the code's choice, but has no line end in it. */
	if (read_proc(pid, "status", text, sizeof(text)) <= 0 || !field(text, "PPid", &parent))
		return false;
	/* A dead process has none, nor has a first thread that has ended before the others. */
	if (!field(text, "RssAnon", &anon)) {
		thread = find_living(pid, text, sizeof(text));
		if (thread != 0)
			(void)field(text, "RssAnon", &anon);
	}
	if (thread != 0) {
		(void)field(text, "RssShmem", &shmem);
		(void)field(text, "VmSwap", &swap);
	}
	*ret = (struct process){pid, (pid_t)parent, thread, (anon + shmem + swap) * 1024, NULL};
	return true;
}

static void
list(struct processes *all)
{
	DIR *d = opendir("/proc");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		uint64_t pid;
		if (!str_u64(str_c(e->d_name), &pid) || pid <= 1 || pid > INT32_MAX)
			continue;
		if (all->count == all->room) {
			all->room = all->room * 2 + 64;
			all->p = mem_grow(all->p, all->room, sizeof(all->p[0]));
		}
		if (look_at((pid_t)pid, &all->p[all->count]))
			all->count++;
	}
	if (d != NULL)
		closedir(d);
}

static struct process *
find(struct processes *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->p[i].pid == pid)
			return &all->p[i];
	return NULL;
}

/* Every process of a session hangs below its init: orphans are given to it by the kernel. */
static void
assign(struct broker *b, struct processes *all)
{
	for (size_t i = 0; i < all->count; i++) {
		struct process *at = &all->p[i];
		for (unsigned hops = 0; at != NULL && hops < 1000; hops++) {
			struct session *s;
			TAILQ_FOREACH(s, &b->sessions, link)
				if (s->state == SESSION_LEASED && s->pid == at->pid)
					break;
			if (s != NULL) {
				all->p[i].session = s;
				break;
			}
			at = find(all, at->parent);
		}
	}
}

static uint64_t
share_of(pid_t pid)
{
	char text[2048];
	unsigned long long kb = 0, swap = 0;
	if (read_proc(pid, "smaps_rollup", text, sizeof(text)) <= 0)
		return 0;
	(void)field(text, "SwapPss", &swap);
	return field(text, "Pss", &kb) ? (kb + swap) * 1024 : 0;
}

static uint64_t
sum(const struct processes *all, const struct session *s, bool exact)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < all->count; i++)
		if (all->p[i].session == s)
			bytes += exact ? share_of(all->p[i].thread) : all->p[i].bytes;
	return bytes;
}

static void
on_watch(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct broker *b = arg;
	struct processes all = {0};
	struct session *s;
	TAILQ_FOREACH(s, &b->sessions, link)
		if (s->state == SESSION_LEASED)
			break;
	if (s == NULL) {
		(void)event_del(b->ev_watch);
		return;
	}
	list(&all);
	assign(b, &all);
	TAILQ_FOREACH(s, &b->sessions, link) {
		uint64_t limit = b->settings.memory_bytes;
		if (s->state != SESSION_LEASED || sum(&all, s, false) <= limit)
			continue;
		uint64_t bytes = sum(&all, s, true);
		if (bytes <= limit)
			continue;
		b->stats.memory_kills++;
		log_notice("a sandbox session is over its memory, its processes end",
		    LOG_INT("slot", s->slot), LOG_INT("limit_bytes", limit),
		    LOG_INT("bytes", bytes));
		(void)kill(s->pid, SIGUSR1); /* so that init can say why */
		for (size_t i = 0; i < all.count; i++)
			if (all.p[i].session == s && all.p[i].pid != s->pid)
				(void)kill(all.p[i].pid, SIGKILL);
	}
	mem_free(all.p);
}

void
watch_start(struct broker *b)
{
	struct timeval t = {0, PERIOD_US};
	if (cgroup_bounds(&b->cgroup, CGROUP_MEMORY))
		return;
	if (b->ev_watch == NULL)
		b->ev_watch = event_new(b->base, -1, EV_PERSIST, on_watch, b);
	if (b->ev_watch != NULL && !event_pending(b->ev_watch, EV_TIMEOUT, NULL))
		(void)event_add(b->ev_watch, &t);
}

size_t
watch_children(pid_t **ret_pids)
{
	struct processes all = {0};
	size_t n = 0;
	list(&all);
	pid_t *pids = MEM_NEW_ARRAY(pid_t, all.count + 1);
	for (size_t i = 0; i < all.count; i++)
		if (all.p[i].parent == getpid())
			pids[n++] = all.p[i].pid;
	mem_free(all.p);
	*ret_pids = pids;
	return n;
}

void
watch_children_free(pid_t **pids)
{
	mem_free(*pids);
	*pids = NULL;
}
