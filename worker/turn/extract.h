/* extract.h - reads the documents that extract_plan.h names, in a code session of their own
 *
 * Process: worker, loop thread.
 * Session: one for all documents of a request, opened when there is one to read and closed at the
 *          end; never the one that runs the request's code, since a document may take over the
 *          program that reads it. It counts and waits like any other of the workspace.
 * Limits:  EXTRACT_CALL_MS a document, EXTRACT_ALL_MS together, max_text_bytes of text together,
 * and the sandbox's own. Whatever goes wrong leaves documents as they are; a line in the log says
 * why, without a word of them.
 */
#ifndef OTARI_WORKER_TURN_EXTRACT_H
#define OTARI_WORKER_TURN_EXTRACT_H

#include "worker/turn/extract_plan.h"

#define EXTRACT_CALL_MS 30000u
#define EXTRACT_ALL_MS  60000u /* once there is a session */

struct extract;
struct request;
struct target;
struct worker_env;

struct extract_options {
	struct str workspace_id;
	uint32_t queue_ms; /* wait for a session */
	uint64_t max_text_bytes;
};

/* The formats that reach this model as they are (document.h): all where the deployment does not
 * want documents read; those that need an extractor where no sandbox reads them. */
uint32_t extract_leaves(const struct worker_env *env, const struct target *target);
/* done is called once, and never before this returns, unless extract_cancel was; the texts of the
 * plan are then filled in as far as they go. The plan, which has unread ones, and the request
 * outlive it. Returns owned; it is gone once done was called. */
struct extract *extract_start(struct request *req, struct extract_plan *plan,
    const struct extract_options *opt, void (*done)(void *arg), void *arg);
void extract_cancel(struct extract **x); /* NULL allowed; ends what runs */

#endif
