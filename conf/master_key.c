#include "conf/master_key.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#define TOKEN_SIZE 80

static enum err_code
check_file(int fd, const char *path, struct err *reterr)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_set(reterr, ERR_IO, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(reterr, ERR_INPUT, "%s: not a regular file", path);
	if ((st.st_mode & 077) != 0)
		return err_set(reterr, ERR_INPUT,
		    "%s: others may read the master key (mode %03o); set it to 600", path,
		    (unsigned)(st.st_mode & 0777));
	return ERR_OK;
}

/* Writes the key under another name and links it: whole or not at all, and never over another. */
static enum err_code
make(const char *path, bool *ret_created, struct err *reterr)
{
	char temporary[4096], token[TOKEN_SIZE], line[TOKEN_SIZE + 1];
	enum err_code rc = ERR_OK;
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid()) >=
	    sizeof(temporary))
		return err_set(reterr, ERR_INPUT, "master key: the path is too long");
	(void)unlink(temporary);
	int fd = fd_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(reterr, ERR_IO, "%s", temporary);
	id_make_token("gw-", token, sizeof(token));
	int n = snprintf(line, sizeof(line), "%s\n", token);
	rc = fd_write_all(fd, str_n(line, (size_t)n), reterr);
	mem_wipe(token, sizeof(token));
	mem_wipe(line, sizeof(line));
	if (rc == ERR_OK && fsync(fd) != 0)
		rc = err_set(reterr, ERR_IO, "%s", temporary);
	if (rc == ERR_OK && link(temporary, path) == 0)
		*ret_created = true;
	else if (rc == ERR_OK && errno != EEXIST)
		rc = err_set(reterr, ERR_IO, "%s", path);
	(void)unlink(temporary);
	fd_close(&fd);
	return rc;
}

enum err_code
master_key_open(const char *path, int *ret_fd, bool *ret_created, struct err *reterr)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
	bool created = false;
	int fd = fd_open(path, flags, 0);
	if (fd < 0 && errno == ENOENT) {
		enum err_code rc = make(path, &created, reterr);
		if (rc != ERR_OK)
			return rc;
		fd = fd_open(path, flags, 0);
	}
	if (fd < 0)
		return err_set(reterr, ERR_IO, "%s", path);
	enum err_code rc = check_file(fd, path, reterr);
	if (rc != ERR_OK) {
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	*ret_created = created;
	return ERR_OK;
}
