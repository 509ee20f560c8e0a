/* env.h - what one worker process holds; passed to every handler
 *
 * Process: worker, loop thread. One instance, made by worker/worker.c.
 */
#ifndef OTARI_WORKER_ENV_H
#define OTARI_WORKER_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "ipc/board.h"
#include "ipc/snapshot.h"

struct blob_store;
struct chan;
struct code_backend;
struct event_base;
struct http_client;
struct http_server;
struct jobs;
struct publish;
struct sandbox_serve;
struct secrets;
struct settlement;
struct spool;

struct worker_env {
	uint32_t number;
	struct event_base *base;
	struct chan *ctl;
	struct board *board;
	struct board_slot *slot;
	struct snapshot *policy;     /* current; take a reference with snapshot_get while in use */
	struct snapshot *keys;       /* base */
	struct snapshot *keys_delta; /* or NULL */
	struct secrets *secrets;
	struct http_server *public_http, *admin_http;
	struct sandbox_serve *serve; /* worker 1 only, once the sandbox was lent; else NULL */
	struct http_client *client;
	struct jobs *sql; /* thread context: struct db * */
	struct jobs *io;  /* thread context: NULL */
	struct blob_store *blobs;
	struct spool *spool;
	struct settlement *settlement; /* turn/settle.h: usage on its way to the spool */
	struct code_backend *code;     /* NULL: no sandbox configured */
	struct publish *publish;
	bool draining;
};

/* worker/publish.c: asks the master to build and publish after a committed change; done on the loop
 * with NULL when it is in force on every worker of this host, else ERR_UNCERTAIN-like error (503
 * "saved, not in force"). */
enum publish_what { PUBLISH_KEYS = 1, PUBLISH_POLICY = 2 };
void publish_request(struct worker_env *env, enum publish_what what,
    void (*done)(void *arg, const struct err *err), void *arg);
/* Key look-up over base and delta; NULL: unknown. */
const struct snap_key *worker_key(
    const struct worker_env *env, const unsigned char hash[SHA256_BYTES], struct snapshot **ret_in);

#endif
