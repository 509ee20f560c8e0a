/* The HTTP client against peers that misbehave. */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>
#include <netinet/in.h>

#include "base/fd.h"
#include "tests/unit/http_calls.h"

TestSuite(http_client_peers, .timeout = 30);

/* Answers each connection with these bytes and closes it, by a reset when told. */
static int
serve_raw(pid_t *ret_pid, struct str answer, bool reset)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0 && listen(fd, 16) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&in, &len) == 0);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			char waste[4096];
			int c = accept(fd, NULL, NULL);
			(void)recv(c, waste, sizeof(waste), 0);
			(void)rig_try_send(c, answer);
			poll(NULL, 0, 20);
			struct linger l = {reset, 0};
			setsockopt(c, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
			close(c);
		}
	}
	fd_close(&fd);
	return ntohs(in.sin_port);
}

Test(http_client_peers, broken_answers_are_upstream_errors)
{
	static const struct {
		const char *name;
		struct str answer;
		bool reset, ok;
		size_t body;
	} rows[] = {
	    {"nothing", STR_INIT(""), false, false, 0},
	    {"reset", STR_INIT(""), true, false, 0},
	    {"not HTTP", STR_INIT("hello there\r\n\r\n"), false, false, 0},
	    {"half a head", STR_INIT("HTTP/1.1 200 OK\r\nA: b"), false, false, 0},
	    {"short", STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), false, false, 3},
	    {"reset in body", STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), true,
		false, 3},
	    {"cut chunks",
		STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
		false, false, 3},
	    {"bad chunks", STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
		false, false, 0},
	    {"until close", STR_INIT("HTTP/1.1 200 OK\r\n\r\nabc"), false, true, 3},
	    {"100 first",
		STR_INIT("HTTP/1.1 100 Continue\r\nX-Test: no\r\n\r\nHTTP/1.1 200 OK\r\nX-Test: "
			 "yes\r\nContent-Length: 3\r\n\r\nabc"),
		false, true, 3},
	    {"redirect is an answer",
		STR_INIT("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
			 "X-Test: yes\r\nContent-Length: 0\r\n\r\n"),
		false, true, 0},
	    {"odd headers",
		STR_INIT("HTTP/1.1 200 OK\r\nX-Test: a\x01z\r\nX-Test : no\r\nX-Test: c\rd\r\n"
			 "X-Te\xC3st: e\r\n: f\r\nX-Test: yes\r\n"
			 "Content-Length: 3\r\n\r\nabc"),
		false, true, 3},
	    {"trailers",
		STR_INIT("HTTP/1.1 200 OK\r\nX-Test: yes\r\nTransfer-Encoding: chunked\r\n\r\n"
			 "3\r\nabc\r\n0\r\nX-Test: no\r\n\r\n"),
		false, true, 3},
	};
	struct bench b = {.base = event_base_new()};
	cr_assert(http_client_new(b.base, &b.client, NULL) == ERR_OK);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid;
		struct got g;
		b.rig.port = serve_raw(&pid, rows[i].answer, rows[i].reset);
		got_init(&g, &b);
		if (str_find(rows[i].answer, STR("X-Test: yes")) != SIZE_MAX)
			g.expect_header = STR("yes");
		got_run(&b, &g, "GET", "/?key=secret", (struct http_call_spec){.body = STR("")});
		cr_assert(g.ok == rows[i].ok && g.dones == 1, "%s: %s", rows[i].name, g.err.msg);
		cr_assert(g.body.len == rows[i].body, "%s: %zu", rows[i].name, g.body.len);
		cr_assert(g.ok || g.err.code == ERR_UPSTREAM, "%s: %s", rows[i].name, g.err.msg);
		cr_assert(strstr(g.err.msg, "secret") == NULL);
		got_end(&g);
		kill(pid, SIGKILL);
	}
	http_client_free(&b.client);
	event_base_free(b.base);
}

static void
run_unreachable(struct bench *b, struct got *g, const char *url)
{
	struct err e;
	struct http_call_spec spec = {.method = "POST", .url = str_c(url), .body = STR("x")};
	got_init(g, b);
	cr_assert(
	    http_call_start(b->client, &spec, &got_ops, g, &g->call, &e) == ERR_OK, "%s", e.msg);
	event_base_dispatch(b->base);
}

Test(http_client_peers, unreachable_peers_and_endless_heads)
{
	struct bench b = {.base = event_base_new()};
	struct got g;
	char url[128];
	pid_t pid;
	cr_assert(http_client_new(b.base, &b.client, NULL) == ERR_OK);
	signal(SIGPIPE, SIG_IGN);
	run_unreachable(&b, &g, "http://user:hunter2@127.0.0.1:1/secret");
	cr_assert(!g.ok && g.err.code == ERR_UPSTREAM, "%s", g.err.msg);
	cr_assert(strstr(g.err.msg, "127.0.0.1:1") == g.err.msg, "%s", g.err.msg);
	cr_assert(strstr(g.err.msg, "hunter2") == NULL && strstr(g.err.msg, "secret") == NULL);
	got_end(&g);
	int port = serve_raw(&pid, STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), false);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%d/", port); /* no TLS there */
	run_unreachable(&b, &g, url);
	cr_assert(!g.ok && g.err.code == ERR_UPSTREAM, "%s", g.err.msg);
	got_end(&g);
	kill(pid, SIGKILL);
	struct buf head = BUF_INIT(1u << 20);
	buf_add(&head, STR("HTTP/1.1 200 OK\r\n"));
	for (int i = 0; i < 2000; i++)
		buf_printf(&head, "X-Header-%d: some value\r\n", i);
	buf_add(&head, STR("Content-Length: 0\r\n\r\n"));
	port = serve_raw(&pid, buf_str(&head), false);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", port);
	run_unreachable(&b, &g, url);
	cr_assert(!g.ok && strstr(g.err.msg, "head too large") != NULL, "%s", g.err.msg);
	got_end(&g);
	kill(pid, SIGKILL);
	buf_done(&head);
	http_client_free(&b.client);
	event_base_free(b.base);
}
