#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup.h"

#define FILE_MAX (1u << 20)

static char *
read_whole(const char *path, size_t *ret_len)
{
	char *text = NULL;
	return fd_read_file(path, FILE_MAX, &text, ret_len, NULL) == ERR_OK ? text : NULL;
}

void
cgroup_read_places(struct cgroup_places *ret)
{
	size_t mounts_len = 0, self_len = 0;
	char *mounts = read_whole("/proc/self/mountinfo", &mounts_len);
	char *self = read_whole("/proc/self/cgroup", &self_len);
	cgroup_find_places(str_n(mounts, mounts_len), str_n(self, self_len), ret);
	mem_free(mounts);
	mem_free(self);
}

bool
cgroup_remove(const char *tree)
{
	DIR *d = opendir(tree);
	if (d == NULL)
		return errno == ENOENT;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (str_starts(str_c(e->d_name), STR("slot")))
			(void)unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	closedir(d);
	return rmdir(tree) == 0 || errno == ENOENT;
}

/* Not one that is locked: its maker lives. */
static bool
sweep_tree(void *arg, const char *path)
{
	(void)arg;
	int fd = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES;
	bool ok = flock(fd, LOCK_EX | LOCK_NB) != 0 || cgroup_remove(path);
	fd_close(&fd);
	return ok;
}

static bool
each_in(const char *base, cgroup_on_tree *on_tree, void *arg)
{
	bool ok = true;
	DIR *d = opendir(base);
	if (d == NULL)
		return true;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char path[CGROUP_PATH_MAX + 300];
		if (!cgroup_is_our_name(str_c(e->d_name)))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
		ok &= on_tree(arg, path);
	}
	closedir(d);
	return ok;
}

bool
cgroup_each_tree(const struct cgroup_places *p, cgroup_on_tree *on_tree, void *arg)
{
	bool ok = true;
	char base[CGROUP_PATH_MAX];
	for (size_t k = 0; k < CGROUP_CONTROLLERS; k++)
		if (p->v1[k].own[0] != '\0')
			ok &= each_in(p->v1[k].own, on_tree, arg);
	memcpy(base, p->v2.own, sizeof(base));
	while (base[0] != '\0') {
		ok &= each_in(base, on_tree, arg);
		char *slash = strrchr(base, '/');
		if (slash == NULL || (size_t)(slash - base) < p->v2.mount_len)
			break;
		*slash = '\0';
	}
	return ok;
}

bool
cgroup_sweep(const struct cgroup_places *p)
{
	return cgroup_each_tree(p, sweep_tree, NULL);
}

static bool
is_one_of(const pid_t *ours, size_t count, struct str text)
{
	uint64_t pid;
	for (size_t i = 0; i < count; i++)
		if (str_u64(text, &pid) && pid == (uint64_t)ours[i])
			return true;
	return false;
}

static bool
move_all(const char *main_procs, struct str pids)
{
	int fd = fd_open(main_procs, O_WRONLY, 0);
	bool ok = fd >= 0;
	for (struct str line; ok && str_split(&pids, '\n', &line);)
		if (line.len > 0) /* one that ended meanwhile is no loss */
			ok = write(fd, line.ptr, line.len) == (ssize_t)line.len || errno == ESRCH;
	fd_close(&fd);
	return ok;
}

bool
cgroup_step_aside(const struct cgroup_places *p, const pid_t *ours, size_t count)
{
	char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
	const char *own = p->v2.own;
	size_t n = 0;
	bool is_moved = false;
	if (own[0] == '\0' || p->v2.is_read_only)
		return false;
	(void)snprintf(path, sizeof(path), "%s/cgroup.type", own);
	if (access(path, F_OK) != 0) /* the root of all: processes may stay in it */
		return false;
	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", own);
	char *text = read_whole(path, &n);
	bool has_memory = (cgroup_controllers(str_n(text, n)) & CGROUP_BIT(CGROUP_MEMORY)) != 0;
	mem_free(text);
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", own);
	char *pids = has_memory ? read_whole(path, &n) : NULL;
	struct str rest = str_n(pids, pids == NULL ? 0 : n), line;
	bool is_ours = pids != NULL && n > 0;
	while (is_ours && str_split(&rest, '\n', &line))
		is_ours = line.len == 0 || is_one_of(ours, count, line);
	(void)snprintf(path, sizeof(path), "%s/main", own);
	if (is_ours && (mkdir(path, 0755) == 0 || errno == EEXIST)) {
		(void)snprintf(path, sizeof(path), "%s/main/cgroup.procs", own);
		is_moved = move_all(path, str_n(pids, n));
	}
	mem_free(pids);
	return is_moved;
}

static void
put(const char *own, const char *name, const char *text)
{
	char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
	(void)snprintf(path, sizeof(path), "%s/%s", own, name);
	int fd = fd_open(path, O_WRONLY, 0);
	if (fd >= 0)
		(void)!write(fd, text, strlen(text)); /* of ours */
	fd_close(&fd);
}

void
cgroup_step_back(const char *own)
{
	static const char *const off[] = {"-memory", "-pids", "-cpu"};
	char path[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
	/* They were not given on before: processes were in it. */
	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		put(own, "cgroup.subtree_control", off[i]);
	put(own, "cgroup.procs", "0");
	(void)snprintf(path, sizeof(path), "%s/main", own);
	(void)rmdir(path);
}
