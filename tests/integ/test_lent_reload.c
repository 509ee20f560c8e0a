/* The place where a sandbox is lent, and its token, changed by a reload. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(lent_reload, .timeout = 240);

#define TOKEN "0123456789abcdef-token"
#define OTHER "fedcba9876543210-token"

static const struct ask_opts as_peer = {.key = TOKEN, .serve = true};
static const struct ask_opts as_other = {.key = OTHER, .serve = true};
static const struct ask_opts as_nobody = {.key = "", .serve = true};

/* Reloads; s->serve_port is then where it lends its sandbox by now. */
static void
reload(struct server *s, const char *conf)
{
	static char out[65536];
	s->opts.conf = conf;
	server_write_conf(s, NULL);
	cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
	cr_assert_eq(program_otarictl(s, "status", out, sizeof(out)), 0, "%s", out);
	const char *port = strstr(out, "\"sandbox_serve_port\":");
	s->serve_port = 0;
	if (port != NULL)
		cr_assert_eq(sscanf(port, "\"sandbox_serve_port\":%d", &s->serve_port), 1);
}

static struct server *
start_host(const char *conf)
{
	return start_sandboxed(&(struct server_opts){.conf = conf, .workers = 1});
}

static long
status_of(struct server *s, const struct ask_opts *as, const char *method, const char *path,
    const char *body)
{
	struct reply r;
	server_ask(s, method, path, body != NULL ? str_c(body) : STR_NULL, as, &r);
	long status = r.status;
	reply_done(&r);
	return status;
}

static struct text
new_session(struct server *s, const struct ask_opts *as)
{
	struct reply r;
	struct text id;
	server_ask(s, "POST", "/sessions", STR("{}"), as, &r);
	cr_assert_eq(r.status, 201, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(id.s, sizeof(id.s), str_c(at(root, "session_id"))));
	json_decref(root);
	reply_done(&r);
	return id;
}

static struct text
exec_path(const struct text *id)
{
	struct text t;
	(void)snprintf(t.s, sizeof(t.s), "/sessions/%.80s/exec", id->s);
	return t;
}

#define CODE(code) "{\"tool\":\"code_execution\",\"input\":{\"code\":\"" code "\"}}"

/* A call on a connection of its own, which is not waited for. */
static int
start_exec(struct server *s, const char *path, const char *json)
{
	struct server there = *s;
	there.port = s->serve_port;
	int fd = server_connect(&there);
	cr_assert_gt(dprintf(fd,
			 "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " TOKEN
			 "\r\nContent-Length: %zu\r\n\r\n%s",
			 path, strlen(json), json),
	    0);
	return fd;
}

Test(lent_reload, sessions_survive_the_move_of_their_listener)
{
	struct server *s =
	    start_host("sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n");
	struct text id = new_session(s, &as_peer), path = exec_path(&id);
	struct server old = *s;
	struct reply r;

	server_expect(s, "go over the network unencrypted");
	cr_expect_eq(status_of(s, &as_peer, "POST", path.s, CODE("x = 4711")), 200);
	int run = start_exec(s, path.s, CODE("import time; time.sleep(5); print('old', x)"));
	reload(s, "sandbox_serve: \"0.0.0.0:0\"\nsandbox_serve_token: " OTHER "\n");
	cr_assert(s->serve_port > 0 && s->serve_port != old.serve_port, "%d", s->serve_port);

	cr_expect_eq(status_of(s, &as_peer, "GET", "/health", NULL), 401);
	cr_expect_eq(status_of(s, &as_nobody, "GET", "/health", NULL), 401);
	cr_expect_eq(status_of(&old, &as_other, "GET", "/health", NULL), 0, "still open");
	server_ask(s, "POST", path.s, STR(CODE("print('new', x)")), &as_other, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	HAS(r, "new 4711");
	reply_done(&r);
	cr_expect(stream_wait(run, "old 4711"), "what ran was not answered");
	close(run);
	struct text second = new_session(s, &as_other);
	cr_expect_eq(status_of(s, &as_other, "POST", exec_path(&second).s, CODE("1")), 200);
	server_stop(&s);
}

Test(lent_reload, the_same_port_can_be_opened_to_more_and_a_bad_one_changes_nothing)
{
	static char conf[256];
	struct server *s =
	    start_host("sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n");
	struct text id = new_session(s, &as_peer);
	int port = s->serve_port;

	server_expect(s, "go over the network unencrypted");
	server_expect(s, "still lent where it was");
	reload(s, "sandbox_serve: \"192.0.2.1:80\"\nsandbox_serve_token: " TOKEN "\n");
	cr_expect_eq(s->serve_port, port);
	cr_expect_eq(status_of(s, &as_peer, "GET", "/health", NULL), 200);
	(void)snprintf(conf, sizeof(conf),
	    "sandbox_serve: \"0.0.0.0:%d\"\nsandbox_serve_token: " TOKEN "\n", port);
	reload(s, conf);
	cr_expect_eq(s->serve_port, port);
	cr_expect_eq(status_of(s, &as_peer, "POST", exec_path(&id).s, CODE("1")), 200);
	/* A successor of the worker has the new one too. */
	(void)snprintf(conf, sizeof(conf),
	    "sandbox_serve: \"0.0.0.0:%d\"\nsandbox_serve_token: " TOKEN "\nsql_threads: 3\n",
	    port);
	long at_end = server_log_end(s);
	reload(s, conf);
	cr_assert(server_wait_log(s, "child ended", &at_end));
	cr_expect_eq(status_of(s, &as_peer, "POST", exec_path(&id).s, CODE("1")), 404);
	id = new_session(s, &as_peer);
	cr_expect_eq(status_of(s, &as_peer, "POST", exec_path(&id).s, CODE("1")), 200);
	server_stop(&s);
}

Test(lent_reload, lending_ends_and_begins_again)
{
	struct server *s =
	    start_host("sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n");
	struct text id = new_session(s, &as_peer);
	struct server old = *s;

	reload(s, NULL);
	cr_expect_eq(s->serve_port, 0);
	cr_expect_eq(status_of(&old, &as_peer, "GET", "/health", NULL), 0, "still open");
	reload(s, "sandbox_serve: \"127.0.0.1:0\"\n");
	cr_assert(s->serve_port > 0);
	cr_expect_eq(status_of(s, &as_nobody, "POST", exec_path(&id).s, CODE("1")), 404);
	id = new_session(s, &as_nobody);
	cr_expect_eq(status_of(s, &as_nobody, "POST", exec_path(&id).s, CODE("1")), 200);
	server_stop(&s);
	/* Nothing was lent at the start. */
	s = start_host(NULL);
	cr_assert_eq(s->serve_port, 0);
	reload(s, "sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n");
	cr_assert(s->serve_port > 0);
	id = new_session(s, &as_peer);
	cr_expect_eq(status_of(s, &as_nobody, "POST", exec_path(&id).s, CODE("1")), 401);
	cr_expect_eq(status_of(s, &as_peer, "POST", exec_path(&id).s, CODE("1")), 200);
	server_stop(&s);
}
