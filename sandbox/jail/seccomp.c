/* seccomp.c - which system calls a session may make
 *
 * An allow-list: what is not named is answered ENOSYS, so that the C library falls back and a call
 * of a newer kernel is closed by itself; what is known to be dangerous is EPERM. No ordinary
 * program dies by SIGSYS; only a foreign architecture's calls kill.
 * memfd_create is closed because no quota bounds what such files hold; inotify (and the same of
 * fcntl) because it would tell which of the host's programs are used; syncfs because it flushes the
 * host's disk; huge pages because they come out of the host's store; filters of sockets because
 * they are programs for the kernel; packets in pipes (O_DIRECT) because whoever reads the output
 * would get a byte at a time; MADV_PAGEOUT because what is in the swap is the host's,
 * MADV_MERGEABLE because a page that is merged tells that another has the same. The limit of core
 * files keeps its special value (session_locks.c): to set it changes nothing and is no error.
 * Comparisons are masked to 32 bits where the kernel takes an int.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/fs.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/jail/jail.h"

#define LOW32 0xffffffffu

static const char *const allowed[] = {
    /* files */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fallocate", "fchdir", "fchmod", "fchmodat",
    "fchmodat2", "fchown", "fchownat", "flock", "fstat", "fstatfs", "ftruncate", "futimesat",
    "getcwd", "getdents", "getdents64", "lchown", "link", "linkat", "lseek", "lstat", "mkdir",
    "mkdirat", "newfstatat", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2",
    "read", "readahead", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2",
    "rmdir", "sendfile", "stat", "statfs", "statx", "symlink", "symlinkat", "truncate", "umask",
    "unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
    /* memory */
    "brk", "membarrier", "mincore", "mlock", "mlock2", "mlockall", "mprotect", "mremap", "munlock",
    "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
    /* processes and threads */
    "arch_prctl", "capget", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "getcpu",
    "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid",
    "ioprio_get", "kill", "pidfd_open", "pidfd_send_signal", "rseq", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_yield",
    "set_robust_list", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setpgid",
    "setregid", "setresgid", "setresuid", "setreuid", "setsid", "setuid", "tgkill", "tkill",
    "vfork", "wait4", "waitid",
    /* signals, time, waiting */
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getitimer",
    "gettimeofday", "nanosleep", "pause", "pipe", "pipe2", "poll", "ppoll", "pselect6",
    "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "select", "setitimer",
    "sigaltstack", "signalfd", "signalfd4", "time", "timer_create", "timer_delete",
    "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime",
    "timerfd_settime", "times",
    /* connected pairs (socketpair below is the only way to get one) */
    "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg",
    "sendmsg", "sendto", "shutdown",
    /* the rest */
    "getrandom", "sysinfo", "uname"};

/* Nothing happens, and the caller is told that it did: all that a session may write is memory, but
 * each of these on a file of /usr, which it only reads, would flush the host's disk, or drop what
 * the host has of it in memory. */
#define NOT_DONE 0

static const struct {
	int sys_errno;
	const char *names[64];
} denied[] = {
    {EPERM, {"accept", "accept4", "acct", "add_key", "adjtimex", "bind", "bpf", "capset", "chroot",
		"clock_adjtime", "clock_settime", "connect", "delete_module", "fanotify_init",
		"fanotify_mark", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
		"init_module", "ioperm", "iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
		"listen", "lookup_dcookie", "mount", "mount_setattr", "move_mount",
		"name_to_handle_at", "open_by_handle_at", "open_tree", "perf_event_open",
		"personality", "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv",
		"process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setdomainname",
		"sethostname", "setns", "settimeofday", "swapoff", "swapon", "sync", "syncfs",
		"syslog", "umount2", "unshare", "userfaultfd", "vhangup"}},
    {EAFNOSUPPORT, {"socket"}}, {NOT_DONE, {"fdatasync", "fsync", "sync_file_range"}},
    {ENOTSUP,
	{"fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr", "lgetxattr",
	    "listxattr", "llistxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr"}}};

/* When (argument & mask) == value; the other values stand below. A file that is read past the
 * host's memory costs its disk every time. */
static const struct {
	const char *name;
	unsigned arg;
	uint64_t mask, value;
	int sys_errno;
} denied_by_argument[] = {
    {"msync", 2, MS_SYNC, MS_SYNC, NOT_DONE},
    {"fadvise64", 3, POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED, NOT_DONE},
    {"open", 1, O_DIRECT, O_DIRECT, EINVAL},
    {"openat", 2, O_DIRECT, O_DIRECT, EINVAL},
    {"madvise", 2, LOW32, MADV_MERGEABLE, EINVAL},
    {"madvise", 2, LOW32, MADV_PAGEOUT, EINVAL},
};

/* Allowed when (argument & mask) == value; anything else: ENOSYS, or `otherwise` if not 0. */
static const struct {
	const char *name;
	unsigned arg;
	uint64_t mask, value;
} by_argument[] = {
    {"socketpair", 0, LOW32, AF_UNIX},
    {"mmap", 3, MAP_HUGETLB, 0},
    {"msync", 2, MS_SYNC, 0},
    {"fadvise64", 3, POSIX_FADV_DONTNEED, 0},
    {"madvise", 2, LOW32, MADV_DONTNEED},
    {"madvise", 2, LOW32, MADV_NORMAL},
    {"madvise", 2, LOW32, MADV_RANDOM},
    {"madvise", 2, LOW32, MADV_SEQUENTIAL},
    {"madvise", 2, LOW32, MADV_WILLNEED},
    {"madvise", 2, LOW32, MADV_FREE},
    {"madvise", 2, LOW32, MADV_REMOVE},
    {"madvise", 2, LOW32, MADV_DONTFORK},
    {"madvise", 2, LOW32, MADV_DOFORK},
    {"madvise", 2, LOW32, MADV_UNMERGEABLE},
    {"madvise", 2, LOW32, MADV_HUGEPAGE},
    {"madvise", 2, LOW32, MADV_NOHUGEPAGE},
    {"madvise", 2, LOW32, MADV_DONTDUMP},
    {"madvise", 2, LOW32, MADV_DODUMP},
    {"madvise", 2, LOW32, MADV_WIPEONFORK},
    {"madvise", 2, LOW32, MADV_KEEPONFORK},
    {"madvise", 2, LOW32, MADV_COLD},
    {"madvise", 2, LOW32, MADV_POPULATE_READ},
    {"madvise", 2, LOW32, MADV_POPULATE_WRITE},
    {"open", 1, O_DIRECT, 0},
    {"openat", 2, O_DIRECT, 0},
    {"fcntl", 1, LOW32, F_DUPFD},
    {"fcntl", 1, LOW32, F_DUPFD_CLOEXEC},
    {"fcntl", 1, LOW32, F_GETFD},
    {"fcntl", 1, LOW32, F_SETFD},
    {"fcntl", 1, LOW32, F_GETFL},
    {"fcntl", 1, LOW32, F_GETLK},
    {"fcntl", 1, LOW32, F_SETLK},
    {"fcntl", 1, LOW32, F_SETLKW},
    {"fcntl", 1, LOW32, F_OFD_GETLK},
    {"fcntl", 1, LOW32, F_OFD_SETLK},
    {"fcntl", 1, LOW32, F_OFD_SETLKW},
    {"fcntl", 1, LOW32, F_GETOWN},
    {"fcntl", 1, LOW32, F_SETPIPE_SZ},
    {"fcntl", 1, LOW32, F_GETPIPE_SZ},
    {"fcntl", 1, LOW32, F_ADD_SEALS},
    {"fcntl", 1, LOW32, F_GET_SEALS},
    {"ioctl", 1, LOW32, TCGETS},
    {"ioctl", 1, LOW32, TIOCGWINSZ},
    {"ioctl", 1, LOW32, FIONREAD},
    {"ioctl", 1, LOW32, FIONBIO},
    {"ioctl", 1, LOW32, FIOCLEX},
    {"ioctl", 1, LOW32, FIONCLEX},
    {"prctl", 0, LOW32, PR_SET_NAME},
    {"prctl", 0, LOW32, PR_GET_NAME},
    {"prctl", 0, LOW32, PR_SET_PDEATHSIG},
    {"prctl", 0, LOW32, PR_GET_PDEATHSIG},
    {"prctl", 0, LOW32, PR_SET_DUMPABLE},
    {"prctl", 0, LOW32, PR_GET_DUMPABLE},
    {"prctl", 0, LOW32, PR_SET_NO_NEW_PRIVS},
    {"prctl", 0, LOW32, PR_GET_NO_NEW_PRIVS},
    {"prctl", 0, LOW32, PR_CAPBSET_READ},
    {"prctl", 0, LOW32, PR_GET_SECCOMP},
    {"prctl", 0, LOW32, PR_SET_TIMERSLACK},
    {"prctl", 0, LOW32, PR_GET_TIMERSLACK},
    {"prctl", 0, LOW32, PR_SET_VMA},
    /* Of the caller only: init must keep its own. */
    {"sched_setattr", 0, LOW32, 0},
    {"sched_setparam", 0, LOW32, 0},
    {"sched_setscheduler", 0, LOW32, 0},
    {"mknod", 1, S_IFMT, S_IFREG},
    {"mknod", 1, S_IFMT, S_IFIFO},
    {"mknod", 1, S_IFMT, 0},
    {"mknodat", 2, S_IFMT, S_IFREG},
    {"mknodat", 2, S_IFMT, S_IFIFO},
    {"mknodat", 2, S_IFMT, 0},
};

/* Allowed when both are so. */
static const struct {
	const char *name;
	struct {
		unsigned arg;
		uint64_t mask, value;
	} when[2];
} by_two_arguments[] = {
    {"fcntl", {{1, LOW32, F_SETFL}, {2, O_DIRECT, 0}}},
    {"setpriority", {{0, LOW32, PRIO_PROCESS}, {1, LOW32, 0}}},
    {"prlimit64", {{0, LOW32, 0}, {2, ~0ull, 0}}}, /* to read any */
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_REUSEADDR}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_SNDBUF}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_RCVBUF}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_KEEPALIVE}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_LINGER}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_PASSCRED}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_RCVLOWAT}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_RCVTIMEO}}},
    {"setsockopt", {{1, LOW32, SOL_SOCKET}, {2, LOW32, SO_SNDTIMEO}}},
};

#define CLONE_FORBIDDEN                                                                            \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	    CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_UNTRACED)

static int
number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr < 0 ? -1 : nr; /* unknown here, or not of this architecture */
}

static int
add_simple(scmp_filter_ctx ctx)
{
	int rc = 0;
	for (size_t i = 0; i < ARRAY_LEN(allowed) && rc == 0; i++)
		if (number(allowed[i]) >= 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number(allowed[i]), 0);
	for (size_t k = 0; k < ARRAY_LEN(denied); k++)
		for (size_t i = 0; denied[k].names[i] != NULL && rc == 0; i++)
			if (number(denied[k].names[i]) >= 0)
				rc = seccomp_rule_add(ctx,
				    SCMP_ACT_ERRNO((uint32_t)denied[k].sys_errno),
				    number(denied[k].names[i]), 0);
	return rc;
}

static int
add_by_two(scmp_filter_ctx ctx)
{
	int rc = 0;
	for (size_t i = 0; i < ARRAY_LEN(by_two_arguments) && rc == 0; i++) {
		int nr = number(by_two_arguments[i].name);
		struct scmp_arg_cmp c[2];
		for (unsigned k = 0; k < 2; k++)
			c[k] = SCMP_CMP64(by_two_arguments[i].when[k].arg, SCMP_CMP_MASKED_EQ,
			    by_two_arguments[i].when[k].mask, by_two_arguments[i].when[k].value);
		if (nr >= 0)
			rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, 2, c);
	}
	return rc;
}

/* Limits of the caller may be lowered; that of core files stays as it is. */
static int
add_limits(scmp_filter_ctx ctx)
{
	int set = number("setrlimit"), both = number("prlimit64"), rc = 0;
	for (uint64_t k = 0; k < RLIM_NLIMITS && rc == 0; k++) {
		uint32_t action = k == RLIMIT_CORE ? SCMP_ACT_ERRNO(NOT_DONE) : SCMP_ACT_ALLOW;
		struct scmp_arg_cmp one = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW32, k);
		struct scmp_arg_cmp three[] = {SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW32, 0),
		    SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW32, k), SCMP_CMP64(2, SCMP_CMP_NE, 0)};
		if (set >= 0)
			rc = seccomp_rule_add_array(ctx, action, set, 1, &one);
		if (rc == 0)
			rc = seccomp_rule_add_array(ctx, action, both, 3, three);
	}
	return rc;
}

static int
add_by_argument(scmp_filter_ctx ctx)
{
	int rc = 0;
	for (size_t i = 0; i < ARRAY_LEN(by_argument) && rc == 0; i++) {
		int nr = number(by_argument[i].name);
		struct scmp_arg_cmp c = SCMP_CMP64(by_argument[i].arg, SCMP_CMP_MASKED_EQ,
		    by_argument[i].mask, by_argument[i].value);
		if (nr >= 0)
			rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, 1, &c);
	}
	for (size_t i = 0; i < ARRAY_LEN(denied_by_argument) && rc == 0; i++) {
		int nr = number(denied_by_argument[i].name);
		struct scmp_arg_cmp c = SCMP_CMP64(denied_by_argument[i].arg, SCMP_CMP_MASKED_EQ,
		    denied_by_argument[i].mask, denied_by_argument[i].value);
		if (nr >= 0)
			rc = seccomp_rule_add_array(ctx,
			    SCMP_ACT_ERRNO((uint32_t)denied_by_argument[i].sys_errno), nr, 1, &c);
	}
	/* The kernel takes the low 32 bits of the flags. */
	struct scmp_arg_cmp no_new =
	    SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, (uint64_t)(uint32_t)CLONE_FORBIDDEN, 0);
	if (rc == 0)
		rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number("clone"), 1, &no_new);
	for (unsigned bit = 0; bit < 32 && rc == 0; bit++) {
		uint64_t flag = 1ull << bit;
		if (((uint64_t)(uint32_t)CLONE_FORBIDDEN & flag) == 0)
			continue;
		struct scmp_arg_cmp c = SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, flag, flag);
		rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), number("clone"), 1, &c);
	}
	return rc;
}

static enum err_code export(scmp_filter_ctx ctx, struct jail_filter *ret, struct err *reterr) {
	char *bytes = NULL; size_t len = 0; int fd = fd_memfd("filter");
	if (fd < 0) return err_set(reterr, ERR_IO, "memfd_create");
	int rc = seccomp_export_bpf(ctx, fd);
	enum err_code code = ERR_OK;
	if (rc != 0) code = err_set(reterr, ERR_INTERNAL, "seccomp_export_bpf: %s", strerror(-rc));
	else if (lseek(fd, 0, SEEK_SET) != 0) code = err_set(reterr, ERR_IO, "lseek");
	else code = fd_read_all(
	    fd, BPF_MAXINSNS * sizeof(struct sock_filter), &bytes, &len, reterr);
	fd_close(&fd);
	if (code != ERR_OK) return code;
	*ret = (struct jail_filter){(void *)bytes, (uint16_t)(len / sizeof(struct sock_filter))};
	return ERR_OK;
}

enum err_code
jail_filter_build(struct jail_filter *ret, struct err *reterr)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (ctx == NULL)
		return err_set(reterr, ERR_INTERNAL, "seccomp_init");
	enum err_code code = ERR_OK;
	int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = add_simple(ctx);
	if (rc == 0)
		rc = add_by_argument(ctx);
	if (rc == 0)
		rc = add_by_two(ctx);
	if (rc == 0)
		rc = add_limits(ctx);
	if (rc != 0)
		code = err_set(reterr, ERR_INTERNAL, "seccomp rules: %s", strerror(-rc));
	else
		code = export(ctx, ret, reterr);
	seccomp_release(ctx);
	return code;
}

void
jail_filter_done(struct jail_filter *f)
{
	mem_free(f->insns);
	*f = (struct jail_filter){0};
}
