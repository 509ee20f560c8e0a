/* library.c - the zygote's library: takes requests, forks into a session, locks the child
 *
 * Process: zygote, called from zygote.py by ctypes; the child after zygote_fork() is the session's.
 * Rule:    between the fork and the last lock runs no Python and nothing that a session wrote; what
 *          goes wrong there ends the child. No heap.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/filter.h>

#include "base/fd.h"
#include "sandbox/init/init.h"
#include "sandbox/jail/jail.h"
#include "sandbox/zygote/zygote.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int zygote_setup(void);
EXPORT const char *zygote_modules(void);
EXPORT void zygote_loaded(const char *failed);
EXPORT int zygote_wait(void);
EXPORT int zygote_fork(void);
EXPORT void zygote_forked(int pid, int sys_errno);

static struct {
	struct zygote_setup head;
	struct sock_filter insns[ZYGOTE_INSNS_MAX];
} setup;
static struct jail jail;
static struct zygote_request request;
static int fds[ZYGOTE_FDS_MAX];
static size_t fd_count;

/* --- what the walls' files need of base and of the spawner
 * ----------------------------------------
 */
void
fd_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

int
fd_open(const char *path, int flags, mode_t mode)
{
	return open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
}

bool
jail_failed(struct jail_fail *f, enum sandbox_layer layer, const char *step)
{
	f->layer = (uint32_t)layer;
	f->sys_errno = errno;
	(void)snprintf(f->step, sizeof(f->step), "%s", step);
	return false;
}

/* --- the zygote
 * -----------------------------------------------------------------------------------
 */
/* Of all that root of the spawner's namespace may, what the way into a session takes. */
static bool
keep_few_capabilities(void)
{
	static const int kept[] = {
	    CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID, CAP_SETPCAP};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	memset(data, 0, sizeof(data));
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		data[kept[i] / 32].permitted |= 1u << (kept[i] % 32);
		data[kept[i] / 32].effective |= 1u << (kept[i] % 32);
	}
	return syscall(SYS_capset, &head, data) == 0;
}

/* 0 or an errno. */
int
zygote_setup(void)
{
	ssize_t n = recv(ZYGOTE_AT_CTL, &setup, sizeof(setup), 0);
	if (n < (ssize_t)sizeof(setup.head))
		return n < 0 ? errno : EPROTO;
	if (setup.head.insns > ZYGOTE_INSNS_MAX ||
	    (size_t)n != sizeof(setup.head) + setup.head.insns * sizeof(setup.insns[0]))
		return EPROTO;
	jail.settings = &setup.head.settings;
	jail.filter.insns = setup.insns;
	jail.filter.count = (uint16_t)setup.head.insns;
	jail.without = setup.head.without;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !keep_few_capabilities() ||
	    prctl(PR_SET_DUMPABLE, 0) != 0)
		return errno;
	return 0;
}

const char *
zygote_modules(void)
{
	return setup.head.settings.preload;
}

static void
answer(uint64_t seq, int sys_errno, const char *text)
{
	struct zygote_answer a = {.seq = seq, .sys_errno = sys_errno};
	(void)snprintf(a.text, sizeof(a.text), "%s", text);
	if (send(ZYGOTE_AT_CTL, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
		_exit(0); /* the spawner is gone */
}

/* A thread would not be in the child, but what it holds would. */
static bool
has_threads(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		if (e->d_name[0] != '.')
			n++;
	if (d != NULL)
		closedir(d);
	return n != 1;
}

void
zygote_loaded(const char *failed)
{
	answer(0, has_threads() ? EBUSY : 0, failed);
}

static bool
receive(void)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(fds))];
	} control;
	struct iovec iov = {&request, sizeof(request)};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf)};
	ssize_t n;
	do
		n = recvmsg(ZYGOTE_AT_CTL, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (n != (ssize_t)sizeof(request) || c == NULL || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len < CMSG_LEN(ZYGOTE_FDS * sizeof(int)) ||
	    (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
		return false;
	fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), fd_count * sizeof(int));
	return true;
}

static void
drop(void)
{
	for (size_t i = 0; i < fd_count; i++)
		fd_close(&fds[i]);
	fd_count = 0;
}

/* 1: fork now; 0: the spawner is gone. Children of this process are made in the session's pid
 * namespace from here on. */
int
zygote_wait(void)
{
	while (receive()) {
		if (setns(fds[ZYGOTE_FD_PID], CLONE_NEWPID) == 0)
			return 1;
		answer(request.seq, errno, "setns");
		drop();
	}
	return 0;
}

/* pid of the process in between; or -1 with the errno. */
void
zygote_forked(int pid, int sys_errno)
{
	int status = 0;
	drop();
	if (pid < 0) {
		answer(request.seq, sys_errno, "fork");
		return;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	answer(request.seq, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "fork");
}

/* --- the child
 * ------------------------------------------------------------------------------------
 */
/* The session's init is the parent as soon as the process in between has ended. */
static bool
wait_for_init(void)
{
	for (unsigned i = 0; i < 4000; i++) {
		if (getppid() == 1)
			return true;
		(void)nanosleep(&(struct timespec){0, 500000}, NULL);
	}
	return false;
}

/* What it touches from here on is the session's. */
static bool
enter_cgroup(void)
{
	int fd = fd_open("/proc/self/oom_score_adj", O_WRONLY, 0);
	if (fd >= 0)
		(void)!write(fd, "1000", 4);
	fd_close(&fd);
	for (size_t i = ZYGOTE_FDS; i < fd_count; i++)
		if (write(fds[i], "0", 1) != 1)
			return false;
	return true;
}

static bool
enter(void)
{
	int other = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	/* The session's user namespace last: all others belong to the one above it. */
	return setns(fds[ZYGOTE_FD_PID], other) == 0 &&
	       setns(fds[ZYGOTE_FD_PID], CLONE_NEWUSER) == 0 && setresgid(1000, 1000, 1000) == 0 &&
	       setresuid(1000, 1000, 1000) == 0 && chdir(INIT_WORK) == 0;
}

static bool
arrange(void)
{
	int from[4] = {-1, fds[ZYGOTE_FD_OUT], fds[ZYGOTE_FD_ERR], fds[ZYGOTE_FD_REQUEST]};
	from[0] = fd_open("/dev/null", O_RDWR, 0); /* the session's, not the one from outside */
	for (int i = 0; i < 4; i++)
		if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 16)) < 0)
			return false;
	for (int i = 0; i < 4; i++)
		if (dup2(from[i], i) != i)
			return false;
	return syscall(SYS_close_range, 4, ~0u, 0) == 0;
}

static bool
become_session(void)
{
	struct jail_fail f;
	sigset_t none;
	sigemptyset(&none);
	umask(022);
	if (!enter_cgroup() || !wait_for_init() || !enter() || !arrange() || setsid() < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) != 0)
		return false;
	(void)setpriority(PRIO_PROCESS, 0, 10);
	/* As after an exec: it may look at itself. The change of user took that away. */
	return jail_session_locks(&jail, &f) && prctl(PR_SET_DUMPABLE, 1) == 0;
}

/* A fork leaves what is mapped from files to be found page by page: all of the interpreter's own at
 * once is cheaper. */
static int
populate(struct dl_phdr_info *o, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (size_t i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t at = (o->dlpi_addr + p->p_vaddr) & ~(uintptr_t)4095;
		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) == 0)
			(void)madvise((void *)at, p->p_filesz, MADV_POPULATE_READ);
	}
	return 1; /* only the program, which comes first */
}

/* In the zygote: pid or -1. In the session's interpreter, behind every wall: 0. The process in
 * between makes the session's init the parent of the interpreter. */
int
zygote_fork(void)
{
	/* It only forks and ends: no copy of our memory for that. The interpreter's is one of this
	 * very moment, so it goes on from here. */
	pid_t pid = vfork();
	if (pid != 0)
		return pid;
	pid = fork();
	if (pid != 0)
		_exit(pid < 0 ? errno & 0xff : 0);
	if (!become_session())
		_exit(99);
	(void)dl_iterate_phdr(populate, NULL);
	if (request.op == ZYGOTE_TEST) {
		selftest_rows();
		ctl_send(FRAME_CHECK_END, NULL, 0);
		_exit(0);
	}
	return 0;
}
