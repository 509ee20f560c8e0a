#include "master/reap.h"

#include <sys/wait.h>

#include <errno.h>

#include "base/log.h"
#include "master/link.h"
#include "master/master.h"
#include "master/reload.h"

static void
ended(struct master *m, struct child *c, int status)
{
	switch (c->role) {
	case ROLE_BUILDER:
		if (reload_on_ended(c, status))
			return;
		break;
	case ROLE_SPAWNER:
		link_lost(m, c);
		break;
	case ROLE_WORKER:
		link_remove_worker(m, c);
		break;
	case ROLE_SWEEPER:
	case ROLE_MASTER:
		break;
	}
	if (c->seat != NULL)
		seat_child_ended(c->seat, c, status);
	child_set_state(c, CHILD_GONE, 0);
	child_forget(&c);
}

void
reap_all(struct master *m)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid <= 0)
			break;
		struct child *c = child_by_pid(m, pid);
		if (c != NULL)
			ended(m, c, status);
		else
			log_debug("an orphan ended", LOG_INT("orphan_pid", pid));
	}
	master_step(m);
}
