/* blob.h - the bytes of files, behind one interface for a directory, S3 and libcurl's protocols
 *
 * Process: worker (io threads), sweeper. Every call may block. A store may be shared by threads; a
 * put or get belongs to one thread at a time.
 * Keys are ours, never a client's: "<2 hex>/<id>", see blob_key. One or two segments; empty ones,
 * those that begin with a dot and bytes outside A-Z a-z 0-9 . _ - / are refused with ERR_INPUT.
 */
#ifndef OTARI_STORAGE_BLOB_BLOB_H
#define OTARI_STORAGE_BLOB_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define BLOB_KEY_SIZE 256 /* with NUL */
#define BLOB_TO_END   UINT64_MAX

struct blob_store;
struct blob_put;
struct blob_get;

struct blob_info {
	uint64_t bytes;
	int64_t modified_s;
};

/* dir is made when missing (0700). Returns owned. */
MUST_CHECK enum err_code blob_open_local(
    const char *dir, struct blob_store **ret, struct err *reterr);
void blob_close(struct blob_store **s);
/* The key of a new file's blob: "file-…" under its first two characters; any other id, which a
 * provider chose, by its hash. */
void blob_key(struct str id, char dst[BLOB_KEY_SIZE]);
bool blob_key_valid(struct str key);

/* A put becomes visible, whole and durable, at commit; until then readers see the old state. */
MUST_CHECK enum err_code blob_put_begin(
    struct blob_store *s, struct str key, struct blob_put **ret, struct err *reterr);
MUST_CHECK enum err_code blob_put_write(struct blob_put *p, struct str bytes, struct err *reterr);
/* Takes the put, also on failure (then nothing is left behind). */
MUST_CHECK enum err_code blob_put_commit(struct blob_put **p, struct err *reterr);
void blob_put_abort(struct blob_put **p); /* NULL allowed */

/* length may reach past the end; offset past the end reads nothing. ERR_NOTFOUND. */
MUST_CHECK enum err_code blob_get_open(struct blob_store *s, struct str key, uint64_t offset,
    uint64_t length, struct blob_get **ret, struct err *reterr);
/* *ret_got 0: the end. */
MUST_CHECK enum err_code blob_get_read(
    struct blob_get *g, void *dst, size_t n, size_t *ret_got, struct err *reterr);
void blob_get_close(struct blob_get **g);
/* Fast path: a descriptor to send from; ERR_UNSUPPORTED where the bytes are not on this host.
 * The caller owns *ret_fd. */
MUST_CHECK enum err_code blob_open_fd(
    struct blob_store *s, struct str key, int *ret_fd, uint64_t *ret_bytes, struct err *reterr);
MUST_CHECK enum err_code blob_stat(
    struct blob_store *s, struct str key, struct blob_info *ret, struct err *reterr);
/* A missing blob is fine. */
MUST_CHECK enum err_code blob_delete(struct blob_store *s, struct str key, struct err *reterr);
/* fn returns false to stop. */
typedef bool blob_list_fn(struct str key, const struct blob_info *info, void *arg);
MUST_CHECK enum err_code blob_list(
    struct blob_store *s, blob_list_fn *fn, void *arg, struct err *reterr);
/* Takes away what puts left behind that were not touched for older_than_s. */
MUST_CHECK enum err_code blob_clean(
    struct blob_store *s, int64_t older_than_s, uint64_t *ret_n, struct err *reterr);

#endif
