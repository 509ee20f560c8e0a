/* The HTTP server's memory stays bounded, whatever the peer does. */
#include <sys/socket.h>

#include <poll.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/http_rig.h"

TestSuite(http_memory, .timeout = 30);

#ifdef __SANITIZE_ADDRESS__
#define MEMORY_SLACK_KB 600000 /* freed memory stays in quarantine */
#else
#define MEMORY_SLACK_KB 4096
#endif

#define HOST " HTTP/1.1\r\nHost: h\r\n"
#define END  "Connection: close\r\n\r\n"

Test(http_memory, upload_of_512_mb_at_constant_memory)
{
	struct rig r;
	rig_start(&r, NULL, false);
	static char block[65536];
	struct buf b = BUF_INIT(1u << 20);
	int fd = rig_connect(&r);
	rig_send(fd, STR("GET /" HOST "\r\n"));
	rig_read_until(fd, &b, "ok");
	long before = rig_rss_kb(&r), most = before;
	int64_t start = clock_mono_ms();
	rig_send(fd, STR("PUT /sink" HOST "Content-Length: 536870912\r\n\r\n"));
	for (int i = 0; i < 8192; i++) {
		rig_send(fd, str_n(block, sizeof(block)));
		if (i % 512 == 0 && rig_rss_kb(&r) > most)
			most = rig_rss_kb(&r);
	}
	rig_read_until(fd, &b, "got 536870912");
	cr_log_warn("512 MB by length: %lld ms, RSS %ld kB before, %ld kB at most",
	    (long long)(clock_mono_ms() - start), before, most);
	cr_assert(most - before < MEMORY_SLACK_KB, "%ld kB before, %ld kB at most", before, most);
	/* One chunk of 256 MB is no different. */
	rig_send(fd, STR("PUT /sink" HOST "Transfer-Encoding: chunked\r\n\r\n10000000\r\n"));
	for (int i = 0; i < 4096; i++)
		rig_send(fd, str_n(block, sizeof(block)));
	if (rig_rss_kb(&r) > most)
		most = rig_rss_kb(&r);
	rig_send(fd, STR("\r\n0\r\n\r\n"));
	rig_read_until(fd, &b, "got 268435456");
	cr_assert(most - before < MEMORY_SLACK_KB, "%ld kB before, %ld kB at most", before, most);
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
}

Test(http_memory, memory_is_bounded_when_the_peer_does_not_take_or_floods)
{
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /" HOST END));
	long before = rig_rss_kb(&r);
	int fds[4];
	static char block[65536];
	/* 0: does not read a stream. 1: floods while its request waits. 2: sends a body that the
	 * handler pauses. 3: sends a body that is echoed and not read. */
	for (int i = 0; i < 4; i++)
		fds[i] = rig_connect(&r);
	rig_send(fds[0], STR("GET /stream?n=536870912" HOST "\r\n"));
	rig_send(fds[1], STR("GET /wait?ms=3000" HOST "\r\n"));
	rig_send(fds[2], STR("PUT /slow-sink" HOST "Content-Length: 536870912\r\n\r\n"));
	rig_send(fds[3], STR("PUT /echo" HOST "Content-Length: 536870912\r\n\r\n"));
	rig_wait(&r.stats->requests, 5);
	size_t sent[4] = {0};
	int64_t until = clock_mono_ms() + 1500;
	while (clock_mono_ms() < until) {
		for (int i = 1; i < 4; i++) {
			ssize_t n = send(fds[i], block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
			sent[i] += n > 0 ? (size_t)n : 0;
		}
		poll(NULL, 0, 1);
	}
	long after = rig_rss_kb(&r);
	cr_log_warn("RSS %ld kB before, %ld kB after; sent %zu %zu %zu, streamed %llu", before,
	    after, sent[1], sent[2], sent[3],
	    (unsigned long long)atomic_load(&r.stats->written_bytes));
	cr_assert(after - before < MEMORY_SLACK_KB, "%ld kB before, %ld kB after", before, after);
	cr_assert(sent[1] < 16u << 20 && sent[2] < 64u << 20);
	cr_assert(atomic_load(&r.stats->written_bytes) < 16u << 20);
	for (int i = 0; i < 4; i++)
		fd_close(&fds[i]);
	buf_done(&b);
	rig_wait(&r.stats->aborted, 3);
	rig_stop(&r);
}

Test(http_memory, idle_connections_cost_little)
{
	enum { N = 800 };
	static int fds[N];
	struct rig r;
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /" HOST END));
	long before = rig_rss_kb(&r);
	for (int i = 0; i < N; i++) {
		buf_clear(&b);
		fds[i] = rig_connect(&r);
		rig_send(fds[i], STR("GET /" HOST "\r\n"));
		rig_read_until(fds[i], &b, "ok");
	}
	long after = rig_rss_kb(&r);
	cr_log_warn("%d idle connections: %ld kB, %ld bytes each", N, after - before,
	    (after - before) * 1024 / N);
	cr_assert(after - before < 8 * N + MEMORY_SLACK_KB - 4096);
	for (int i = 0; i < N; i++)
		fd_close(&fds[i]);
	buf_done(&b);
	rig_stop(&r);
}

static void
send_chunk(int fd, struct str s)
{
	char size[32];
	(void)snprintf(size, sizeof(size), "%zx\r\n", s.len);
	rig_send(fd, str_c(size));
	rig_send(fd, s);
	rig_send(fd, STR("\r\n"));
}

Test(http_memory, form_with_a_256_mb_file_at_constant_memory)
{
	struct rig r;
	static char block[65536];
	rig_start(&r, NULL, false);
	struct buf b = rig_ask(&r, STR("GET /" HOST END));
	long before = rig_rss_kb(&r), most = 0;
	buf_clear(&b);
	int fd = rig_connect(&r);
	rig_send(fd, STR("POST /form" HOST "Transfer-Encoding: chunked\r\n"
			 "Content-Type: multipart/form-data; boundary=XX\r\n\r\n"));
	send_chunk(fd, STR("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n"
			   "--XX\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\n"));
	for (int i = 0; i < 4096; i++) {
		send_chunk(fd, str_n(block, sizeof(block)));
		long now = i % 256 == 0 ? rig_rss_kb(&r) : 0;
		most = now > most ? now : most;
	}
	send_chunk(fd, STR("\r\n--XX--\r\n"));
	rig_send(fd, STR("0\r\n\r\n"));
	rig_read_until(fd, &b, "2 parts, 268435457 bytes");
	cr_assert(most - before < MEMORY_SLACK_KB, "%ld kB before, %ld kB at most", before, most);
	buf_clear(&b);
	rig_send(
	    fd, STR("POST /form" HOST "Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx"));
	rig_read_until(fd, &b, "HTTP/1.1 415");
	rig_send(fd, STR("POST /form" HOST "Content-Length: 6\r\n"
			 "Content-Type: multipart/form-data; boundary=XX\r\n\r\n--XX\r\n"));
	rig_read_until(fd, &b, "HTTP/1.1 400");
	fd_close(&fd);
	buf_done(&b);
	rig_stop(&r);
}
