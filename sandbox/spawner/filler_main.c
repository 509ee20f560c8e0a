#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/spawner/filler.h"

struct ends {
	int mine[LEASE_FDS], theirs[LEASE_FDS], status[2];
	int request[2]; /* init's, the interpreter's; -1: init starts one itself */
};

static bool
make_ends(struct ends *e, bool is_born)
{
	int yes = 1;
	e->request[0] = e->request[1] = -1;
	for (int i = 0; i < LEASE_FDS; i++)
		e->mine[i] = e->theirs[i] = -1;
	e->status[0] = e->status[1] = -1;
	int pair[2];
	if (!fd_socketpair_stream(pair, false))
		return false;
	e->mine[LEASE_FD_CTL] = pair[0];
	e->theirs[LEASE_FD_CTL] = pair[1];
	for (int i = LEASE_FD_OUT; i <= LEASE_FD_ERR; i++) {
		if (!fd_pipe(pair, false))
			return false;
		e->mine[i] = pair[0];
		e->theirs[i] = pair[1];
	}
	/* Init learns the interpreter's pid from the kernel. */
	if (is_born &&
	    (!fd_socketpair_stream(e->request, false) ||
		setsockopt(e->request[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0))
		return false;
	return fd_pipe(e->status, false) && fd_set_nonblock(e->status[0], true);
}

static void
close_ends(struct ends *e)
{
	for (int i = 0; i < LEASE_FDS; i++) {
		fd_close(&e->theirs[i]);
		fd_close(&e->mine[i]);
	}
	for (int i = 0; i < 2; i++) {
		fd_close(&e->status[i]);
		fd_close(&e->request[i]);
	}
}

/* False: the broker is gone. */
static bool
serve(const struct jail *j, int sock, const struct filler_order *o, const int cgroup[FILLER_FDS])
{
	struct filler_made made = {.seq = o->seq, .slot = o->slot};
	struct ends e;
	int pidfd = -1;
	bool is_born = o->is_born != 0;
	if (make_ends(&e, is_born)) {
		struct jail_pipes p = {e.theirs[LEASE_FD_CTL], e.theirs[LEASE_FD_OUT],
		    e.theirs[LEASE_FD_ERR], e.request[0], e.status[1], cgroup[0], {-1, -1, -1}};
		memcpy(p.join, cgroup + 1, sizeof(p.join));
		made.pid = jail_clone(j, o->slot, &p, &pidfd);
	} else {
		made.pid = -1;
	}
	made.sys_errno = made.pid < 0 ? errno : 0;
	const int fds[SESSION_FDS_BORN] = {[SESSION_FD_PID] = pidfd,
	    [SESSION_FD_STATUS] = e.status[0],
	    [SESSION_FD_CTL] = e.mine[LEASE_FD_CTL],
	    [SESSION_FD_OUT] = e.mine[LEASE_FD_OUT],
	    [SESSION_FD_ERR] = e.mine[LEASE_FD_ERR],
	    [SESSION_FD_BORN_REQUEST] = e.request[1],
	    [SESSION_FD_BORN_OUT] = e.theirs[LEASE_FD_OUT],
	    [SESSION_FD_BORN_ERR] = e.theirs[LEASE_FD_ERR]};
	size_t nfds = is_born ? SESSION_FDS_BORN : SESSION_FDS;
	if (made.pid < 0)
		nfds = 0;
	/* When it cannot be sent the session's control socket ends here, and the session with it.
	 */
	bool ok = fd_send_msg(sock, &made, sizeof(made), fds, nfds) == (ssize_t)sizeof(made);
	fd_close(&pidfd);
	close_ends(&e);
	return ok;
}

_Noreturn void
filler_main(const struct jail *j, int sock)
{
	struct filler_order o;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Broker and workers have the cores first. Inherited by what it makes: interpreters go
	 * lower still. */
	(void)setpriority(PRIO_PROCESS, 0, 5);
	for (;;) {
		int cgroup[FILLER_FDS];
		size_t nfds = FILLER_FDS;
		ssize_t n = fd_recv_msg(sock, &o, sizeof(o), cgroup, &nfds);
		if (n < 0 && errno == EINTR)
			continue;
		for (size_t i = n < 0 ? 0 : nfds; i < FILLER_FDS; i++)
			cgroup[i] = -1;
		if (n != sizeof(o) || !serve(j, sock, &o, cgroup))
			_exit(n == 0 ? 0 : 1);
		for (size_t i = 0; i < FILLER_FDS; i++)
			fd_close(&cgroup[i]);
	}
}
