/* The HTTP client against our own server (http_rig.c). */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/clock.h"
#include "tests/unit/http_calls.h"

TestSuite(http_client, .timeout = 30);

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
		got_run(&b, &g, rows[i].method, rows[i].path,
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
	got_run(&b, &g, "GET", "/", (struct http_call_spec){.headers = h, .header_count = 3});
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
		cr_assert(http_call_start(b.client, &spec, &got_ops, NULL, &c, NULL) == ERR_INPUT,
		    "header %zu", i);
	}
	static const struct str urls[] = {STR_INIT(""), STR_INIT("nonsense://x"),
	    STR_INIT("file:///etc/passwd"), STR_INIT("gopher://127.0.0.1/"), STR_INIT("http://"),
	    STR_INIT("http://a b/"), STR_INIT("http://127.0.0.1/\r\nX: y"),
	    STR_INIT("http://h\0.example/")};
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct http_call *c = NULL;
		struct http_call_spec spec = {.method = "GET", .url = urls[i]};
		cr_assert(http_call_start(b.client, &spec, &got_ops, NULL, &c, NULL) == ERR_INPUT,
		    "url %zu", i);
	}
	bench_stop(&b);
}

Test(http_client, only_the_configuration_chooses_a_proxy)
{
	struct bench b;
	struct got g;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	bench_start(&b);
	got_init(&g, &b);
	got_run(&b, &g, "GET", "/", (struct http_call_spec){0});
	cr_assert(g.ok && g.status == 200, "%s", g.err.msg);
	got_end(&g);
	/* The configured one is asked; ours is no proxy and says so. */
	char proxy[64];
	(void)snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", b.rig.port);
	setenv("no_proxy", "*", 1);
	b.rig.port = 1;
	got_init(&g, &b);
	got_run(&b, &g, "GET", "/", (struct http_call_spec){.proxy = proxy});
	cr_assert(g.ok && g.status == 400, "%d %s", g.status, g.err.msg);
	cr_assert(str_find(buf_str(&g.body), STR("must be a path")) != SIZE_MAX);
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
	got_run(&b, &g, "GET", "/stream?n=3000000", (struct http_call_spec){0});
	cr_assert(g.ok && g.body.len == 3000000 && g.pauses > 50, "%zu bytes, %u pauses: %s",
	    g.body.len, g.pauses, g.err.msg);
	for (size_t i = 0; i < g.body.len; i++)
		cr_assert((g.body.ptr[i] == 'x') == (i % 8192 == 0), "byte %zu", i);
	got_end(&g);
	/* The whole answer has arrived and the connection is closed while we are paused. */
	got_init(&g, &b);
	g.pause_once = true;
	got_run(&b, &g, "GET", "/length?n=9000",
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
		got_run(&b, &g, "POST", "/sink",
		    (struct http_call_spec){.read_body = got_give, .body_bytes = rows[i].bytes});
		cr_assert(g.ok && str_eq(buf_str(&g.body), STR("got 3000000\n")), "row %zu: %s %s",
		    i, g.body.ptr, g.err.msg);
		got_end(&g);
	}
	got_init(&g, &b); /* both directions at once */
	g.upload_left = 3000000;
	g.upload_pause = true;
	got_run(&b, &g, "PUT", "/echo",
	    (struct http_call_spec){.read_body = got_give, .body_bytes = -1});
	cr_assert(g.ok && g.body.len == 3000000, "%zu %s", g.body.len, g.err.msg);
	got_end(&g);
	got_init(&g, &b);
	g.upload_left = 3000000;
	g.upload_abort = true;
	got_run(&b, &g, "PUT", "/sink",
	    (struct http_call_spec){.read_body = got_give, .body_bytes = -1});
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
		got_begin(&b, &other, "GET", "/hang", (struct http_call_spec){0});
		rig_wait(&b.rig.stats->requests, 0);
		g.cancel_at = rows[i].at;
		g.victim = other.call;
		g.upload_left = 100000;
		struct http_call_spec spec = {0};
		if (rows[i].at == CANCEL_IN_UPLOAD)
			spec = (struct http_call_spec){.read_body = got_give, .body_bytes = 100000};
		got_run(&b, &g, rows[i].at == CANCEL_IN_UPLOAD ? "PUT" : "GET", rows[i].path, spec);
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
	got_begin(&b, &g, "GET", "/stream?n=99999999", (struct http_call_spec){0});
	event_base_loopexit(b.base, &(struct timeval){0, 50000});
	event_base_dispatch(b.base);
	cr_assert(g.heads == 1 && g.dones == 0);
	unsigned aborted = atomic_load(&b.rig.stats->aborted);
	http_call_cancel(&g.call);
	http_call_cancel(&g.call);
	rig_wait(&b.rig.stats->aborted, aborted + 1);
	got_end(&g);
	got_init(&g, &b); /* left running: the client's end ends it */
	got_begin(&b, &g, "GET", "/hang", (struct http_call_spec){0});
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
	got_run(&b, &g, "GET", "/wait?ms=5000",
	    (struct http_call_spec){.first_byte_timeout_ms = 200, .idle_timeout_ms = 50});
	cr_assert(!g.ok && g.err.code == ERR_TIMEOUT && g.heads == 0, "%s", g.err.msg);
	cr_assert(clock_mono_ms() - start >= 195 && clock_mono_ms() - start < 2000);
	got_end(&g);
	got_init(&g, &b); /* the idle clock runs only behind the head */
	got_run(&b, &g, "GET", "/wait?ms=400",
	    (struct http_call_spec){.first_byte_timeout_ms = 3000, .idle_timeout_ms = 50});
	cr_assert(g.ok, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b); /* head, then silence: the sink of /echo waits for our body */
	g.upload_pause = true;
	g.pauses = 0;
	start = clock_mono_ms();
	got_run(&b, &g, "GET", "/drip",
	    (struct http_call_spec){.first_byte_timeout_ms = 3000, .idle_timeout_ms = 200});
	cr_assert(
	    !g.ok && g.err.code == ERR_TIMEOUT && g.heads == 1 && g.body.len == 4, "%s", g.err.msg);
	cr_assert(clock_mono_ms() - start < 2000);
	cr_assert(str_find(str_c(g.err.msg), STR("127.0.0.1:")) == 0, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b); /* a paused reader is not idle */
	g.pause_once = true;
	got_run(&b, &g, "GET", "/stream?n=300000", (struct http_call_spec){.idle_timeout_ms = 300});
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
			got_begin(&b, &g[i], "GET", i % 2 ? "/wait?ms=30" : "/stream?n=20000",
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

Test(http_client, certificates_are_checked)
{
	struct bench b;
	struct got g;
	bench_start_with(&b, NULL, true);
	got_init(&g, &b);
	got_run(&b, &g, "GET", "/", (struct http_call_spec){0});
	cr_assert(!g.ok && g.err.code == ERR_UPSTREAM, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b);
	g.upload_left = 2000000;
	got_run(&b, &g, "PUT", "/echo",
	    (struct http_call_spec){
		.ca_file = b.rig.ca_path, .read_body = got_give, .body_bytes = 2000000});
	cr_assert(g.ok && g.body.len == 2000000, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b); /* bytes that are decrypted already survive a pause */
	g.pause = true;
	got_run(&b, &g, "GET", "/stream?n=3000000",
	    (struct http_call_spec){.ca_file = b.rig.ca_path, .idle_timeout_ms = 2000});
	cr_assert(g.ok && g.body.len == 3000000 && g.pauses > 50, "%s", g.err.msg);
	got_end(&g);
	got_init(&g, &b);
	g.pause_once = true;
	got_run(
	    &b, &g, "GET", "/length?n=15000", (struct http_call_spec){.ca_file = b.rig.ca_path});
	cr_assert(g.ok && g.body.len == 15000, "%s", g.err.msg);
	got_end(&g);
	bench_stop(&b);
}

Test(http_client, early_refusal_and_connections_that_went_stale)
{
	const struct http_server_config cfg = {.head_timeout_ms = 5000,
	    .idle_timeout_ms = 100,
	    .body_min_bytes_per_s = 256,
	    .write_stall_ms = 5000,
	    .max_connections = 100};
	struct bench b;
	struct got g;
	bench_start_with(&b, &cfg, false);
	for (int i = 0; i < 3; i++) {
		got_init(&g, &b);
		g.upload_left = 32u << 20;
		got_run(&b, &g, "PUT", "/401",
		    (struct http_call_spec){.read_body = got_give, .body_bytes = 32 << 20});
		cr_assert(g.ok && g.status == 401, "%d: %s", g.status, g.err.msg);
		got_end(&g);
	}
	for (int i = 0; i < 4; i++) {
		got_init(&g, &b);
		g.upload_left = 5;
		struct http_call_spec spec = {.body = STR("12345")};
		if (i % 2 == 1)
			spec = (struct http_call_spec){.read_body = got_give, .body_bytes = 5};
		got_run(&b, &g, "POST", "/sink", spec);
		cr_assert(g.ok && str_eq(buf_str(&g.body), STR("got 5\n")), "%s", g.err.msg);
		got_end(&g);
		poll(NULL, 0, 250);
	}
	bench_stop(&b);
}
