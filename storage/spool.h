/* spool.h - usage records on disk between a worker and the database
 *
 * Process: worker appends (event loop or one thread; not thread-safe), sweeper reads and deletes.
 * A record is appended by one write, so that it survives the worker's SIGKILL. Files:
 *   usage-<worker>-<pid>-<random>.spool   being written; its writer holds a lock on it
 *   usage-….ready                         closed; the sweeper drains and deletes it
 *   usage-….bad                           holds records of a newer program; kept for a person
 * A .spool file that nobody locks was left by a dead worker and is adopted.
 * Record: "OUS" version, u32 payload length, u32 CRC-32 of the payload, payload (little-endian).
 * Limits: LIMIT_SPOOL_RECORD_BYTES a record, header included.
 */
#ifndef OTARI_STORAGE_SPOOL_H
#define OTARI_STORAGE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "storage/usage.h"

#define SPOOL_HEAD_BYTES   12u
#define SPOOL_ROTATE_BYTES (1024u * 1024u)
#define SPOOL_ROTATE_MS    500

/* Bytes written to dst; always fits. */
size_t spool_encode(const struct usage *u, unsigned char dst[LIMIT_SPOOL_RECORD_BYTES]);
enum spool_found { SPOOL_RECORD, SPOOL_SHORT, SPOOL_DAMAGED, SPOOL_NEWER };
/* Reads the record at the front of bytes; strings of *ret point into bytes. *ret_len: how far to
 * go on (SPOOL_SHORT: 0, more bytes are needed; SPOOL_DAMAGED: to the next possible record). */
enum spool_found spool_decode(struct str bytes, struct usage *ret, size_t *ret_len);

/* The one folder of spools below state_dir; made when missing (0700). */
#define SPOOL_DIR_SIZE 1024
MUST_CHECK enum err_code spool_dir(
    struct str state_dir, char dst[SPOOL_DIR_SIZE], struct err *reterr);

struct spool;
/* dir exists. worker: the name in the file names ("1"). Nothing is created until the first append.
 */
MUST_CHECK enum err_code spool_open(
    const char *dir, const char *worker, struct spool **ret, struct err *reterr);
/* One write. On failure (disk full) nothing of the record stays behind and it may be tried again.
 */
MUST_CHECK enum err_code spool_append(struct spool *s, const struct usage *u, struct err *reterr);
/* Hands what was written to the sweeper when it is SPOOL_ROTATE_MS old; call on a timer. */
void spool_tick(struct spool *s);
/* Hands over at once. */
MUST_CHECK enum err_code spool_rotate(struct spool *s, struct err *reterr);
void spool_close(struct spool **s); /* hands over what is left */

/* Sweeper's side. fn gets up to SPOOL_BATCH records; it returns ERR_OK once they are committed. */
#define SPOOL_BATCH 256u
typedef enum err_code spool_batch_fn(
    const struct usage *rows, size_t n, void *arg, struct err *reterr);
struct spool_drained {
	uint64_t files, records, damaged, newer;
	uint64_t left, left_bytes; /* files that wait for a later pass, of this pass alone */
};
/* One pass over dir: adopts, fsyncs, hands out, deletes. Adds to *ret, also on failure. An error of
 * fn ends the pass; the file stays and is handed out again from its start. */
MUST_CHECK enum err_code spool_drain(
    const char *dir, spool_batch_fn *fn, void *arg, struct spool_drained *ret, struct err *reterr);

#endif
