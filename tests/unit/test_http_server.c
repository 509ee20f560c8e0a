/* The HTTP server over real sockets. The server runs in a process of its own (http_rig.c). */
#include <sys/resource.h>
#include <sys/socket.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/http_rig.h"

TestSuite(http_server, .timeout = 30);

#define HOST " HTTP/1.1\r\nHost: h\r\n"
#define END  "Connection: close\r\n\r\n"

static void
expect_answer(
    const struct rig *r, const char *name, struct str request, const char *status, const char *text)
{
	struct buf b = rig_ask(r, request);
	cr_assert(rig_has(&b, status) && rig_has(&b, text), "%s: got %s", name,
	    b.ptr != NULL ? b.ptr : "nothing");
	buf_done(&b);
}

Test(http_server, answers_each_kind_of_request)
{
	static const struct {
		const char *name;
		struct str request;
		const char *status, *text;
	} rows[] = {
	    {"get", STR_INIT("GET /" HOST END), "HTTP/1.1 200 OK\r\nDate: ",
		"Content-Type: text/plain\r\nX-Tes: shorter\r\nContent-Length: 2\r\nConnection: "
		"close\r\n\r\n"
		"ok"},
	    {"1.0", STR_INIT("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK",
		"Connection: close\r\n\r\nok"},
	    {"204", STR_INIT("GET /none" HOST END), "HTTP/1.1 204 No Content", "GMT\r\nConnection"},
	    {"header", STR_INIT("GET /" HOST "X-Test: \xC3\xA9\r\n" END), "200",
		"X-Tes: shorter\r\nX-Tests: longer\r\nx-test: \xC3\xA9\r\nContent"},
	    {"peer", STR_INIT("GET /peer" HOST END), "200", "\r\n\r\n127.0.0.1:"},
	    {"whole", STR_INIT("POST /whole" HOST "Content-Length: 3\r\n" END "abc"), "200",
		"\r\n\r\nabc"},
	    {"whole chunked",
		STR_INIT("POST /whole" HOST "Transfer-Encoding: chunked\r\n" END
			 "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
		"200", "Content-Length: 3\r\nConnection: close\r\n\r\nabc"},
	    {"whole, none", STR_INIT("POST /whole" HOST END), "200", "Content-Length: 0\r\n"},
	    {"sink", STR_INIT("POST /sink" HOST "Content-Length: 5\r\n" END "hello"), "200",
		"got 5"},
	    {"sink, none", STR_INIT("POST /sink" HOST END), "200", "got 0"},
	    {"echo",
		STR_INIT("POST /echo" HOST "Transfer-Encoding: chunked\r\n" END
			 "5\r\nhello\r\n0\r\n\r\n"),
		"200", "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
	    {"echo 1.0", STR_INIT("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"), "200",
		"Connection: close\r\n\r\nhello"},
	    {"length", STR_INIT("GET /length?n=5" HOST END), "200",
		"Content-Length: 5\r\nConnection: close\r\n\r\nx"},
	    {"too large by CL", STR_INIT("POST /whole?max=2" HOST "Content-Length: 3\r\n\r\nabc"),
		"413", "X-Request-Id: r1\r\n"},
	    {"too large chunked",
		STR_INIT("POST /whole?max=2" HOST "Transfer-Encoding: chunked\r\n\r\n"
			 "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
		"413", "too large"},
	    {"sink too large", STR_INIT("POST /sink?max=2" HOST "Content-Length: 3\r\n\r\nabc"),
		"413", "too large"},
	    {"broken chunks",
		STR_INIT("POST /whole" HOST "Transfer-Encoding: chunked\r\n\r\n"
			 "2\r\nabX"),
		"400", "malformed chunked body"},
	    {"broken chunks to a sink",
		STR_INIT("POST /sink" HOST "Transfer-Encoding: chunked\r\n\r\nzz"), "400",
		"malformed chunked body"},
	    {"bad head", STR_INIT("GET / HTTP/1.1\r\n\r\n"), "400", "exactly one Host"},
	    {"method", STR_INIT("BREW /" HOST "\r\n"), "405", "Allow: GET, HEAD"},
	    {"version", STR_INIT("GET / HTTP/2.0\r\n\r\n"), "505", "\"status\":505"},
	};
	struct rig r;
	rig_start(&r, NULL, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect_answer(&r, rows[i].name, rows[i].request, rows[i].status, rows[i].text);
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->closed) == atomic_load(&r.stats->requests));
	cr_assert(atomic_load(&r.stats->finished) == ARRAY_LEN(rows));
	cr_assert(atomic_load(&r.stats->aborted) == 0);
}

Test(http_server, one_connection_serves_many_requests_in_order)
{
	struct rig r;
	rig_start(&r, NULL, false);
	int fd = rig_connect(&r);
	struct buf b = BUF_INIT(1u << 20);
	/* A pipeline: the slow answer comes first all the same, HEAD has no body, an unread body
	 * does not become a request. */
	rig_send(fd, STR("GET /wait?ms=100" HOST "\r\nHEAD /" HOST "\r\n"
			 "POST /401" HOST "Content-Length: 21\r\n\r\nGET /x HTTP/1.1\r\n\r\n\r\n"
			 "HEAD /stream?n=9" HOST "\r\n"
			 "\r\nGET /length?n=1" HOST "\r\nGET /peer" HOST END));
	cr_assert(rig_read_all(fd, &b, 5000) == 0);
	const char *at = b.ptr;
	static const char *const parts[] = {"\r\n\r\nwaitedHTTP/1.1 200",
	    "Content-Length: 2\r\n\r\nHTTP/1.1 401", "\r\n\r\nwho are youHTTP/1.1 200",
	    "Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK", "\r\n\r\nxHTTP/1.1 200",
	    "\r\n\r\n127.0.0.1:"};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		at = strstr(at, parts[i]);
		cr_assert(at != NULL, "part %zu: %s", i, b.ptr);
	}
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->requests) == 6);
}

Test(http_server, continue_is_said_only_when_the_body_is_wanted)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = BUF_INIT(1u << 20);
	int fd = rig_connect(&r);
	rig_send(fd,
	    STR("PUT /late-sink?ms=50" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
	rig_read_until(fd, &b, "HTTP/1.1 100 Continue\r\n\r\n");
	rig_send(fd, STR("helloGET /" HOST END));
	rig_read_until(fd, &b, "got 5");
	rig_read_until(fd, &b, "\r\n\r\nok");
	fd_close(&fd);
	buf_clear(&b);
	fd = rig_connect(&r);
	rig_send(fd, STR("PUT /401" HOST "Content-Length: 500000\r\nExpect: 100-continue\r\n\r\n"));
	cr_assert(rig_read_all(fd, &b, 5000) == 0);
	cr_assert(str_starts(buf_str(&b), STR("HTTP/1.1 401")) && rig_has(&b, "close\r\n\r\nwho"));
	fd_close(&fd);
	buf_clear(&b);
	fd = rig_connect(&r);
	rig_send(fd,
	    STR("PUT /whole?max=10" HOST "Content-Length: 500000\r\nExpect: 100-continue\r\n\r\n"));
	cr_assert(rig_read_all(fd, &b, 5000) == 0);
	cr_assert(str_starts(buf_str(&b), STR("HTTP/1.1 413")), "%s", b.ptr);
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
}

/* A client that only reads after it has sent everything must find the answer, not a reset. */
Test(http_server, early_answer_reaches_a_client_that_still_sends)
{
	struct rig r;
	rig_start(&r, NULL, false);
	static char block[65536];
	static const struct {
		struct str head;
		const char *status;
		bool chunked;
	} rows[] = {
	    {STR_INIT("POST /401" HOST "Content-Length: 33554432\r\n\r\n"), "401", false},
	    {STR_INIT("POST /whole?max=9" HOST "Content-Length: 33554432\r\n\r\n"), "413", false},
	    {STR_INIT("POST /401" HOST "Transfer-Encoding: chunked\r\n\r\n"), "401", true},
	    {STR_INIT("POST /x y" HOST "Content-Length: 33554432\r\n\r\n"), "400", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = rig_connect(&r);
		struct buf b = BUF_INIT(1u << 20);
		rig_send(fd, rows[i].head);
		for (int k = 0; k < 512; k++) {
			rig_send(fd, rows[i].chunked ? STR("10000\r\n") : STR(""));
			rig_send(fd, str_n(block, sizeof(block)));
			rig_send(fd, rows[i].chunked ? STR("\r\n") : STR(""));
		}
		cr_assert(rig_read_all(fd, &b, 5000) == 0, "row %zu", i);
		cr_assert(rig_has(&b, rows[i].status), "row %zu: %s", i, b.ptr);
		buf_done(&b);
		fd_close(&fd);
	}
	rig_stop(&r);
}

Test(http_server, cut_replies_do_not_look_whole)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /abort" HOST "\r\n"));
	cr_assert(rig_has(&b, "4\r\npart\r\n") && !rig_has(&b, "\r\n0\r\n"), "%s", b.ptr);
	cr_assert(!rig_has(&b, "ignored"));
	buf_done(&b);
	b = rig_ask(&r, STR("GET /short" HOST "\r\nGET /" HOST "\r\n"));
	cr_assert(rig_has(&b, "Content-Length: 10\r\n\r\n1234") && !rig_has(&b, "ok"));
	buf_done(&b);
	b = rig_ask(&r, STR("GET /long" HOST "\r\nGET /" HOST "\r\n"));
	cr_assert(
	    rig_has(&b, "Content-Length: 4\r\n\r\n") && !rig_has(&b, "\r\n\r\n1"), "%s", b.ptr);
	buf_done(&b);
	int fd = rig_connect(&r);
	buf_init(&b, 1u << 20);
	rig_send(fd, STR("GET /abort HTTP/1.0\r\n\r\n"));
	cr_assert(rig_read_all(fd, &b, 5000) == -1, "a close-delimited reply must be reset");
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->aborted) == 4);
}

Test(http_server, client_that_leaves_is_noticed_at_once)
{
	struct rig r;
	rig_start(&r, NULL, false);
	static const struct str requests[] = {
	    STR_INIT("GET /hang" HOST "\r\n"),
	    STR_INIT("GET /hang" HOST "\r\nGET /pipelined" HOST "\r\n"),
	    STR_INIT("POST /sink" HOST "Content-Length: 10\r\n\r\nabc"),
	    STR_INIT("POST /hang" HOST "Content-Length: 10\r\n\r\nabc"),
	    STR_INIT("POST /slow-sink" HOST "Content-Length: 10\r\n\r\nabc"),
	    STR_INIT("GET /stream?n=99999999" HOST "\r\n"),
	    STR_INIT("GET /wait?ms=100000" HOST "\r\n"),
	};
	for (unsigned i = 0; i < ARRAY_LEN(requests); i++) {
		int fd = rig_connect(&r);
		rig_send(fd, requests[i]);
		rig_wait(&r.stats->requests, i + 1);
		fd_close(&fd);
		rig_wait(&r.stats->aborted, i + 1);
	}
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->closed) == ARRAY_LEN(requests));
}

Test(http_server, large_streams_arrive_whole)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /length?n=20000000" HOST END));
	cr_assert(b.len > 20000000 && b.len < 20000300, "%zu", b.len);
	buf_done(&b);
	b = rig_ask(&r, STR("GET /stream?n=20000000 HTTP/1.0\r\n\r\n"));
	cr_assert(b.len > 20000000 && b.len < 20000300, "%zu", b.len);
	buf_done(&b);
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->aborted) == 0);
}

Test(http_server, slow_clients_are_closed)
{
	const struct http_server_config cfg = {.head_timeout_ms = 300,
	    .idle_timeout_ms = 300,
	    .body_min_bytes_per_s = 256,
	    .write_stall_ms = 400,
	    .max_connections = 100};
	struct rig r;
	rig_start(&r, &cfg, false);
	struct buf b = BUF_INIT(64u << 20);
	int fd = rig_connect(&r); /* a byte at a time */
	int64_t start = clock_mono_ms();
	while (clock_mono_ms() - start < 2000 && rig_try_send(fd, STR("G")))
		if (rig_read_all(fd, &b, 50) != 1)
			break;
	cr_assert(clock_mono_ms() - start < 1500 && rig_has(&b, "HTTP/1.1 408"), "%s", b.ptr);
	fd_close(&fd);
	buf_clear(&b);
	fd = rig_connect(&r); /* nothing at all */
	start = clock_mono_ms();
	cr_assert(rig_read_all(fd, &b, 3000) == 0 && b.len == 0);
	fd_close(&fd);
	fd = rig_connect(&r); /* nothing after a request */
	rig_send(fd, STR("GET /" HOST "\r\n"));
	cr_assert(rig_read_all(fd, &b, 3000) == 0 && rig_has(&b, "ok"));
	fd_close(&fd);
	buf_clear(&b);
	fd = rig_connect(&r); /* does not read */
	rig_send(fd, STR("GET /stream?n=99999999" HOST "\r\n"));
	rig_wait(&r.stats->aborted, 1);
	fd_close(&fd);
	fd = rig_connect(&r); /* while the handler works, no clock runs */
	rig_send(fd, STR("POST /wait?ms=1200" HOST "Content-Length: 3\r\n\r\nabc"));
	rig_read_until(fd, &b, "waited");
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
}

Test(http_server, body_slower_than_the_least_rate_is_refused, .timeout = 40)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = BUF_INIT(1u << 20);
	int fd = rig_connect(&r);
	rig_send(fd, STR("PUT /sink" HOST "Content-Length: 100000\r\n\r\n"));
	int64_t start = clock_mono_ms();
	while (clock_mono_ms() - start < 15000 && rig_try_send(fd, STR("x")))
		if (rig_read_all(fd, &b, 500) != 1)
			break;
	cr_assert(rig_has(&b, "HTTP/1.1 408"), "%s", b.ptr != NULL ? b.ptr : "");
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
	cr_assert(atomic_load(&r.stats->unread_errors) == 1);
}

Test(http_server, drain_finishes_what_runs_and_closes_what_idles)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = BUF_INIT(1u << 20);
	int idle = rig_connect(&r), busy = rig_connect(&r), fresh = rig_connect(&r);
	rig_send(idle, STR("GET /" HOST "\r\n"));
	rig_read_until(idle, &b, "ok");
	buf_clear(&b);
	rig_send(busy, STR("GET /wait?ms=600" HOST "\r\n"));
	rig_wait(&r.stats->requests, 2);
	rig_signal(&r, SIGTERM);
	int64_t start = clock_mono_ms();
	cr_assert(rig_read_all(idle, &b, 2000) == 0 && b.len == 0);
	cr_assert(clock_mono_ms() - start < 500);
	rig_send(fresh, STR("GET /" HOST "\r\n")); /* accepted before the drain: still served */
	cr_assert(rig_read_all(fresh, &b, 2000) == 0);
	cr_assert(rig_has(&b, "Connection: close\r\n\r\nok"), "%s", b.ptr);
	buf_clear(&b);
	cr_assert(rig_read_all(busy, &b, 3000) == 0);
	cr_assert(rig_has(&b, "Connection: close\r\n\r\nwaited"), "%s", b.ptr);
	fd_close(&idle);
	fd_close(&busy);
	fd_close(&fresh);
	buf_done(&b);
	rig_wait(&r.stats->drained, 1);
}

Test(http_server, drain_serves_what_waited_in_the_accept_queue)
{
	enum { N = 50 };
	struct rig r;
	int fds[N];
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /" HOST END));
	rig_signal(&r, SIGSTOP);
	for (int i = 0; i < N; i++) {
		fds[i] = rig_connect(&r);
		rig_send(fds[i], STR("GET /wait?ms=20" HOST "\r\n"));
	}
	rig_signal(&r, SIGTERM);
	rig_signal(&r, SIGCONT);
	for (int i = 0; i < N; i++) {
		buf_clear(&b);
		cr_assert(rig_read_all(fds[i], &b, 5000) == 0);
		cr_assert(rig_has(&b, "Connection: close\r\n\r\nwaited"), "%d: %s", i, b.ptr);
		fd_close(&fds[i]);
	}
	buf_done(&b);
	rig_wait(&r.stats->drained, 1);
	cr_assert(atomic_load(&r.stats->aborted) == 0);
}

Test(http_server, connections_over_the_limit_are_told_503)
{
	const struct http_server_config cfg = {.head_timeout_ms = 5000,
	    .idle_timeout_ms = 5000,
	    .body_min_bytes_per_s = 256,
	    .write_stall_ms = 5000,
	    .max_connections = 2};
	struct rig r;
	rig_start(&r, &cfg, false);
	int a = rig_connect(&r), c = rig_connect(&r);
	struct buf b = rig_ask(&r, STR("GET /" HOST END));
	cr_assert(rig_has(&b, "HTTP/1.1 503") && rig_has(&b, "Retry-After: 1"), "%s", b.ptr);
	buf_done(&b);
	/* One that has been served and idles makes room. */
	rig_send(a, STR("GET /" HOST "\r\n"));
	buf_init(&b, 1u << 20);
	rig_read_until(a, &b, "ok");
	buf_done(&b);
	b = rig_ask(&r, STR("GET /" HOST END));
	cr_assert(rig_has(&b, "HTTP/1.1 200"), "%s", b.ptr);
	cr_assert(rig_read_all(a, &b, 3000) == 0);
	fd_close(&a);
	buf_done(&b);
	fd_close(&c);
	rig_stop(&r);
}

Test(http_server, running_out_of_descriptors_is_survived)
{
	enum { N = 60 };
	struct rig r;
	int fds[N];
	struct buf b = BUF_INIT(1u << 20);
	rig_start(&r, NULL, false);
	b = rig_ask(&r, STR("GET /" HOST END));
	buf_done(&b);
	const struct rlimit few = {32, 32};
	cr_assert(prlimit(r.pid, RLIMIT_NOFILE, &few, NULL) == 0);
	for (int i = 0; i < N; i++)
		fds[i] = rig_connect(&r);
	rig_send(fds[0], STR("GET /" HOST "\r\n"));
	rig_read_until(fds[0], &b, "ok");
	poll(NULL, 0, 500);
	for (int i = 0; i < N; i++)
		fd_close(&fds[i]);
	poll(NULL, 0, 500);
	buf_clear(&b);
	int fd = rig_connect(&r);
	rig_send(fd, STR("GET /" HOST "\r\n"));
	rig_read_until(fd, &b, "ok");
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
}

/* Each hides a second request; the server must refuse and close, and never answer twice. */
Test(http_server, nothing_is_smuggled)
{
#define SECOND "GET /smuggled" HOST "\r\n"
	static const struct {
		struct str raw;
		int status;
	} rows[] = {
	    {STR_INIT("POST /sink" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "0\r\n\r\n" SECOND),
		400},
	    {STR_INIT("POST /sink" HOST "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" SECOND),
		400},
	    {STR_INIT("POST /sink" HOST "Content-Length : 44\r\n\r\n" SECOND), 400},
	    {STR_INIT("POST /sink" HOST "Content-Length: 44\0junk\r\n\r\n" SECOND), 400},
	    {STR_INIT("POST /sink" HOST "X: y\nContent-Length: 44\r\n\r\n" SECOND), 400},
	    {STR_INIT("POST /sink" HOST "X: y\r\n Content-Length: 44\r\n\r\n" SECOND), 400},
	    {STR_INIT("POST /sink" HOST "Transfer-Encoding: xchunked\r\n\r\n" SECOND), 501},
	    {STR_INIT("POST /sink" HOST "Transfer-Encoding: identity\r\n\r\n" SECOND), 501},
	    {STR_INIT("POST /sink" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n" SECOND), 400},
	    {STR_INIT("POST /sink HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"
		      "Connection: keep-alive\r\n\r\n" SECOND),
		400},
	    {STR_INIT("POST /sink" HOST "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" SECOND),
		400},
	    {STR_INIT(
		 "POST /sink" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n" SECOND),
		400},
	    {STR_INIT("POST /sink" HOST "Transfer-Encoding: chunked\r\n\r\n0\n\n" SECOND), 400},
	    {STR_INIT("BREW / HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\n\r\n" SECOND), 405},
	    {STR_INIT("GET / HTTP/1.1\r\n\r\n" SECOND), 400},
	    {STR_INIT("GET / HTTP/1.1\nHost: h\n\n" SECOND), 400},
	};
	struct rig r;
	rig_start(&r, NULL, false);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = rig_ask(&r, rows[i].raw);
		char expect[32];
		(void)snprintf(expect, sizeof(expect), "HTTP/1.1 %d ", rows[i].status);
		cr_assert(str_starts(buf_str(&b), str_c(expect)), "row %zu: %s", i, b.ptr);
		cr_assert(strstr(b.ptr + 5, "HTTP/1.1") == NULL, "row %zu: %s", i, b.ptr);
		cr_assert(rig_has(&b, "Connection: close\r\n"), "row %zu: %s", i, b.ptr);
		buf_done(&b);
	}
	rig_stop(&r);
}
