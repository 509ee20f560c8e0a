/* payload.h - what the messages of ipc/msg.h carry, and how it is packed
 *
 * Process: both ends of every channel to the master. Pure.
 * Rule:    x_encode appends to a buffer; x_decode refuses a payload with bytes missing or left over
 * (ERR_PROTO). Strings of a decoded struct point into the payload.
 * Not here: the spawner's messages (ipc/lease.h), the builder's (ipc/build.h). Messages without an
 * entry in either have no payload.
 */
#ifndef OTARI_IPC_PAYLOAD_H
#define OTARI_IPC_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define PUBLISHED_TEXT_MAX 3072u

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

struct tried { /* MSG_TRIED */
	bool ok;
	struct str text;
};

struct listen_note {       /* MSG_LISTEN (1 fd; is_serve without one: not lent any more) */
	uint32_t listener; /* number of the listener in the configuration */
	bool is_admin, is_tls;
	bool is_serve; /* where the sandbox is lent, in the place of what was before */
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
void tried_encode(struct buf *out, const struct tried *v);
MUST_CHECK enum err_code tried_decode(struct str in, struct tried *ret, struct err *reterr);
void listen_note_encode(struct buf *out, const struct listen_note *v);
MUST_CHECK enum err_code listen_note_decode(
    struct str in, struct listen_note *ret, struct err *reterr);
#endif
