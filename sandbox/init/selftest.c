/* selftest.c - tries from inside what must not work
 *
 * Runs once per spawner start in a session that nobody gets, in a child of init, and once per start
 * of a zygote in a process that it forked there: with exactly the rights of the code that a session
 * runs. Each row is reported to the spawner; one wall that did
 * not hold and no lease is given.
 */
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/lease.h"
#include "sandbox/init/init.h"

static void
row(enum sandbox_layer layer, bool held, int sys_errno, const char *text)
{
	uint8_t p[FRAME_FIXED_MAX + 80];
	struct frame_check c = {
	    (uint32_t)layer, held ? 1 : 0, sys_errno, {text, strnlen(text, 80)}};
	ctl_send(FRAME_CHECK, p, frame_check_put(p, &c));
}

/* rc of a call that must fail. */
static void
refused(enum sandbox_layer layer, long rc, const char *text)
{
	int e = errno;
	row(layer, rc < 0, rc < 0 ? e : 0, text);
}

static void
check_host_files(void)
{
	static const char *const paths[] = {"/etc/shadow", "/etc/machine-id", "/root", "/home",
	    "/var", "/run", "/sys", "/boot", "/proc/1/environ", "/proc/1/fd", "/proc/kcore",
	    "/proc/sys/kernel", "/dev/mem", "/dev/kvm", "/dev/ptmx"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused(SB_MOUNT_NS, open(paths[i], O_RDONLY | O_CLOEXEC), paths[i]);
	static const char *const writes[] = {"/x", "/usr/x", "/etc/x", "/dev/x"};
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++)
		refused(
		    SB_MOUNT_NS, open(writes[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600), writes[i]);
	/* By the mounts' own flags: permissions alone would refuse the writes above too. */
	static const struct {
		const char *path;
		unsigned long flags;
	} mounts[] = {{"/", ST_RDONLY | ST_NOSUID | ST_NODEV},
	    {"/usr", ST_RDONLY | ST_NOSUID | ST_NODEV}, {"/dev", ST_RDONLY | ST_NOSUID},
	    {"/work", ST_NOSUID | ST_NODEV}, {"/tmp", ST_NOSUID | ST_NODEV},
	    {"/dev/shm", ST_NOSUID | ST_NODEV}, {"/proc", ST_NOSUID | ST_NODEV | ST_NOEXEC}};
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		struct statvfs v;
		bool ok = statvfs(mounts[i].path, &v) == 0 &&
			  (v.f_flag & mounts[i].flags) == mounts[i].flags;
		row(SB_MOUNT_NS, ok, 0, mounts[i].path);
	}
	refused(SB_MOUNT_NS, mount("none", "/work", "tmpfs", 0, NULL), "mount");
	refused(SB_MOUNT_NS, umount2("/work", MNT_DETACH), "umount");
	refused(SB_MOUNT_NS, syscall(SYS_pivot_root, "/", "/"), "pivot_root");
	refused(SB_MOUNT_NS, chroot("/work"), "chroot");
}

static void
check_processes(void)
{
	row(SB_PID_NS, getpid() < 64 && getppid() == 1, 0, "process ids are the session's own");
	DIR *d = opendir("/proc");
	unsigned count = 0;
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			count++;
	if (d != NULL)
		closedir(d);
	row(SB_PROC, count >= 2 && count <= 4, 0, "only the session's processes are listed");
	refused(SB_PROC, open("/proc/meminfo", O_RDONLY | O_CLOEXEC), "/proc/meminfo");
	refused(SB_SECCOMP, ptrace(PTRACE_ATTACH, 1, NULL, NULL), "ptrace");
}

/* Where the first succeeds all that came after it would be tried with other rights. */
static void
check_namespaces(void)
{
	refused(SB_SECCOMP, syscall(SYS_unshare, CLONE_NEWUSER), "unshare(CLONE_NEWUSER)");
	refused(SB_SECCOMP, syscall(SYS_unshare, CLONE_NEWNS), "unshare(CLONE_NEWNS)");
}

static void
check_sockets(void)
{
	static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG,
	    AF_VSOCK, AF_BLUETOOTH, AF_KEY};
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
			char text[80];
			(void)snprintf(text, sizeof(text), "socket(%d, %d)", families[i], types[k]);
			refused(SB_SECCOMP, socket(families[i], types[k], 0), text);
		}
	char dev[4096];
	int fd = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, dev, sizeof(dev) - 1);
	if (fd >= 0)
		close(fd);
	bool only_lo = true;
	if (n > 0) {
		dev[n] = '\0';
		for (char *p = dev; (p = strchr(p, ':')) != NULL; p++)
			only_lo = only_lo && p - dev >= 2 && p[-1] == 'o' && p[-2] == 'l';
	}
	row(SB_NET_NS, only_lo, 0, "no network device but lo");
}

static void
check_calls(void)
{
	static const struct {
		long nr;
		const char *name;
	} calls[] = {{SYS_keyctl, "keyctl"}, {SYS_add_key, "add_key"}, {SYS_bpf, "bpf"},
	    {SYS_perf_event_open, "perf_event_open"}, {SYS_userfaultfd, "userfaultfd"},
	    {SYS_io_uring_setup, "io_uring_setup"}, {SYS_setns, "setns"},
	    {SYS_process_vm_readv, "process_vm_readv"}, {SYS_init_module, "init_module"},
	    {SYS_kexec_load, "kexec_load"}, {SYS_open_by_handle_at, "open_by_handle_at"},
	    {SYS_fsopen, "fsopen"}, {SYS_open_tree, "open_tree"}, {SYS_clone3, "clone3"},
	    {SYS_syslog, "syslog"}, {SYS_personality, "personality"}, {SYS_reboot, "reboot"},
	    {SYS_pidfd_getfd, "pidfd_getfd"}, {SYS_memfd_secret, "memfd_secret"}};
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		long rc = syscall(calls[i].nr, 0, 0, 0, 0, 0, 0);
		/* EFAULT or EINVAL would mean that the kernel looked at the arguments. */
		bool held = rc < 0 && (errno == EPERM || errno == ENOSYS);
		row(SB_SECCOMP, held, rc < 0 ? errno : 0, calls[i].name);
	}
}

static bool
is_all_zero(const char *status, const char *key)
{
	const char *p = strstr(status, key);
	return p != NULL && strspn(p + strlen(key), "\t0") >= 17;
}

static void
check_credentials(void)
{
	char text[8192];
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		row(SB_CAPABILITIES, is_all_zero(text, sets[i]), 0, sets[i]);
	row(SB_NO_NEW_PRIVS, strstr(text, "NoNewPrivs:\t1") != NULL, 0, "NoNewPrivs");
	row(SB_SECCOMP, strstr(text, "Seccomp:\t2") != NULL, 0, "filter mode");
	row(SB_USER_NS, getuid() == 1000 && geteuid() == 1000 && getgid() == 1000, 0, "uid 1000");
	refused(SB_CAPABILITIES, setuid(0), "setuid(0)");
	row(SB_UID_RANGE, getgroups(0, NULL) == 0, 0, "no supplementary group");
}

static void
check_descriptors(void)
{
	unsigned extra = 0;
	for (int fd = INIT_CTL + 1; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
			extra++;
	row(SB_DESCRIPTORS, extra == 0, 0, "no inherited descriptor");
}

/* Its cgroups are the topmost that it can name: it is in its own, and nobody's is above. */
static void
check_cgroup(void)
{
	char text[4096];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	bool is_top = true;
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
		is_top &= end - line >= 2 && end[-1] == '/' && end[-2] == ':';
	row(SB_MEMORY_CGROUP, is_top, 0, "in a cgroup of its own");
}

static void
check_limits(void)
{
	static const struct {
		int what;
		const char *name;
	} limits[] = {{RLIMIT_NPROC, "NPROC"}, {RLIMIT_AS, "AS"}, {RLIMIT_FSIZE, "FSIZE"},
	    {RLIMIT_NOFILE, "NOFILE"}, {RLIMIT_CPU, "CPU"}, {RLIMIT_CORE, "CORE"}};
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit r;
		bool ok = getrlimit((__rlimit_resource_t)limits[i].what, &r) == 0 &&
			  r.rlim_max != RLIM_INFINITY && r.rlim_cur == r.rlim_max;
		row(SB_LIMITS, ok, 0, limits[i].name);
	}
	struct statvfs v;
	bool is_bounded = statvfs(INIT_WORK, &v) == 0 && v.f_blocks > 0 && v.f_files > 0;
	row(SB_WORKSPACE, is_bounded, 0, "size and inodes are bounded");
	int fd = open(INIT_WORK "/.selftest", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	row(SB_WORKSPACE, fd >= 0 && write(fd, "x", 1) == 1, fd < 0 ? errno : 0, "writable");
	if (fd >= 0) {
		off_t over = (off_t)(v.f_blocks * v.f_frsize) + 4096;
		errno = posix_fallocate(fd, 0, over);
		refused(SB_WORKSPACE, errno == 0 ? 0 : -1, "more than its size");
		close(fd);
		(void)unlink(INIT_WORK "/.selftest");
	}
}

void
selftest_rows(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGXFSZ, &ignore, NULL); /* EFBIG instead */
	check_credentials();
	check_descriptors();
	check_processes();
	check_sockets();
	check_calls();
	check_limits();
	check_cgroup();
	check_host_files();
	check_namespaces(); /* last */
}

void
selftest_run(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		selftest_rows();
		_exit(0);
	}
	int status = 1;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		row(SB_LIMITS, false, errno, "the self-test did not end");
	ctl_send(FRAME_CHECK_END, NULL, 0);
}
