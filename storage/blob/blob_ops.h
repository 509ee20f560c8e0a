/* blob_ops.h - what blob.c asks of a backend. Private to storage/blob.
 *
 * A backend's structs begin with these. Keys were checked. Everything else as blob.h says.
 */
#ifndef OTARI_STORAGE_BLOB_BLOB_OPS_H
#define OTARI_STORAGE_BLOB_BLOB_OPS_H

#include "storage/blob/blob.h"

struct blob_ops {
	void (*close)(struct blob_store *s);
	enum err_code (*put_begin)(
	    struct blob_store *s, struct str key, struct blob_put **ret, struct err *reterr);
	enum err_code (*put_write)(struct blob_put *p, struct str bytes, struct err *reterr);
	enum err_code (*put_commit)(struct blob_put *p, struct err *reterr); /* frees p */
	void (*put_abort)(struct blob_put *p);                               /* frees p */
	enum err_code (*get_open)(struct blob_store *s, struct str key, uint64_t offset,
	    uint64_t length, struct blob_get **ret, struct err *reterr);
	enum err_code (*get_read)(
	    struct blob_get *g, void *dst, size_t n, size_t *ret_got, struct err *reterr);
	void (*get_close)(struct blob_get *g); /* frees g */
	enum err_code (*open_fd)(struct blob_store *s, struct str key, int *ret_fd,
	    uint64_t *ret_bytes, struct err *reterr); /* NULL: bytes are elsewhere */
	enum err_code (*stat)(
	    struct blob_store *s, struct str key, struct blob_info *ret, struct err *reterr);
	enum err_code (*remove)(struct blob_store *s, struct str key, struct err *reterr);
	enum err_code (*list)(
	    struct blob_store *s, blob_list_fn *fn, void *arg, struct err *reterr);
	enum err_code (*clean)(
	    struct blob_store *s, int64_t older_than_s, uint64_t *ret_n, struct err *reterr);
};

struct blob_store {
	const struct blob_ops *ops;
};
struct blob_put {
	struct blob_store *store;
};
struct blob_get {
	struct blob_store *store;
};

#endif
