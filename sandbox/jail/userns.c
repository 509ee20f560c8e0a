#include <sys/prctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"

#define NOBODY 65534u

bool
jail_failed(struct jail_fail *f, enum sandbox_layer layer, const char *step)
{
	f->layer = (uint32_t)layer;
	f->sys_errno = errno;
	(void)snprintf(f->step, sizeof(f->step), "%s", step);
	return false;
}

static bool
write_file(const char *path, const char *text)
{
	int fd = fd_open(path, O_WRONLY, 0);
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
write_maps(pid_t pid, uint32_t first, uint32_t count)
{
	char path[64], map[64];
	(void)snprintf(map, sizeof(map), "0 %u %u\n", first, count);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	if (!write_file(path, map))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	return write_file(path, map);
}

enum { MAP_RANGE = 1, MAP_NOBODY = 2 };

/* Stays in the namespace above: only there can a range be mapped. */
static _Noreturn void
map_for(pid_t pid, uint32_t uid_base, int go_fd, int answer_fd)
{
	char c;
	int answer = 0;
	if (read(go_fd, &c, 1) != 1)
		_exit(0);
	if (uid_base != 0 && write_maps(pid, uid_base, JAIL_RANGE))
		answer = MAP_RANGE;
	else if (write_maps(pid, NOBODY, 1))
		answer = MAP_NOBODY;
	else
		answer = -errno;
	(void)!write(answer_fd, &answer, sizeof(answer));
	_exit(0);
}

/* Of our own one id; count is 1 and no capability above is needed. */
static bool
map_self(uid_t uid, gid_t gid, struct jail_fail *f)
{
	char map[64];
	if (!write_file("/proc/self/setgroups", "deny"))
		return jail_failed(f, SB_USER_NS, "setgroups");
	(void)snprintf(map, sizeof(map), "0 %u 1\n", uid);
	if (!write_file("/proc/self/uid_map", map))
		return jail_failed(f, SB_USER_NS, "uid_map");
	(void)snprintf(map, sizeof(map), "0 %u 1\n", gid);
	if (!write_file("/proc/self/gid_map", map))
		return jail_failed(f, SB_USER_NS, "gid_map");
	return true;
}

/* Root of a user namespace of somebody's is not the root of the machine. */
static bool
is_real_root(void)
{
	char text[128] = "";
	unsigned inside = 0, outside = 0, count = 0;
	int fd = fd_open("/proc/self/uid_map", O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	fd_close(&fd);
	if (n <= 0 || sscanf(text, "%u %u %u", &inside, &outside, &count) != 3)
		return true;
	return inside == 0 && outside == 0;
}

/* The helper stays in the namespace above and maps this process; 0: it could not. */
static int
ask_helper(uint32_t uid_base, struct jail_fail *f)
{
	int go[2] = {-1, -1}, answer[2] = {-1, -1}, got = -EIO;
	pid_t self = getpid(), helper = -1;
	if (!fd_pipe(go, false) || !fd_pipe(answer, false) || (helper = fork()) < 0) {
		jail_failed(f, SB_USER_NS, "fork");
		goto out;
	}
	if (helper == 0) {
		fd_close(&go[1]);
		fd_close(&answer[0]);
		map_for(self, uid_base, go[0], answer[1]);
	}
	fd_close(&go[0]);
	fd_close(&answer[1]);
	if (unshare(CLONE_NEWUSER) != 0) {
		jail_failed(f, SB_USER_NS, "unshare(CLONE_NEWUSER)");
		goto out;
	}
	if (write(go[1], "g", 1) != 1 || read(answer[0], &got, sizeof(got)) != sizeof(got))
		got = -EIO;
	if (got < 0) {
		errno = -got;
		jail_failed(f, SB_UID_RANGE, "uid_map");
	}
out:
	for (int i = 0; i < 2; i++) {
		fd_close(&go[i]);
		fd_close(&answer[i]);
	}
	if (helper > 0)
		while (waitpid(helper, NULL, 0) < 0 && errno == EINTR)
			;
	return got < 0 ? 0 : got;
}

static bool
enter_as_root(uint32_t uid_base, bool *ret_has_range, struct jail_fail *f)
{
	bool is_real = is_real_root();
	int got = ask_helper(uid_base, f);
	if (got == 0) /* SB_UID_RANGE: the namespace is there, only its map is not */
		return f->layer == SB_UID_RANGE && !is_real && map_self(0, 0, f);
	*ret_has_range = got == MAP_RANGE;
	if (setgroups(0, NULL) != 0)
		return jail_failed(f, SB_USER_NS, "setgroups");
	return true;
}

bool
jail_enter_userns(uint32_t uid_base, bool *ret_has_range, struct jail_fail *f)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	*ret_has_range = false;
	if (uid != 0) {
		if (unshare(CLONE_NEWUSER) != 0)
			return jail_failed(f, SB_USER_NS, "unshare(CLONE_NEWUSER)");
		return map_self(uid, gid, f);
	}
	if (!enter_as_root(uid_base, ret_has_range, f))
		return false;
	if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
		return jail_failed(f, SB_USER_NS, "setresuid");
	return true;
}

bool
jail_unshare(struct jail_fail *f)
{
	static const struct {
		int flag;
		enum sandbox_layer layer;
		const char *step;
	} spaces[] = {{CLONE_NEWNS, SB_MOUNT_NS, "unshare(CLONE_NEWNS)"},
	    {CLONE_NEWNET, SB_NET_NS, "unshare(CLONE_NEWNET)"},
	    {CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP, SB_IPC_UTS_NS,
		"unshare(IPC|UTS|CGROUP)"},
	    {CLONE_NEWPID, SB_PID_NS, "unshare(CLONE_NEWPID)"}};
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
		if (unshare(spaces[i].flag) != 0)
			return jail_failed(f, spaces[i].layer, spaces[i].step);
	return true;
}
