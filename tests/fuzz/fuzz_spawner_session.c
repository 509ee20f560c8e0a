/* fuzz_spawner_session - a session that its spawner has just made, whose otari-init says whatever
 * the input says, on its control socket and on its status pipe
 *
 * First byte: 1 it is born from a zygote, 2 the status pipe gets the input's second half, 4 it is
 * asked for the self-test once it is ready.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/check.h"
#include "base/fd.h"
#include "sandbox/spawner/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	unsigned built, ready, frames, failed;
	bool asks;
};

static void
on_built(void *arg, struct session *s)
{
	struct seen *v = arg;
	CHECK(s->is_born && s->state == SESSION_STARTING);
	v->built++;
}

static void
on_ready(void *arg, struct session *s, int sys_errno)
{
	struct seen *v = arg;
	(void)sys_errno;
	CHECK(s->state == SESSION_IDLE);
	v->ready++;
	if (v->asks)
		session_ask_selftest(s);
}

static void
on_frame(void *arg, struct session *s, uint8_t type, struct str payload)
{
	struct seen *v = arg;
	CHECK(type != FRAME_READY && payload.len <= sizeof(s->in));
	v->frames++;
}

static void
on_failed(void *arg, struct session *s, const struct jail_fail *f)
{
	struct seen *v = arg;
	CHECK(s->state == SESSION_DYING && memchr(f->step, '\0', sizeof(f->step)) != NULL);
	v->failed++;
}

/* Dead and never waited for: it can be signalled and asked about for ever. */
static int
dead_child(void)
{
	static int pidfd = -1;
	siginfo_t si;
	if (pidfd >= 0)
		return pidfd;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(pid > 0 && pidfd >= 0 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) == 0);
	return pidfd;
}

static void
say(struct event_base *base, int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		size_t piece = 1 + data[0] % 61;
		piece = piece < size ? piece : size;
		if (send(fd, data, piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		    write(fd, data, piece) < 0)
			return;
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
		data += piece;
		size -= piece;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct session_ops ops = {on_built, on_ready, on_frame, on_failed};
	int ctl[2], status[2], other[2];
	if (size < 1)
		return 0;
	(void)signal(SIGPIPE, SIG_IGN);
	bool is_born = (data[0] & 1) != 0, has_status = (data[0] & 2) != 0;
	struct seen v = {.asks = (data[0] & 4) != 0};
	size_t half = has_status ? (size - 1) / 2 : size - 1;
	struct event_base *base = event_base_new();
	CHECK(base != NULL && fd_socketpair_stream(ctl, true) && fd_pipe(status, true) &&
	      fd_socketpair_stream(other, true));
	int fds[SESSION_FDS_BORN] = {fcntl(dead_child(), F_DUPFD_CLOEXEC, 3), status[0], ctl[0],
	    dup(other[0]), dup(other[0]), dup(other[0]), dup(other[0]), dup(other[0])};
	if (!is_born)
		for (int i = SESSION_FDS; i < SESSION_FDS_BORN; i++)
			fd_close(&fds[i]);
	struct session *s = session_new(0, is_born, &ops, &v);
	CHECK(session_made(s, base, 1, fds));
	if (has_status)
		say(base, status[1], data + 1 + half, size - 1 - half);
	fd_close(&status[1]);
	say(base, ctl[1], data + 1, half);
	fd_close(&ctl[1]);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	CHECK(v.ready <= 1 && v.failed <= 1 && v.built <= 1);
	session_free(&s);
	fd_close(&other[0]);
	fd_close(&other[1]);
	event_base_free(base);
	return 0;
}
