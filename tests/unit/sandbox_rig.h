/* sandbox_rig.h - plays a remote sandbox to the `remote` backend, on the same loop: what it answers
 * to each operation is in the test's hands, and what it was asked is written down
 */
#ifndef OTARI_TESTS_UNIT_SANDBOX_RIG_H
#define OTARI_TESTS_UNIT_SANDBOX_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/buf.h"
#include "base/http_client.h"
#include "worker/code/session.h"
#include "worker/http/http.h"

struct sandbox_answer {
	int status;
	const char *body;
};

struct sandbox_file { /* what GET files?path= gives */
	const char *path, *bytes;
	int status;        /* 0: 200 */
	bool is_chunked;   /* without a length */
	bool is_endless;   /* 8-byte pieces until the client has had enough */
	int64_t announced; /* another length than the true one; 0: the true one */
	bool is_stuck;     /* nothing comes after its head */
};

#define SANDBOX_ANSWERS_MAX 4

struct sandbox_rig {
	struct event_base *base;
	struct http_server *server;
	struct http_client *client;
	struct code_backend *backend;
	uint16_t port;
	/* what it answers: the last one of a kind that is set is repeated */
	struct sandbox_answer create, exec[SANDBOX_ANSWERS_MAX], list[SANDBOX_ANSWERS_MAX], put;
	const struct sandbox_file *files; /* ends with a NULL path */
	const char *retry_after;
	bool is_silent; /* never answers an exec */
	/* what it saw */
	struct buf log; /* "POST /sessions {}\n" … */
	struct buf put_body;
	char authorization[64], put_type[128];
	unsigned execs, lists, deletes, fetches, pieces;
	/* the client's side */
	struct code_session *s;
	struct err open_err, failed, put_err;
	unsigned opens, dones, puts;
	bool has_failed, timed_out;
	size_t notes; /* last bytes of err */
	int32_t code;
	char out[256], err[256];
	struct buf got;     /* "name=bytes;" of whole files, "name!" of broken ones */
	struct buf omitted; /* "name:reason," */
	enum { SANDBOX_NO_CLOSE, SANDBOX_CLOSE_AT_DATA, SANDBOX_CLOSE_AT_DONE } close_at;
	bool pause_at_data;
	struct code_edit_result edit;
	bool has_edit;
};

/* A backend with at most 2 files and 32 bytes of them, 100 bytes of output. */
void sandbox_rig_init(struct sandbox_rig *r, const char *token);
void sandbox_rig_done(struct sandbox_rig *r);
/* Until *count is at least n; fails the test after 10 s. */
void sandbox_rig_wait(struct sandbox_rig *r, const unsigned *count, unsigned n);
void sandbox_rig_turn(struct sandbox_rig *r); /* what is ready now */
void sandbox_rig_open(struct sandbox_rig *r, const char *image);
void sandbox_rig_exec(struct sandbox_rig *r, const char *code);
void sandbox_rig_put(struct sandbox_rig *r, const char *name, const char *bytes);
/* Opens and runs once. */
void sandbox_rig_run(struct sandbox_rig *r, const char *code);
extern const struct code_run_ops sandbox_rig_ops;

#endif
