/* Streams, code runs, uploads and clients that leave at any point, together with reloads and killed
 * workers; afterwards nothing may be left over and the books must agree. */
#include <sys/socket.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"

TestSuite(chaos, .timeout = 240);

#define CLIENTS    24
#define CALM_MS    6000
#define KILLING_MS 5000
#define DATED      "\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}]"

struct client {
	int fd;
	struct buf out, in;
	size_t sent;
	size_t stop_after; /* hangs up after so many bytes of the answer; SIZE_MAX: never */
	int64_t leave_at_ms;
	bool is_completion;
};

struct chaos {
	struct server *s;
	struct client c[CLIENTS];
	uint32_t seed;
	unsigned begun, left, answered, refused;
	struct buf ids; /* of completions that were answered whole with 200: 'a','b',… */
	char file_id[64], response_id[128];
};

static uint32_t
draw(struct chaos *x, uint32_t n)
{
	x->seed = x->seed * 1664525u + 1013904223u;
	return (x->seed >> 8) % n;
}

static void
post(struct chaos *x, struct client *c, const char *path, const char *type, struct str body)
{
	buf_printf(&c->out,
	    "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n"
	    "Connection: close\r\nContent-Length: %zu\r\n\r\n",
	    path, x->s->key, type, body.len);
	buf_add(&c->out, body);
}

static void
ask_completion(struct chaos *x, struct client *c)
{
	static const char *const models[] = {"fake:text", "fake:slow-20", "fake:cut", "fake:stall",
	    "fake:error-event", "fake:err-500", "fake:err-429", "claude:text", "claude:slow-20",
	    "claude:cut", "claude:error-event", "fake:big-30000", "claude:big-30000",
	    "fake:reasoning", "fake:mute", "nobody:text"};
	char body[1024];
	bool messages = draw(x, 2) == 0, is_endless = draw(x, 20) == 0;
	(void)snprintf(body, sizeof(body),
	    "{\"model\":\"%s\",\"max_tokens\":50,\"stream\":%s,\"messages\":[{\"role\":\"user\","
	    "\"content\":\"hello\"}]%s}",
	    is_endless ? "fake:endless" : models[draw(x, ARRAY_LEN(models))],
	    is_endless || draw(x, 3) > 0 ? "true" : "false",
	    draw(x, 4) == 0 ? ",\"max_tool_iterations\":3" : "");
	c->is_completion = true;
	post(x, c, messages ? "/v1/messages" : "/v1/chat/completions", "application/json",
	    str_c(body));
}

static void
ask_response(struct chaos *x, struct client *c)
{
	static const char *const models[] = {"fake:text", "fake:slow-20", "claude:reasoning",
	    "answers:text", "answers:slow-20", "answers:cut", "answers:error-event", "fake:cut",
	    "answers:big-30000", "fake:tool", "claude:tool"};
	char body[1024];
	bool goes_on = x->response_id[0] != '\0' && draw(x, 2) == 0;
	(void)snprintf(body, sizeof(body),
	    "{\"model\":\"%s\",\"stream\":%s,\"store\":%s,%s%s%s\"input\":\"run: print(1)\"%s}",
	    models[draw(x, ARRAY_LEN(models))], draw(x, 2) == 0 ? "true" : "false",
	    draw(x, 4) > 0 ? "true" : "false", goes_on ? "\"previous_response_id\":\"" : "",
	    goes_on ? x->response_id : "", goes_on ? "\"," : "",
	    draw(x, 2) == 0
		? ",\"tools\":[{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}]"
		: "");
	c->is_completion = true;
	post(x, c, "/v1/responses", "application/json", str_c(body));
}

static void
ask_code(struct chaos *x, struct client *c)
{
	static const char *const programs[] = {"print(6*7)",
	    "open('made.txt','w').write('x'*100000)",
	    "import time\\ntime.sleep(0.3)\\nfor i in range(5): open(f'f{i}','w').write('y'*5000)",
	    "import os\\nos.kill(os.getpid(), 9)", "print('z'*500000)", "1/0"};
	static const char *const models[] = {"fake:tool", "fake:parallel", "fake:rounds-2",
	    "fake:badjson", "fake:mixed", "claude:tool"};
	char body[2048];
	(void)snprintf(body, sizeof(body),
	    "{\"model\":\"%s\",\"max_tokens\":500,\"stream\":%s,\"messages\":[{\"role\":\"user\","
	    "\"content\":[%s%s%s{\"type\":\"text\",\"text\":\"run: %s\"}]}]," DATED "}",
	    models[draw(x, ARRAY_LEN(models))], draw(x, 2) == 0 ? "true" : "false",
	    x->file_id[0] != '\0' ? "{\"type\":\"container_upload\",\"file_id\":\"" : "",
	    x->file_id, x->file_id[0] != '\0' ? "\"}," : "",
	    programs[draw(x, ARRAY_LEN(programs))]);
	c->is_completion = true;
	buf_printf(&c->out,
	    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nx-api-key: %s\r\nContent-Type: "
	    "application/json\r\nOtari-Code-Execution: otari\r\nConnection: close\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    x->s->key, strlen(body), body);
}

static void
ask_upload(struct chaos *x, struct client *c)
{
	struct buf body = BUF_INIT(1u << 20);
	uint32_t n = draw(x, 2) == 0 ? 100 : 400000;
	buf_add(&body,
	    STR("--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n"
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"data.bin\"\r\n"
		"Content-Type: application/octet-stream\r\n\r\n"));
	for (uint32_t i = 0; i < n; i++)
		buf_addc(&body, (char)('a' + i % 26));
	buf_add(&body, STR("\r\n--b--\r\n"));
	post(x, c, "/v1/files", "multipart/form-data; boundary=b", buf_str(&body));
	buf_done(&body);
}

static void
begin(struct chaos *x, struct client *c)
{
	c->sent = 0;
	c->is_completion = false;
	buf_clear(&c->out);
	buf_clear(&c->in);
	uint32_t what = draw(x, 20);
	if (what < 6)
		ask_completion(x, c);
	else if (what < 9)
		ask_response(x, c);
	else if (what < 14)
		ask_code(x, c);
	else if (what < 17)
		ask_upload(x, c);
	else if (what == 17)
		buf_add(&c->out, STR("BREW /pot HTCPCP/1.0\r\n\r\n"));
	else
		buf_printf(&c->out,
		    "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: "
		    "close\r\n\r\n",
		    what == 18 ? "/v1/files" : "/v1/models", x->s->key);
	/* A third stays to the end, a third leaves at a time, a third at a byte. */
	uint32_t manner = draw(x, 3);
	c->stop_after = manner == 1 ? draw(x, 3000) : SIZE_MAX;
	c->leave_at_ms = clock_mono_ms() + (manner == 2 ? draw(x, 400) : 2500);
	c->fd = server_connect(x->s);
	(void)fd_set_nonblock(c->fd, true);
	x->begun++;
}

/* The value of request-id, when the answer is a whole 200 of a completion. */
static void
note(struct chaos *x, struct client *c)
{
	struct str in = buf_str(&c->in);
	size_t at = str_find(in, STR("\r\nrequest-id: "));
	if (!str_starts(in, STR("HTTP/1.1 200")) || at == SIZE_MAX) {
		x->refused++;
		return;
	}
	x->answered++;
	struct str rest = str_from(in, at + 14);
	struct str id = str_sub(rest, 0, str_chr(rest, '\r'));
	bool is_whole =
	    str_ends(in, STR("0\r\n\r\n")) || str_find(in, STR("Content-Length")) != SIZE_MAX;
	if (c->is_completion && is_whole)
		buf_printf(&x->ids, "%s'%.*s'", x->ids.len > 0 ? "," : "", STR_FMT(id));
	at = str_find(in, STR("\"id\":\"resp_"));
	if (at != SIZE_MAX && str_find(in, STR("\"status\":\"completed\"")) != SIZE_MAX) {
		struct str text = str_from(in, at + 6);
		(void)str_copy(
		    x->response_id, sizeof(x->response_id), str_sub(text, 0, str_chr(text, '"')));
	}
	at = str_find(in, STR("\"id\":\"file-"));
	if (x->file_id[0] == '\0' && at != SIZE_MAX && str_find(in, STR("data.bin")) != SIZE_MAX) {
		rest = str_from(in, at + 6);
		(void)str_copy(
		    x->file_id, sizeof(x->file_id), str_sub(rest, 0, str_chr(rest, '"')));
	}
}

static void
end(struct client *c)
{
	fd_close(&c->fd);
}

static void
step(struct chaos *x, struct client *c, short what)
{
	char chunk[65536];
	if (clock_mono_ms() >= c->leave_at_ms || c->in.len >= c->stop_after) {
		x->left++;
		end(c);
		return;
	}
	if (c->sent < c->out.len) {
		ssize_t n = send(
		    c->fd, c->out.ptr + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			c->sent += (size_t)n;
	}
	if ((what & (POLLIN | POLLHUP | POLLERR)) == 0)
		return;
	ssize_t n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n > 0) {
		buf_addn(&c->in, chunk, (size_t)n);
	} else if (n == 0 || errno != EAGAIN) {
		note(x, c);
		end(c);
	}
}

/* Not so many kills that the master would wait long before it starts the next one. */
static void
disturb(struct chaos *x, bool kills, int64_t now, int64_t *next)
{
	static const char *const victims[] = {
	    "otari: worker", "otari: worker", "otari: filler", "otari: spawner", "open(4)"};
	pid_t pids[8];
	if (now < *next)
		return;
	*next = now + (kills ? 2500 : 600);
	(void)kill(x->s->pid, SIGHUP);
	const char *victim = victims[draw(x, ARRAY_LEN(victims))];
	size_t n = kills ? server_pids(x->s, victim, pids, 8) : 0;
	if (n > 0)
		(void)kill(pids[draw(x, (uint32_t)n)], SIGKILL);
}

static void
run(struct chaos *x, int64_t ms, bool kills)
{
	int64_t until = clock_mono_ms() + ms, next = clock_mono_ms() + 500;
	for (;;) {
		struct pollfd p[CLIENTS];
		int64_t now = clock_mono_ms();
		unsigned open = 0;
		for (size_t i = 0; i < CLIENTS; i++) {
			if (x->c[i].fd < 0 && now < until)
				begin(x, &x->c[i]);
			bool sends = x->c[i].sent < x->c[i].out.len;
			p[i] = (struct pollfd){
			    .fd = x->c[i].fd, .events = (short)(POLLIN | (sends ? POLLOUT : 0))};
			open += x->c[i].fd >= 0;
		}
		if (open == 0)
			return;
		(void)poll(p, CLIENTS, 20);
		for (size_t i = 0; i < CLIENTS; i++)
			if (x->c[i].fd >= 0)
				step(x, &x->c[i], p[i].revents);
		if (now < until)
			disturb(x, kills, now, &next);
	}
}

static bool
wait_metric(struct server *s, const char *name, double most)
{
	for (int i = 0; i < 500; i++) {
		if (server_metric(s, name) <= most)
			return true;
		pause_short();
	}
	return false;
}

/* Whole blobs; parts of them lie in .tmp. */
static int
count_blobs(struct server *s, bool temps)
{
	char path[400], sub[700];
	int n = 0;
	(void)snprintf(path, sizeof(path), "%s/files", s->dir);
	DIR *d = opendir(path);
	if (d == NULL)
		return 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		bool is_temps = strcmp(e->d_name, ".tmp") == 0;
		if ((e->d_name[0] == '.' && !is_temps) || is_temps != temps)
			continue;
		(void)snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		n += count_entries(sub);
	}
	closedir(d);
	return n;
}

static bool
wait_equal(struct server *s, int64_t *ret_rows, int *ret_blobs)
{
	for (int i = 0; i < 200; i++) {
		*ret_rows = server_sql(s, "SELECT count(*) FROM files");
		*ret_blobs = count_blobs(s, false);
		if (*ret_rows == *ret_blobs && count_blobs(s, true) == 0)
			return true;
		pause_short();
	}
	return false;
}

static void
all_is_quiet(struct chaos *x, const char *when)
{
	/* one is the question itself */
	cr_expect(wait_metric(x->s, "otari_requests_active", 1), "%s: requests are left", when);
	cr_expect(wait_metric(x->s, "otari_sandbox_sessions_leased", 0), "%s: sessions: %g", when,
	    server_metric(x->s, "otari_sandbox_sessions_leased"));
}

/* Every completion that a client saw whole has its usage row. */
static void
books_agree(struct chaos *x, const char *when)
{
	struct buf sql = BUF_INIT(16u << 20);
	int64_t n = x->ids.len > 0 ? 1 : 0;
	for (size_t i = 0; i < x->ids.len; i++)
		n += x->ids.ptr[i] == ',';
	buf_printf(&sql, "SELECT count(*) FROM usage_logs WHERE request_id IN (%.*s)",
	    STR_FMT(buf_str(&x->ids)));
	cr_expect(server_wait_sql(x->s, sql.ptr, n), "%s: %lld answers, %lld rows", when,
	    (long long)n, (long long)server_sql(x->s, sql.ptr));
	buf_done(&sql);
}

Test(chaos, nothing_is_left_over)
{
	static struct chaos x;
	const char *seed = getenv("OTARI_TEST_SEED");
	int64_t rows = 0;
	int blobs = 0;
	x.seed = seed != NULL ? (uint32_t)strtoul(seed, NULL, 10) : (uint32_t)clock_wall_ms();
	fprintf(stderr, "chaos: OTARI_TEST_SEED=%u\n", x.seed);
	x.s = server_start(&(struct server_opts){.sandbox = "local:", .workers = 2});
	server_expect(x.s, "code session");
	server_expect(x.s, "sandbox");
	buf_init(&x.ids, 16u << 20);
	for (size_t i = 0; i < CLIENTS; i++) {
		x.c[i].fd = -1;
		buf_init(&x.c[i].out, 2u << 20);
		buf_init(&x.c[i].in, 64u << 20);
	}
	run(&x, CALM_MS, false);
	all_is_quiet(&x, "calm");
	books_agree(&x, "calm");
	cr_expect(wait_equal(x.s, &rows, &blobs), "%lld files, %d blobs, %d parts", (long long)rows,
	    blobs, count_blobs(x.s, true));

	server_expect(x.s, "died");
	server_expect(x.s, "killed");
	server_expect(x.s, "worker");
	server_expect(x.s, "the filler failed");
	server_expect(x.s, "the zygote failed");
	server_expect(x.s, "child ended");
	run(&x, KILLING_MS, true);
	must_answer(x.s, "after the kills");
	all_is_quiet(&x, "kills");
	books_agree(&x, "kills");
	rows = server_sql(x.s, "SELECT count(*) FROM files");
	blobs = count_blobs(x.s, false);
	cr_expect_leq(rows, blobs, "rows without bytes");
	fprintf(stderr,
	    "chaos: %u requests, %u whole, %u refused or cut, %u left early; %lld files\n", x.begun,
	    x.answered, x.refused, x.left, (long long)rows);
	cr_expect(x.answered > 20, "%u were answered", x.answered);
	for (size_t i = 0; i < CLIENTS; i++) {
		buf_done(&x.c[i].out);
		buf_done(&x.c[i].in);
	}
	buf_done(&x.ids);
	server_stop(&x.s);
}

/* The body's bytes go with the connection, its texts are read by threads until they are done. */
Test(chaos, clients_leave_while_threads_work_for_them)
{
	struct server *s = server_start(&(struct server_opts){.workers = 1});
	struct buf big = BUF_INIT(16u << 20);
	struct reply r;
	char body[1024], id[128];
	for (int i = 0; i < 400000; i++)
		buf_add(&big, STR("sixteen \"bytes\"\n"));
	server_upload(
	    s, "/v1/files", "big.txt", "text/plain", buf_str(&big), "user_data", NULL, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	(void)snprintf(id, sizeof(id), "%s", at(root, "id"));
	json_decref(root);
	reply_done(&r);
	(void)snprintf(body, sizeof(body),
	    "{\"model\":\"fake:text\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
	    "\"content\":["
	    "{\"type\":\"text\",\"text\":\"a text that lies in the body\"},{\"type\":\"document\","
	    "\"source\":{\"type\":\"file\",\"file_id\":\"%s\"}},{\"type\":\"text\",\"text\":\"and "
	    "one "
	    "behind\"}]}]}",
	    id);
	for (int i = 0; i < 25; i++) {
		struct timespec pause = {0, i * 12000000L};
		int fd = stream_open(s, "/v1/messages", body);
		(void)nanosleep(&pause, NULL);
		(void)close(fd);
	}
	cr_expect(wait_metric(s, "otari_requests_active", 1), "requests are left");
	must_answer(s, "after the clients that left");
	buf_done(&big);
	server_stop(&s);
}
