/* msg.h - every message between the master and its children, in one table
 *
 * The spawner is the exception: it speaks ipc/lease.h with the master and the workers.
 * Direction, payload and fds of each type are in the table msg_info (msg.c); a message that the
 * table does not allow from that role closes the channel. Payloads are packed with ipc/codec.h.
 */
#ifndef OTARI_IPC_MSG_H
#define OTARI_IPC_MSG_H

#include <stdint.h>

enum msg_type {
	MSG_HELLO = 1, /* child → master: role, pid, build id */
	MSG_READY,     /* child → master: start-up is over */
	MSG_POLICY,    /* master → worker, sweeper: sealed policy snapshot (1 fd), generation */
	MSG_KEYS,    /* master → worker: sealed keys snapshot (1 fd), generation; base or delta */
	MSG_SECRETS, /* master → worker, sweeper: sealed secrets memfd for that audience (1 fd) */
	MSG_ACK,     /* worker, sweeper → master: generation now in use */
	MSG_PUBLISH, /* worker, sweeper → master: id, what changed (policy|keys): build and publish
		      */
	MSG_PUBLISHED, /* master → worker: id, result (in force, or not, and why) */
	MSG_LISTEN,    /* master → worker: one more listening socket to serve (1 fd) */
	MSG_SPAWNER,   /* master → worker: its socket to a new spawner (1 fd) */
	MSG_DRAIN,     /* master → child: finish and exit */
	MSG_RECYCLE,   /* worker → master: only a fresh process takes a changed setting over */
	MSG_LEAVING, /* worker → master: it drains (for a reason of its own too): fill its seat */
	MSG_REOPEN,  /* master → child: new log fd (1 fd) */
	MSG_BUILD,   /* master → builder: what to build, generation to give it */
	MSG_BUILT, /* builder → master: summary + fds (policy, keys, secrets…), or failure text */
	MSG_FILE_WANTED, /* builder → master: path of a key or secret file to open */
	MSG_FILE,        /* master → builder: the fd, or errno */
	MSG_TRY,         /* master → worker: does the sandbox run code? */
	MSG_TRIED,       /* worker → master: how that went */
	MSG_TYPE_MAX,
};

/* Roles as a mask of 1u << enum role. */
struct msg_info {
	const char *name;
	uint32_t senders; /* who may send it */
	uint32_t max_bytes, max_fds;
};

const char *msg_name(enum msg_type t);
/* NULL for a number that is no type. */
const struct msg_info *msg_info(uint32_t t);

#endif
