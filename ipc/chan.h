/* chan.h - message channel between two of our processes: SOCK_SEQPACKET on a libevent loop
 *
 * Process: any with a loop. Not thread-safe.
 * Owns:    the fd, queued messages and their fds.
 * Limits:  LIMIT_MSG_BYTES a message, FD_PASS_MAX fds, CHAN_QUEUE_MAX queued messages (over it the
 * peer is taken for dead). A malformed, oversize or unexpected message is the end of the channel.
 */
#ifndef OTARI_IPC_CHAN_H
#define OTARI_IPC_CHAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/msg.h"

struct chan;
struct event_base;

#define CHAN_QUEUE_MAX 4096u

struct msg { /* borrowed until on_msg returns; fds not taken are closed then */
	enum msg_type type;
	uint32_t id; /* matches an answer to its question; 0: none */
	struct str payload;
	int fds[16];
	size_t nfds;
};

/* msg NULL: the peer is gone (EOF or a protocol error); the channel is dead but still to be freed.
 */
typedef void chan_on_msg(struct chan *c, struct msg *msg, void *arg);

/* Takes fd, also on failure. Returns owned. chan_free may be called inside on_msg. */
MUST_CHECK enum err_code chan_new(struct event_base *base, int fd, chan_on_msg *cb, void *arg,
    struct chan **ret, struct err *reterr);
void chan_free(struct chan **c);
/* From now on only what msg_info allows from these roles (mask of 1u << enum role) is let in. */
void chan_set_peer(struct chan *c, uint32_t roles);
/* Waits until the queue is sent, for a process that ends after its last message. */
MUST_CHECK enum err_code chan_flush(struct chan *c, int timeout_ms, struct err *reterr);
/* Copies payload, duplicates nothing: fds are borrowed and dup'ed when the message must be queued.
 */
void chan_send(struct chan *c, enum msg_type type, uint32_t id, struct str payload, const int *fds,
    size_t nfds);
/* Takes an fd out of a message. -1 when there is none at i. */
int msg_take_fd(struct msg *m, size_t i);

#endif
