/* payload.h - what the messages of ipc/msg.h carry, and how it is packed
 *
 * Process: both ends of every channel to the master. Pure.
 * Rule:    x_encode appends to a buffer; x_decode refuses a payload with bytes missing or left over
 * (ERR_PROTO). Strings of a decoded struct point into the payload.
 * Not here: the spawner's messages (ipc/lease.h), the settings inside MSG_BUILT
 * (ipc/master_conf.h). Messages without an entry here have no payload.
 */
#ifndef OTARI_IPC_PAYLOAD_H
#define OTARI_IPC_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Segments, as a mask; the numbers are those of publish_request (worker/env.h). */
enum segment { SEG_KEYS = 1, SEG_POLICY = 2, SEG_BOTH = 3 };

struct hello { /* MSG_HELLO */
	uint32_t role, number, pid;
	struct str build_id;
};

/* MSG_POLICY, MSG_KEYS (1 fd). A keys base replaces base and delta; a keys delta replaces only the
 * delta. The pair of one build comes keys first; the policy message, if any, is the last. */
struct snapshot_note {
	uint64_t generation; /* of the build; the same for all segments of one build */
	bool is_delta;
	bool is_last; /* of this build: acknowledge when it is in use */
};

struct ack { /* MSG_ACK */
	uint64_t generation;
};

/* MSG_PUBLISH from a worker (id answered by MSG_PUBLISHED) or the sweeper (id 0, not answered). The
 * sweeper gives the database's counters, so that a build that has them already is not repeated; a
 * worker gives 0. */
struct publish_ask {
	uint32_t what; /* enum segment mask */
	uint64_t db_policy, db_keys;
};

struct published { /* MSG_PUBLISHED; same id */
	bool in_force;
	struct str error; /* why not */
};

struct listen_note {       /* MSG_LISTEN (1 fd) */
	uint32_t listener; /* number of the listener in the configuration */
	bool is_admin, is_tls;
};

/* MSG_BUILD (0 or 1 fd: the keys base now in force, to make a delta against). */
struct build_ask {
	/* enum segment mask. 0: read the configuration only (no database, no secret file is wanted,
	 * fd_mask of the answer is 0): the first step of a start, before the user is known. */
	uint32_t what;
	uint64_t generation;      /* to write into what is built */
	uint64_t base_generation; /* of the keys base in force; 0: none, build a base */
	bool is_start;            /* first build: migrate, refuse without a database */
	bool is_reload;           /* FD_CONF was read anew: reconcile what it declares. Else it is a
				     copy of what is in force */
	struct str conf_path;     /* for messages; FD_CONF is a memfd with the text */
};

/* MSG_BUILT. fds come in the order of the bits of fd_mask, lowest first. */
enum built_fd {
	BUILT_KEYS = 1,       /* a base */
	BUILT_KEYS_DELTA = 2, /* over the base that was handed in; never with BUILT_KEYS */
	BUILT_POLICY = 4,
	BUILT_SECRETS_WORKER = 8,
	BUILT_SECRETS_SWEEPER = 16,
};
struct built {
	bool ok;
	struct str error;            /* !ok: "otari.conf:12: …", for the log and the asker */
	bool is_fatal;               /* !ok at start: a person must act, do not try again */
	uint32_t fd_mask;            /* enum built_fd */
	struct str master_conf;      /* ipc/master_conf.h; empty only when !ok */
	uint64_t db_policy, db_keys; /* counters of the database that this build saw */
	struct str summary;          /* "3 providers, 12 keys", for the log */
};

struct file_wanted { /* MSG_FILE_WANTED, id; opened read-only by the master */
	struct str path;
};
struct file_given { /* MSG_FILE, same id; 1 fd when sys_errno is 0 */
	int32_t sys_errno;
};

void hello_encode(struct buf *out, const struct hello *v);
MUST_CHECK enum err_code hello_decode(struct str in, struct hello *ret, struct err *reterr);
void snapshot_note_encode(struct buf *out, const struct snapshot_note *v);
MUST_CHECK enum err_code snapshot_note_decode(
    struct str in, struct snapshot_note *ret, struct err *reterr);
void ack_encode(struct buf *out, const struct ack *v);
MUST_CHECK enum err_code ack_decode(struct str in, struct ack *ret, struct err *reterr);
void publish_ask_encode(struct buf *out, const struct publish_ask *v);
MUST_CHECK enum err_code publish_ask_decode(
    struct str in, struct publish_ask *ret, struct err *reterr);
void published_encode(struct buf *out, const struct published *v);
MUST_CHECK enum err_code published_decode(struct str in, struct published *ret, struct err *reterr);
void listen_note_encode(struct buf *out, const struct listen_note *v);
MUST_CHECK enum err_code listen_note_decode(
    struct str in, struct listen_note *ret, struct err *reterr);
void build_ask_encode(struct buf *out, const struct build_ask *v);
MUST_CHECK enum err_code build_ask_decode(struct str in, struct build_ask *ret, struct err *reterr);
void built_encode(struct buf *out, const struct built *v);
MUST_CHECK enum err_code built_decode(struct str in, struct built *ret, struct err *reterr);
void file_wanted_encode(struct buf *out, const struct file_wanted *v);
MUST_CHECK enum err_code file_wanted_decode(
    struct str in, struct file_wanted *ret, struct err *reterr);
void file_given_encode(struct buf *out, const struct file_given *v);
MUST_CHECK enum err_code file_given_decode(
    struct str in, struct file_given *ret, struct err *reterr);

#endif
