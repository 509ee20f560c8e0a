#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/init/init.h"

/* The driver's text, followed by a NUL. */
extern const char driver_text[];
__asm__(".section .rodata\n"
	".global driver_text\n"
	"driver_text:\n"
	".incbin \"sandbox/init/driver.py\"\n"
	".byte 0\n"
	".previous\n");

#define REPLY_BYTES 16
enum { REPLY_READY = 1, REPLY_OK, REPLY_ERROR, REPLY_EXIT };

struct python python = {.fd = -1};
static char reply[REPLY_BYTES];
static size_t reply_len;

int64_t
now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ends {
	int request[2], driver[2]; /* ours, the interpreter's */
};

static void
close_ends(const int p[2])
{
	for (int i = 0; i < 2; i++)
		if (p[i] >= 0)
			close(p[i]);
}

static bool
make_ends(struct ends *e)
{
	size_t n = strlen(driver_text); /* of ours */
	*e = (struct ends){{-1, -1}, {-1, -1}};
	/* The driver fits into a socket. A pipe may hold two pages: of a user who has many, and
	 * that may be the user of other sessions too. */
	ssize_t sent = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->request) == 0 &&
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->driver) == 0 &&
	    (sent = send(e->driver[1], driver_text, n, MSG_DONTWAIT | MSG_NOSIGNAL)) == (ssize_t)n)
		return true;
	int saved = sent > 0 ? ENOBUFS : errno;
	close_ends(e->request);
	close_ends(e->driver);
	errno = saved;
	return false;
}

int
python_start(const char *path)
{
	struct ends ends;
	if (!make_ends(&ends))
		return errno;
	const char *const paths[] = {path, NULL};
	const char *const argv[] = {
	    path, "-I", "-B", "-X", "utf8", "-c", "exec(open(4).read())", NULL};
	struct spawn s = {paths, argv, {ends.request[1], ends.driver[0]}, 2};
	pid_t pid = spawn(&s);
	int e = pid < 0 ? errno : 0;
	close(ends.request[1]);
	close_ends(ends.driver);
	if (e != 0) {
		close(ends.request[0]);
		return e;
	}
	fcntl(ends.request[0], F_SETFL, O_NONBLOCK);
	python = (struct python){.pid = pid, .fd = ends.request[0]};
	reply_len = 0;
	return 0;
}

void
python_forget(void)
{
	if (python.fd >= 0)
		close(python.fd);
	python = (struct python){.fd = -1};
}

void
python_expect(void)
{
	fcntl(INIT_REQUEST, F_SETFD, FD_CLOEXEC);
	fcntl(INIT_REQUEST, F_SETFL, O_NONBLOCK);
	python = (struct python){.fd = INIT_REQUEST};
	reply_len = 0;
}

/* The kernel tells who says it: the pid in this namespace of an interpreter that we did not fork.
 * No code of a session runs yet. */
static ssize_t
read_first(void)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {reply + reply_len, sizeof(reply) - reply_len};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf)};
	struct ucred who;
	ssize_t n = recvmsg(python.fd, &m, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
	    c->cmsg_len != CMSG_LEN(sizeof(who)))
		return 0;
	memcpy(&who, CMSG_DATA(c), sizeof(who));
	if (who.pid <= 1)
		return 0;
	python.pid = who.pid;
	return n;
}

enum python_event
python_read(int32_t *ret_code)
{
	ssize_t n = python.pid == 0 ? read_first()
				    : read(python.fd, reply + reply_len, sizeof(reply) - reply_len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return PYTHON_NOTHING;
	if (n <= 0)
		return PYTHON_GONE;
	reply_len += (size_t)n;
	if (reply_len < sizeof(reply))
		return PYTHON_NOTHING;
	reply_len = 0;
	uint32_t status;
	int32_t code;
	memcpy(&status, reply + 4, sizeof(status));
	memcpy(&code, reply + 8, sizeof(code));
	if (memcmp(reply, "OtRp", 4) != 0)
		return PYTHON_GONE;
	if (status == REPLY_READY && !python.is_warming) {
		/* An empty call first, all the way: what it touches is there for the first real
		 * one. */
		size_t sent = 0;
		python.is_warming = true;
		return python_send(str_n("\0\0\0\0", 4), &sent) && sent == 4 ? PYTHON_NOTHING
									     : PYTHON_GONE;
	}
	if (!python.is_warming || status < REPLY_OK || status > REPLY_EXIT)
		return PYTHON_GONE;
	if (!python.is_ready) {
		python.is_ready = true;
		return PYTHON_READY;
	}
	*ret_code = code & 0xff;
	return PYTHON_DONE;
}

bool
python_send(struct str bytes, size_t *sent)
{
	while (*sent < bytes.len) {
		ssize_t n = send(python.fd, bytes.ptr + *sent, bytes.len - *sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		*sent += (size_t)n;
	}
	return true;
}

void
reap(void)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (pid == python.pid) {
			python.has_exited = true;
			python.wait_status = status;
		}
		if (pid == the_program.pid) {
			the_program.has_exited = true;
			the_program.wait_status = status;
		}
	}
}
