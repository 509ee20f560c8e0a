#include "tools/bench/peer.h"

#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "base/fd.h"

#define MESSAGE_MAX (64u * 1024u * 1024u)
#define READ_BYTES  65536u

_Noreturn void
bench_die(const char *why)
{
	(void)fprintf(stderr, "bench: %s\n", why);
	exit(1);
}

void
peer_init(struct peer *p, int fd)
{
	int on = 1;

	p->fd = fd;
	buf_init(&p->in, MESSAGE_MAX);
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void
peer_done(struct peer *p)
{
	fd_close(&p->fd);
	buf_done(&p->in);
}

static struct sockaddr_in
loopback(uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sin;
}

void
peer_connect(struct peer *p, uint16_t port)
{
	struct sockaddr_in sin = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0)
		bench_die("cannot connect");
	peer_init(p, fd);
}

int
peer_listen(uint16_t *ret_port)
{
	struct sockaddr_in sin = loopback(0);
	socklen_t n = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&sin, n) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&sin, &n) != 0)
		bench_die("cannot listen");
	*ret_port = ntohs(sin.sin_port);
	return fd;
}

void
peer_write(struct peer *p, struct str bytes)
{
	struct err e;

	if (fd_write_all(p->fd, bytes, &e) != ERR_OK)
		bench_die(e.msg);
}

bool
peer_read(struct peer *p)
{
	char *room = buf_reserve(&p->in, READ_BYTES);
	ssize_t n = room != NULL ? read(p->fd, room, READ_BYTES) : -1;

	if (n <= 0)
		return false;
	buf_commit(&p->in, (size_t)n);
	return true;
}

/* The value of a header, or STR_NULL. */
static struct str
header(struct str head, struct str name)
{
	struct str line;

	while (str_split(&head, '\n', &line))
		if (str_starts_nocase(line, name) && line.len > name.len &&
		    line.ptr[name.len] == ':')
			return str_trim(str_from(line, name.len + 1));
	return STR_NULL;
}

/* Bytes of the body, or SIZE_MAX while the end of a chunked one has not come. */
static size_t
body_length(struct str head, struct str rest)
{
	struct str length = header(head, STR("content-length"));
	uint64_t n = 0;
	size_t at;

	if (length.ptr != NULL) {
		if (!str_u64(length, &n))
			bench_die("a strange Content-Length");
		return (size_t)n;
	}
	if (!str_eq_nocase(header(head, STR("transfer-encoding")), STR("chunked")))
		return 0;
	if (str_starts(rest, STR("0\r\n\r\n")))
		return 5;
	at = str_find(rest, STR("\r\n0\r\n\r\n"));
	return at == SIZE_MAX ? SIZE_MAX : at + 7;
}

bool
peer_message(const struct peer *p, struct str *ret_head, struct str *ret_body)
{
	struct str in = buf_str(&p->in), rest;
	size_t at = str_find(in, STR("\r\n\r\n")), n;

	if (at == SIZE_MAX)
		return false;
	*ret_head = str_sub(in, 0, at);
	rest = str_from(in, at + 4);
	n = body_length(*ret_head, rest);
	if (n == SIZE_MAX || n > rest.len)
		return false;
	*ret_body = str_sub(rest, 0, n);
	return true;
}

void
peer_next(struct peer *p)
{
	struct str head, body;

	if (peer_message(p, &head, &body))
		buf_consume(&p->in, head.len + 4 + body.len);
}

struct str
peer_ask(struct peer *p, struct str request)
{
	struct str head, body;

	peer_write(p, request);
	while (!peer_message(p, &head, &body))
		if (!peer_read(p))
			bench_die("the gateway closed the connection");
	return body;
}
