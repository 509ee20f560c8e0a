/* The sweeper's side. */
#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "storage/spool.h"

#define FILE_MAX_BYTES  (16u * SPOOL_ROTATE_BYTES)
#define PASS_MAX_FILES  4096u
#define STALE_NEW_S     60
#define SPOOL_NAME_SIZE 256

struct pass {
	int dir;
	spool_batch_fn *fn;
	void *arg;
	struct spool_drained *sum;
	struct usage *rows; /* SPOOL_BATCH */
	size_t n_rows;
};

/* name with its ending replaced. */
static bool
with_ending(const char *name, const char *ending, char dst[SPOOL_NAME_SIZE])
{
	size_t dot = str_rchr(str_c(name), '.');
	int n = snprintf(dst, SPOOL_NAME_SIZE, "%.*s%s", (int)dot, name, ending);
	return n > 0 && n < SPOOL_NAME_SIZE;
}

/* A file whose writer is gone gets its final name; false while somebody writes it. */
static bool
adopt(struct pass *p, const char *name, char ready[SPOOL_NAME_SIZE])
{
	int fd = fd_openat(p->dir, name, O_RDONLY | O_NOFOLLOW, 0);
	bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	/* ENOENT: its writer handed it over in between. */
	bool ok = is_free && with_ending(name, ".ready", ready) &&
		  renameat(p->dir, name, p->dir, ready) == 0;
	fd_close(&fd);
	return ok;
}

static enum err_code
flush(struct pass *p, struct err *reterr)
{
	if (p->n_rows == 0)
		return ERR_OK;
	enum err_code rc = p->fn(p->rows, p->n_rows, p->arg, reterr);
	if (rc == ERR_OK) {
		p->sum->records += p->n_rows;
		p->n_rows = 0;
	}
	return rc;
}

static enum err_code
hand_out(struct pass *p, struct str bytes, uint64_t *ret_newer, struct err *reterr)
{
	p->n_rows = 0;
	uint64_t damaged = 0;
	while (bytes.len > 0) {
		size_t len;
		switch (spool_decode(bytes, &p->rows[p->n_rows], &len)) {
		case SPOOL_RECORD:
			if (++p->n_rows == SPOOL_BATCH) {
				enum err_code rc = flush(p, reterr);
				if (rc != ERR_OK)
					return rc;
			}
			break;
		case SPOOL_SHORT: { /* torn: nothing more will come; but look past it */
			size_t next = str_find(str_from(bytes, 1), STR("OUS"));
			len = next == SIZE_MAX ? bytes.len : next + 1;
			damaged++;
			break;
		}
		case SPOOL_DAMAGED:
			damaged++;
			break;
		case SPOOL_NEWER:
			(*ret_newer)++;
			break;
		}
		bytes = str_from(bytes, len);
	}
	enum err_code rc = flush(p, reterr);
	if (rc == ERR_OK)
		p->sum->damaged += damaged;
	return rc;
}

static enum err_code
set_aside(struct pass *p, const char *name, struct err *reterr)
{
	char bad[SPOOL_NAME_SIZE];
	if (!with_ending(name, ".bad", bad) || renameat(p->dir, name, p->dir, bad) != 0)
		return err_set(reterr, ERR_IO, "spool: cannot set aside %s", name);
	return ERR_OK;
}

static enum err_code
drain_file(struct pass *p, const char *name, struct err *reterr)
{
	int fd = fd_openat(p->dir, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT ? ERR_OK
				       : err_set(reterr, ERR_IO, "spool: cannot open %s", name);
	char *bytes = NULL;
	size_t len = 0;
	uint64_t newer = 0;
	/* Before the rows are in the database the records must survive the host, too. */
	enum err_code rc =
	    fsync(fd) == 0 ? ERR_OK : err_set(reterr, ERR_IO, "spool: cannot sync %s", name);
	if (rc == ERR_OK)
		rc = fd_read_all(fd, FILE_MAX_BYTES, &bytes, &len, reterr);
	bool is_huge = rc == ERR_TOOLARGE; /* none of ours */
	if (rc == ERR_OK)
		rc = hand_out(p, str_n(bytes, len), &newer, reterr);
	if (is_huge || (rc == ERR_OK && newer > 0))
		rc = set_aside(p, name, reterr);
	else if (rc == ERR_OK && unlinkat(p->dir, name, 0) != 0)
		rc = err_set(reterr, ERR_IO, "spool: cannot delete %s", name);
	if (rc == ERR_OK) {
		p->sum->files++;
		p->sum->newer += is_huge ? 1 : newer;
	}
	mem_free(bytes);
	fd_close(&fd);
	return rc;
}

static void
remove_stale(struct pass *p, const char *name)
{
	struct stat st;
	if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    clock_wall_s() - st.st_mtime > STALE_NEW_S)
		(void)unlinkat(p->dir, name, 0);
}

static void
count_left(struct pass *p, const char *name)
{
	struct stat st;
	p->sum->left++; /* also when its writer handed it over just now: it has another name */
	if (fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		p->sum->left_bytes += (uint64_t)st.st_size;
}

/* After the first failure the rest is only counted. */
static enum err_code
visit(struct pass *p, const char *name, enum err_code rc, struct err *reterr)
{
	char ready[SPOOL_NAME_SIZE];
	struct str s = str_c(name);
	if (str_starts(s, STR(".new-"))) {
		remove_stale(p, name);
	} else if (str_starts(s, STR("usage-")) && str_ends(s, STR(".ready"))) {
		if (rc == ERR_OK)
			rc = drain_file(p, name, reterr);
		if (rc != ERR_OK)
			count_left(p, name);
	} else if (str_starts(s, STR("usage-")) && str_ends(s, STR(".spool"))) {
		bool adopted = rc == ERR_OK && adopt(p, name, ready);
		if (adopted)
			rc = drain_file(p, ready, reterr);
		if (!adopted || rc != ERR_OK)
			count_left(p, adopted ? ready : name);
	}
	return rc;
}

enum err_code
spool_drain(
    const char *dir, spool_batch_fn *fn, void *arg, struct spool_drained *ret, struct err *reterr)
{
	struct pass p = {.fn = fn, .arg = arg, .sum = ret};
	p.dir = fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	int copy = p.dir < 0 ? -1 : fd_dup(p.dir);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (d == NULL) {
		enum err_code rc = err_set(reterr, ERR_IO, "spool: cannot read %s", dir);
		fd_close(&copy);
		fd_close(&p.dir);
		return rc;
	}
	p.rows = MEM_NEW_ARRAY(struct usage, SPOOL_BATCH);
	ret->left = ret->left_bytes = 0;
	enum err_code rc = ERR_OK;
	const struct dirent *e;
	for (unsigned n = 0; n < PASS_MAX_FILES && (e = readdir(d)) != NULL; n++)
		rc = visit(&p, e->d_name, rc, reterr);
	mem_free(p.rows);
	(void)closedir(d);
	fd_close(&p.dir);
	return rc;
}
