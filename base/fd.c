#include "base/fd.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

void
fd_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

int
fd_open(const char *path, int flags, mode_t mode)
{
	return fd_openat(AT_FDCWD, path, flags, mode);
}

int
fd_openat(int dir, const char *path, int flags, mode_t mode)
{
	return openat(dir, path, flags | O_CLOEXEC | O_NOCTTY, mode);
}

bool
fd_pipe(int ret[2], bool nonblock)
{
	return pipe2(ret, O_CLOEXEC | (nonblock ? O_NONBLOCK : 0)) == 0;
}

bool
fd_socketpair_seqpacket(int ret[2], bool nonblock)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0),
		   0, ret) == 0;
}

bool
fd_socketpair_stream(int ret[2], bool nonblock)
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0), 0,
		   ret) == 0;
}

int
fd_memfd(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool
fd_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) == 0;
}

bool
fd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & SEALS) == SEALS;
}

int
fd_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

bool
fd_dup_to(int fd, int target, bool cloexec)
{
	if (fd == target)
		return fd_set_cloexec(fd, cloexec);
	return dup3(fd, target, cloexec ? O_CLOEXEC : 0) == target;
}

bool
fd_set_nonblock(int fd, bool on)
{
	int fl = fcntl(fd, F_GETFL);
	return fl >= 0 && fcntl(fd, F_SETFL, on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK) == 0;
}

bool
fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) == 0;
}

static int
each_open(int first, bool do_close)
{
	DIR *d = opendir("/proc/self/fd");
	if (d == NULL)
		return -1;
	int count = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		int64_t n;
		if (!str_i64(str_c(e->d_name), &n) || n == dirfd(d) || n < first)
			continue;
		count++;
		if (do_close)
			(void)close((int)n);
	}
	closedir(d);
	return count;
}

bool
fd_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
		return true;
	return each_open(first, true) >= 0;
}

int
fd_count_open(void)
{
	return each_open(0, false);
}

enum err_code
fd_write_all(int fd, struct str bytes, struct err *reterr)
{
	while (bytes.len > 0) {
		ssize_t n = write(fd, bytes.ptr, bytes.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(reterr, ERR_IO, "write");
		bytes = str_from(bytes, (size_t)n);
	}
	return ERR_OK;
}

enum err_code
fd_read_all(int fd, size_t max, char **ret_bytes, size_t *ret_len, struct err *reterr)
{
	size_t cap = 4096, len = 0;
	char *p = mem_alloc(cap + 1);
	for (;;) {
		if (len == cap) {
			cap *= 2;
			p = mem_grow(p, cap + 1, 1);
		}
		ssize_t n = read(fd, p + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			mem_free(p);
			return err_set(reterr, ERR_IO, "read");
		}
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max) {
			mem_free(p);
			return err_set(reterr, ERR_TOOLARGE, "over %zu bytes", max);
		}
	}
	p[len] = '\0';
	*ret_bytes = p;
	*ret_len = len;
	return ERR_OK;
}

enum err_code
fd_read_file(const char *path, size_t max, char **ret_bytes, size_t *ret_len, struct err *reterr)
{
	int fd = fd_open(path, O_RDONLY, 0);
	if (fd < 0)
		return err_set(reterr, ERR_IO, "open %s", path);
	enum err_code rc = fd_read_all(fd, max, ret_bytes, ret_len, reterr);
	if (rc != ERR_OK)
		err_prefix(reterr, "%s: ", path);
	fd_close(&fd);
	return rc;
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

ssize_t
fd_send_msg(int sock, const void *p, size_t n, const int *fds, size_t nfds)
{
	CHECK(nfds <= FD_PASS_MAX);
	union control c;
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	if (nfds > 0) {
		memset(&c, 0, sizeof(c));
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(h), fds, sizeof(int) * nfds);
	}
	ssize_t rc;
	do
		rc = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (rc < 0 && errno == EINTR);
	return rc;
}

ssize_t
fd_recv_msg(int sock, void *p, size_t n, int *fds, size_t *nfds)
{
	union control c;
	struct iovec iov = {p, n};
	struct msghdr m = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	ssize_t rc;
	do
		rc = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return rc;
	size_t room = *nfds, got = 0;
	bool cut = (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			if (got < room) {
				fds[got++] = fd;
			} else {
				(void)close(fd);
				cut = true;
			}
		}
	}
	if (cut) {
		for (size_t i = 0; i < got; i++)
			(void)close(fds[i]);
		errno = EMSGSIZE;
		return -1;
	}
	*nfds = got;
	return rc;
}
