/* local.h - the `local` backend's own structures: sessions leased from the spawner of this host
 *
 * Process: worker; only for the files of worker/code.
 * Files:   local.c (backend, leases), local_link.c (one spawner), local_session.c (life of a
 * session, its frames), local_exec.c (one exec: output, frames, result), local_put.c (files in),
 * local_files.c (files as they are).
 */
#ifndef OTARI_WORKER_CODE_LOCAL_H
#define OTARI_WORKER_CODE_LOCAL_H

#include "base/buf.h"
#include "ipc/frames.h"
#include "ipc/lease.h"
#include "sandbox/collect/select.h"
#include "worker/code/backend.h"

struct local_open {
	struct code_open port; /* first */
	TAILQ_ENTRY(local_open) link;
	uint64_t id;
	uint32_t queue_ms;
	char workspace[LEASE_WORKSPACE_MAX + 1];
	bool is_sent;
	struct err failed; /* code 0: still waiting */
	struct event *ev;  /* the deadline, or the failure's turn */
};
TAILQ_HEAD(local_opens, local_open);

enum local_state { LOCAL_STARTING, LOCAL_READY, LOCAL_REFUSED, LOCAL_GONE };

/* To one spawner. A replaced one stays until its last session here ends. */
struct local_link {
	struct local_backend *backend;
	int fd; /* -1: it ended */
	struct event *ev;
	size_t sessions;
	bool is_current; /* of the backend: it gets the requests */
};

struct local_backend {
	struct code_backend port; /* first */
	struct local_link *link;  /* NULL: gone */
	enum local_state state;
	char why[LEASE_TEXT_MAX];
	uint32_t memory_mib; /* of one session */
	struct local_opens opens;
	uint64_t next_id;
};

struct local_capture {
	int fd;
	struct event *ev, *ev_pause;
	struct buf kept;
	uint64_t total;
};

struct local_session {
	struct code_session port; /* first */
	struct local_link *link;  /* that lent it */
	uint64_t lease_id;
	bool has_result;
	int ctl;
	struct event *ev_read, *ev_write, *ev_late;
	struct evbuffer *to_init;
	char *in; /* FRAME_HEAD + FRAME_MAX */
	size_t in_len;
	/* of the running exec */
	struct local_capture out, err;
	bool is_flooded, is_skipping, has_edited;
	struct frame_edited edited;
	struct frame_result result;
	struct collect_check check;
	struct code_omitted omitted[COLLECT_LISTED_MAX];
	size_t omitted_count;
	struct buf omitted_names;
	/* of the running list or get */
	struct code_listed *listed; /* NULL: none; FRAME_ENTRIES_MAX */
	size_t listed_count;
	struct buf listed_names;
	bool is_in_file;
	uint64_t file_left;
};

static inline struct local_session *
local_of(const struct code_session *s)
{
	return (struct local_session *)(uintptr_t)s;
}

static inline struct local_backend *
local_backend_of(const struct code_session *s)
{
	return (struct local_backend *)s->backend;
}

/* local_session.c */
struct code_session *local_session_new(
    struct local_link *l, uint64_t lease_id, const int fds[LEASE_FDS]);
void local_session_start(struct code_session *s, struct code_op *op);
void local_session_fail(struct code_session *s, struct code_op *op, const struct err *e);
void local_session_go_on(struct code_session *s);
void local_session_paused(struct code_session *s);
void local_session_resumed(struct code_session *s);
void local_session_stop(struct code_session *s);
void local_session_close(struct code_session *s);
void local_session_flush(struct local_session *s);
void local_session_late_in(struct local_session *s, uint32_t ms); /* 0: no deadline */
void local_send(struct local_session *s, uint8_t type, const void *payload, size_t n);

/* local_put.c */
void local_put_start(struct local_session *s, struct code_op *op);
void local_put_more(struct code_session *s, struct code_op *op); /* there is room, or more */
size_t local_put_in_flight(const struct code_session *s);
void local_put_frame(struct local_session *s, struct code_op *op, uint8_t type, struct str payload);

/* local_exec.c */
bool local_captures_init(struct local_session *s, int out, int err);
void local_captures_stop(struct local_session *s); /* reads no more until the next call */
void local_captures_done(struct local_session *s);
void local_exec_start(struct local_session *s, struct code_op *op);
void local_exec_frame(
    struct local_session *s, struct code_op *op, uint8_t type, struct str payload);
void local_exec_fail(struct local_session *s, struct code_op *op, const struct err *e);

/* local_files.c */
void local_files_start(struct local_session *s, struct code_op *op);
void local_files_frame(
    struct local_session *s, struct code_op *op, uint8_t type, struct str payload);
void local_files_done(struct local_session *s); /* frees */

/* local_link.c */
struct local_link *local_link_new(struct local_backend *b, int spawner_fd); /* takes it over */
void local_link_retire(struct local_link **l); /* another one, or none, takes its place */
void local_link_leave(struct local_link *l);   /* a session of it ended */
void local_release(struct local_link *l, uint64_t lease_id); /* NULL: nothing */

/* local.c, called by local_link.c */
void local_answered(
    struct local_link *l, const struct lease_answer *a, int fds[LEASE_FDS], size_t nfds);
void local_told(struct local_backend *b, const struct lease_state *st);
void local_link_lost(struct local_backend *b); /* the current one */

#endif
