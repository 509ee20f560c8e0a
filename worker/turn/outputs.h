/* outputs.h - files that the code made: from the session's pipe into the blob store and the files
 * table
 *
 * Process: worker, loop thread; writes on io threads, one job at a time, rows by a SQL job at the
 * end. Owns:    what is on its way. A file gets its id when its blob and its row are whole; any
 * failure leaves the name without an id and the run stands. Limits:  OUTPUTS_QUEUE_BYTES in memory,
 * then the session is paused; counts and bytes are the session's limits.
 */
#ifndef OTARI_WORKER_TURN_OUTPUTS_H
#define OTARI_WORKER_TURN_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct code_session;
struct outputs;
struct request;

#define OUTPUTS_QUEUE_BYTES (1024u * 1024u)

struct output_file {
	struct output_file *next;
	struct str name;    /* valid UTF-8 on one line, at most LIMIT_FILENAME_BYTES; in the
			     * request's arena */
	struct str file_id; /* empty: not stored */
	uint64_t bytes;
};

struct outputs_owner {
	struct str user_id, workspace_id;
	int64_t expires_at_ms; /* 0: never */
};

/* session is paused and resumed by this; borrowed. */
struct outputs *outputs_new(
    struct request *req, struct code_session *session, const struct outputs_owner *owner);
/* The three file callbacks of struct code_run_ops, with the outputs as arg. */
bool outputs_file_begin(struct outputs *o, struct str path, uint64_t size);
void outputs_file_data(struct outputs *o, struct str bytes);
void outputs_file_end(struct outputs *o, bool whole);
/* A file that is only named. */
void outputs_name_only(struct outputs *o, struct str path);
/* When everything is stored: done(list in order). Frees o before it calls, perhaps before this
 * returns. */
void outputs_finish(
    struct outputs *o, void (*done)(void *arg, struct output_file *files), void *arg);
/* Before done was called: forgets and removes it all, in the background. NULL allowed. */
void outputs_cancel(struct outputs **o);

#endif
