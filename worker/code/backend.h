/* backend.h - what is behind the session port: the table of operations that a backend fills, and
 * what all of them share: the queue of a session and the rules of its callbacks
 *
 * Process: worker, loop thread; only for the files of worker/code.
 * Files:   session.c, files.c (shared), local*.c (the spawner of this host, local.h), remote*.c
 * (another host by HTTP, remote.h), protocol*.c (that protocol, pure). Rule:    a backend calls
 * back from the loop only, never inside a call of the port. Its handlers hold the session over
 * callbacks (code_session_hold), which may close it; what is left after close is freed when the
 * last one lets go.
 */
#ifndef OTARI_WORKER_CODE_BACKEND_H
#define OTARI_WORKER_CODE_BACKEND_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "worker/code/session.h"

/* Without a byte where one is due: files in, files out. */
#define CODE_STALL_MS 60000

enum code_op_kind { CODE_OP_PUT, CODE_OP_PUSH, CODE_OP_EXEC, CODE_OP_LIST, CODE_OP_GET };

struct code_op { /* one call, in the order of the calls */
	TAILQ_ENTRY(code_op) link;
	enum code_op_kind kind;
	void *arg;
	struct err refused; /* code 0: may run */
	/* put, push; name: also of a get and of a conversion */
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
	enum code_extractor extractor; /* CODE_CONVERT */
	struct code_edit *edit; /* CODE_EDITOR: instead of a source; its texts are behind it */
	uint32_t timeout_ms;
	const struct code_run_ops *ops;
	/* list, get */
	code_on_list *on_list;
	const struct code_get_ops *get_ops;
};
TAILQ_HEAD(code_ops, code_op);

struct code_backend_ops {
	bool converts; /* reads documents, code_session_convert() */
	bool opens_early;
	bool has_files;                       /* list and get */
	void (*free)(struct code_backend *b); /* and what b is the head of */
	void (*attach)(struct code_backend *b, int fd);
	bool (*ready)(const struct code_backend *b, struct str *ret_why_not);
	uint32_t (*kinds)(const struct code_backend *b); /* NULL: all */
	bool (*is_idle)(const struct code_backend *b);   /* but for sessions; NULL: always */
	struct code_open *(*open)(struct code_backend *b, struct str workspace, struct str image,
	    uint32_t queue_ms, code_on_open *on_open, void *arg);
	void (*open_cancel)(struct code_open *o);
	/* Sessions. op is the first of the queue, and the only one that runs. */
	void (*start)(struct code_session *s, struct code_op *op);
	void (*more)(struct code_session *s, struct code_op *op); /* push: bytes or the end came */
	size_t (*in_flight)(const struct code_session *s);        /* pushed bytes, not pending */
	/* The end of an op that was refused, or of any after the session broke: code_op_done, then
	 * its callback. It may not have been started. */
	void (*fail)(struct code_session *s, struct code_op *op, const struct err *e);
	void (*go_on)(struct code_session *s); /* not paused, not broken: what waits meanwhile */
	void (*paused)(struct code_session *s);
	void (*resumed)(struct code_session *s);
	void (*stop)(struct code_session *s);  /* it broke: ends what runs there */
	void (*close)(struct code_session *s); /* frees all but s itself */
};

/* First member of a backend's own. */
struct code_backend {
	uint32_t magic;
	const struct code_backend_ops *ops;
	struct event_base *base;
	struct code_config cfg;
	size_t session_count;
	uint32_t retry_after_s; /* the last refused open said; 0: nothing */
};

/* First member of a backend's own. */
struct code_open {
	struct code_backend *backend;
	code_on_open *on_open;
	void *arg;
};

/* First member of a backend's own. */
struct code_session {
	uint32_t magic;
	struct code_backend *backend;
	unsigned refs; /* handlers that are running */
	bool is_closed, is_broken, is_paused;
	struct err broken;
	struct event *ev_turn;
	struct code_ops ops; /* the first one runs when is_running */
	bool is_running;
};

/* session.c */
void code_backend_init(struct code_backend *b, const struct code_backend_ops *ops,
    struct event_base *base, const struct code_config *cfg);
void code_session_init(struct code_session *s, struct code_backend *b);
void code_session_hold(struct code_session *s);
void code_session_let_go(struct code_session *s);
void code_session_turn(struct code_session *s); /* lets the queue go on, from the loop */
/* Nothing more is heard of it but failures of what was asked. */
void code_session_break(struct code_session *s, enum err_code code, const char *why);
struct code_op *code_session_op(struct code_session *s); /* the one that runs, or NULL */
/* One more at the end of the queue; nothing of it happens before the caller returns. */
struct code_op *code_op_add(struct code_session *s, enum code_op_kind kind, void *arg);
void code_op_done(struct code_session *s); /* takes the first op off and frees it */
/* files.c. The same, then its callback. */
void code_put_done(struct code_session *s, struct code_op *op, const struct err *e);
/* The same for list and get, without a result. */
void code_files_fail(struct code_session *s, struct code_op *op, const struct err *e);
/* From the loop only: tells a pushing caller that there is room. */
void code_put_ask(struct code_session *s, struct code_op *op);
/* Next bytes of a put, at most room. 0: none now, or the end. */
size_t code_put_chunk(struct code_op *op, char *dst, size_t room);

#endif
