/* Clients of a lent sandbox that hang up, give up and come at the wrong moment. */
#include <sys/socket.h>
#include <sys/time.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "tests/integ/admin.h"
#include "tests/integ/program.h"
#include "tests/integ/talks.h"

TestSuite(lent_peers, .timeout = 120);

#define TOKEN "0123456789abcdef-token"
#define BIG   "20000000"

/* A request by hand; text: what follows its head. */
static int
start(struct server *s, const char *method, const char *path, const char *head, const char *text)
{
	struct server there = *s;
	const struct timeval limit = {60, 0};
	there.port = s->serve_port;
	int fd = server_connect(&there);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	cr_assert_gt(dprintf(fd,
			 "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN
			 "\r\nConnection: close\r\n%s\r\n%s",
			 method, path, head, text),
	    0);
	return fd;
}

/* Status, 0 when there was no answer; the rest is read to its end. Closes fd. */
static int
finish(int fd, char *body, size_t room)
{
	size_t got = 0;
	int status = 0;
	for (ssize_t n; got < room - 1 && (n = read(fd, body + got, room - 1 - got)) > 0;)
		got += (size_t)n;
	body[got] = '\0';
	(void)sscanf(body, "HTTP/1.1 %d", &status);
	close(fd);
	return status;
}

static int
ask(struct server *s, const char *method, const char *path, const char *json)
{
	char head[128], body[65536];
	(void)snprintf(head, sizeof(head),
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(json));
	return finish(start(s, method, path, head, json), body, sizeof(body));
}

static struct text
at_session(const char *id, const char *rest)
{
	struct text t;
	(void)snprintf(t.s, sizeof(t.s), "/sessions/%.80s%s", id, rest);
	return t;
}

static struct text
open_one(struct server *s)
{
	char body[4096];
	struct text id = {""};
	int status = finish(
	    start(s, "POST", "/sessions", "Content-Length: 2\r\n", "{}"), body, sizeof(body));
	const char *from = strstr(body, "\"session_id\":\"");
	cr_assert(status == 201 && from != NULL, "%d %s", status, body);
	cr_assert_eq(sscanf(from, "\"session_id\":\"%63[^\"]", id.s), 1);
	return id;
}

static void
wait_sessions(struct server *s, int n)
{
	char body[4096], want[32];
	(void)snprintf(want, sizeof(want), "\"sessions\":%d", n);
	do { /* the suite's time limit ends it */
		(void)finish(start(s, "GET", "/health", "", ""), body, sizeof(body));
		pause_short();
	} while (strstr(body, want) == NULL);
}

static struct server *
start_host_with(const char *more)
{
	static char conf[512];
	(void)snprintf(conf, sizeof(conf),
	    "sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n%s", more);
	return start_sandboxed(&(struct server_opts){.conf = conf});
}

static struct server *
start_host(void)
{
	return start_host_with("");
}

#define CODE(text) "{\"tool\":\"code_execution\",\"input\":{\"code\":\"" text "\"}}"

Test(lent_peers, a_session_that_is_deleted_answers_all_who_wait_for_it)
{
	struct server *s = start_host();
	struct text id = open_one(s);
	char head[64], body[65536];
	static const char code[] =
	    CODE("import time; print(open('big','wb').write(b'x' * " BIG ")); time.sleep(60)");
	(void)snprintf(head, sizeof(head), "Content-Length: %zu\r\n", sizeof(code) - 1);

	int run = start(s, "POST", at_session(id.s, "/exec").s, head, code);
	int get = start(s, "GET", at_session(id.s, "/files?path=big").s, "", "");
	int put = start(s, "POST", at_session(id.s, "/files").s,
	    "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n",
	    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhalf");
	while (ask(s, "GET", at_session(id.s, "/files").s, "") != 400)
		pause_short();
	cr_expect_eq(ask(s, "DELETE", at_session(id.s, "").s, ""), 204);
	cr_expect_eq(finish(run, body, sizeof(body)), 404, "%s", body);
	cr_expect_eq(finish(get, body, sizeof(body)), 404, "%s", body);
	wait_sessions(s, 0);
	(void)shutdown(put, SHUT_WR);
	(void)finish(put, body, sizeof(body));

	/* In the middle of a file. */
	id = open_one(s);
	cr_expect_eq(ask(s, "POST", at_session(id.s, "/exec").s,
			 CODE("n = open('big','wb').write(b'x' * " BIG ")")),
	    200);
	get = start(s, "GET", at_session(id.s, "/files?path=big").s, "", "");
	cr_assert_eq(recv(get, body, 100, MSG_WAITALL), 100);
	cr_expect_eq(ask(s, "DELETE", at_session(id.s, "").s, ""), 204);
	size_t got = 100;
	for (ssize_t n; (n = read(get, body, sizeof(body))) > 0;)
		got += (size_t)n;
	cr_expect_lt(got, 20000000, "all of it");
	close(get);
	wait_sessions(s, 0);
	server_stop(&s);
}

Test(lent_peers, a_client_that_hangs_up_leaves_a_session_that_works)
{
	struct server *s = start_host();
	struct text id = open_one(s);
	char head[64], body[65536];
	static const char code[] = CODE("n = open('big','wb').write(b'x' * " BIG ")");
	(void)snprintf(head, sizeof(head), "Content-Length: %zu\r\n", sizeof(code) - 1);

	close(start(s, "POST", at_session(id.s, "/exec").s, head, code));
	for (int i = 0; i < 3; i++) {
		int get = start(s, "GET", at_session(id.s, "/files?path=big").s, "", "");
		(void)recv(get, body, i == 0 ? 1 : 50000, MSG_WAITALL);
		close(get);
		close(start(s, "POST", at_session(id.s, "/files").s,
		    "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n",
		    "--b\r\nContent-Disposition: form-data; name=\"file\"; "
		    "filename=\"f\"\r\n\r\nx"));
		close(start(s, "POST", "/sessions", "Content-Length: 2\r\n", "{}"));
	}
	cr_expect_eq(ask(s, "POST", at_session(id.s, "/exec").s, CODE("print(1)")), 200);
	cr_expect_eq(ask(s, "GET", at_session(id.s, "/files/list").s, ""), 200);
	/* What was opened for nobody is closed again, at once or by those who may. */
	cr_expect_eq(ask(s, "DELETE", at_session(id.s, "").s, ""), 204);
	server_stop(&s);
}

#define EXEC_OF_25_MB "Content-Length: 25000000\r\n"

Test(lent_peers, bodies_that_are_only_announced_keep_nobody_out)
{
	struct server *s = start_host();
	struct text ids[3] = {open_one(s), open_one(s), open_one(s)};
	struct text path = at_session(ids[2].s, "/exec");
	char body[65536];
	int held[32];

	/* 800 MB, of which nothing comes. */
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		held[i] =
		    start(s, "POST", at_session(ids[i / 16].s, "/exec").s, EXEC_OF_25_MB, "{");
	int status = 0;
	do { /* until all sixteen of this session were seen */
		int fd = start(s, "POST", at_session(ids[0].s, "/exec").s, EXEC_OF_25_MB, "{");
		(void)shutdown(fd, SHUT_WR);
		status = finish(fd, body, sizeof(body));
	} while (status != 429);
	cr_expect(strstr(body, "Retry-After: ") != NULL, "%s", body);
	cr_expect(strstr(body, "\"error\":{") != NULL && strstr(body, "for this session") != NULL,
	    "%s", body);
	cr_expect_eq(ask(s, "GET", at_session(ids[0].s, "/files/list").s, ""), 429);
	cr_expect_eq(ask(s, "POST", path.s, CODE("print(1)")), 200);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		close(held[i]);
	while (ask(s, "POST", at_session(ids[0].s, "/exec").s, CODE("print(1)")) != 200)
		pause_short();
	server_stop(&s);
}

Test(lent_peers, a_body_that_drips_is_ended)
{
	struct server *s = start_host();
	struct text id = open_one(s);
	char body[65536];
	int exec = start(s, "POST", at_session(id.s, "/exec").s, EXEC_OF_25_MB, "{");
	int put = start(s, "POST", at_session(id.s, "/files").s,
	    "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n",
	    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nx");
	struct timeval often = {0, 50000};

	/* Some hundred bytes a second: what a client of the public listener may take its time for.
	 */
	(void)setsockopt(exec, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof(often));
	while (recv(exec, body, 1, MSG_PEEK) < 0) { /* the suite's time limit ends it */
		(void)send(exec, "                    ", 20, MSG_NOSIGNAL);
		(void)send(put, "                    ", 20, MSG_NOSIGNAL);
	}
	cr_expect_eq(finish(exec, body, sizeof(body)), 408, "%s", body);
	cr_expect(strstr(body, "\"error\":{") != NULL, "%s", body);
	cr_expect_eq(finish(put, body, sizeof(body)), 408, "%s", body);
	cr_expect_eq(ask(s, "POST", at_session(id.s, "/exec").s, CODE("print(1)")), 200);
	server_stop(&s);
}

/* From this address of the host. */
static int
connect_from(struct server *s, const char *from)
{
	const struct timeval limit = {60, 0};
	struct sockaddr_in here = {.sin_family = AF_INET},
			   there = {
			       .sin_family = AF_INET, .sin_port = htons((uint16_t)s->serve_port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(fd >= 0 && inet_pton(AF_INET, from, &here.sin_addr) == 1 &&
		  inet_pton(AF_INET, "127.0.0.1", &there.sin_addr) == 1);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&here, sizeof(here)), 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&there, sizeof(there)), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	return fd;
}

/* A put of `bytes`. The answer may come before all of it is sent. */
static int
put_from(struct server *s, const char *from, const char *id, size_t bytes)
{
	static char some[65536];
	static const char form[] =
	    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
	int fd = connect_from(s, from);
	(void)dprintf(fd,
	    "POST /sessions/%s/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN
	    "\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    id, sizeof(form) - 1 + bytes + 9, form);
	for (size_t sent = 0; sent < bytes;) {
		size_t n = bytes - sent < sizeof(some) ? bytes - sent : sizeof(some);
		ssize_t k = send(fd, some, n, MSG_NOSIGNAL);
		if (k <= 0)
			return fd;
		sent += (size_t)k;
	}
	(void)send(fd, "\r\n--b--\r\n", 9, MSG_NOSIGNAL);
	return fd;
}

#define SLEEPER                                                                                    \
	"{\"tool\":\"code_execution\",\"timeout_seconds\":600,"                                    \
	"\"input\":{\"code\":\"import time; time.sleep(600)\"}}"

static void
start_sleeper(struct server *s, const char *id, int *ret)
{
	char head[64];
	(void)snprintf(head, sizeof(head), "Content-Length: %zu\r\n", sizeof(SLEEPER) - 1);
	*ret = start(s, "POST", at_session(id, "/exec").s, head, SLEEPER);
}

/* Puts that wait behind the program, until one is refused: it says so. Returns how many wait. */
static nfds_t
fill(struct server *s, const char *id, struct pollfd *held, nfds_t max, const char *why)
{
	char body[65536] = "";
	nfds_t n = 0;
	int answered = 0;
	while (answered == 0 && n < max) {
		held[n++] = (struct pollfd){
		    .fd = put_from(s, "127.0.0.1", id, 24u << 20), .events = POLLIN};
		answered = poll(held, n, n < max ? 100 : 60000);
	}
	cr_assert_gt(answered, 0, "none was refused");
	for (nfds_t i = 0; i < n; i++) {
		if (held[i].revents == 0)
			continue;
		int status = finish(held[i].fd, body, sizeof(body));
		cr_expect(status == 429 && strstr(body, why) != NULL, "%d %s", status, body);
		cr_expect(strstr(body, "Retry-After: ") != NULL, "%s", body);
		held[i--] = held[--n];
	}
	return n;
}

Test(lent_peers, one_address_leaves_room_for_the_others)
{
	struct server *s = start_host();
	struct text ids[3] = {open_one(s), open_one(s), open_one(s)};
	struct pollfd held[2][15];
	char body[65536];
	nfds_t n[2];
	int run[2];

	for (int i = 0; i < 2; i++)
		start_sleeper(s, ids[i].s, &run[i]);
	n[0] = fill(s, ids[0].s, held[0], 15, "for this session");
	n[1] = fill(s, ids[1].s, held[1], 15, "from this address");
	cr_expect(n[0] + n[1] < 11, "%zu and %zu of 24 MiB", (size_t)n[0], (size_t)n[1]);
	int status = finish(put_from(s, "127.0.0.2", ids[2].s, 64u << 20), body, sizeof(body));
	cr_expect_eq(status, 201, "%d %s", status, body);

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ask(s, "DELETE", at_session(ids[i].s, "").s, ""), 204);
		for (nfds_t k = 0; k < n[i]; k++)
			cr_expect_eq(finish(held[i][k].fd, body, sizeof(body)), 404, "%s", body);
		cr_expect_eq(finish(run[i], body, sizeof(body)), 404, "%s", body);
	}
	status = finish(put_from(s, "127.0.0.1", ids[2].s, 64u << 20), body, sizeof(body));
	cr_expect_eq(status, 201, "%d %s", status, body);
	server_stop(&s);
}

/* What was asked by somebody who hung up waits as well. */
Test(lent_peers, calls_that_nobody_waits_for_are_bounded_too)
{
	struct server *s = start_host();
	struct text id = open_one(s), path = at_session(id.s, "/exec");
	int status = 0, fd;

	while (status != 429) { /* the suite's time limit ends it */
		start_sleeper(s, id.s, &fd);
		close(fd);
		status = ask(s, "POST", path.s, "nonsense");
	}
	cr_expect_eq(status, 429);
	cr_expect_eq(ask(s, "DELETE", at_session(id.s, "").s, ""), 204);
	wait_sessions(s, 0);
	server_stop(&s);
}

/* Two outputs of a mebibyte, each byte of which takes six in JSON. */
#define LOUD CODE("import sys; b = chr(1) * 1000000; sys.stdout.write(b); sys.stderr.write(b)")

Test(lent_peers, answers_that_are_not_read_are_bounded)
{
	struct server *s = start_host();
	struct text ids[2] = {open_one(s), open_one(s)};
	struct pollfd held[16];
	static char body[16u << 20];
	char head[64];

	(void)snprintf(head, sizeof(head), "Content-Length: %zu\r\n", sizeof(LOUD) - 1);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		int fd = start(s, "POST", at_session(ids[0].s, "/exec").s, head, LOUD);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int));
		held[i] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		cr_assert_eq(poll(&held[i], 1, 60000), 1, "no answer begins");
	/* Nothing runs any more. */
	cr_expect_eq(ask(s, "GET", at_session(ids[0].s, "/files/list").s, ""), 429);
	cr_expect_eq(ask(s, "GET", at_session(ids[1].s, "/files/list").s, ""), 200);
	for (size_t i = 1; i < ARRAY_LEN(held); i++)
		close(held[i].fd);
	(void)setsockopt(held[0].fd, SOL_SOCKET, SO_RCVBUF, &(int){4 << 20}, sizeof(int));
	cr_expect_eq(finish(held[0].fd, body, sizeof(body)), 200);
	cr_expect_gt(strlen(body), 12000000);
	while (ask(s, "GET", at_session(ids[0].s, "/files/list").s, "") != 200)
		pause_short();
	server_stop(&s);
}

/* The session is in use while a body comes for it, however long. */
Test(lent_peers, a_long_upload_keeps_its_session)
{
	struct server *s = start_host_with("sandbox_serve_idle_ms: 1000\n");
	struct text id = open_one(s), unused = open_one(s);
	static char some[65536];
	char body[65536];
	int put = start(s, "POST", at_session(id.s, "/files").s,
	    "Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n",
	    "46\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; "
	    "filename=\"long\"\r\n\r\nx\r\n");

	wait_sessions(s, 1); /* the other one was given up */
	for (int64_t end = clock_mono_ms() + 3000; clock_mono_ms() < end;) {
		cr_assert_gt(dprintf(put, "10000\r\n"), 0);
		for (size_t sent = 0; sent < sizeof(some);) {
			ssize_t n = send(put, some + sent, sizeof(some) - sent, MSG_NOSIGNAL);
			cr_assert_gt(n, 0, "it was broken off");
			sent += (size_t)n;
		}
		cr_assert_gt(dprintf(put, "\r\n"), 0);
		pause_short();
	}
	cr_assert_gt(dprintf(put, "9\r\n\r\n--b--\r\n\r\n0\r\n\r\n"), 0);
	cr_expect_eq(finish(put, body, sizeof(body)), 201, "%s", body);
	cr_expect_eq(ask(s, "GET", at_session(unused.s, "/files/list").s, ""), 404);
	server_stop(&s);
}

Test(lent_peers, connections_of_one_address_leave_room_for_others)
{
	struct server *s = start_host_with("max_connections: 16\n");
	struct text id = open_one(s);
	char body[4096];
	int held[24];

	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		held[i] = connect_from(s, "127.0.0.3");
	/* They say nothing, and so are not idle ones that make room: nine are served, two are told.
	 */
	cr_expect_eq(finish(held[9], body, sizeof(body)), 503, "%s", body);
	cr_expect(strstr(body, "from this address") != NULL, "%s", body);
	cr_expect_eq(ask(s, "POST", at_session(id.s, "/exec").s, CODE("print(1)")), 200);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		if (i != 9)
			close(held[i]);
	server_stop(&s);
}
