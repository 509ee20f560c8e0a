/* blob_local.h - the directory backend's parts. Private to storage/blob. */
#ifndef OTARI_STORAGE_BLOB_BLOB_LOCAL_H
#define OTARI_STORAGE_BLOB_BLOB_LOCAL_H

#include "storage/blob/blob_ops.h"

struct blob_local {
	struct blob_store base;
	int root;  /* the directory */
	int temps; /* its .tmp */
};

/* blob_local_walk.c */
enum err_code blob_local_list(
    struct blob_store *s, blob_list_fn *fn, void *arg, struct err *reterr);
enum err_code blob_local_clean(
    struct blob_store *s, int64_t older_than_s, uint64_t *ret_n, struct err *reterr);

#endif
