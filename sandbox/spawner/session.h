/* session.h - one sandbox from its clone to its end, as the spawner sees it
 *
 * Process: spawner, on the broker's loop. The filler clones it, the clone sets itself up, the loop
 * only waits for its READY. It is used by one lease and never again.
 * Owns:    the worker's ends of its descriptors until they are handed over; its pidfd.
 */
#ifndef OTARI_SANDBOX_SPAWNER_SESSION_H
#define OTARI_SANDBOX_SPAWNER_SESSION_H

#include <sys/queue.h>
#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/frames.h"
#include "ipc/lease.h"
#include "sandbox/jail/jail.h"

struct event;
struct event_base;
struct queue_workspace;
struct session;
TAILQ_HEAD(session_list, session);

struct session_ops {
	/* Only of one that is born from a zygote: its walls stand, it waits for an interpreter. */
	void (*built)(void *arg, struct session *s);
	void (*ready)(void *arg, struct session *s, int sys_errno_of_interpreter);
	/* A frame other than READY (the self-test's rows). */
	void (*frame)(void *arg, struct session *s, uint8_t type, struct str payload);
	/* Did not become ready. It is killed; gone follows. */
	void (*failed)(void *arg, struct session *s, const struct jail_fail *f);
};

enum session_state {
	SESSION_ORDERED, /* no process yet */
	SESSION_STARTING,
	SESSION_IDLE,
	SESSION_LEASED,
	SESSION_DYING,
};

/* What comes from the filler: the worker's ends, and with a born one the interpreter's. */
enum {
	SESSION_FD_PID,
	SESSION_FD_STATUS,
	SESSION_FD_CTL,
	SESSION_FD_OUT,
	SESSION_FD_ERR,
	SESSION_FDS,
	SESSION_FD_BORN_REQUEST = SESSION_FDS,
	SESSION_FD_BORN_OUT,
	SESSION_FD_BORN_ERR,
	SESSION_FDS_BORN,
};

struct session {
	TAILQ_ENTRY(session) link;
	enum session_state state;
	uint32_t slot;
	int64_t ordered_us; /* when its making began */
	uint64_t order_seq; /* of the filler; 0: answered */
	pid_t pid;          /* 0: none yet */
	int pidfd, status_fd;
	int fds[LEASE_FDS];
	bool is_born;            /* its interpreter is the zygote's child */
	int born_fds[LEASE_FDS]; /* of that interpreter, until it has them: request socket, out, err
				  */
	uint64_t zygote_seq;     /* 0: not asked for yet */
	struct event *ev_ctl, *ev_status, *ev_late;
	const struct session_ops *ops;
	void *arg;
	char in[1024];
	size_t in_len;
	/* while leased */
	void *owner;
	uint64_t lease_id;
	struct queue_workspace *workspace; /* that it counts for; NULL: none */
	/* of lend.c */
	TAILQ_ENTRY(session) lend;
	struct session_list *lend_list; /* that it is in; NULL: none */
};

/* Returns owned, in state ORDERED. */
struct session *session_new(uint32_t slot, bool is_born, const struct session_ops *ops, void *arg);
/* The filler made it; takes the descriptors (SESSION_FDS, or SESSION_FDS_BORN of one that is born).
 * When it was killed meanwhile, its process is killed now. False: the process was already reaped,
 * the caller frees the session (its ops know). */
bool session_made(struct session *s, struct event_base *base, pid_t pid, const int *fds);
/* After ready: the descriptors go to a worker; the session keeps only the right to kill. */
void session_handed_over(struct session *s);
void session_ask_selftest(struct session *s);
void session_kill(struct session *s);  /* SIGKILL to its pid 1: the kernel ends all in it */
void session_free(struct session **s); /* after its process was reaped */

#endif
