/* file_copy.h - one file of ours, copied to a provider's Files API for code that runs there
 *
 * Process: worker, loop thread.
 * Owns:    the running HTTP call and the descriptor. Target and arena are borrowed and outlive it.
 * Rule:    the copy takes itself away: the provider is told to keep it for FILE_COPY_LIFETIME_S,
 * its shortest. A container that was given it has it for longer. Limits:  FILE_COPY_ANSWER_BYTES of
 * the provider's answer.
 */
#ifndef OTARI_WORKER_UPSTREAM_FILE_COPY_H
#define OTARI_WORKER_UPSTREAM_FILE_COPY_H

#include "base/arena.h"
#include "base/err.h"
#include "worker/upstream/failure.h"
#include "worker/upstream/target.h"

#define FILE_COPY_LIFETIME_S   3600
#define FILE_COPY_ANSWER_BYTES (64u * 1024u)
#define FILE_COPY_ID_BYTES     255u /* of what a provider may call its copy */

struct file_copy;
struct http_client;

struct file_copy_source {
	int fd; /* regular file, read from offset 0; taken */
	uint64_t bytes;
	struct str name, mime_type;
};

/* id: what the provider calls it, in the arena. Otherwise f says what a client is told. Exactly
 * once, unless cancelled; never before file_copy_start returned. */
typedef void file_copy_done(void *arg, struct str id, const struct failure *f);
MUST_CHECK enum err_code file_copy_start(struct http_client *client, struct arena *a,
    const struct target *target, const struct file_copy_source *source, file_copy_done *done,
    void *arg, struct file_copy **ret, struct err *reterr);
void file_copy_cancel(struct file_copy **c); /* NULL allowed */

#endif
