#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"

static bool
write_self(const char *path, const char *text)
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

/* Becomes the slot's user, then puts a user namespace of its own on top, last: the mount, pid and
 * network namespaces stay owned by the spawner's, so that even all capabilities in here would give
 * no right over them. The code sees uid 1000, whatever the slot. */
bool
jail_session_ids(const struct jail *j, uid_t uid, struct jail_fail *f)
{
	char map[32];
	if (j->has_range && (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 ||
				setresuid(uid, uid, uid) != 0))
		return jail_failed(f, SB_UID_RANGE, "setresuid");
	/* The change of user took our own /proc/self away. */
	if (prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER) != 0)
		return jail_failed(f, SB_USER_NS, "unshare(CLONE_NEWUSER) of the session");
	(void)snprintf(map, sizeof(map), "1000 %u 1\n", uid);
	if (!write_self("/proc/self/setgroups", "deny") || !write_self("/proc/self/uid_map", map) ||
	    !write_self("/proc/self/gid_map", map))
		return jail_failed(f, SB_USER_NS, "uid_map of the session");
	if (setresgid(1000, 1000, 1000) != 0 || setresuid(1000, 1000, 1000) != 0)
		return jail_failed(f, SB_USER_NS, "setresuid(1000)");
	return true;
}

static bool
drop_capabilities(struct jail_fail *f)
{
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno != EINVAL)
			return jail_failed(f, SB_CAPABILITIES, "bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return jail_failed(f, SB_CAPABILITIES, "ambient set");
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
					 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
					 SECBIT_NO_CAP_AMBIENT_RAISE |
					 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) != 0)
		return jail_failed(f, SB_CAPABILITIES, "securebits");
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2];
	memset(none, 0, sizeof(none));
	if (syscall(SYS_capset, &head, none) != 0)
		return jail_failed(f, SB_CAPABILITIES, "capset");
	return true;
}

/* By 0 the kernel would still hand a crashed process to a program of the host, as root, where
 * core_pattern names one ("|/usr/lib/systemd/systemd-coredump"); by 1, and by nothing else, it does
 * not (core(5)), and no file of one byte is written either. */
#define NO_CORE 1

static bool
set_limits(const struct sandbox_settings *s, struct jail_fail *f)
{
	const struct {
		int what;
		rlim_t value;
	} limits[] = {{RLIMIT_NPROC, s->pids}, {RLIMIT_AS, s->memory_bytes},
	    {RLIMIT_FSIZE, s->file_bytes}, {RLIMIT_NOFILE, s->open_files},
	    {RLIMIT_CPU, s->cpu_seconds}, {RLIMIT_CORE, NO_CORE}, {RLIMIT_STACK, 8u << 20},
	    {RLIMIT_SIGPENDING, 512}, {RLIMIT_MSGQUEUE, 0}, {RLIMIT_MEMLOCK, 64u << 10},
	    {RLIMIT_NICE, 0}, {RLIMIT_RTPRIO, 0}};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		/* A hard limit above us may be lower already. */
		struct rlimit r;
		if (getrlimit((__rlimit_resource_t)limits[i].what, &r) != 0)
			return jail_failed(f, SB_LIMITS, "getrlimit");
		if (r.rlim_max == RLIM_INFINITY || r.rlim_max > limits[i].value)
			r.rlim_max = limits[i].value;
		r.rlim_cur = r.rlim_max;
		if (setrlimit((__rlimit_resource_t)limits[i].what, &r) != 0)
			return jail_failed(f, SB_LIMITS, "setrlimit");
	}
	return true;
}

bool
jail_session_locks(const struct jail *j, struct jail_fail *f)
{
	if (!drop_capabilities(f))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return jail_failed(f, SB_NO_NEW_PRIVS, "no_new_privs");
	if ((j->without & JAIL_WITHOUT_LANDLOCK) == 0 && !jail_session_landlock(f))
		return false;
	if (!set_limits(j->settings, f))
		return false;
	if ((j->without & JAIL_WITHOUT_SECCOMP) != 0)
		return true;
	struct sock_fprog prog = {j->filter.count, j->filter.insns};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0)
		return jail_failed(f, SB_SECCOMP, "seccomp filter");
	return true;
}
