/* backend.h - what is behind the session port: the `local` backend's own structures
 *
 * Process: worker; only for the files of worker/code.
 * Files:   local.c (backend, leases), local_session.c (life of a session, its queue of puts and
 *          execs), local_exec.c (one exec: output, frames, result), local_put.c (files in).
 */
#ifndef OTARI_WORKER_CODE_BACKEND_H
#define OTARI_WORKER_CODE_BACKEND_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "ipc/frames.h"
#include "ipc/lease.h"
#include "sandbox/collect/select.h"
#include "worker/code/session.h"

/* Without a byte where one is due: files in, files out. */
#define CODE_STALL_MS 60000

struct code_open {
	TAILQ_ENTRY(code_open) link;
	struct code_backend *backend;
	uint64_t id;
	uint32_t queue_ms;
	char workspace[LEASE_WORKSPACE_MAX + 1];
	bool is_sent;
	struct err failed; /* code 0: still waiting */
	struct event *ev;  /* the deadline, or the failure's turn */
	code_on_open *on_open;
	void *arg;
};
TAILQ_HEAD(code_opens, code_open);

enum code_state { CODE_STATE_STARTING, CODE_STATE_READY, CODE_STATE_REFUSED, CODE_STATE_GONE };

struct code_backend {
	uint32_t magic;
	struct event_base *base;
	struct code_config cfg;
	int fd; /* to the spawner; -1: gone */
	struct event *ev;
	enum code_state state;
	char why[LEASE_TEXT_MAX];
	struct code_opens opens;
	uint64_t next_id;
	size_t session_count;
};

enum code_op_kind { CODE_OP_PUT, CODE_OP_PUSH, CODE_OP_EXEC };

struct code_op {
	TAILQ_ENTRY(code_op) link;
	enum code_op_kind kind;
	void *arg;
	/* put, push */
	char *name;
	size_t name_len;
	uint64_t size, offset; /* offset: how much was sent */
	int fd;
	struct evbuffer *pending; /* push: before its turn */
	bool is_ended;            /* push: the caller said end */
	void (*on_room)(void *arg);
	code_on_put *on_done;
	/* exec */
	enum code_kind code_kind;
	char *source;
	size_t source_len;
	uint32_t timeout_ms;
	const struct code_run_ops *ops;
	struct err refused; /* code 0: may run */
};
TAILQ_HEAD(code_ops, code_op);

struct code_capture {
	int fd;
	struct event *ev;
	struct buf kept;
	uint64_t total;
};

struct code_session {
	uint32_t magic;
	struct code_backend *backend;
	uint64_t lease_id;
	unsigned refs; /* handlers that are running */
	bool is_closed, is_broken, is_paused, has_result;
	struct err broken;
	int ctl;
	struct event *ev_read, *ev_write, *ev_turn, *ev_late;
	struct evbuffer *to_init;
	char *in; /* FRAME_HEAD + FRAME_MAX */
	size_t in_len;
	struct code_ops ops; /* the first one runs when is_running */
	bool is_running;
	/* of the running exec */
	struct code_capture out, err;
	bool is_flooded, is_skipping;
	struct frame_result result;
	struct collect_check check;
	struct code_omitted omitted[COLLECT_LISTED_MAX];
	size_t omitted_count;
	struct buf omitted_names;
};

/* local_session.c */
struct code_session *local_session_new(
    struct code_backend *b, uint64_t lease_id, const int fds[LEASE_FDS]);
void local_session_break(struct code_session *s, enum err_code code, const char *why);
void local_session_turn(struct code_session *s); /* lets the queue go on, from the loop */
void local_session_flush(struct code_session *s);
void local_session_late_in(struct code_session *s, uint32_t ms); /* 0: no deadline */
void local_op_done(struct code_session *s); /* takes the first op off and frees it */
void local_send(struct code_session *s, uint8_t type, const void *payload, size_t n);

/* local_put.c */
void local_put_start(struct code_session *s, struct code_op *op);
void local_put_more(struct code_session *s, struct code_op *op); /* there is room */
/* From the loop only: tells a pushing caller that there is room. */
void local_put_ask(struct code_session *s, struct code_op *op);
void local_put_frame(struct code_session *s, struct code_op *op, uint8_t type, struct str payload);
void local_put_fail(struct code_session *s, struct code_op *op, const struct err *e);

/* local_exec.c */
bool local_captures_init(struct code_session *s, int out, int err);
void local_captures_done(struct code_session *s);
void local_exec_start(struct code_session *s, struct code_op *op);
void local_exec_frame(struct code_session *s, struct code_op *op, uint8_t type, struct str payload);
void local_exec_fail(struct code_session *s, struct code_op *op, const struct err *e);

/* local.c */
void local_release(struct code_backend *b, uint64_t lease_id);

#endif
