#include "master/listen.h"

#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/fd.h"

#define BACKLOG 4096

union address {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static bool
make_address(struct str host, uint16_t port, union address *ret, socklen_t *ret_len)
{
	char text[INET6_ADDRSTRLEN];
	memset(ret, 0, sizeof(*ret));
	if (!str_copy(text, sizeof(text), host))
		return false;
	if (inet_pton(AF_INET, text, &ret->in4.sin_addr) == 1) {
		ret->in4.sin_family = AF_INET;
		ret->in4.sin_port = htons(port);
		*ret_len = sizeof(ret->in4);
		return true;
	}
	if (inet_pton(AF_INET6, text, &ret->in6.sin6_addr) != 1)
		return false;
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons(port);
	*ret_len = sizeof(ret->in6);
	return true;
}

static bool
set_options(int fd, int family, bool reuse_port)
{
	int on = 1, off = 0;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
		return false;
	if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)
		return false;
	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* Accepted sockets inherit it; without it a streamed reply waits 40 ms here and there. */
	return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

/* -1 with errno. */
static int
open_bound(union address *a, socklen_t len, bool reuse_port)
{
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (!set_options(fd, a->sa.sa_family, reuse_port) || bind(fd, &a->sa, len) != 0)
		fd_close(&fd);
	return fd;
}

enum err_code
listen_open(struct str host, uint16_t *port, bool is_first, int *ret_fd, struct err *reterr)
{
	union address a;
	socklen_t len;
	if (!make_address(host, *port, &a, &len))
		return err_set(reterr, ERR_INPUT, "%.*s is no numeric address", STR_FMT(host));
	if (is_first && *port != 0) {
		int probe = open_bound(&a, len, false);
		if (probe < 0)
			return err_set(
			    reterr, ERR_IO, "listen on %.*s port %u", STR_FMT(host), *port);
		fd_close(&probe);
	}
	int fd = open_bound(&a, len, true);
	if (fd < 0 || listen(fd, BACKLOG) != 0 || getsockname(fd, &a.sa, &len) != 0) {
		enum err_code rc =
		    err_set(reterr, ERR_IO, "listen on %.*s port %u", STR_FMT(host), *port);
		fd_close(&fd);
		return rc;
	}
	*port = ntohs(a.sa.sa_family == AF_INET ? a.in4.sin_port : a.in6.sin6_port);
	*ret_fd = fd;
	return ERR_OK;
}

enum err_code
listen_split(struct str text, struct str *ret_host, uint16_t *ret_port, struct err *reterr)
{
	size_t colon = str_rchr(text, ':');
	uint64_t port = 0;
	if (colon == SIZE_MAX || !str_u64(str_from(text, colon + 1), &port) || port > UINT16_MAX)
		return err_set(reterr, ERR_INPUT, "%.*s is no host:port", STR_FMT(text));
	struct str host = str_sub(text, 0, colon);
	if (str_starts(host, STR("[")) && str_ends(host, STR("]")))
		host = str_sub(host, 1, host.len - 2);
	*ret_host = host;
	*ret_port = (uint16_t)port;
	return ERR_OK;
}
