/* Blobs in a directory: <shard>/<name>; puts are written to .tmp/<random> and renamed when whole.
 * Everything goes through directory descriptors and never follows a link. */
#include "storage/blob/blob_local.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

/* A shard that a delete empties may vanish between being opened and being filled. */
#define RENAME_TRIES 8
/* Writeback is started all along, so that the sync at the end finds little to do. */
#define FLUSH_BYTES (8u * 1024u * 1024u)

struct local_put {
	struct blob_put base;
	int fd;
	uint64_t bytes, flushed;
	char temp[ID_SIZE];
	char key[BLOB_KEY_SIZE];
};

struct local_get {
	struct blob_get base;
	int fd;
	uint64_t pos, end;
};

static struct blob_local *
local(struct blob_store *s)
{
	return (struct blob_local *)s;
}

/* "ab/name" → "ab" and "name"; a key without a shard is in the root, ".". */
static void
split_key(struct str key, char shard[BLOB_KEY_SIZE], char name[BLOB_KEY_SIZE])
{
	size_t slash = str_chr(key, '/');
	if (slash == SIZE_MAX) {
		(void)snprintf(shard, BLOB_KEY_SIZE, ".");
		(void)snprintf(name, BLOB_KEY_SIZE, "%.*s", STR_FMT(key));
	} else {
		(void)snprintf(shard, BLOB_KEY_SIZE, "%.*s", (int)slash, key.ptr);
		(void)snprintf(name, BLOB_KEY_SIZE, "%.*s", STR_FMT(str_from(key, slash + 1)));
	}
}

static int
open_shard(const struct blob_local *l, const char *shard)
{
	return fd_openat(l->root, shard, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static enum err_code
put_begin(struct blob_store *s, struct str key, struct blob_put **ret, struct err *reterr)
{
	struct local_put *p = MEM_NEW(struct local_put);
	p->base.store = s;
	(void)str_copy(p->key, sizeof(p->key), key);
	id_make("put-", p->temp);
	p->fd = fd_openat(local(s)->temps, p->temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (p->fd < 0) {
		mem_free(p);
		return err_set(reterr, ERR_IO, "blob: cannot make a temporary file");
	}
	*ret = &p->base;
	return ERR_OK;
}

static enum err_code
put_write(struct blob_put *put, struct str bytes, struct err *reterr)
{
	struct local_put *p = (struct local_put *)put;
	enum err_code rc = fd_write_all(p->fd, bytes, reterr);
	if (rc != ERR_OK)
		return rc;
	p->bytes += bytes.len;
	if (p->bytes - p->flushed >= FLUSH_BYTES) {
		(void)sync_file_range(p->fd, (off_t)p->flushed, (off_t)(p->bytes - p->flushed),
		    SYNC_FILE_RANGE_WRITE);
		p->flushed = p->bytes;
	}
	return ERR_OK;
}

static void
put_free(struct local_put *p)
{
	fd_close(&p->fd);
	mem_free(p);
}

static void
put_abort(struct blob_put *put)
{
	struct local_put *p = (struct local_put *)put;
	(void)unlinkat(local(put->store)->temps, p->temp, 0);
	put_free(p);
}

/* The name is on disk when the directories that hold it are. */
static enum err_code
rename_once(struct local_put *p, const char *shard, const char *name)
{
	const struct blob_local *l = local(p->base.store);
	bool made = mkdirat(l->root, shard, 0700) == 0;
	int dir = open_shard(l, shard);
	bool is_there = dir >= 0 && renameat(l->temps, p->temp, dir, name) == 0;
	bool ok = is_there && fsync(dir) == 0 && (!made || fsync(l->root) == 0);
	int saved = errno;
	if (is_there && !ok)
		(void)unlinkat(dir, name, 0);
	fd_close(&dir);
	errno = saved;
	return ok ? ERR_OK : ERR_IO;
}

static enum err_code
put_commit(struct blob_put *put, struct err *reterr)
{
	struct local_put *p = (struct local_put *)put;
	char shard[BLOB_KEY_SIZE], name[BLOB_KEY_SIZE];
	split_key(str_c(p->key), shard, name);
	enum err_code rc = ERR_OK;
	if (fsync(p->fd) != 0)
		rc = err_set(reterr, ERR_IO, "blob: cannot sync");
	for (int i = 0; rc == ERR_OK && i < RENAME_TRIES; i++) {
		if (rename_once(p, shard, name) == ERR_OK) {
			put_free(p);
			return ERR_OK;
		}
		if (errno != ENOENT || i + 1 == RENAME_TRIES)
			rc = err_set(reterr, ERR_IO, "blob: cannot store %s", p->key);
	}
	put_abort(put);
	return rc;
}

static enum err_code
open_blob(
    struct blob_store *s, struct str key, int *ret_fd, struct stat *ret_st, struct err *reterr)
{
	char shard[BLOB_KEY_SIZE], name[BLOB_KEY_SIZE];
	split_key(key, shard, name);
	int dir = open_shard(local(s), shard);
	int fd = dir < 0 ? -1 : fd_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	int saved = errno;
	fd_close(&dir);
	errno = saved;
	if (fd < 0)
		return errno == ENOENT
			   ? err_set(reterr, ERR_NOTFOUND, "blob: no %.*s", STR_FMT(key))
			   : err_set(reterr, ERR_IO, "blob: cannot open %.*s", STR_FMT(key));
	if (fstat(fd, ret_st) != 0 || !S_ISREG(ret_st->st_mode)) {
		fd_close(&fd);
		errno = EINVAL;
		return err_set(reterr, ERR_IO, "blob: %.*s is not a file", STR_FMT(key));
	}
	*ret_fd = fd;
	return ERR_OK;
}

static enum err_code
get_open(struct blob_store *s, struct str key, uint64_t offset, uint64_t length,
    struct blob_get **ret, struct err *reterr)
{
	int fd;
	struct stat st;
	enum err_code rc = open_blob(s, key, &fd, &st, reterr);
	if (rc != ERR_OK)
		return rc;
	struct local_get *g = MEM_NEW(struct local_get);
	uint64_t size = (uint64_t)st.st_size;
	g->base.store = s;
	g->fd = fd;
	g->pos = offset < size ? offset : size;
	g->end = length < size - g->pos ? g->pos + length : size;
	*ret = &g->base;
	return ERR_OK;
}

static enum err_code
get_read(struct blob_get *get, void *dst, size_t n, size_t *ret_got, struct err *reterr)
{
	struct local_get *g = (struct local_get *)get;
	if (n > g->end - g->pos)
		n = (size_t)(g->end - g->pos);
	ssize_t got = 0;
	if (n > 0)
		do
			got = pread(g->fd, dst, n, (off_t)g->pos);
		while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(reterr, ERR_IO, "blob: cannot read");
	if (got == 0 && n > 0) {
		errno = EIO;
		return err_set(reterr, ERR_IO, "blob: the file became shorter");
	}
	g->pos += (uint64_t)got;
	*ret_got = (size_t)got;
	return ERR_OK;
}

static void
get_close(struct blob_get *get)
{
	struct local_get *g = (struct local_get *)get;
	fd_close(&g->fd);
	mem_free(g);
}

static enum err_code
local_open_fd(
    struct blob_store *s, struct str key, int *ret_fd, uint64_t *ret_bytes, struct err *reterr)
{
	int fd;
	struct stat st;
	enum err_code rc = open_blob(s, key, &fd, &st, reterr);
	if (rc != ERR_OK)
		return rc;
	*ret_fd = fd;
	if (ret_bytes != NULL)
		*ret_bytes = (uint64_t)st.st_size;
	return ERR_OK;
}

static enum err_code
local_stat(struct blob_store *s, struct str key, struct blob_info *ret, struct err *reterr)
{
	int fd;
	struct stat st;
	enum err_code rc = open_blob(s, key, &fd, &st, reterr);
	if (rc != ERR_OK)
		return rc;
	fd_close(&fd);
	*ret = (struct blob_info){(uint64_t)st.st_size, st.st_mtime};
	return ERR_OK;
}

static enum err_code
local_remove(struct blob_store *s, struct str key, struct err *reterr)
{
	const struct blob_local *l = local(s);
	char shard[BLOB_KEY_SIZE], name[BLOB_KEY_SIZE];
	split_key(key, shard, name);
	int dir = open_shard(l, shard);
	bool ok = dir >= 0 ? unlinkat(dir, name, 0) == 0 || errno == ENOENT : errno == ENOENT;
	enum err_code rc =
	    ok ? ERR_OK : err_set(reterr, ERR_IO, "blob: cannot delete %.*s", STR_FMT(key));
	fd_close(&dir);
	/* Fails, as it should, unless that was the last one. */
	if (rc == ERR_OK && shard[0] != '.')
		(void)unlinkat(l->root, shard, AT_REMOVEDIR);
	return rc;
}

static void
local_close(struct blob_store *s)
{
	struct blob_local *l = local(s);
	fd_close(&l->temps);
	fd_close(&l->root);
	mem_free(l);
}

static const struct blob_ops LOCAL_OPS = {
    .close = local_close,
    .put_begin = put_begin,
    .put_write = put_write,
    .put_commit = put_commit,
    .put_abort = put_abort,
    .get_open = get_open,
    .get_read = get_read,
    .get_close = get_close,
    .open_fd = local_open_fd,
    .stat = local_stat,
    .remove = local_remove,
    .list = blob_local_list,
    .clean = blob_local_clean,
};

enum err_code
blob_open_local(const char *dir, struct blob_store **ret, struct err *reterr)
{
	struct blob_local *l = MEM_NEW(struct blob_local);
	l->base.ops = &LOCAL_OPS;
	l->root = l->temps = -1;
	bool ok = mkdir(dir, 0700) == 0 || errno == EEXIST;
	if (ok)
		l->root = fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	ok = l->root >= 0 && (mkdirat(l->root, ".tmp", 0700) == 0 || errno == EEXIST);
	if (ok)
		l->temps = fd_openat(l->root, ".tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (l->temps < 0) {
		enum err_code rc =
		    err_set(reterr, ERR_IO, "blob: cannot use the directory %s", dir);
		local_close(&l->base);
		return rc;
	}
	*ret = &l->base;
	return ERR_OK;
}
