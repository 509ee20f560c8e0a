/* Clients of a lent sandbox that hang up, give up and come at the wrong moment. */
#include <sys/socket.h>
#include <sys/time.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

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
start_host(void)
{
	return start_sandboxed(&(struct server_opts){
	    .conf = "sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n"});
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

Test(lent_peers, programs_on_their_way_are_bounded_together)
{
	struct server *s = start_host();
	struct text id = open_one(s), path = at_session(id.s, "/exec");
	char body[65536];
	int held[21], status = 0;

	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		held[i] = start(s, "POST", path.s, "Content-Length: 25000000\r\n", "{");
	do { /* until all of them were seen */
		int fd = start(s, "POST", path.s, "Content-Length: 25000000\r\n", "{");
		(void)shutdown(fd, SHUT_WR);
		status = finish(fd, body, sizeof(body));
	} while (status != 503);
	cr_expect(strstr(body, "Retry-After: ") != NULL, "%s", body);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		close(held[i]);
	while (status != 200) {
		pause_short();
		status = ask(s, "POST", path.s, CODE("print(1)"));
	}
	server_stop(&s);
}
