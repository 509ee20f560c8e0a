/* The worker's side. */
#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "storage/spool.h"

#define SPOOL_MAGIC 0x73706f6cu
#define NAME_SIZE   128

struct spool {
	uint32_t magic;
	int dir;
	int fd; /* -1: no file yet */
	char worker[24];
	char name[NAME_SIZE]; /* without the ending */
	size_t bytes;
	int64_t first_ms; /* monotonic, of the first record in the file */
};

enum err_code
spool_dir(struct str state_dir, char dst[SPOOL_DIR_SIZE], struct err *reterr)
{
	int n = snprintf(dst, SPOOL_DIR_SIZE, "%.*s/spool", STR_FMT(state_dir));
	if (n < 0 || n >= SPOOL_DIR_SIZE)
		return err_set(reterr, ERR_INPUT, "spool: state_dir is too long");
	if (mkdir(dst, 0700) != 0 && errno != EEXIST)
		return err_set(reterr, ERR_IO, "spool: cannot make %s", dst);
	return ERR_OK;
}

enum err_code
spool_open(const char *dir, const char *worker, struct spool **ret, struct err *reterr)
{
	struct spool *s = MEM_NEW(struct spool);
	s->magic = SPOOL_MAGIC;
	s->fd = -1;
	s->dir = fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	enum err_code rc = ERR_OK;
	if (s->dir < 0)
		rc = err_set(reterr, ERR_IO, "spool: cannot open %s", dir);
	else if (!str_copy(s->worker, sizeof(s->worker), str_c(worker)) ||
		 str_chr(str_c(worker), '/') != SIZE_MAX)
		rc = err_set(reterr, ERR_INTERNAL, "spool: the worker's name is unfit");
	if (rc == ERR_OK)
		*ret = s;
	else
		spool_close(&s);
	return rc;
}

static void
forget_file(struct spool *s)
{
	fd_close(&s->fd);
	s->bytes = 0;
}

/* The lock is taken before the name is one that the sweeper looks at. */
static enum err_code
start_file(struct spool *s, struct err *reterr)
{
	char id[ID_SIZE], made[NAME_SIZE], final[NAME_SIZE + 8];
	id_make("", id);
	(void)snprintf(made, sizeof(made), ".new-%s", id);
	(void)snprintf(
	    s->name, sizeof(s->name), "usage-%s-%ld-%.12s", s->worker, (long)getpid(), id);
	(void)snprintf(final, sizeof(final), "%s.spool", s->name);
	s->bytes = 0;
	s->fd = fd_openat(s->dir, made, O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0600);
	if (s->fd < 0)
		return err_set(reterr, ERR_IO, "spool: cannot make a file");
	if (flock(s->fd, LOCK_EX | LOCK_NB) != 0 || renameat(s->dir, made, s->dir, final) != 0) {
		enum err_code rc = err_set(reterr, ERR_IO, "spool: cannot lock or name a file");
		(void)unlinkat(s->dir, made, 0);
		fd_close(&s->fd);
		return rc;
	}
	return ERR_OK;
}

enum err_code
spool_rotate(struct spool *s, struct err *reterr)
{
	CHECK_MAGIC(s, SPOOL_MAGIC);
	if (s->fd < 0 || s->bytes == 0)
		return ERR_OK;
	char from[NAME_SIZE + 8], to[NAME_SIZE + 8];
	(void)snprintf(from, sizeof(from), "%s.spool", s->name);
	(void)snprintf(to, sizeof(to), "%s.ready", s->name);
	if (renameat(s->dir, from, s->dir, to) != 0)
		return err_set(reterr, ERR_IO, "spool: cannot hand over a file");
	forget_file(s);
	return ERR_OK;
}

static bool
is_due(const struct spool *s)
{
	return s->fd >= 0 && s->bytes > 0 &&
	       (s->bytes >= SPOOL_ROTATE_BYTES || clock_mono_ms() - s->first_ms >= SPOOL_ROTATE_MS);
}

void
spool_tick(struct spool *s)
{
	CHECK_MAGIC(s, SPOOL_MAGIC);
	if (is_due(s) && spool_rotate(s, NULL) != ERR_OK)
		s->first_ms =
		    clock_mono_ms(); /* again later; the records are safe where they are */
}

enum err_code
spool_append(struct spool *s, const struct usage *u, struct err *reterr)
{
	CHECK_MAGIC(s, SPOOL_MAGIC);
	CHECK(u->request_id.len > 0);
	unsigned char record[LIMIT_SPOOL_RECORD_BYTES];
	size_t len = spool_encode(u, record);
	enum err_code rc = s->fd < 0 ? start_file(s, reterr) : ERR_OK;
	if (rc != ERR_OK)
		return rc;
	ssize_t n;
	do
		n = write(s->fd, record, len);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len) {
		if (n >= 0)
			errno = ENOSPC;
		rc = err_set(reterr, ERR_IO, "spool: cannot append");
		/* Half a record must not stand before the next one. */
		if (n > 0 && ftruncate(s->fd, (off_t)s->bytes) != 0)
			forget_file(s); /* unlocked now: the sweeper adopts it */
		return rc;
	}
	if (s->bytes == 0)
		s->first_ms = clock_mono_ms();
	s->bytes += len;
	spool_tick(s);
	return ERR_OK;
}

void
spool_close(struct spool **sp)
{
	struct spool *s = *sp;
	if (s == NULL)
		return;
	CHECK_MAGIC(s, SPOOL_MAGIC);
	*sp = NULL;
	if (s->fd >= 0) { /* what cannot be renamed is adopted later */
		if (s->bytes > 0) {
			(void)!spool_rotate(s, NULL);
		} else {
			char name[NAME_SIZE + 8];
			(void)snprintf(name, sizeof(name), "%s.spool", s->name);
			(void)unlinkat(s->dir, name, 0);
		}
	}
	fd_close(&s->fd);
	fd_close(&s->dir);
	s->magic = 0;
	mem_free(s);
}
