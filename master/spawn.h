/* spawn.h - fork and exec of this program in another role, with fixed descriptors
 *
 * Process: master, one thread. The child gets its own process group, default signals, an empty
 * environment (but for what sanitizers and the time zone need) and no descriptor that is not
 * listed: everything of ours is close-on-exec.
 */
#ifndef OTARI_MASTER_SPAWN_H
#define OTARI_MASTER_SPAWN_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ipc/fds.h"

struct child;
struct master;

struct spawn_fd {
	int fd;     /* ours, borrowed; -1: left out */
	int target; /* ipc/fds.h */
};
#define SPAWN_FDS_MAX 16u

/* Starts the role; FD_CTL, FD_BOARD, FD_LOG and 0-2 are added here. *ret_ctl: our end of the
 * channel, owned by the caller. *ret: a child in state STARTING, in the table, without channel. */
MUST_CHECK enum err_code spawn_role(struct master *m, enum role role, uint32_t number,
    const struct spawn_fd *fds, size_t nfds, struct child **ret, int *ret_ctl, struct err *reterr);

#endif
