/* upload_store.h - writes a stream of bytes into one new blob on io threads, a chunk at a time
 *
 * Process: worker, loop thread. Two buffers: one is filled on the loop while the other is written.
 * Owns:    the blob being put until it is committed; whatever way the upload ends before, nothing
 * of it stays. Limits:  UPLOAD_CHUNK_BYTES twice, and one delivery of the connection.
 */
#ifndef OTARI_WORKER_API_UPLOAD_STORE_H
#define OTARI_WORKER_API_UPLOAD_STORE_H

#include "storage/blob/blob.h"
#include "worker/api/work.h"

#define UPLOAD_CHUNK_BYTES (256u * 1024u)

struct upload_store {
	struct work work;
	struct request *req;    /* borrowed: it lies in its arena */
	struct buf fill, drain; /* drain is the io thread's while work is busy */
	struct blob_put *put;   /* likewise */
	char key[BLOB_KEY_SIZE];
	bool is_last; /* no byte comes after those in fill */
	bool commits; /* the running job ends with the commit; set while none runs */
	bool is_committed, is_dead, wants_room;
	/* Loop: there is room again after upload_store_has_room said no. */
	void (*on_room)(struct request *req);
	/* Loop: once, unless upload_store_drop came first. NULL: whole, durable and visible. */
	void (*on_end)(struct request *req, const struct err *err);
};

/* Buffers are released with the arena. */
void upload_store_init(struct upload_store *s, struct request *req, struct str id);
/* Copies. */
void upload_store_add(struct upload_store *s, struct str bytes);
/* Ask after each delivery. False: enough for now; on_room comes. */
bool upload_store_has_room(struct upload_store *s);
void upload_store_finish(struct upload_store *s); /* writes the rest and commits; then on_end */
/* Forgets the upload, from anywhere, also when committed. No callback comes after it. */
void upload_store_drop(struct upload_store *s);

#endif
