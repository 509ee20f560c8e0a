/* remote.h - the `remote` backend: sessions of a sandbox elsewhere, by the protocol over HTTP
 *
 * Process: worker, loop thread; only for the files of worker/code.
 * Files:   remote.c (backend, opening, farewells), remote_call.c (one request with a whole answer),
 *          remote_session.c (life of a session), remote_exec.c (one exec: listing before, run,
 *          listing after), remote_kinds.c (which tools it has), remote_fetch.c (the files that it
 * made), remote_put.c (files in). Owns:    a session that was made is deleted again, whatever way
 * it ends: by a DELETE that the backend sees to the end, also of one whose making nobody waits for
 * any more. Limits:  answers by PROTOCOL_*_MAX_BYTES; produced files by struct code_config, by what
 * the answer announces and by what arrives; every request has a deadline. Redirects are not
 * followed.
 */
#ifndef OTARI_WORKER_CODE_REMOTE_H
#define OTARI_WORKER_CODE_REMOTE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/http_client.h"
#include "base/map.h"
#include "worker/code/backend.h"
#include "worker/code/protocol.h"

#define REMOTE_CONNECT_MS 10000u
#define REMOTE_ANSWER_MS  30000u /* for all but an exec; and an exec beyond its own time */

/* Opens and deletes that nobody waits for any more; more of them, and nothing is opened. */
#define REMOTE_LEFT_MAX 256u

struct remote_backend;

/* --- one request with a whole answer --------------------------------------------------------- */
struct remote_call {
	struct http_call *http; /* NULL: none under way */
	struct event *late;
	struct buf request, answer;
	/* err: it did not arrive whole, in time, or within max. The call is over and may be started
	 * again, or freed. */
	void (*done)(void *arg, int status, struct str answer, const struct err *err);
	void *arg;
	bool is_too_large;
	struct err refused;     /* remote_call_refuse */
	uint32_t retry_after_s; /* the answer said; 0: nothing usable */
};

struct remote_ask {
	const char *method;
	struct str url;
	struct str content_type;                              /* of the request; empty: none */
	ssize_t (*read_body)(void *arg, char *dst, size_t n); /* else call->request */
	uint64_t body_bytes;
	size_t max_answer;
	uint32_t timeout_ms; /* of all of it */
};

void remote_call_init(struct remote_call *c, struct event_base *base, void *arg);
void remote_call_done(struct remote_call *c); /* cancels */
/* done also tells of a request that could not be started; always from the loop. */
void remote_call_start(struct remote_call *c, struct remote_backend *b,
    const struct remote_ask *ask,
    void (*done)(void *arg, int status, struct str answer, const struct err *err));
/* Nothing is asked; done hears of e, from the loop. */
void remote_call_refuse(struct remote_call *c, const struct err *e,
    void (*done)(void *arg, int status, struct str answer, const struct err *err));
void remote_call_cancel(struct remote_call *c);
/* What a status that is no success means. */
enum err_code remote_status_error(int status, struct err *ret);

/* --- backend --------------------------------------------------------------------------------- */
struct remote_open {
	struct code_open port; /* first */
	TAILQ_ENTRY(remote_open) link;
	struct remote_call call;
	bool is_orphan; /* cancelled: the session is deleted when it is there */
};
TAILQ_HEAD(remote_opens, remote_open);

struct remote_farewell {
	TAILQ_ENTRY(remote_farewell) link;
	struct remote_backend *backend;
	char *url;
	struct event *turn;
	struct remote_call call;
};
TAILQ_HEAD(remote_farewells, remote_farewell);

struct remote_backend {
	struct code_backend port; /* first */
	struct http_client *client;
	char *url;                              /* without a slash at the end */
	char *authorization;                    /* "Bearer …", or NULL; wiped */
	char *ca_file;                          /* or NULL */
	uint32_t kinds_said;                    /* by the last session that was made; 0: nothing */
	int64_t refused_until_ms[CODE_CONVERT]; /* by kind, on the monotonic clock */
	struct remote_opens opens;
	struct remote_farewells farewells;
	uint32_t left_count; /* orphans and farewells */
};

void remote_delete(struct remote_backend *b, struct str session_url);

/* --- session --------------------------------------------------------------------------------- */
struct remote_candidate { /* a file that an exec made, or names */
	struct str path, name;
	uint64_t size; /* UINT64_MAX: not known */
};

struct remote_fetch { /* the file under way */
	struct http_call *http;
	struct event *late;
	bool is_begun, is_skipped;
	bool has_ended, is_whole; /* the transfer; the reader was not ready to hear of it */
	bool is_over;             /* the next one is due */
	uint64_t got, announced;  /* announced: UINT64_MAX when it is not */
	int64_t until_ms;         /* on the monotonic clock: for all files of the call */
};

struct remote_session {
	struct code_session port; /* first */
	char *url;                /* …/sessions/ID */
	struct remote_call call;
	bool is_gone; /* it says that it does not know the session: nothing to delete */
	/* files that were there at the last look */
	bool has_no_listing, has_baseline;
	struct arena *baseline_arena;
	struct map *baseline; /* path → struct protocol_file */
	/* the running exec */
	struct arena *arena;
	struct protocol_result result;
	bool has_result;
	struct err refusal; /* while it is found out whether it is the kind that is refused */
	struct remote_candidate *candidates;
	size_t candidate_count, next;
	uint64_t bytes_left;
	struct code_omitted *omitted;
	size_t omitted_count, omitted_total;
	struct remote_fetch fetch;
	/* the running put */
	struct buf head, tail; /* around the file's bytes */
	size_t head_sent, tail_sent;
	bool is_again;
};

static inline struct remote_session *
remote_of(const struct code_session *s)
{
	return (struct remote_session *)(uintptr_t)s;
}

static inline struct remote_backend *
remote_backend_of(const struct remote_session *s)
{
	return (struct remote_backend *)s->port.backend;
}

/* remote_session.c */
struct code_session *remote_session_new(struct remote_backend *b, struct str id);
void remote_session_start(struct code_session *s, struct code_op *op);
void remote_session_fail(struct code_session *s, struct code_op *op, const struct err *e);
void remote_session_go_on(struct code_session *s);
void remote_session_paused(struct code_session *s);
void remote_session_resumed(struct code_session *s);
void remote_session_stop(struct code_session *s);
void remote_session_close(struct code_session *s);
/* The end of what runs, by a request that failed: of the op, and of the session where nothing more
 * can be expected of it. */
void remote_session_op_failed(struct remote_session *s, const struct err *e);

/* remote_exec.c */
void remote_exec_start(struct remote_session *s, struct code_op *op);
/* Takes the op off, then its callback. */
void remote_exec_end(struct remote_session *s, struct code_op *op, const struct err *failed);

/* remote_kinds.c */
uint32_t remote_kinds(const struct code_backend *port);
/* Not known yet: a refusal may mean the kind, and is to be looked into. */
bool remote_kinds_is_open(const struct remote_backend *b, enum code_kind kind);
void remote_kinds_learn(struct remote_backend *b, enum code_kind kind, bool runs);

/* remote_fetch.c */
void remote_fetch_init(struct remote_session *s);
/* The first file of a call; then the next ones. */
void remote_fetch_first(struct remote_session *s);
void remote_fetch_next(struct remote_session *s);  /* the next candidate, or the end of the exec */
void remote_fetch_ended(struct remote_session *s); /* the reader is ready to hear of it */
void remote_fetch_stop(struct remote_session *s);
void remote_omit(struct remote_session *s, const struct remote_candidate *c, enum code_omit why);

/* remote_put.c */
void remote_put_start(struct remote_session *s, struct code_op *op);
void remote_put_more(struct code_session *s, struct code_op *op);

#endif
