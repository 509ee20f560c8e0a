#include "http_rig.h"

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
#include <event2/event.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "worker/http/uri.h"

/* --- the server's side --- */

struct env {
	struct event_base *base;
	struct http_server *server;
	struct rig_stats *stats;
};

struct job { /* one exchange */
	struct env *env;
	struct http_exchange *x;
	struct event *timer;
	uint64_t left, got;
	unsigned pieces;
	bool echo, slow;
};

static void
job_closed(void *arg, bool aborted)
{
	struct job *j = arg;
	atomic_fetch_add(&j->env->stats->closed, 1);
	if (aborted)
		atomic_fetch_add(&j->env->stats->aborted, 1);
	/* All of these must be harmless now. */
	http_reply(j->x, 500, NULL, STR("late"));
	http_reply_abort(j->x);
	http_body_resume(j->x);
	if (j->timer != NULL)
		event_free(j->timer);
	mem_free(j);
}

static struct job *
job_new(struct env *e, struct http_exchange *x)
{
	struct job *j = MEM_NEW(struct job);
	j->env = e;
	j->x = x;
	http_set_state(x, j);
	http_on_close(x, job_closed, j);
	return j;
}

static void
job_timer(struct job *j, event_callback_fn fn, uint64_t ms)
{
	const struct timeval tv = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
	if (j->timer == NULL)
		j->timer = evtimer_new(j->env->base, fn, j);
	evtimer_add(j->timer, &tv);
}

static void
produce(void *arg)
{
	struct job *j = arg;
	static const char block[8192] = "x";
	while (j->left > 0) {
		if (!http_can_write(j->x)) {
			http_on_writable(j->x, produce, j);
			return;
		}
		size_t n = j->left < sizeof(block) ? (size_t)j->left : sizeof(block);
		http_reply_write(j->x, str_n(block, n));
		atomic_fetch_add(&j->env->stats->written_bytes, n);
		j->left -= n;
	}
	http_reply_end(j->x);
}

static void
resume_slow(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;
	(void)fd;
	(void)what;
	http_body_resume(j->x);
}

static void
resume_echo(void *arg)
{
	struct job *j = arg;
	http_body_resume(j->x);
}

static bool
sink_body(void *arg, struct str bytes)
{
	struct job *j = arg;
	j->got += bytes.len;
	atomic_fetch_add(&j->env->stats->body_bytes, bytes.len);
	if (j->echo) {
		http_reply_write(j->x, bytes);
		if (!http_can_write(j->x)) {
			http_on_writable(j->x, resume_echo, j);
			return false;
		}
	}
	if (!j->slow || ++j->pieces % 16 != 0)
		return true;
	job_timer(j, resume_slow, 1);
	return false;
}

static void
sink_end(void *arg, bool ok)
{
	struct job *j = arg;
	if (!ok)
		atomic_fetch_add(&j->env->stats->unread_errors, 1);
	if (j->echo) {
		if (ok)
			http_reply_end(j->x);
		else
			http_reply_abort(j->x);
		return;
	}
	char text[64];
	int n = snprintf(text, sizeof(text), "got %llu\n", (unsigned long long)j->got);
	http_reply(j->x, 200, "text/plain", str_n(text, (size_t)n));
}

static void
whole_body(void *arg, struct str body)
{
	struct job *j = arg;
	http_reply(j->x, 200, "application/octet-stream", body);
}

static void
wait_over(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;
	(void)fd;
	(void)what;
	http_reply(j->x, 200, "text/plain", STR("waited"));
}

static void
wait_then_read(evutil_socket_t fd, short what, void *arg)
{
	static const struct http_body_sink sink = {sink_body, sink_end};
	struct job *j = arg;
	(void)fd;
	(void)what;
	http_body_stream(j->x, UINT64_MAX, &sink, j);
}

static uint64_t
number(struct http_exchange *x, const char *name)
{
	struct arena *a = arena_new(65536);
	uint64_t n = 0;
	(void)str_u64(query_get(a, http_head(x)->query, name), &n);
	arena_free(&a);
	return n;
}

static void
route_bodies(struct env *e, struct http_exchange *x, struct str path)
{
	static const struct http_body_sink sink = {sink_body, sink_end};
	struct job *j = job_new(e, x);
	uint64_t max = number(x, "max");
	max = max != 0 ? max : UINT64_MAX;
	if (str_eq(path, STR("/whole"))) {
		http_body_whole(x, max == UINT64_MAX ? 1u << 20 : max, whole_body, j);
	} else if (str_eq(path, STR("/late-sink"))) {
		job_timer(j, wait_then_read, number(x, "ms"));
	} else {
		j->echo = str_eq(path, STR("/echo"));
		j->slow = str_eq(path, STR("/slow-sink"));
		if (j->echo)
			http_reply_begin(x, 200, "application/octet-stream", -1);
		http_body_stream(x, max, &sink, j);
	}
}

static void
route_replies(struct env *e, struct http_exchange *x, struct str path)
{
	struct job *j = job_new(e, x);
	if (str_eq(path, STR("/stream")) || str_eq(path, STR("/length"))) {
		j->left = number(x, "n");
		http_reply_begin(
		    x, 200, "text/plain", str_eq(path, STR("/length")) ? (int64_t)j->left : -1);
		produce(j);
	} else if (str_eq(path, STR("/wait"))) {
		job_timer(j, wait_over, number(x, "ms"));
	} else if (str_eq(path, STR("/abort"))) {
		http_reply_begin(x, 200, "text/plain", -1);
		http_reply_write(x, STR("part"));
		http_reply_abort(x);
		http_reply_write(x, STR("ignored"));
		http_reply_end(x);
	} else if (str_eq(path, STR("/drip"))) {
		http_reply_begin(x, 200, "text/plain", -1);
		http_reply_write(x, STR("drip"));
	} else if (str_eq(path, STR("/short"))) {
		http_reply_begin(x, 200, "text/plain", 10);
		http_reply_write(x, STR("1234"));
		http_reply_end(x);
	} else if (str_eq(path, STR("/long"))) {
		http_reply_begin(x, 200, "text/plain", 4);
		http_reply_write(x, STR("12345"));
		http_reply_end(x);
	} else if (str_eq(path, STR("/none"))) {
		http_reply(x, 204, NULL, STR(""));
	} else if (str_eq(path, STR("/401"))) {
		http_reply(x, 401, "text/plain", STR("who are you"));
	} else if (str_eq(path, STR("/peer"))) {
		http_reply(x, 200, "text/plain", http_head(x)->peer);
	} else if (!str_eq(path, STR("/hang"))) {
		struct str h = http_header(x, "x-test");
		if (h.ptr != NULL)
			http_reply_header(x, "X-Test", h);
		http_reply(x, 200, "text/plain", STR("ok"));
	}
}

static void
on_request(void *arg, struct http_exchange *x)
{
	static const struct str bodies[] = {STR_INIT("/whole"), STR_INIT("/sink"),
	    STR_INIT("/echo"), STR_INIT("/slow-sink"), STR_INIT("/late-sink")};
	struct env *e = arg;
	struct str path = http_head(x)->path;
	atomic_fetch_add(&e->stats->requests, 1);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		if (str_eq(path, bodies[i])) {
			route_bodies(e, x, path);
			return;
		}
	}
	route_replies(e, x, path);
}

static void
on_finished(void *arg, struct http_exchange *x, int status, uint64_t bytes_in, uint64_t bytes_out,
    bool aborted)
{
	struct env *e = arg;
	(void)x;
	(void)bytes_in;
	(void)bytes_out;
	(void)aborted;
	atomic_store(&e->stats->last_status, status);
	atomic_fetch_add(&e->stats->finished, 1);
}

static void
error_body(void *arg, int status, const char *reason, struct str path, char *dst, size_t size)
{
	(void)arg;
	(void)path;
	(void)snprintf(dst, size, "{\"error\":{\"status\":%d,\"reason\":\"%s\"}}", status, reason);
}

static void
on_drained(void *arg)
{
	struct env *e = arg;
	atomic_store(&e->stats->drained, 1);
	event_base_loopbreak(e->base);
}

static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	struct env *e = arg;
	(void)fd;
	(void)what;
	http_server_drain(e->server, on_drained, e);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct env *e = arg;
	(void)fd;
	(void)what;
	atomic_store(&e->stats->connections, http_server_connections(e->server));
}

static SSL_CTX *
make_tls(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
	    (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(cert));
	bool ok = X509_sign(cert, key, EVP_sha256()) > 0 &&
		  SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1;
	X509_free(cert);
	EVP_PKEY_free(key);
	if (!ok)
		_exit(3);
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
serve(const int listen_fds[2], const struct http_server_config *cfg, bool tls,
    struct rig_stats *stats)
{
	static const struct http_server_ops ops = {on_request, on_finished, error_body};
	struct env e = {.base = event_base_new(), .stats = stats};
	SSL_CTX *ctx = tls ? make_tls() : NULL;
	if (http_server_new(e.base, cfg, &ops, &e, &e.server, NULL) != ERR_OK ||
	    http_server_listen(e.server, listen_fds[0], ctx, NULL) != ERR_OK ||
	    http_server_listen(e.server, listen_fds[1], NULL, NULL) != ERR_OK)
		return 3;
	struct event *term = evsignal_new(e.base, SIGTERM, on_term, &e);
	struct event *tick = event_new(e.base, -1, EV_PERSIST, on_tick, &e);
	event_add(term, NULL);
	event_add(tick, &(struct timeval){0, 20000});
	event_base_dispatch(e.base);
	http_server_free(&e.server);
	event_free(term);
	event_free(tick);
	event_base_free(e.base);
	SSL_CTX_free(ctx);
	return atomic_load(&stats->drained) == 1 ? 0 : 4;
}

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
	r->pid = fork();
	cr_assert(r->pid >= 0);
	if (r->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(serve(fds, cfg != NULL ? cfg : &defaults, tls, r->stats));
	}
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
