#include "tools/otarictl/remote.h"

#include <signal.h>
#include <stdio.h>

#include <event2/event.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/http_client.h"
#include "base/json.h"

#define TIMEOUT_MS       5000u
#define ANSWER_MAX_BYTES (64u * 1024u)

struct asked {
	struct event_base *base;
	struct buf body;
	int status;
	struct err err;
};

static bool
on_data(void *arg, struct http_call *c, struct str bytes)
{
	(void)c;
	buf_add(&((struct asked *)arg)->body, bytes);
	return true;
}

static void
on_done(void *arg, struct http_call *c, const struct err *err)
{
	struct asked *q = arg;
	q->status = http_call_status(c);
	if (err != NULL)
		q->err = *err;
	(void)event_base_loopbreak(q->base);
}

static void
ask(struct asked *q, struct str url)
{
	static const struct http_call_ops ops = {NULL, on_data, on_done};
	struct http_client *client = NULL;
	struct http_call *call;
	struct buf health = BUF_INIT(8192);
	const struct timeval limit = {2 * TIMEOUT_MS / 1000, 0};
	buf_printf(&health, "%.*s/health", STR_FMT(url));
	const struct http_call_spec spec = {
	    .method = "GET",
	    .url = buf_str(&health),
	    .connect_timeout_ms = TIMEOUT_MS,
	    .first_byte_timeout_ms = TIMEOUT_MS,
	    .idle_timeout_ms = TIMEOUT_MS,
	};
	if (http_client_new(q->base, &client, &q->err) == ERR_OK &&
	    http_call_start(client, &spec, &ops, q, &call, &q->err) == ERR_OK) {
		(void)event_base_loopexit(q->base, &limit);
		(void)event_base_dispatch(q->base);
		if (q->status == 0 && q->err.code == ERR_OK)
			(void)err_set(&q->err, ERR_TIMEOUT, "no answer in time");
	}
	http_client_free(&client);
	buf_done(&health);
}

/* One of ours says what it is; others need not have this path. */
static void
show_answer(const struct asked *q)
{
	struct arena *a = arena_new(1u << 20);
	struct jval root = JV_ABSENT;
	struct str server = STR(""), status = STR("");
	if (q->status == 200 && jdoc_parse(a, buf_str(&q->body), &root, NULL) == ERR_OK) {
		server = jv_str(a, jv_get(root, "server"));
		status = jv_str(a, jv_get(root, "status"));
	}
	if (server.len > 0)
		(void)printf("reachable: %.*s, protocol %lld, %.*s\n", STR_FMT(server),
		    (long long)jv_i64_or(jv_get(root, "protocol_version"), 0), STR_FMT(status));
	else if (q->status == 401)
		(void)printf("reachable; it wants a token, which the workers have\n");
	else
		(void)printf("reachable (it answers /health with status %d)\n", q->status);
	arena_free(&a);
}

int
remote_show(struct str url)
{
	struct asked q = {.base = event_base_new()};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
	buf_init(&q.body, ANSWER_MAX_BYTES);
	(void)printf("sandbox: remote, %.*s\n", STR_FMT(url));
	ask(&q, url);
	bool is_there = q.status != 0;
	if (is_there)
		show_answer(&q);
	else
		(void)printf("not reachable: %s\n", q.err.msg);
	buf_done(&q.body);
	event_base_free(q.base);
	return is_there ? 0 : 1;
}
