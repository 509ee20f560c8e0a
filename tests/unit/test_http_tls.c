/* The HTTP server behind TLS: what differs from plain sockets. */
#include <sys/socket.h>

#include <poll.h>
#include <string.h>

#include <criterion/criterion.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/http_rig.h"

TestSuite(http_tls, .timeout = 30);

#define HOST " HTTP/1.1\r\nHost: h\r\n"

static SSL_CTX *ctx;

static SSL *
tls_connect(const struct rig *r, int *ret_fd)
{
	if (ctx == NULL)
		ctx = SSL_CTX_new(TLS_client_method());
	SSL *s = SSL_new(ctx);
	*ret_fd = rig_connect(r);
	struct timeval tv = {10, 0};
	setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	SSL_set_fd(s, *ret_fd);
	cr_assert(SSL_connect(s) == 1, "handshake");
	return s;
}

static void
tls_close(SSL **s, int *fd)
{
	SSL_free(*s);
	*s = NULL;
	fd_close(fd);
}

/* In records that do not divide the server's watermark. */
static void
tls_send(SSL *s, struct str bytes)
{
	while (bytes.len > 0) {
		int n = SSL_write(s, bytes.ptr, bytes.len < 10000 ? (int)bytes.len : 10000);
		cr_assert(n > 0, "SSL_write");
		bytes = str_from(bytes, (size_t)n);
	}
}

static void
tls_read_until(SSL *s, struct buf *b, const char *text)
{
	char part[16384];
	while (!rig_has(b, text)) {
		int n = SSL_read(s, part, sizeof(part));
		cr_assert(n > 0, "waiting for %s, have %s", text, b->ptr != NULL ? b->ptr : "");
		buf_addn(b, part, (size_t)n);
	}
}

/* Reads to the end; true when the peer said that it is the end. */
static bool
tls_read_all(SSL *s, struct buf *b)
{
	char part[16384];
	int n;
	while ((n = SSL_read(s, part, sizeof(part))) > 0)
		buf_addn(b, part, (size_t)n);
	return SSL_get_error(s, n) == SSL_ERROR_ZERO_RETURN;
}

Test(http_tls, requests_keep_the_connection_and_end_it_properly)
{
	struct rig r;
	struct buf b = BUF_INIT(1u << 20);
	int fd;
	rig_start(&r, NULL, true);
	SSL *s = tls_connect(&r, &fd);
	cr_assert(SSL_version(s) >= TLS1_2_VERSION);
	tls_send(s, STR("GET /" HOST "\r\nPOST /whole" HOST "Content-Length: 3\r\n\r\nabc"));
	tls_read_until(s, &b, "\r\n\r\nabc");
	tls_send(s, STR("GET /peer" HOST "Connection: close\r\n\r\n"));
	cr_assert(tls_read_all(s, &b) && rig_has(&b, "\r\n\r\n127.0.0.1:"), "%s", b.ptr);
	tls_close(&s, &fd);
	buf_clear(&b);
	s = tls_connect(&r, &fd);
	tls_send(s, STR("GET /abort" HOST "\r\n"));
	cr_assert(!tls_read_all(s, &b) && rig_has(&b, "part"), "a cut reply must not end properly");
	tls_close(&s, &fd);
	buf_done(&b);
	rig_stop(&r);
}

/* Bytes that are decrypted already must not be forgotten when reading goes on. */
Test(http_tls, paused_and_streamed_bodies_arrive_whole)
{
	struct rig r;
	struct buf b = BUF_INIT(64u << 20);
	static char block[1u << 20];
	int fd;
	rig_start(&r, NULL, true);
	SSL *s = tls_connect(&r, &fd);
	for (int i = 0; i < 3; i++) {
		static const char *const sizes[] = {"70000", "200001", "1048576"};
		static const size_t counts[] = {70000, 200001, 1048576};
		char text[128];
		buf_clear(&b);
		(void)snprintf(text, sizeof(text),
		    "POST /slow-sink" HOST "Content-Length: %s\r\n\r\n", sizes[i]);
		tls_send(s, str_c(text));
		tls_send(s, str_n(block, counts[i]));
		(void)snprintf(text, sizeof(text), "got %s\n", sizes[i]);
		tls_read_until(s, &b, text);
		buf_clear(&b);
		(void)snprintf(text, sizeof(text),
		    "POST /late-sink?ms=100" HOST "Content-Length: %s\r\n\r\n", sizes[i]);
		tls_send(s, str_c(text));
		tls_send(s, str_n(block, counts[i]));
		(void)snprintf(text, sizeof(text), "got %s\n", sizes[i]);
		tls_read_until(s, &b, text);
	}
	buf_clear(&b);
	tls_send(s, STR("GET /length?n=20000000" HOST "Connection: close\r\n\r\n"));
	cr_assert(tls_read_all(s, &b) && b.len > 20000000);
	tls_close(&s, &fd);
	buf_done(&b);
	rig_stop(&r);
}

Test(http_tls, upload_of_256_mb_at_constant_memory)
{
	struct rig r;
	struct buf b = BUF_INIT(1u << 20);
	static char block[1u << 20];
	int fd;
	rig_start(&r, NULL, true);
	SSL *s = tls_connect(&r, &fd);
	tls_send(s, STR("GET /" HOST "\r\n"));
	tls_read_until(s, &b, "ok");
	long before = rig_rss_kb(&r), most = 0;
	int64_t start = clock_mono_ms();
	tls_send(s, STR("PUT /sink" HOST "Content-Length: 268435456\r\n\r\n"));
	for (int i = 0; i < 256; i++) {
		tls_send(s, str_n(block, sizeof(block)));
		long now = rig_rss_kb(&r);
		most = now > most ? now : most;
	}
	tls_read_until(s, &b, "got 268435456");
	cr_log_warn("256 MB over TLS: %lld ms, RSS %ld kB before, %ld kB at most",
	    (long long)(clock_mono_ms() - start), before, most);
#ifndef __SANITIZE_ADDRESS__
	cr_assert(most - before < 4096);
#endif
	tls_close(&s, &fd);
	buf_done(&b);
	rig_stop(&r);
}

Test(http_tls, early_answer_reaches_a_client_that_still_sends)
{
	struct rig r;
	struct buf b = BUF_INIT(1u << 20);
	static char block[1u << 20];
	int fd;
	rig_start(&r, NULL, true);
	SSL *s = tls_connect(&r, &fd);
	tls_send(s, STR("PUT /401" HOST "Content-Length: 33554432\r\n\r\n"));
	for (int i = 0; i < 32; i++)
		tls_send(s, str_n(block, sizeof(block)));
	cr_assert(tls_read_all(s, &b) && rig_has(&b, "who are you"), "%s", b.ptr);
	tls_close(&s, &fd);
	buf_done(&b);
	rig_stop(&r);
}

Test(http_tls, bad_handshakes_and_lost_clients_leave_nothing)
{
	const struct http_server_config cfg = {.head_timeout_ms = 300,
	    .idle_timeout_ms = 5000,
	    .body_min_bytes_per_s = 256,
	    .write_stall_ms = 5000,
	    .max_connections = 100};
	struct rig r;
	struct buf b = BUF_INIT(1u << 20);
	rig_start(&r, &cfg, true);
	int fd = rig_connect(&r); /* plain HTTP on the TLS port */
	rig_send(fd, STR("GET /" HOST "\r\n"));
	cr_assert(rig_read_all(fd, &b, 3000) != 1);
	fd_close(&fd);
	fd = rig_connect(&r); /* nothing */
	cr_assert(rig_read_all(fd, &b, 3000) != 1);
	fd_close(&fd);
	fd = rig_connect(&r); /* half a hello */
	rig_send(fd, STR("\x16\x03\x01\x02"));
	cr_assert(rig_read_all(fd, &b, 3000) != 1);
	fd_close(&fd);
	SSL *s = tls_connect(&r, &fd); /* leaves while it waits */
	tls_send(s, STR("GET /hang" HOST "\r\n"));
	rig_wait(&r.stats->requests, 1);
	tls_close(&s, &fd);
	rig_wait(&r.stats->aborted, 1);
	s = tls_connect(&r, &fd); /* says goodbye while it waits */
	tls_send(s, STR("GET /stream?n=99999999" HOST "\r\n"));
	rig_wait(&r.stats->requests, 2);
	SSL_shutdown(s);
	tls_close(&s, &fd);
	rig_wait(&r.stats->aborted, 2);
	r.port = r.plain_port; /* the other listener of the same server */
	struct buf plain = rig_ask(&r, STR("GET /" HOST "Connection: close\r\n\r\n"));
	cr_assert(rig_has(&plain, "\r\n\r\nok"));
	buf_done(&plain);
	buf_done(&b);
	rig_stop(&r);
}
