#include "ipc/control_client.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* Named relative to its directory, which is held open meanwhile. */
int
control_connect(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[PATH_MAX];
	size_t slash = str_rchr(str_c(path), '/');
	struct str parent = slash == SIZE_MAX ? STR(".") : str_n(path, slash + 1);
	int dir_fd =
	    str_copy(dir, sizeof(dir), parent) ? fd_open(dir, O_PATH | O_DIRECTORY, 0) : -1;
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir_fd,
	    slash == SIZE_MAX ? path : path + slash + 1);
	int fd = -1;
	if (dir_fd >= 0 && n > 0 && (size_t)n < sizeof(a.sun_path))
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, (socklen_t)sizeof(a)) != 0)
		fd_close(&fd);
	int saved = errno;
	fd_close(&dir_fd);
	errno = saved;
	return fd;
}

enum err_code
control_ask(const char *path, const char *command, int timeout_ms, char *dst, size_t size,
    size_t *ret_len, int *ret_fd, struct err *reterr)
{
	int fd = control_connect(path), came = -1;
	size_t nfds = 1;
	if (fd < 0)
		return err_set(reterr, ERR_IO, "%s", path);
	ssize_t n = fd_send_msg(fd, command, strlen(command), NULL, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (n >= 0 && poll(&p, 1, timeout_ms) == 1)
		n = fd_recv_msg(fd, dst, size, &came, &nfds);
	else
		n = -1;
	fd_close(&fd);
	if (n <= 0)
		return err_set(reterr, ERR_TIMEOUT, "no answer from %s", path);
	if (nfds != 1)
		came = -1;
	if (ret_fd != NULL)
		*ret_fd = came;
	else
		fd_close(&came);
	*ret_len = (size_t)n;
	return ERR_OK;
}
