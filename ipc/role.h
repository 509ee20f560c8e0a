/* role.h - the start-up that every child of the master goes through, in one function
 *
 * role_start: verify the fixed fds → process title → drop privileges (user from OTARI_ROLE_USER
 * uid:gid args, not for the spawner's own rules) → non-dumpable → watch the master (thread on
 * FD_CTL EOF is the channel itself; PDEATHSIG set after the last credential change, getppid
 * re-checked) → event base, signals → HELLO. The role then loads what it needs and calls
 * role_ready.
 */
#ifndef OTARI_IPC_ROLE_H
#define OTARI_IPC_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ipc/chan.h"
#include "ipc/fds.h"

struct board;
struct board_slot;
struct event_base;
struct role_private;

struct role_env {
	enum role role;
	uint32_t number; /* worker number from 1; else 0 */
	struct event_base *base;
	struct chan *ctl; /* to the master */
	struct board *board;
	struct board_slot *slot;
	/* Every message from the master that role.c does not answer itself (REOPEN). SIGTERM comes
	 * as a MSG_DRAIN. NULL: the master is gone and the role must exit now. */
	chan_on_msg *on_msg;
	void *arg;
	struct role_private *priv;
};

/* argv of a child: otari --role NAME --number N --slot S [--uid U --gid G] [--log json|text]
 * [--log-level L] */
MUST_CHECK enum err_code role_start(int argc, char **argv, chan_on_msg *on_msg, void *arg,
    struct role_env *ret, struct err *reterr);
void role_ready(struct role_env *env);
void role_draining(struct role_env *env); /* shown on the board */
void role_done(struct role_env *env);     /* frees what role_start made */
/* Shows "otari: worker 1" in the process list, in place of the arguments. argv is overwritten, and
 * after it up to spare bytes, which the caller knows to be free (of a wiped environment). */
void role_set_title(int argc, char **argv, size_t spare, const char *title);
const char *role_name(enum role r);

#endif
