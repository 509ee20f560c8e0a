#include <signal.h>
#include <stdio.h>

#include <event2/event.h>
#include <openssl/ssl.h>

#include "base/arena.h"
#include "base/mem.h"
#include "tests/unit/http_rig.h"
#include "worker/http/multipart.h"
#include "worker/http/uri.h"

/* The server's side: what each route does is in route_bodies() and route_replies(). */

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
	struct multipart *form;
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
	multipart_free(&j->form);
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

/* A form: the sizes of its parts, read with pauses. */
static void
form_resume(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;
	(void)fd;
	(void)what;
	if (multipart_resume(j->form, NULL) == ERR_OK && !multipart_is_paused(j->form))
		http_body_resume(j->x);
}

static bool
form_pause(struct job *j)
{
	if (++j->pieces % 64 != 1)
		return true;
	job_timer(j, form_resume, 1);
	return false;
}

static bool
form_begin(void *arg, const struct multipart_part *p)
{
	(void)p;
	return form_pause(arg);
}

static bool
form_data(void *arg, struct str bytes)
{
	struct job *j = arg;
	j->got += bytes.len;
	return form_pause(j);
}

static bool
form_end(void *arg)
{
	struct job *j = arg;
	j->left++;
	return form_pause(j);
}

static bool
form_body(void *arg, struct str bytes)
{
	struct job *j = arg;
	if (multipart_feed(j->form, bytes, NULL) == ERR_OK)
		return !multipart_is_paused(j->form);
	http_reply(j->x, 400, "text/plain", STR("bad form"));
	return true;
}

static void
form_body_end(void *arg, bool ok)
{
	struct job *j = arg;
	char text[64];
	/* The last callback may have paused behind the last byte. */
	while (multipart_is_paused(j->form))
		ok = multipart_resume(j->form, NULL) == ERR_OK && ok;
	if (!ok || multipart_end(j->form, NULL) != ERR_OK) {
		http_reply(j->x, 400, "text/plain", STR("bad form"));
		return;
	}
	int n = snprintf(text, sizeof(text), "%llu parts, %llu bytes\n",
	    (unsigned long long)j->left, (unsigned long long)j->got);
	http_reply(j->x, 200, "text/plain", str_n(text, (size_t)n));
}

static void
route_form(struct job *j)
{
	static const struct multipart_ops ops = {form_begin, form_data, form_end};
	static const struct http_body_sink sink = {form_body, form_body_end};
	if (multipart_new(http_header(j->x, "content-type"), &ops, j, &j->form, NULL) != ERR_OK)
		http_reply(j->x, 415, "text/plain", STR("not a form"));
	else
		http_body_stream(j->x, UINT64_MAX, &sink, j);
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
	http_reply_header(x, "X-Request-Id", STR("r1"));
	uint64_t max = number(x, "max");
	max = max != 0 ? max : UINT64_MAX;
	if (str_eq(path, STR("/form"))) {
		route_form(j);
	} else if (str_eq(path, STR("/whole"))) {
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
		http_reply_header(x, "X-Tes", STR("shorter"));
		if (h.ptr != NULL) {
			http_reply_header(x, "X-Test", STR("an older one"));
			http_reply_header(x, "X-Tests", STR("longer"));
			http_reply_header(x, "x-test", h);
		}
		http_reply(x, 200, "text/plain", STR("ok"));
	}
}

static void
on_request(void *arg, struct http_exchange *x)
{
	static const struct str bodies[] = {STR_INIT("/whole"), STR_INIT("/sink"),
	    STR_INIT("/echo"), STR_INIT("/slow-sink"), STR_INIT("/late-sink"), STR_INIT("/form")};
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
error_body(void *arg, struct http_exchange *x, int status, const char *reason, struct str path,
    char *dst, size_t size)
{
	(void)x;
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

int
rig_serve(const int listen_fds[2], const struct http_server_config *cfg, SSL_CTX *ctx,
    struct rig_stats *stats)
{
	static const struct http_server_ops ops = {on_request, on_finished, error_body};
	struct env e = {.base = event_base_new(), .stats = stats};
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
