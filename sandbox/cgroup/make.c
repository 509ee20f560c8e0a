#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup.h"

#define PERIOD_US  100000u
#define CPU_WEIGHT 10u /* of 100, which every other cgroup has unless told */
#define NAMES_MAX  16u
#define SPARE_FDS  1024u /* for all else that a spawner opens */
#define FILES_MAX  (CGROUP_TREES + 3)
#define TEXT_BYTES 4096

struct tree {
	char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
	int dir;
	unsigned version, controllers;
};

static bool
failed(struct cgroup *c, const char *step)
{
	c->sys_errno = errno;
	(void)snprintf(c->why, sizeof(c->why), "%s", step);
	return false;
}

static bool
put(const struct cgroup_wish *w, int dir, const char *name, const char *text)
{
	int more = w->create != 0 ? w->create | O_APPEND : 0;
	int fd = fd_openat(dir, name, O_WRONLY | more, 0644);
	if (fd < 0)
		return false;
	size_t n = strlen(text); /* of ours */
	bool ok = write(fd, text, n) == (ssize_t)n;
	int e = errno;
	fd_close(&fd);
	errno = e;
	return ok;
}

static bool
put_number(const struct cgroup_wish *w, int dir, const char *name, uint64_t v)
{
	char text[24];
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return put(w, dir, name, text);
}

/* --- limits of one slot ------------------------------------------------------------------------
 */
static bool
limit_memory(const struct cgroup_wish *w, unsigned version, int dir)
{
	/* Where the kernel does not count swap, or has none, the file is not there. */
	if (version == 2)
		return put_number(w, dir, "memory.max", w->memory_bytes) &&
		       (put(w, dir, "memory.swap.max", "0") || errno == ENOENT);
	if (!put_number(w, dir, "memory.limit_in_bytes", w->memory_bytes))
		return false;
	if (put_number(w, dir, "memory.memsw.limit_in_bytes", w->memory_bytes))
		return true;
	return errno == ENOENT && put(w, dir, "memory.swappiness", "0");
}

static bool
limit_cpu(const struct cgroup_wish *w, unsigned version, int dir)
{
	uint64_t quota = (uint64_t)w->cpu_percent * (PERIOD_US / 100);
	char text[48];
	if (w->cpu_percent == 0)
		return true;
	(void)snprintf(text, sizeof(text), "%llu %u", (unsigned long long)quota, PERIOD_US);
	if (version == 2)
		return put(w, dir, "cpu.max", text);
	return put_number(w, dir, "cpu.cfs_period_us", PERIOD_US) &&
	       put_number(w, dir, "cpu.cfs_quota_us", quota);
}

/* Of the tree as a whole, which is what the daemon's own processes stand beside: whoever waits for
 * an answer has the processors first. Where it can't be written all are equal, as before. */
static void
weigh(const struct cgroup_wish *w, const struct tree *t)
{
	if ((t->controllers & CGROUP_BIT(CGROUP_CPU)) != 0)
		(void)put_number(w, t->dir, t->version == 2 ? "cpu.weight" : "cpu.shares",
		    t->version == 2 ? CPU_WEIGHT : CPU_WEIGHT * 1024 / 100);
}

/* Only memory is missed so much that there is no tree without it. */
static bool
limit(const struct cgroup_wish *w, struct tree *t, int dir)
{
	if ((t->controllers & CGROUP_BIT(CGROUP_MEMORY)) != 0 && !limit_memory(w, t->version, dir))
		return false;
	if ((t->controllers & CGROUP_BIT(CGROUP_PIDS)) != 0 &&
	    !put_number(w, dir, "pids.max", w->pids))
		t->controllers &= ~CGROUP_BIT(CGROUP_PIDS);
	if ((t->controllers & CGROUP_BIT(CGROUP_CPU)) != 0 && !limit_cpu(w, t->version, dir))
		t->controllers &= ~CGROUP_BIT(CGROUP_CPU);
	return true;
}

static bool
open_files(struct cgroup *c, const struct cgroup_wish *w, const struct tree *t, int dir,
    struct cgroup_slot *s)
{
	static const char *const names[2][3] = {
	    {"memory.oom_control", "memory.usage_in_bytes", "memory.stat"},
	    {"memory.events", "memory.current", "memory.stat"}};
	const char *const *name = names[t->version - 1];
	int *join = &s->join[c->trees];
	*join = fd_openat(dir, "cgroup.procs", O_WRONLY | w->create, 0644);
	if (*join < 0)
		return false;
	if ((t->controllers & CGROUP_BIT(CGROUP_MEMORY)) == 0)
		return true;
	s->events = fd_openat(dir, name[0], O_RDONLY | w->create, 0644);
	s->usage = fd_openat(dir, name[1], O_RDONLY | w->create, 0644);
	s->stat = fd_openat(dir, name[2], O_RDONLY | w->create, 0644);
	return s->events >= 0 && s->usage >= 0 && s->stat >= 0;
}

static bool
make_slots(struct cgroup *c, const struct cgroup_wish *w, struct tree *t)
{
	for (uint32_t i = 0; i < w->slots; i++) {
		char name[CGROUP_NAME_MAX];
		(void)snprintf(name, sizeof(name), "slot%u", i);
		if (mkdirat(t->dir, name, 0755) != 0)
			return failed(c, "mkdir of a slot");
		int dir = fd_openat(t->dir, name, O_RDONLY | O_DIRECTORY, 0);
		bool ok = dir >= 0 && limit(w, t, dir) && open_files(c, w, t, dir, &c->slots[i]);
		int e = errno;
		fd_close(&dir);
		errno = e;
		if (!ok)
			return failed(c, "limits of a slot");
	}
	weigh(w, t);
	return t->controllers != 0 || failed(c, "limits of a slot");
}

/* --- the tree ----------------------------------------------------------------------------------
 */
/* A directory that was removed can still be locked. */
static bool
is_at(int dir, const char *path)
{
	struct stat ours, there;
	return fstat(dir, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

/* Locked, so that whoever sweeps sees that somebody lives in it. */
static bool
make_dir(struct cgroup *c, const char *base, struct tree *t)
{
	for (unsigned n = 0; n < NAMES_MAX; n++) {
		(void)snprintf(t->path, sizeof(t->path), "%s/otari.%d.%u", base, (int)getpid(), n);
		if (mkdir(t->path, 0755) != 0) {
			if (errno == EEXIST)
				continue;
			return failed(c, "mkdir");
		}
		t->dir = fd_open(t->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (t->dir >= 0 && flock(t->dir, LOCK_EX | LOCK_NB) == 0 && is_at(t->dir, t->path))
			return true;
		fd_close(&t->dir); /* swept away before it was locked */
	}
	return failed(c, "lock");
}

static void
give_up(struct cgroup *c, struct tree *t)
{
	for (uint32_t i = 0; i < c->slot_count; i++) {
		struct cgroup_slot *s = &c->slots[i];
		fd_close(&s->join[c->trees]);
		if (c->trees > 0) /* what follows is of the first */
			continue;
		fd_close(&s->events);
		fd_close(&s->usage);
		fd_close(&s->stat);
	}
	(void)cgroup_remove(t->path);
	fd_close(&t->dir);
}

static void
keep(struct cgroup *c, const struct tree *t)
{
	c->version = t->version;
	c->controllers |= t->controllers;
	c->lock[c->trees++] = t->dir;
}

static ssize_t
read_text(const char *base, const char *name, char text[TEXT_BYTES])
{
	char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	int fd = fd_open(path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES);
	fd_close(&fd);
	return n;
}

/* Gives the controllers on to the children of dir; returns which. */
static unsigned
enable(const struct cgroup_wish *w, int dir, unsigned wanted)
{
	static const char *const names[CGROUP_CONTROLLERS] = {
	    [CGROUP_MEMORY] = "+memory", [CGROUP_PIDS] = "+pids", [CGROUP_CPU] = "+cpu"};
	unsigned got = 0;
	for (unsigned k = 0; k < CGROUP_CONTROLLERS; k++)
		if ((wanted & CGROUP_BIT(k)) != 0 &&
		    put(w, dir, "cgroup.subtree_control", names[k]))
			got |= CGROUP_BIT(k);
	return got;
}

/* v2, below base. */
static bool
make_below(struct cgroup *c, const struct cgroup_wish *w, const char *base)
{
	char text[TEXT_BYTES];
	struct tree t = {.dir = -1, .version = 2};
	ssize_t n = read_text(base, "cgroup.controllers", text);
	unsigned there = n < 0 ? 0 : cgroup_controllers(str_n(text, (size_t)n));
	bool is_root = read_text(base, "cgroup.type", text) < 0;
	if ((there & CGROUP_BIT(CGROUP_MEMORY)) == 0) {
		errno = ENOENT;
		return failed(c, "the memory controller is not given to us");
	}
	/* A cgroup with processes in it has no controllers for its children. */
	if (!is_root && read_text(base, "cgroup.procs", text) != 0) {
		errno = EBUSY;
		return failed(c, "other processes are in our cgroup");
	}
	if (!make_dir(c, base, &t))
		return false;
	int up = fd_open(base, O_RDONLY | O_DIRECTORY, 0);
	t.controllers = up < 0 ? 0 : enable(w, up, there);
	fd_close(&up);
	t.controllers = enable(w, t.dir, t.controllers);
	bool ok = (t.controllers & CGROUP_BIT(CGROUP_MEMORY)) != 0;
	if (!ok)
		(void)failed(c, "cgroup.subtree_control");
	else
		ok = make_slots(c, w, &t);
	if (ok)
		keep(c, &t);
	else
		give_up(c, &t);
	return ok;
}

/* The nearest that will have it: our own, then those above up to where it is mounted. */
static bool
make_v2(struct cgroup *c, const struct cgroup_place *p, const struct cgroup_wish *w)
{
	char base[CGROUP_PATH_MAX];
	if (p->own[0] == '\0')
		return false;
	if (p->is_read_only) {
		errno = EROFS;
		return failed(c, "cgroup2 is mounted read-only");
	}
	memcpy(base, p->own, sizeof(base));
	for (;;) {
		if (make_below(c, w, base))
			return true;
		char *slash = strrchr(base, '/');
		if (slash == NULL || (size_t)(slash - base) < p->mount_len)
			return false;
		*slash = '\0';
	}
}

static bool
make_v1(struct cgroup *c, const struct cgroup_places *p, const struct cgroup_wish *w)
{
	for (unsigned k = 0; k < CGROUP_CONTROLLERS; k++) {
		const struct cgroup_place *at = &p->v1[k];
		struct tree t = {.dir = -1, .version = 1};
		bool is_done = at->own[0] == '\0' || at->is_read_only;
		/* Controllers that are mounted together are one tree. */
		for (unsigned i = 0; i < CGROUP_CONTROLLERS && !is_done; i++)
			if (strcmp(p->v1[i].own, at->own) == 0) {
				t.controllers |= CGROUP_BIT(i);
				is_done = i < k;
			}
		if (at->is_read_only) {
			errno = EROFS;
			(void)failed(c, "the memory controller is mounted read-only");
		}
		if (!is_done && make_dir(c, at->own, &t)) {
			if (make_slots(c, w, &t))
				keep(c, &t);
			else
				give_up(c, &t);
		}
		if (k == CGROUP_MEMORY && c->trees == 0)
			return false;
	}
	return true;
}

static void
allow_files(const struct cgroup_wish *w)
{
	struct rlimit r;
	rlim_t want = (rlim_t)w->slots * FILES_MAX + SPARE_FDS;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < want) {
		r.rlim_cur = r.rlim_max != RLIM_INFINITY && r.rlim_max < want ? r.rlim_max : want;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

bool
cgroup_make(struct cgroup *c, const struct cgroup_places *p, const struct cgroup_wish *w)
{
	*c = (struct cgroup){.slot_count = w->slots};
	c->slots = MEM_NEW_ARRAY(struct cgroup_slot, w->slots);
	for (uint32_t i = 0; i < w->slots; i++) {
		struct cgroup_slot *s = &c->slots[i];
		s->events = s->usage = s->stat = -1;
		for (size_t k = 0; k < CGROUP_TREES; k++)
			s->join[k] = -1;
	}
	allow_files(w);
	errno = ENOENT;
	(void)failed(c, "no cgroup file system with a memory controller");
	if (make_v2(c, &p->v2, w) || make_v1(c, p, w))
		return true;
	int e = c->sys_errno;
	cgroup_free(c);
	c->sys_errno = e;
	return false;
}
