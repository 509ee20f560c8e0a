/* The HTTP client against our own server (http_rig.c) and against peers that misbehave. */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>
#include <netinet/in.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/http_client.h"
#include "http_rig.h"

TestSuite(http_client, .timeout = 30);

enum cancel_at { CANCEL_NEVER, CANCEL_IN_HEAD, CANCEL_IN_DATA, CANCEL_IN_DONE, CANCEL_IN_UPLOAD };

struct got { /* one call and what came of it */
	struct event_base *base;
	struct http_call *call;
	struct http_call *victim; /* another's call, to be cancelled from inside our callbacks */
	struct buf body;
	size_t body_bytes, upload_left, upload_given;
	int heads, dones, status;
	bool ok, keep, pause, pause_once, upload_pause, upload_abort;
	enum cancel_at cancel_at;
	struct err err;
	struct event *timer;
	struct str expect_header; /* checked at the end */
	unsigned pauses;
	unsigned *running;
};

static void
stop_if_last(struct got *g)
{
	if (g->running == NULL || --*g->running == 0)
		event_base_loopbreak(g->base);
}

static void
maybe_cancel(struct got *g, enum cancel_at at)
{
	if (g->cancel_at != at)
		return;
	http_call_cancel(&g->victim);
	http_call_cancel(&g->call);
	if (at != CANCEL_IN_DONE)
		stop_if_last(g);
}

static void
got_head(void *arg, struct http_call *c, int status)
{
	struct got *g = arg;
	g->heads++;
	g->status = status;
	cr_assert(http_call_status(c) == status && g->dones == 0);
	maybe_cancel(g, CANCEL_IN_HEAD);
}

static void
resume(evutil_socket_t fd, short what, void *arg)
{
	struct got *g = arg;
	(void)fd;
	(void)what;
	if (g->call == NULL)
		return;
	http_call_resume(g->call);
	http_call_resume_upload(g->call);
}

static void
resume_in_ms(struct got *g, int ms)
{
	if (g->timer == NULL)
		g->timer = evtimer_new(g->base, resume, g);
	event_add(g->timer, &(struct timeval){ms / 1000, ms % 1000 * 1000});
}

static bool
got_data(void *arg, struct http_call *c, struct str bytes)
{
	struct got *g = arg;
	cr_assert(g->heads == 1 && g->dones == 0 && bytes.len > 0);
	if (g->pause && ++g->pauses % 2 == 1) {
		if (g->pauses % 4 == 1)
			http_call_resume(c); /* from inside: must not be lost */
		else
			resume_in_ms(g, 1);
		return false;
	}
	if (g->pause_once && g->pauses++ == 0) {
		resume_in_ms(g, 700);
		return false;
	}
	g->body_bytes += bytes.len;
	if (g->keep)
		buf_add(&g->body, bytes);
	maybe_cancel(g, CANCEL_IN_DATA);
	return true;
}

static void
got_done(void *arg, struct http_call *c, const struct err *err)
{
	struct got *g = arg;
	cr_assert(++g->dones == 1);
	g->ok = err == NULL;
	if (err != NULL)
		g->err = *err;
	if (g->expect_header.ptr != NULL)
		cr_assert(str_eq(http_call_header(c, "x-TEST"), g->expect_header));
	maybe_cancel(g, CANCEL_IN_DONE);
	g->call = NULL;
	stop_if_last(g);
}

static ssize_t
give(void *arg, char *dst, size_t n)
{
	struct got *g = arg;
	maybe_cancel(g, CANCEL_IN_UPLOAD);
	if (g->upload_abort && g->upload_given > 100000)
		return -1;
	if (g->upload_pause && ++g->pauses % 3 == 1) {
		resume_in_ms(g, 1);
		return -2;
	}
	n = n < g->upload_left ? n : g->upload_left;
	memset(dst, 'u', n);
	g->upload_left -= n;
	g->upload_given += n;
	return (ssize_t)n;
}

static const struct http_call_ops ops = {got_head, got_data, got_done};

struct bench { /* a loop with a client and a server to talk to */
	struct event_base *base;
	struct http_client *client;
	struct rig rig;
};

static void
bench_start(struct bench *b)
{
	rig_start(&b->rig, NULL, false);
	b->base = event_base_new();
	cr_assert(http_client_new(b->base, &b->client, NULL) == ERR_OK);
}

static void
bench_stop(struct bench *b)
{
	http_client_free(&b->client);
	event_base_free(b->base);
	rig_stop(&b->rig);
}

static void
got_init(struct got *g, struct bench *b)
{
	memset(g, 0, sizeof(*g));
	g->base = b->base;
	g->keep = true;
	buf_init(&g->body, 64u << 20);
}

static void
got_end(struct got *g)
{
	if (g->timer != NULL)
		event_free(g->timer);
	buf_done(&g->body);
}

static void
begin(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec)
{
	char url[256];
	struct err e;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", b->rig.port, path);
	spec.method = method;
	spec.url = str_c(url);
	cr_assert(http_call_start(b->client, &spec, &ops, g, &g->call, &e) == ERR_OK, "%s", e.msg);
	cr_assert(g->heads == 0 && g->dones == 0);
}

/* One call from start to end. */
static void
run(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec)
{
	begin(b, g, method, path, spec);
	event_base_dispatch(b->base);
}

Test(http_client, whole_answers)
{
	static const struct {
		const char *method, *path;
		struct str body;
		int status;
		struct str expect;
	} rows[] = {
	    {"GET", "/", STR_INIT(""), 200, STR_INIT("ok")},
	    {"HEAD", "/", STR_INIT(""), 200, STR_INIT("")},
	    {"GET", "/none", STR_INIT(""), 204, STR_INIT("")},
	    {"GET", "/401", STR_INIT(""), 401, STR_INIT("who are you")},
	    {"POST", "/whole", STR_INIT("a\0b"), 200, STR_INIT("a\0b")},
	    {"POST", "/whole", STR_INIT(""), 200, STR_INIT("")},
	    {"PUT", "/whole", STR_INIT("put"), 200, STR_INIT("put")},
	    {"PATCH", "/echo", STR_INIT("patch"), 200, STR_INIT("patch")},
	    {"DELETE", "/whole", STR_INIT("d"), 200, STR_INIT("d")},
	    {"DELETE", "/whole", STR_INIT(""), 200, STR_INIT("")},
	    {"POST", "/sink", STR_INIT("12345"), 200, STR_INIT("got 5\n")},
	    {"OPTIONS", "/", STR_INIT(""), 200, STR_INIT("ok")},
	    {"BREW", "/", STR_INIT(""), 405, {NULL, 0}},
	    {"GET", "/stream?n=3", STR_INIT(""), 200, STR_INIT("x\0\0")},
	};
	struct bench b;
	bench_start(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct got g;
		got_init(&g, &b);
		run(&b, &g, rows[i].method, rows[i].path,
		    (struct http_call_spec){.body = rows[i].body});
		cr_assert(g.ok && g.heads == 1 && g.dones == 1, "row %zu: %s", i, g.err.msg);
		cr_assert(g.status == rows[i].status, "row %zu: status %d", i, g.status);
		cr_assert(rows[i].expect.ptr == NULL || str_eq(buf_str(&g.body), rows[i].expect),
		    "row %zu: %s", i, g.body.ptr);
		got_end(&g);
	}
	bench_stop(&b);
}

Test(http_client, headers_both_ways)
{
	struct bench b;
	struct got g;
	bench_start(&b);
	got_init(&g, &b);
	g.expect_header = STR("a value");
	const struct http_client_header h[] = {{STR("X-Test"), STR("a value")},
	    {STR("Content-Type"), STR("text/x")}, {STR("X-Empty"), STR("")}};
	run(&b, &g, "GET", "/", (struct http_call_spec){.headers = h, .header_count = 3});
	cr_assert(g.ok && g.status == 200);
	got_end(&g);
	static const struct http_client_header bad[] = {{STR_INIT("X"), STR_INIT("a\r\nB: c")},
	    {STR_INIT("X\n"), STR_INIT("a")}, {STR_INIT(""), STR_INIT("a")},
	    {STR_INIT("A:"), STR_INIT("a")}, {STR_INIT("X"), STR_INIT("a\0b")}};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct http_call *c = NULL;
		struct http_call_spec spec = {.method = "GET",
		    .url = STR("http://127.0.0.1/"),
		    .headers = &bad[i],
		    .header_count = 1};
		cr_assert(http_call_start(b.client, &spec, &ops, NULL, &c, NULL) == ERR_INPUT,
		    "header %zu", i);
	}
	static const struct str urls[] = {STR_INIT(""), STR_INIT("nonsense://x"),
	    STR_INIT("file:///etc/passwd"), STR_INIT("gopher://127.0.0.1/"), STR_INIT("http://"),
	    STR_INIT("http://a b/"), STR_INIT("http://127.0.0.1/\r\nX: y"),
	    STR_INIT("http://h\0.example/")};
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct http_call *c = NULL;
		struct http_call_spec spec = {.method = "GET", .url = urls[i]};
		cr_assert(http_call_start(b.client, &spec, &ops, NULL, &c, NULL) == ERR_INPUT,
		    "url %zu", i);
	}
	bench_stop(&b);
}

Test(http_client, the_environment_chooses_no_proxy)
{
	struct bench b;
	struct got g;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	bench_start(&b);
	got_init(&g, &b);
	run(&b, &g, "GET", "/", (struct http_call_spec){0});
	cr_assert(g.ok && g.status == 200, "%s", g.err.msg);
	got_end(&g);
	bench_stop(&b);
}

Test(http_client, pausing_loses_nothing)
{
	struct bench b;
	struct got g;
	bench_start(&b);
	got_init(&g, &b);
	g.pause = true;
	run(&b, &g, "GET", "/stream?n=3000000", (struct http_call_spec){0});
	cr_assert(g.ok && g.body.len == 3000000 && g.pauses > 50, "%zu bytes, %u pauses: %s",
	    g.body.len, g.pauses, g.err.msg);
	for (size_t i = 0; i < g.body.len; i++)
		cr_assert((g.body.ptr[i] == 'x') == (i % 8192 == 0), "byte %zu", i);
	got_end(&g);
	/* The whole answer has arrived and the connection is closed while we are paused. */
	got_init(&g, &b);
	g.pause_once = true;
	run(&b, &g, "GET", "/length?n=9000",
	    (struct http_call_spec){
		.headers = &(struct http_client_header){STR("Connection"), STR("close")},
		.header_count = 1,
		.idle_timeout_ms = 300});
	cr_assert(g.ok && g.body.len == 9000, "%s", g.err.msg);
	got_end(&g);
	bench_stop(&b);
}

Test(http_client, uploads_stream)
{
	struct bench b;
	struct got g;
	bench_start(&b);
	static const struct {
		int64_t bytes;
		bool pause;
	} rows[] = {{3000000, false}, {-1, false}, {3000000, true}, {-1, true}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		got_init(&g, &b);
		g.upload_left = 3000000;
		g.upload_pause = rows[i].pause;
		run(&b, &g, "POST", "/sink",
		    (struct http_call_spec){.read_body = give, .body_bytes = rows[i].bytes});
		cr_assert(g.ok && str_eq(buf_str(&g.body), STR("got 3000000\n")), "row %zu: %s %s",
		    i, g.body.ptr, g.err.msg);
		got_end(&g);
	}
	got_init(&g, &b); /* both directions at once */
	g.upload_left = 3000000;
	g.upload_pause = true;
	run(&b, &g, "PUT", "/echo", (struct http_call_spec){.read_body = give, .body_bytes = -1});
	cr_assert(g.ok && g.body.len == 3000000, "%zu %s", g.body.len, g.err.msg);
	got_end(&g);
	got_init(&g, &b);
	g.upload_left = 3000000;
	g.upload_abort = true;
	run(&b, &g, "PUT", "/sink", (struct http_call_spec){.read_body = give, .body_bytes = -1});
	cr_assert(!g.ok && g.err.code == ERR_INPUT, "%s", g.err.msg);
	rig_wait(&b.rig.stats->aborted, 1);
	got_end(&g);
	bench_stop(&b);
}

Test(http_client, cancel_from_anywhere)
{
	struct bench b;
	bench_start(&b);
	static const struct {
		enum cancel_at at;
		const char *path;
	} rows[] = {{CANCEL_IN_HEAD, "/stream?n=100000"}, {CANCEL_IN_DATA, "/stream?n=100000"},
	    {CANCEL_IN_DATA, "/length?n=2"}, {CANCEL_IN_DONE, "/"}, {CANCEL_IN_UPLOAD, "/sink"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct got g, other;
		got_init(&g, &b);
		got_init(&other, &b);
		begin(&b, &other, "GET", "/hang", (struct http_call_spec){0});
		rig_wait(&b.rig.stats->requests, 0);
		g.cancel_at = rows[i].at;
		g.victim = other.call;
		g.upload_left = 100000;
		struct http_call_spec spec = {0};
		if (rows[i].at == CANCEL_IN_UPLOAD)
			spec = (struct http_call_spec){.read_body = give, .body_bytes = 100000};
		run(&b, &g, rows[i].at == CANCEL_IN_UPLOAD ? "PUT" : "GET", rows[i].path, spec);
		cr_assert(
		    g.dones == (rows[i].at == CANCEL_IN_DONE) && g.call == NULL, "row %zu", i);
		/* What was cancelled says nothing more. */
		event_base_loopexit(b.base, &(struct timeval){0, 30000});
		event_base_dispatch(b.base);
		cr_assert(other.dones == 0 && other.heads == 0, "row %zu", i);
		got_end(&g);
		got_end(&other);
	}
	struct got g;
	got_init(&g, &b); /* outside */
	begin(&b, &g, "GET", "/stream?n=99999999", (struct http_call_spec){0});
	event_base_loopexit(b.base, &(struct timeval){0, 50000});
	event_base_dispatch(b.base);
	cr_assert(g.heads == 1 && g.dones == 0);
	unsigned aborted = atomic_load(&b.rig.stats->aborted);
	http_call_cancel(&g.call);
	http_call_cancel(&g.call);
	rig_wait(&b.rig.stats->aborted, aborted + 1);
	got_end(&g);
	got_init(&g, &b); /* left running: the client's end ends it */
	begin(&b, &g, "GET", "/hang", (struct http_call_spec){0});
	event_base_loopexit(b.base, &(struct timeval){0, 50000});
	event_base_dispatch(b.base);
	bench_stop(&b);
	cr_assert(g.dones == 0);
	got_end(&g);
}

Test(http_client, timeouts)
{
	struct bench b;
	struct got g;
	bench_start(&b);
	got_init(&g, &b);
	int64_t start = clock_mono_ms();
	run(&b, &g, "GET", "/wait?ms=5000",
	    (struct http_call_spec){.first_byte_timeout_ms = 200, .idle_timeout_ms = 50});
	cr_assert(!g.ok && g.err.code == ERR_TIMEOUT && g.heads == 0, "%s", g.err.msg);
	cr_assert(clock_mono_ms() - start >= 195 && clock_mono_ms() - start < 2000);
	got_end(&g);
	got_init(&g, &b); /* the idle clock runs only behind the head */
	run(&b, &g, "GET", "/wait?ms=400",
	    (struct http_call_spec){.first_byte_timeout_ms = 3000, .idle_timeout_ms = 50});
	cr_assert(g.ok, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b); /* head, then silence: the sink of /echo waits for our body */
	g.upload_pause = true;
	g.pauses = 0;
	start = clock_mono_ms();
	run(&b, &g, "GET", "/drip",
	    (struct http_call_spec){.first_byte_timeout_ms = 3000, .idle_timeout_ms = 200});
	cr_assert(
	    !g.ok && g.err.code == ERR_TIMEOUT && g.heads == 1 && g.body.len == 4, "%s", g.err.msg);
	cr_assert(clock_mono_ms() - start < 2000);
	cr_assert(str_find(str_c(g.err.msg), STR("127.0.0.1:")) == 0, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b); /* a paused reader is not idle */
	g.pause_once = true;
	run(&b, &g, "GET", "/stream?n=300000", (struct http_call_spec){.idle_timeout_ms = 300});
	cr_assert(g.ok && g.body.len == 300000, "%s", g.err.msg);
	got_end(&g);
	bench_stop(&b);
}

Test(http_client, hundred_calls_at_once_and_connections_used_again)
{
	enum { N = 100 };
	static struct got g[N];
	struct bench b;
	bench_start(&b);
	unsigned accepted = 0;
	for (int round = 0; round < 3; round++) {
		unsigned running = N;
		for (int i = 0; i < N; i++) {
			got_init(&g[i], &b);
			g[i].running = &running;
			begin(&b, &g[i], "GET", i % 2 ? "/wait?ms=30" : "/stream?n=20000",
			    (struct http_call_spec){0});
		}
		event_base_dispatch(b.base);
		for (int i = 0; i < N; i++) {
			cr_assert(g[i].ok && g[i].dones == 1 && g[i].status == 200);
			cr_assert(g[i].body.len == (i % 2 ? 6 : 20000), "%zu", g[i].body.len);
			got_end(&g[i]);
		}
		poll(NULL, 0, 60); /* the server publishes its count each 20 ms */
		accepted = atomic_load(&b.rig.stats->connections);
		cr_assert(accepted <= N && accepted >= 1, "%u connections", accepted);
	}
	cr_assert(atomic_load(&b.rig.stats->requests) == 3 * N);
	bench_stop(&b);
}

/* --- peers that misbehave --- */

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

Test(http_client, broken_answers_are_upstream_errors)
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
		run(&b, &g, "GET", "/?key=secret", (struct http_call_spec){.body = STR("")});
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
	cr_assert(http_call_start(b->client, &spec, &ops, g, &g->call, &e) == ERR_OK, "%s", e.msg);
	event_base_dispatch(b->base);
}

Test(http_client, unreachable_peers_and_endless_heads)
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
