#include "tests/unit/http_rig.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

static void
add_san(X509 *cert)
{
	X509_EXTENSION *e =
	    X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
	cr_assert(e != NULL && X509_add_ext(cert, e, -1) == 1);
	X509_EXTENSION_free(e);
}

/* A self-signed certificate; written to path too, for clients to trust. */
static SSL_CTX *
make_tls(char path[32])
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
	    (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	add_san(cert);
	cr_assert(X509_sign(cert, key, EVP_sha256()) > 0 &&
		  SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
	(void)snprintf(path, 32, "/tmp/otari-rig-XXXXXX");
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	cr_assert(f != NULL && PEM_write_X509(f, cert) == 1 && fclose(f) == 0);
	X509_free(cert);
	EVP_PKEY_free(key);
	return ctx;
}

static const struct http_server_config defaults = {
    .head_timeout_ms = 10000,
    .idle_timeout_ms = 75000,
    .body_min_bytes_per_s = 256,
    .write_stall_ms = 60000,
    .max_connections = 1000,
};

static int
make_listener(int *ret_port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert(bind(fd, (struct sockaddr *)&in, sizeof(in)) == 0 && listen(fd, 512) == 0);
	cr_assert(getsockname(fd, (struct sockaddr *)&in, &len) == 0);
	*ret_port = ntohs(in.sin_port);
	return fd;
}

void
rig_start(struct rig *r, const struct http_server_config *cfg, bool tls)
{
	int fds[2] = {make_listener(&r->port), make_listener(&r->plain_port)};
	r->stats = mmap(
	    NULL, sizeof(*r->stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	signal(SIGPIPE, SIG_IGN);
	r->ca_path[0] = '\0';
	SSL_CTX *ctx = tls ? make_tls(r->ca_path) : NULL;
	r->pid = fork();
	cr_assert(r->pid >= 0);
	if (r->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(rig_serve(fds, cfg != NULL ? cfg : &defaults, ctx, r->stats));
	}
	SSL_CTX_free(ctx);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

void
rig_signal(const struct rig *r, int sig)
{
	cr_assert(kill(r->pid, sig) == 0);
}

void
rig_stop(struct rig *r)
{
	int status = 0;
	if (r->ca_path[0] != '\0')
		unlink(r->ca_path);
	rig_signal(r, SIGTERM);
	for (int i = 0; i < 800; i++) {
		if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
			cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
			    "server ended with %#x", (unsigned)status);
			return;
		}
		poll(NULL, 0, 10);
	}
	kill(r->pid, SIGKILL);
	cr_assert_fail(
	    "server does not drain: %u connections", atomic_load(&r->stats->connections));
}

long
rig_rss_kb(const struct rig *r)
{
	char path[64], *text = NULL;
	size_t len;
	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)r->pid);
	cr_assert(fd_read_file(path, 4096, &text, &len, NULL) == ERR_OK);
	char *end;
	(void)strtol(text, &end, 10);
	long pages = strtol(end, NULL, 10);
	mem_free(text);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* --- the client's side --- */

int
rig_connect(const struct rig *r)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons((uint16_t)r->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert(
	    connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0, "connect: %s", strerror(errno));
	return fd;
}

bool
rig_try_send(int fd, struct str s)
{
	while (s.len > 0) {
		ssize_t n = send(fd, s.ptr, s.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		s = str_from(s, (size_t)n);
	}
	return true;
}

void
rig_send(int fd, struct str s)
{
	cr_assert(rig_try_send(fd, s), "send: %s", strerror(errno));
}

/* One read: >0 bytes, 0 end, -1 reset, -2 time. */
static ssize_t
read_some(int fd, struct buf *b, int ms)
{
	char part[16384];
	struct pollfd p = {fd, POLLIN, 0};
	if (poll(&p, 1, ms) <= 0)
		return -2;
	ssize_t n = recv(fd, part, sizeof(part), 0);
	if (n > 0)
		buf_addn(b, part, (size_t)n);
	return n < 0 ? -1 : n;
}

int
rig_read_all(int fd, struct buf *b, int ms)
{
	ssize_t n;
	while ((n = read_some(fd, b, ms)) > 0)
		continue;
	return n == -2 ? 1 : (int)n;
}

bool
rig_has(const struct buf *b, const char *text)
{
	return str_find(buf_str(b), str_c(text)) != SIZE_MAX;
}

void
rig_read_until(int fd, struct buf *b, const char *text)
{
	while (!rig_has(b, text)) {
		ssize_t n = read_some(fd, b, 5000);
		cr_assert(n > 0, "waiting for %s: rc %zd, have %s", text, n,
		    b->ptr != NULL ? b->ptr : "");
	}
}

struct buf
rig_ask(const struct rig *r, struct str request)
{
	struct buf b = BUF_INIT(64u << 20);
	int fd = rig_connect(r);
	rig_send(fd, request);
	(void)rig_read_all(fd, &b, 5000);
	fd_close(&fd);
	return b;
}

void
rig_wait(atomic_uint *v, unsigned n)
{
	for (int i = 0; i < 500 && atomic_load(v) < n; i++)
		poll(NULL, 0, 10);
	cr_assert(atomic_load(v) >= n, "counter is %u, not %u", atomic_load(v), n);
}
