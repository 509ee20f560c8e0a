/* Clients that do anything at any moment. What is asserted: the server lives, ends each exchange
 * exactly once and has no connection left. Meant for the sanitizers. */
#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/unit/http_calls.h"

TestSuite(http_chaos, .timeout = 60);

#define HOST " HTTP/1.1\r\nHost: h\r\n"

static uint32_t state = 20261130;

static uint32_t
dice(uint32_t n) /* xorshift: the same run every time, as far as the kernel allows */
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

static const struct str requests[] = {
    STR_INIT("GET /" HOST "\r\n"),
    STR_INIT("HEAD /stream?n=100" HOST "\r\n"),
    STR_INIT("GET /stream?n=3000000" HOST "\r\n"),
    STR_INIT("GET /stream?n=3000000 HTTP/1.0\r\n\r\n"),
    STR_INIT("GET /wait?ms=5" HOST "\r\n"),
    STR_INIT("GET /wait?ms=200" HOST "\r\n"),
    STR_INIT("GET /abort" HOST "\r\n"),
    STR_INIT("GET /short" HOST "\r\n"),
    STR_INIT("GET /abort HTTP/1.0\r\n\r\n"),
    STR_INIT("POST /whole" HOST "Content-Length: 10\r\n\r\n0123456789"),
    STR_INIT("POST /whole?max=5" HOST "Content-Length: 10\r\n\r\n0123456789"),
    STR_INIT("POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    STR_INIT("POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhellox"),
    STR_INIT("POST /slow-sink" HOST "Content-Length: 20\r\n\r\n01234567890123456789"),
    STR_INIT("POST /late-sink?ms=3" HOST "Content-Length: 20\r\n"
	     "Expect: 100-continue\r\n\r\n01234567890123456789"),
    STR_INIT("POST /401" HOST "Content-Length: 20\r\n\r\n01234567890123456789"),
    STR_INIT("POST /401" HOST "Content-Length: 2000000\r\n\r\n0123456789"),
    STR_INIT("POST /401" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    STR_INIT("POST /form" HOST "Content-Type: multipart/form-data; boundary=b\r\n"
	     "Content-Length: 63\r\n\r\n"
	     "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--\r\n\r\n"),
    STR_INIT("GET /bad path" HOST "\r\n"),
    STR_INIT("\r\nGET /" HOST "Connection: close\r\n\r\n"),
    STR_INIT("\x16\x03\x01"),
};

struct peer {
	int fd;
	struct str left;
};

static void
peer_close(struct peer *p)
{
	if (dice(3) == 0) {
		const struct linger reset = {1, 0};
		setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	fd_close(&p->fd);
}

static void
peer_acts(struct peer *p, const struct rig *r)
{
	static char waste[65536];
	if (p->fd < 0) {
		p->fd = rig_connect(r);
		fd_set_nonblock(p->fd, true);
		p->left = requests[dice(ARRAY_LEN(requests))];
		return;
	}
	uint32_t what = dice(100);
	if (what < 50) { /* a piece of a request, or the next one */
		if (p->left.len == 0)
			p->left = requests[dice(ARRAY_LEN(requests))];
		size_t most = dice(3) == 0 ? 1 + dice(20) : p->left.len;
		struct str piece = str_sub(p->left, 0, most);
		ssize_t n = send(p->fd, piece.ptr, piece.len, MSG_NOSIGNAL);
		p->left = str_from(p->left, n > 0 ? (size_t)n : 0);
	} else if (what < 88) {
		ssize_t n = recv(p->fd, waste, 1 + dice(sizeof(waste)), 0);
		if (n == 0 && dice(2) == 0)
			peer_close(p);
	} else if (what < 92) {
		(void)shutdown(p->fd, SHUT_WR);
	} else if (what < 96) {
		peer_close(p);
	} else if (what < 98) {
		(void)send(p->fd, waste, dice(sizeof(waste)), MSG_NOSIGNAL);
	}
}

Test(http_chaos, server_survives_any_client)
{
	enum { PEERS = 48 };
	const struct http_server_config cfg = {.head_timeout_ms = 200,
	    .idle_timeout_ms = 100,
	    .body_min_bytes_per_s = 256,
	    .write_stall_ms = 300,
	    .max_connections = 40};
	struct peer peers[PEERS];
	struct rig r;
	rig_start(&r, &cfg, false);
	for (int i = 0; i < PEERS; i++)
		peers[i].fd = -1;
	int64_t until = clock_mono_ms() + 2500;
	unsigned steps = 0;
	while (clock_mono_ms() < until) {
		peer_acts(&peers[dice(PEERS)], &r);
		if (++steps % 64 == 0)
			poll(NULL, 0, 1);
	}
	for (int i = 0; i < PEERS; i++)
		fd_close(&peers[i].fd);
	rig_stop(&r);
	unsigned requests_seen = atomic_load(&r.stats->requests);
	cr_log_warn("%u steps, %u requests, %u aborted", steps, requests_seen,
	    atomic_load(&r.stats->aborted));
	cr_assert(requests_seen > 100 && atomic_load(&r.stats->closed) == requests_seen);
	cr_assert(atomic_load(&r.stats->finished) >= requests_seen);
}

struct caller {
	struct got g;
	struct bench *b;
	bool is_running;
	unsigned running;
};

static void
caller_acts(struct caller *c)
{
	static const struct {
		const char *method, *path;
	} calls[] = {{"GET", "/"}, {"GET", "/stream?n=300000"}, {"PUT", "/echo"}, {"PUT", "/sink"},
	    {"PUT", "/401"}, {"GET", "/wait?ms=20"}, {"GET", "/hang"}, {"GET", "/abort"},
	    {"GET", "/short"}, {"PUT", "/slow-sink"}, {"GET", "/drip"}};
	if (c->is_running && c->g.call == NULL) {
		got_end(&c->g);
		c->is_running = false;
	} else if (!c->is_running) {
		uint32_t k = dice(ARRAY_LEN(calls));
		got_init(&c->g, c->b);
		c->g.keep = false;
		c->running = 1u << 30; /* the loop is never broken off */
		c->g.running = &c->running;
		c->g.pause = dice(2) == 0;
		c->g.upload_pause = dice(2) == 0;
		c->g.upload_left = dice(200000);
		struct http_call_spec spec = {.idle_timeout_ms = dice(2) * 100};
		spec.ca_file = c->b->rig.ca_path[0] != '\0' ? c->b->rig.ca_path : NULL;
		if (calls[k].method[0] == 'P') {
			spec.read_body = got_give;
			spec.body_bytes = dice(2) == 0 ? -1 : (int64_t)c->g.upload_left;
		}
		got_begin(c->b, &c->g, calls[k].method, calls[k].path, spec);
		c->is_running = true;
	} else if (dice(8) == 0) {
		http_call_cancel(&c->g.call);
	} else {
		http_call_resume(c->g.call);
		http_call_resume_upload(c->g.call);
	}
}

static void
abuse_client(bool tls)
{
	enum { CALLERS = 32 };
	static struct caller callers[CALLERS];
	struct bench b;
	unsigned ended = 0;
	bench_start_with(&b, NULL, tls);
	for (int i = 0; i < CALLERS; i++)
		callers[i].b = &b;
	int64_t until = clock_mono_ms() + 2500;
	while (clock_mono_ms() < until) {
		for (int i = 0; i < 8; i++) {
			struct caller *c = &callers[dice(CALLERS)];
			ended += c->is_running && c->g.call == NULL;
			caller_acts(c);
		}
		event_base_loop(b.base, EVLOOP_NONBLOCK);
		event_base_loopcontinue(b.base);
		poll(NULL, 0, 1);
	}
	cr_log_warn("%u calls ended", ended);
	cr_assert(ended > 20);
	for (int i = 0; i < CALLERS; i++) {
		http_call_cancel(&callers[i].g.call);
		got_end(&callers[i].g);
	}
	bench_stop(&b);
}

Test(http_chaos, client_survives_any_use)
{
	abuse_client(false);
}

Test(http_chaos, client_and_server_survive_any_use_of_tls)
{
	abuse_client(true);
}
