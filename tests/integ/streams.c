#include "tests/integ/streams.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/fd.h"

int
stream_open(struct server *s, const char *path, const char *body)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)s->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval limit = {60, 0};
	struct buf head = BUF_INIT(65536);
	struct err err;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0, "connect");
	buf_printf(&head,
	    "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    path, s->key, strlen(body), body);
	cr_assert_eq(fd_write_all(fd, buf_str(&head), &err), ERR_OK, "send");
	buf_done(&head);
	return fd;
}

bool
stream_wait(int fd, const char *text)
{
	struct buf got = BUF_INIT(1 << 20);
	bool found = false;
	while (!found) {
		char *room = buf_reserve(&got, 4096);
		ssize_t n = room != NULL ? read(fd, room, 4096) : -1;
		if (n <= 0)
			break;
		buf_commit(&got, (size_t)n);
		found = str_find(buf_str(&got), str_c(text)) != SIZE_MAX;
	}
	if (!found)
		fprintf(stderr, "stream held: %.*s\n", STR_FMT(str_sub(buf_str(&got), 0, 600)));
	buf_done(&got);
	return found;
}

double
server_metric(struct server *s, const char *name)
{
	struct reply r;
	double sum = -1;
	size_t n = strlen(name);
	server_ask(
	    s, "GET", "/metrics", STR_NULL, &(struct ask_opts){.key = "", .admin = true}, &r);
	struct str line;
	for (struct str rest = buf_str(&r.body); str_split(&rest, '\n', &line);)
		if (str_starts(line, str_n(name, n)) && line.len > n &&
		    (line.ptr[n] == ' ' || line.ptr[n] == '{')) {
			size_t at = str_rchr(line, ' ');
			sum = (sum < 0 ? 0 : sum) + strtod(line.ptr + at, NULL);
		}
	reply_done(&r);
	return sum;
}

long
server_rss_kib(struct server *s, const char *title)
{
	pid_t pids[64];
	size_t n = server_pids(s, title, pids, 64);
	long sum = 0;
	for (size_t i = 0; i < n; i++) {
		char path[64], *text = NULL;
		size_t len = 0;
		(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pids[i]);
		if (fd_read_file(path, 1 << 20, &text, &len, NULL) != ERR_OK)
			continue;
		const char *rss = strstr(text, "VmRSS:");
		if (rss != NULL)
			sum += strtol(rss + 6, NULL, 10);
		free(text);
	}
	return sum;
}

void
raise_fd_limit(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}
