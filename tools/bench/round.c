/* round.c - what a round of code costs beside the model's time: the client and the provider in one
 * program, with one clock
 *
 *   bench-round N MODEL_MS              n of each case; how long the model takes for an answer
 *
 * Prints "PORT" of its provider (Chat Completions), reads "GATEWAY-PORT ADMIN-PORT KEY" and prints
 * Markdown tables. A round is the time from the last byte of the model's answer that calls the tool
 * to the whole next request at the model: lease, run, result, encoding. Between two requests it
 * waits until the pool of sessions is full again.
 */
#include <sys/socket.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "tools/bench/peer.h"

#define CONNECTIONS 8
#define ROUNDS_MAX  4
#define QUIET_MS    20
#define WARM_UP     20

/* One request, in µs of the monotonic clock. */
struct trial {
	int64_t sent, done;
	int64_t asked[ROUNDS_MAX], answered[ROUNDS_MAX]; /* as the model saw it */
	int asks;
};

struct bench {
	int listener;
	struct peer provider[CONNECTIONS], client, admin;
	char key[128];
	uint64_t pool; /* sessions that are ready when it is full */
	int64_t model_ms;
	int rounds;         /* calls that the model makes */
	const char *code;   /* … of a program in JSON */
	struct buf scratch; /* a request */
};

static void
pause_ms(int64_t ms)
{
	struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		continue;
}

/* --- the model ----------------------------------------------------------------------------------
 */
static size_t
count(struct str text, struct str piece)
{
	size_t n = 0;

	for (size_t at; (at = str_find(text, piece)) != SIZE_MAX; n++)
		text = str_from(text, at + piece.len);
	return n;
}

#define CHUNK                                                                                      \
	"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,"         \
	"\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n"

static void
write_streamed(struct buf *b, const struct bench *x, int call)
{
	struct buf delta = BUF_INIT(1u << 20);

	if (call >= 0) {
		buf_printf(&delta,
		    "{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_%d\","
		    "\"type\":\"function\",\"function\":{\"name\":\"code_execution\","
		    "\"arguments\":\"{\\\"code\\\":\\\"%s\\\"}\"}}]}",
		    call, x->code);
	} else {
		buf_add(&delta, STR("{\"role\":\"assistant\",\"content\":\"That is all.\"}"));
	}
	buf_printf(b, CHUNK, delta.ptr, "null");
	buf_printf(b, CHUNK, "{}", call >= 0 ? "\"tool_calls\"" : "\"stop\"");
	buf_add(
	    b, STR("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\","
		   "\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,"
		   "\"completion_tokens\":9,\"total_tokens\":18}}\n\ndata: [DONE]\n\n"));
	buf_done(&delta);
}

static void
write_whole(struct buf *b, const struct bench *x, int call)
{
	buf_add(b, STR("{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,"
		       "\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
		       "\"assistant\",\"content\":"));
	if (call >= 0)
		buf_printf(b,
		    "null,\"tool_calls\":[{\"id\":\"call_%d\",\"type\":\"function\",\"function\":"
		    "{\"name\":\"code_execution\",\"arguments\":\"{\\\"code\\\":\\\"%s\\\"}\"}}]"
		    "},\"finish_reason\":\"tool_calls\"",
		    call, x->code);
	else
		buf_add(b, STR("\"That is all.\"},\"finish_reason\":\"stop\""));
	buf_add(b, STR("}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":9,"
		       "\"total_tokens\":18}}"));
}

static void
model_answer(struct bench *x, struct peer *p, struct str request, struct trial *t)
{
	bool stream = str_find(request, STR("\"stream\":true")) != SIZE_MAX;
	int given = (int)count(request, STR("\"role\":\"tool\""));
	int call = given < x->rounds ? given : -1;
	struct buf body = BUF_INIT(1u << 20), b = BUF_INIT(1u << 20);

	if (t->asks == ROUNDS_MAX)
		bench_die("the gateway asks too often");
	t->asked[t->asks] = clock_mono_us();
	(stream ? write_streamed : write_whole)(&body, x, call);
	buf_printf(&b, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
	    stream ? "text/event-stream" : "application/json", body.len);
	buf_add(&b, buf_str(&body));
	if (x->model_ms > 0)
		pause_ms(x->model_ms);
	t->answered[t->asks++] = clock_mono_us();
	peer_next(p);
	peer_write(p, buf_str(&b));
	buf_done(&b);
	buf_done(&body);
}

static void
provider_accept(struct bench *x)
{
	for (size_t i = 0; i < CONNECTIONS; i++) {
		if (x->provider[i].fd >= 0)
			continue;
		peer_init(&x->provider[i], accept4(x->listener, NULL, NULL, SOCK_CLOEXEC));
		return;
	}
	bench_die("the gateway opens too many connections");
}

/* One turn of the loop: whatever came, to the model or to the client; true: the client's answer is
 * whole. */
static bool
step(struct bench *x, struct trial *t, struct str *ret_body)
{
	struct pollfd fds[CONNECTIONS + 2];
	struct str head, body;

	for (size_t i = 0; i < CONNECTIONS; i++)
		fds[i] = (struct pollfd){x->provider[i].fd, POLLIN, 0};
	fds[CONNECTIONS] = (struct pollfd){x->listener, POLLIN, 0};
	fds[CONNECTIONS + 1] = (struct pollfd){x->client.fd, POLLIN, 0};
	if (poll(fds, CONNECTIONS + 2, 30000) <= 0)
		bench_die("nothing comes any more");
	for (size_t i = 0; i < CONNECTIONS; i++) {
		if (fds[i].revents == 0)
			continue;
		if (!peer_read(&x->provider[i]))
			peer_done(&x->provider[i]);
		else if (peer_message(&x->provider[i], &head, &body))
			model_answer(x, &x->provider[i], body, t);
	}
	if (fds[CONNECTIONS].revents != 0)
		provider_accept(x);
	if (fds[CONNECTIONS + 1].revents == 0)
		return false;
	if (!peer_read(&x->client))
		bench_die("the gateway closed the client's connection");
	return peer_message(&x->client, &head, ret_body);
}

/* --- the client ----------------------------------------------------------------------------------
 */
static uint64_t
pool_ready(struct bench *x)
{
	static const struct str name = STR_INIT("\notari_sandbox_pool_ready ");
	struct str body = peer_ask(
	    &x->admin, STR("GET /metrics HTTP/1.1\r\nHost: bench\r\nContent-Length: 0\r\n\r\n"));
	size_t at = str_find(body, name);
	struct str value = at != SIZE_MAX ? str_from(body, at + name.len) : STR_NULL;
	uint64_t n = 0;

	if (!str_u64(str_sub(value, 0, str_chr(value, '\n')), &n))
		bench_die("the metrics do not tell the pool");
	peer_next(&x->admin);
	return n;
}

static void
wait_pool(struct bench *x)
{
	while (pool_ready(x) < x->pool)
		pause_ms(5);
	pause_ms(QUIET_MS);
}

static void
write_request(struct bench *x, const char *method_path, const char *type, struct str body)
{
	buf_clear(&x->scratch);
	buf_printf(&x->scratch,
	    "%s HTTP/1.1\r\nHost: bench\r\nx-api-key: %s\r\nanthropic-version: 2023-06-01\r\n"
	    "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
	    method_path, x->key, type, body.len);
	buf_add(&x->scratch, body);
}

/* Asks in Messages; the answer stays in the client's buffer. */
static struct str
messages(struct bench *x, struct trial *t, bool stream, const char *file_id)
{
	struct buf body = BUF_INIT(1u << 20);
	struct str answer;

	buf_printf(&body,
	    "{\"model\":\"fake:m\",\"max_tokens\":1000,\"stream\":%s,\"tools\":[{\"type\":"
	    "\"code_execution_20250825\",\"name\":\"code_execution\"}],\"messages\":[{\"role\":"
	    "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}",
	    stream ? "true" : "false");
	if (file_id != NULL)
		buf_printf(&body, ",{\"type\":\"container_upload\",\"file_id\":\"%s\"}", file_id);
	buf_add(&body, STR("]}]}"));
	write_request(x, "POST /v1/messages", "application/json", buf_str(&body));
	*t = (struct trial){.sent = clock_mono_us()};
	peer_write(&x->client, buf_str(&x->scratch));
	while (!step(x, t, &answer))
		continue;
	t->done = clock_mono_us();
	if (t->asks != x->rounds + 1 ||
	    count(answer, STR("\"return_code\":0")) != (size_t)x->rounds) {
		(void)fprintf(stderr, "%.*s\n", STR_FMT(answer));
		bench_die("not the answer that was expected");
	}
	buf_done(&body);
	return answer;
}

static int64_t
model_time(const struct trial *t)
{
	int64_t sum = 0;

	for (int i = 0; i < t->asks; i++)
		sum += t->answered[i] - t->asked[i];
	return sum;
}

/* --- figures -------------------------------------------------------------------------------------
 */
static int
cmp_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void
print_times(const char *what, int64_t *us, size_t n)
{
	qsort(us, n, sizeof(us[0]), cmp_i64);
	(void)printf("| %s | %.2f | %.2f | %.2f | %zu |\n", what, (double)us[n / 2] / 1e3,
	    (double)us[n * 9 / 10] / 1e3, (double)us[n * 99 / 100] / 1e3, n);
	(void)fflush(stdout);
}

static void
measure_rounds(struct bench *x, size_t n, bool stream, int rounds)
{
	int64_t *us[ROUNDS_MAX + 1];
	struct trial t;
	char what[128];

	x->rounds = rounds;
	for (int i = 0; i <= rounds; i++)
		us[i] = MEM_NEW_ARRAY(int64_t, n);
	for (size_t k = 0; k < n; k++) {
		wait_pool(x);
		(void)messages(x, &t, stream, NULL);
		peer_next(&x->client);
		for (int i = 0; i < rounds; i++)
			us[i][k] = t.asked[i + 1] - t.answered[i];
		us[rounds][k] = t.done - t.sent - model_time(&t);
	}
	for (int i = 0; i <= rounds; i++) {
		if (i < rounds)
			(void)snprintf(what, sizeof(what), "%s: round %d, `print(1)`",
			    stream ? "streamed" : "whole", i + 1);
		else
			(void)snprintf(what, sizeof(what), "%s: the request, %d rounds",
			    stream ? "streamed" : "whole", rounds);
		print_times(what, us[i], n);
		mem_free(us[i]);
	}
}

static void
warm_up(struct bench *x)
{
	struct trial t;

	x->rounds = 2;
	for (int i = 0; i < WARM_UP; i++) {
		wait_pool(x);
		(void)messages(x, &t, i % 2 == 0, NULL);
		peer_next(&x->client);
	}
}

static void
find_id(struct str body, struct str before, char ret[64])
{
	size_t at = str_find(body, before);
	struct str id = at != SIZE_MAX ? str_from(body, at + before.len) : STR_NULL;

	if (!str_copy(ret, 64, str_sub(id, 0, str_chr(id, '"'))) || ret[0] == '\0')
		bench_die("an answer names no file");
}

/* A CSV goes up, its copy comes out as another file and down again. */
static void
measure_journey(struct bench *x, size_t n)
{
	static const char *const names[] = {"upload of a CSV",
	    "… the request: the file in, one round, a file out", "… its download by id",
	    "the whole journey"};
	static const struct str form = STR_INIT(
	    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"sales.csv\"\r\n\r\n"
	    "month,revenue\nJan,120\nFeb,135\n\r\n--b--\r\n");
	int64_t *us[4], t0, t1, t3;
	struct trial t;
	char in[64], out[64], path[128];
	struct str body;

	x->rounds = 1;
	x->code = "open('chart.svg', 'w').write('<svg>' + open('sales.csv').read() + '</svg>')";
	for (size_t i = 0; i < 4; i++)
		us[i] = MEM_NEW_ARRAY(int64_t, n);
	for (size_t k = 0; k < n; k++) {
		wait_pool(x);
		write_request(x, "POST /v1/files", "multipart/form-data; boundary=b", form);
		t0 = clock_mono_us();
		body = peer_ask(&x->client, buf_str(&x->scratch));
		t1 = clock_mono_us();
		find_id(body, STR("\"id\":\""), in);
		peer_next(&x->client);
		find_id(messages(x, &t, false, in), STR("_output\",\"file_id\":\""), out);
		peer_next(&x->client);
		(void)snprintf(path, sizeof(path), "GET /v1/files/%s/content", out);
		write_request(x, path, "text/plain", STR(""));
		body = peer_ask(&x->client, buf_str(&x->scratch));
		t3 = clock_mono_us();
		if (!str_starts(body, STR("<svg>month,revenue")))
			bench_die("not the file that was made");
		peer_next(&x->client);
		us[0][k] = t1 - t0;
		us[1][k] = t.done - t.sent - model_time(&t);
		us[2][k] = t3 - t.done;
		us[3][k] = t3 - t0 - model_time(&t);
	}
	for (size_t i = 0; i < 4; i++) {
		print_times(names[i], us[i], n);
		mem_free(us[i]);
	}
}

/* The pool is full when it does not grow any more. */
static void
learn_pool(struct bench *x)
{
	for (int quiet = 0; quiet < 20; quiet++) {
		uint64_t n = pool_ready(x);

		if (n > x->pool) {
			x->pool = n;
			quiet = 0;
		}
		pause_ms(50);
	}
	if (x->pool == 0)
		bench_die("there is no pool of sessions");
}

int
main(int argc, char **argv)
{
	static struct bench x = {.code = "print(1)"};
	uint64_t n, model_ms;
	uint16_t port;
	unsigned gateway, admin;

	if (argc != 3 || !str_u64(str_c(argv[1]), &n) || n == 0 || n > 100000 ||
	    !str_u64(str_c(argv[2]), &model_ms) || model_ms > 10000) {
		(void)fputs("usage: bench-round N MODEL_MS\n", stderr);
		return 2;
	}
	x.model_ms = (int64_t)model_ms;
	x.listener = peer_listen(&port);
	for (size_t i = 0; i < CONNECTIONS; i++)
		x.provider[i].fd = -1;
	buf_init(&x.scratch, 1u << 20);
	(void)printf("%u\n", port);
	(void)fflush(stdout);
	if (scanf("%u %u %127s", &gateway, &admin, x.key) != 3)
		return 1;
	peer_connect(&x.client, (uint16_t)gateway);
	peer_connect(&x.admin, (uint16_t)admin);
	learn_pool(&x);
	warm_up(&x);
	(void)printf(
	    "| less the model's time, ms | p50 | p90 | p99 | n |\n|---|---|---|---|---|\n");
	measure_rounds(&x, (size_t)n, false, 0);
	measure_rounds(&x, (size_t)n, false, 2);
	measure_rounds(&x, (size_t)n, true, 2);
	measure_journey(&x, (size_t)n);
	return 0;
}
