/* sandbox_serve.h - this host's sandbox, lent to other gateways: the code-execution protocol served
 *
 * Process: worker 1, loop thread, on a listener of its own (worker/serving.h). The other workers do
 *          not listen there: a session lives in one process, and so every request of it must.
 * Files:   sandbox_serve.c (life, token, routes), sandbox_serve_exec.c (create, exec, delete),
 *          sandbox_serve_files.c (list, get, put), sandbox_serve_budget.c (who may hold how much).
 * Owns:    the sessions that are lent and what is asked of them. A session is closed by DELETE,
 * when nobody asked anything of it for sandbox_serve_idle_ms, when it broke, and when the worker
 *          drains: whoever waits for it then reads 404.
 * Limits:  sandbox_serve_max_sessions; bodies and calls by sandbox_serve_budget.h; a body that
 * comes slower than SERVE_BODY_MIN_BYTES_S is a 408.
 */
#ifndef OTARI_WORKER_API_SANDBOX_SERVE_H
#define OTARI_WORKER_API_SANDBOX_SERVE_H

#include <sys/queue.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/id.h"
#include "worker/api/sandbox_serve_budget.h"
#include "worker/http/http.h"

struct buf;
struct event;
struct sandbox_serve;
struct worker_env;

struct sandbox_serve *sandbox_serve_new(struct worker_env *env); /* returns owned */
void sandbox_serve_free(struct sandbox_serve **s); /* NULL allowed; after its HTTP servers */
/* Closes what is idle now, the rest when it has answered; opens nothing more. */
void sandbox_serve_drain(struct sandbox_serve *s);
void sandbox_serve_resume(struct sandbox_serve *s);
/* Nobody outside of this host reaches it: then no token is needed. Not before this says so. */
void sandbox_serve_set_loopback(struct sandbox_serve *s, bool is_loopback);
const struct http_server_ops *sandbox_serve_ops(void); /* arg: the worker_env */

/* The slowest that a body may come; what a client of ours waits for is twice as fast. */
#define SERVE_BODY_MIN_BYTES_S (32u << 10)

/* --- between the files of this part -------------------------------------------------------------
 */
#define SERVE_RETRY_AFTER "5"

struct code_open;
struct code_session;
struct request;

struct lent_work { /* a request that waits for a session; in its own memory */
	TAILQ_ENTRY(lent_work) link;
	struct request *req; /* reference */
	struct lent *lent;
	struct serve_claim claim;
	/* Frees it: the session is gone and the request was answered, or lent_answer's is over. */
	void (*dropped)(struct lent_work *w);
};

struct lent {
	TAILQ_ENTRY(lent) link;
	char id[ID_SIZE];
	struct sandbox_serve *serve;
	struct code_session *session;
	struct serve_account *account;
	int64_t used_ms;
	TAILQ_HEAD(lent_works, lent_work) works;
};

struct lent_open {
	TAILQ_ENTRY(lent_open) link;
	struct sandbox_serve *serve;
	struct code_open *open;
	struct request *req; /* reference */
};

struct sandbox_serve {
	struct worker_env *env;
	struct event *sweep;
	TAILQ_HEAD(lents, lent) lents;
	TAILQ_HEAD(lent_opens, lent_open) opens;
	size_t count; /* of both */
	struct serve_budget *budget;
	bool is_draining;
	bool is_loopback; /* nobody outside of this host reaches its listeners */
};

/* The session that the request's path names; NULL: 404 was answered. */
struct lent *lent_of(struct request *req);
/* One more call of it, which is counted until serve_claim_end. False: a 429 or 503 was
 * answered. */
bool lent_admit(struct lent *l, struct lent_work *w, struct request *req);
void lent_begin(struct lent *l, struct lent_work *w, struct request *req);
/* The work is over, however; closes a session that broke, or that is not to go on. */
void lent_end(struct lent_work *w);
/* After lent_end: answers with 200. It is counted, and w kept, until the client has it. */
void lent_answer(struct lent_work *w, struct request *req, struct buf *body);
void lent_close(struct lent *l);

/* An error; 429 and 503 say when to come back. */
void serve_refuse(struct request *req, int status, struct str why);
void serve_refuse_full(struct request *req, enum serve_verdict v);

void serve_create(struct request *req);
void serve_exec(struct request *req);
void serve_delete(struct request *req);
void serve_list(struct request *req);
void serve_get(struct request *req);
void serve_put(struct request *req);

#endif
