/* fds.h - the descriptors that a child of the master finds open, and the role names
 *
 * The contract between master/child.c and ipc/role.c. Every number is fixed; what a role does not
 * use is closed. 0 is /dev/null, 1 and 2 are the log.
 */
#ifndef OTARI_IPC_FDS_H
#define OTARI_IPC_FDS_H

enum {
	FD_CTL = 3,      /* SEQPACKET channel to the master */
	FD_BOARD = 4,    /* memfd of the board, read-write */
	FD_LOG = 5,      /* where log lines go */
	FD_SPAWNER = 6,  /* worker: SEQPACKET to the spawner */
	FD_LISTEN = 7,   /* worker: its SO_REUSEPORT public socket (more may come by message) */
	FD_INIT_EXE = 8, /* spawner: the otari-init program */
	FD_ADMIN = 9,    /* worker: the shared admin listener, if any */
	FD_CONF = 10, /* builder: otari.conf, opened by the master (-1: stdin rules do not exist) */
	FD_ENVIRON = 11, /* builder: sealed memfd with the start environment, NUL-separated */
	FD_SERVE = 12,   /* worker 1: where the sandbox is lent to other gateways, if anywhere */
	FD_FIRST_FREE = 13,
};

enum role { ROLE_MASTER, ROLE_SPAWNER, ROLE_BUILDER, ROLE_WORKER, ROLE_SWEEPER };

#endif
