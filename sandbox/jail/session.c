#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/jail/jail.h"

/* Numbers in the child: what init expects (sandbox/init/init.h); exec closes AT_INIT. */
enum { AT_NULL, AT_OUT, AT_ERR, AT_CTL, AT_REQUEST, AT_MEMORY, AT_INIT, AT_STATUS, AT_END };

/* Moves the descriptors to their numbers and closes every other one. */
static bool
arrange(const struct jail *j, const struct jail_pipes *p, struct jail_fail *f)
{
	int want[AT_END] = {
	    -1, p->out, p->err, p->ctl, p->request, p->memory, j->init_fd, p->status};
	want[AT_NULL] = fd_open("/dev/null", O_RDWR, 0);
	/* First out of the way of each other, then down. */
	for (int i = 0; i < AT_END; i++) {
		if ((i == AT_REQUEST || i == AT_MEMORY) && want[i] < 0)
			continue;
		want[i] = fcntl(want[i], F_DUPFD_CLOEXEC, AT_END);
		if (want[i] < 0)
			return jail_failed(f, SB_DESCRIPTORS, "dup");
	}
	for (int i = 0; i < AT_END; i++)
		if (want[i] < 0)
			(void)close(i);
		else if (dup3(want[i], i, i == AT_INIT ? O_CLOEXEC : 0) != i)
			return jail_failed(f, SB_DESCRIPTORS, "dup3");
	if (syscall(SYS_close_range, AT_END, ~0u, 0) != 0)
		return jail_failed(f, SB_DESCRIPTORS, "close_range");
	return true;
}

/* First of all, so that everything it ever holds is counted; then it names no cgroup above it. */
static bool
enter_cgroup(const struct jail_pipes *p, struct jail_fail *f)
{
	int fd = fd_open("/proc/self/oom_score_adj", O_WRONLY, 0);
	/* When the host is short of memory, its own processes are the last to go. */
	if (fd >= 0)
		(void)!write(fd, "1000", 4);
	fd_close(&fd);
	for (size_t i = 0; i < ARRAY_LEN(p->join) && p->join[i] >= 0; i++)
		if (write(p->join[i], "0", 1) != 1)
			return jail_failed(f, SB_MEMORY_CGROUP, "join the cgroup");
	return unshare(CLONE_NEWCGROUP) == 0 ||
	       jail_failed(f, SB_IPC_UTS_NS, "unshare(CLONE_NEWCGROUP)");
}

static bool
become_session(const struct jail *j, uint32_t slot, const struct jail_pipes *p, struct jail_fail *f)
{
	uid_t uid = j->has_range ? JAIL_SLOT_UID + slot : 0;
	sigset_t none;
	sigemptyset(&none);
	if (!arrange(j, p, f))
		return false;
	/* So that /dev/stdout can be opened by name. */
	if (j->has_range && (fchown(AT_OUT, uid, uid) != 0 || fchown(AT_ERR, uid, uid) != 0))
		return jail_failed(f, SB_UID_RANGE, "fchown");
	if (!jail_session_mounts(j, uid, f) || !jail_session_ids(j, uid, f))
		return false;
	(void)setsid();
	/* After the last change of credentials, which would clear it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
		return jail_failed(f, SB_PID_NS, "death signal");
	return jail_session_locks(j, f);
}

/* On a stack that AddressSanitizer does not know, which it would say in the log at an _exit. */
#define OWN_STACK __attribute__((no_sanitize_address))

static _Noreturn OWN_STACK void
session_main(const struct jail *j, uint32_t slot, const struct jail_pipes *p)
{
	struct jail_fail f = {0};
	if (!enter_cgroup(p, &f)) {
		(void)!write(p->status, &f, sizeof(f));
		_exit(1);
	}
	if (become_session(j, slot, p, &f)) {
		const char *const argv[] = {
		    "otari-init", j->settings->python, p->request >= 0 ? "zygote" : NULL, NULL};
		const char *const envp[] = {NULL};
		syscall(SYS_execveat, AT_INIT, "", argv, envp, AT_EMPTY_PATH);
		jail_failed(&f, SB_INTERPRETER, "exec of otari-init");
	}
	/* Wherever the status pipe is by now, one of the two is it. */
	if (write(AT_STATUS, &f, sizeof(f)) != (ssize_t)sizeof(f))
		(void)!write(p->status, &f, sizeof(f));
	_exit(1);
}

struct start {
	const struct jail *j;
	const struct jail_pipes *p;
	uint32_t slot;
};

static int OWN_STACK
start_session(void *arg)
{
	const struct start *s = arg;
	session_main(s->j, s->slot, s->p);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARED_MEMORY 0 /* a sanitizer knows one stack per thread */
#else
#define SHARED_MEMORY (CLONE_VM | CLONE_VFORK)
#endif

pid_t
jail_clone(const struct jail *j, uint32_t slot, const struct jail_pipes *p, int *ret_pidfd)
{
	/* Until its exec the child works in our memory while we wait: a copy would cost a page
	 * fault for each page that it touches. */
	static _Alignas(16) char stack[64 << 10];
	int flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
		    CLONE_PARENT | SHARED_MEMORY | SIGCHLD;
	struct start s = {j, p, slot};
	int pidfd = -1;
	pid_t pid = clone(start_session, stack + sizeof(stack), flags, &s, &pidfd);
	int e = errno;
	/* Our memory was the child's that changed its user and had to be able to look at itself. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (pid > 0) {
		(void)fd_set_cloexec(pidfd, true);
		*ret_pidfd = pidfd;
	}
	errno = e;
	return pid;
}
