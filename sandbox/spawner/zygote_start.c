#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <linux/filter.h>

#include "base/fd.h"
#include "sandbox/init/init.h"
#include "sandbox/spawner/broker.h"
#include "sandbox/zygote/zygote.h"

/* Modules keep what they compute at import below the home and the temporary folder. */
static bool
make_tmp(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("zygote", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		   "size=64m,nr_inodes=1024,mode=0700") == 0;
}

static _Noreturn void
exec_zygote(const char *path, int ctl, int program, int driver)
{
	int sink[2] = {-1, -1};
	if (!fd_pipe(sink, true))
		_exit(126);
	int null = fd_open("/dev/null", O_RDWR, 0);
	int from[ZYGOTE_AT_END] = {null, sink[1], sink[1], ctl, program, driver, sink[0]};
	sigset_t none;
	sigemptyset(&none);
	for (int i = 0; i < ZYGOTE_AT_END; i++)
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ZYGOTE_AT_END);
	for (int i = 0; i < ZYGOTE_AT_END; i++)
		if (from[i] < 0 || dup2(from[i], i) != i)
			_exit(126);
	if (syscall(SYS_close_range, ZYGOTE_AT_END, ~0u, 0) != 0 || !make_tmp() ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0 ||
	    setsid() < 0 || chdir("/") != 0)
		_exit(126);
	(void)setpriority(PRIO_PROCESS, 0, 10); /* whoever waits has the cores */
	const char *const argv[] = {
	    path, "-I", "-B", "-X", "utf8", "-c", "exec(open(4).read())", NULL};
	/* One thread each: a zygote with threads cannot be forked. */
	const char *const envp[] = {INIT_ENVIRONMENT("1"), NULL};
	execve(path, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
	_exit(127);
}

/* A file that holds the text, to be read until its end. (A pipe may be too small: its user may have
 * many, in sessions.) */
static bool
text_file(struct str text, int *ret)
{
	*ret = fd_memfd("text");
	return *ret >= 0 && fd_write_all(*ret, text, NULL) == ERR_OK &&
	       lseek(*ret, 0, SEEK_SET) == 0;
}

static bool
send_setup(const struct broker *b, int fd)
{
	struct zygote_setup head = {
	    .settings = b->settings, .insns = b->jail.filter.count, .without = b->jail.without};
	size_t n = head.insns * sizeof(struct sock_filter);
	struct iovec iov[2] = {{&head, sizeof(head)}, {b->jail.filter.insns, n}};
	return writev(fd, iov, 2) == (ssize_t)(sizeof(head) + n);
}

pid_t
zygote_spawn(const struct broker *b, int *ret_fd)
{
	int pair[2] = {-1, -1}, program = -1, driver = -1;
	pid_t pid = -1;
	if (b->jail.filter.count <= ZYGOTE_INSNS_MAX && fd_socketpair_seqpacket(pair, false) &&
	    text_file(zygote_program(), &program) && text_file(zygote_driver(), &driver) &&
	    send_setup(b, pair[0]) && fd_set_nonblock(pair[0], true)) {
		pid = fork();
		if (pid == 0)
			exec_zygote(b->settings.python, pair[1], program, driver);
	}
	int e = errno;
	fd_close(&pair[1]);
	fd_close(&program);
	fd_close(&driver);
	if (pid < 0)
		fd_close(&pair[0]);
	*ret_fd = pair[0];
	errno = e;
	return pid;
}
