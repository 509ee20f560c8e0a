/* delegate.c - cgroups of a plain user's own, as an administrator gives them
 *
 * v1: a directory below our own cgroup of each controller; v2: one whose controllers are enabled,
 * with the service's processes in a cgroup "main" below it, as the master leaves them. All of them
 * belong to the user, and the spawner is in them before it has given its rights up.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/cgroup/cgroup.h"
#include "tests/probes/probe.h"

#define ROOM (CGROUP_PATH_MAX + CGROUP_NAME_MAX)

static struct cgroup_places given; /* all "": nothing */
static bool is_given;

static bool
put(const char *dir, const char *name, const char *text)
{
	char path[ROOM + 64];
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = fd_open(path, O_WRONLY, 0);
	size_t n = strlen(text); /* of ours */
	bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
	fd_close(&fd);
	return ok;
}

static bool
give(const char *dir, const char *name)
{
	char path[ROOM + 64];
	(void)snprintf(path, sizeof(path), "%s%s%s", dir, name[0] != '\0' ? "/" : "", name);
	return chown(path, PROBE_PLAIN_USER, PROBE_PLAIN_USER) == 0;
}

/* Those of probes that were killed. */
static void
sweep(const struct cgroup_place *above)
{
	DIR *d = opendir(above->own);
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		struct cgroup_places old = {0};
		struct str rest = str_c(e->d_name);
		uint64_t pid;
		if (!str_starts(rest, STR("otari-probes.")) ||
		    !str_u64(str_from(rest, STR("otari-probes.").len), &pid) || pid > INT32_MAX ||
		    kill((pid_t)pid, 0) == 0)
			continue;
		(void)snprintf(
		    old.v1[0].own, sizeof(old.v1[0].own), "%.900s/%.100s", above->own, e->d_name);
		(void)cgroup_sweep(&old);
		(void)rmdir(old.v1[0].own);
	}
	if (d != NULL)
		closedir(d);
}

/* False: there is none, or none to write to. ret: where the user's is. */
static bool
make_dir(const struct cgroup_place *above, struct cgroup_place *ret)
{
	char path[ROOM];
	(void)snprintf(path, sizeof(path), "%s/otari-probes.%d", above->own, (int)getpid());
	if (above->own[0] == '\0' || above->is_read_only ||
	    !str_copy(ret->own, sizeof(ret->own), str_c(path)))
		return false;
	ret->mount_len = strlen(path); /* of ours */
	return (mkdir(path, 0755) == 0 || errno == EEXIST) && give(path, "") &&
	       give(path, "cgroup.procs");
}

static bool
make_v2(const struct cgroup_place *above)
{
	struct cgroup_place *at = &given.v2;
	char main_dir[ROOM];
	if (above->own[0] == '\0' || !put(above->own, "cgroup.subtree_control", "+memory"))
		return false;
	(void)put(above->own, "cgroup.subtree_control", "+pids");
	(void)put(above->own, "cgroup.subtree_control", "+cpu");
	(void)snprintf(
	    main_dir, sizeof(main_dir), "%s/otari-probes.%d/main", above->own, (int)getpid());
	return make_dir(above, at) && give(at->own, "cgroup.subtree_control") &&
	       (mkdir(main_dir, 0755) == 0 || errno == EEXIST) && give(main_dir, "") &&
	       give(main_dir, "cgroup.procs") &&
	       str_copy(at->own, sizeof(at->own), str_c(main_dir));
}

bool
probe_delegate(void)
{
	struct cgroup_places ours;
	if (geteuid() != 0)
		return true; /* somebody has, or has not */
	cgroup_read_places(&ours);
	for (size_t k = 0; k < CGROUP_CONTROLLERS; k++)
		sweep(&ours.v1[k]);
	memset(&given, 0, sizeof(given));
	is_given = make_v2(&ours.v2);
	for (size_t k = 0; k < CGROUP_CONTROLLERS && given.v2.own[0] == '\0'; k++)
		is_given = make_dir(&ours.v1[k], &given.v1[k]) && (k == 0 || is_given);
	return is_given;
}

bool
probe_delegate_join(void)
{
	bool ok = true;
	if (!is_given)
		return true;
	if (given.v2.own[0] != '\0')
		return put(given.v2.own, "cgroup.procs", "0");
	for (size_t k = 0; k < CGROUP_CONTROLLERS; k++)
		ok = ok && put(given.v1[k].own, "cgroup.procs", "0");
	return ok;
}

void
probe_places(struct cgroup_places *ret)
{
	if (is_given)
		*ret = given;
	else
		cgroup_read_places(ret);
}

bool
probe_delegate_end(void)
{
	bool ok = true;
	if (!is_given)
		return true;
	is_given = false;
	for (size_t k = 0; k < CGROUP_CONTROLLERS; k++)
		if (given.v1[k].own[0] != '\0')
			ok &= rmdir(given.v1[k].own) == 0 || errno == ENOENT; /* two may be one */
	if (given.v2.own[0] == '\0')
		return ok;
	ok &= rmdir(given.v2.own) == 0;
	given.v2.own[given.v2.mount_len] = '\0';
	return rmdir(given.v2.own) == 0 && ok;
}
