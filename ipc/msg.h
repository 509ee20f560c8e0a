/* msg.h - every message between the master and its children, in one table
 *
 * Direction, payload and fds of each type are in the table msg_info (msg.c); a message that the
 * table does not allow from that role closes the channel. Payloads are packed with ipc/codec.h.
 */
#ifndef OTARI_IPC_MSG_H
#define OTARI_IPC_MSG_H

enum msg_type {
	MSG_HELLO = 1, /* child → master: role, pid, build id */
	MSG_READY,     /* child → master: start-up is over */
	MSG_POLICY,    /* master → worker, sweeper: sealed policy snapshot (1 fd), generation */
	MSG_KEYS,    /* master → worker: sealed keys snapshot (1 fd), generation; base or delta */
	MSG_SECRETS, /* master → worker, sweeper: sealed secrets memfd for that audience (1 fd) */
	MSG_ACK,     /* worker, sweeper → master: generation now in use */
	MSG_PUBLISH, /* worker → master: id, what changed (policy|keys): build and publish */
	MSG_PUBLISHED, /* master → worker: id, result (in force, or not, and why) */
	MSG_LISTEN,    /* master → worker: one more listening socket to serve (1 fd) */
	MSG_SPAWNER,   /* master → worker: a new spawner's socket (1 fd), settings generation */
	MSG_SANDBOX,   /* master → worker: sandbox state (ready, or layer/errno/hint text) */
	MSG_DRAIN,     /* master → child: finish and exit */
	MSG_REOPEN,    /* master → child: new log fd (1 fd) */
	MSG_BUILD,     /* master → builder: what to build, generation to give it */
	MSG_BUILT, /* builder → master: summary + fds (policy, keys, secrets…), or failure text */
	MSG_FILE_WANTED,    /* builder → master: path of a key or secret file to open */
	MSG_FILE,           /* master → builder: the fd, or errno */
	MSG_SPAWNER_CONF,   /* master → spawner: sandbox settings */
	MSG_SPAWNER_WORKER, /* master → spawner: socket of a worker (1 fd), worker number */
	MSG_SPAWNER_REPORT, /* spawner → master: self-test layers */
	MSG_LEASE,          /* worker → spawner */
	MSG_LEASED,         /* spawner → worker (5 fds) */
	MSG_RELEASE,        /* worker → spawner */
	MSG_TYPE_MAX,
};

const char *msg_name(enum msg_type t);

#endif
