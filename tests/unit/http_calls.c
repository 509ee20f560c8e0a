#include "tests/unit/http_calls.h"

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <event2/event.h>

static void
stop_if_last(struct got *g)
{
	if (g->running == NULL || --*g->running == 0)
		event_base_loopbreak(g->base);
}

static void
maybe_cancel(struct got *g, enum cancel_at at)
{
	if (g->cancel_at != at)
		return;
	http_call_cancel(&g->victim);
	http_call_cancel(&g->call);
	if (at != CANCEL_IN_DONE)
		stop_if_last(g);
}

static void
got_head(void *arg, struct http_call *c, int status)
{
	struct got *g = arg;
	g->heads++;
	g->status = status;
	cr_assert(http_call_status(c) == status && g->dones == 0);
	maybe_cancel(g, CANCEL_IN_HEAD);
}

static void
resume(evutil_socket_t fd, short what, void *arg)
{
	struct got *g = arg;
	(void)fd;
	(void)what;
	if (g->call == NULL)
		return;
	http_call_resume(g->call);
	http_call_resume_upload(g->call);
}

static void
resume_in_ms(struct got *g, int ms)
{
	if (g->timer == NULL)
		g->timer = evtimer_new(g->base, resume, g);
	event_add(g->timer, &(struct timeval){ms / 1000, ms % 1000 * 1000});
}

static bool
got_data(void *arg, struct http_call *c, struct str bytes)
{
	struct got *g = arg;
	cr_assert(g->heads == 1 && g->dones == 0 && bytes.len > 0);
	if (g->pause && ++g->pauses % 2 == 1) {
		if (g->pauses % 4 == 1)
			http_call_resume(c); /* from inside: must not be lost */
		else
			resume_in_ms(g, 1);
		return false;
	}
	if (g->pause_once && g->pauses++ == 0) {
		resume_in_ms(g, 700);
		return false;
	}
	g->body_bytes += bytes.len;
	if (g->keep)
		buf_add(&g->body, bytes);
	maybe_cancel(g, CANCEL_IN_DATA);
	return true;
}

static void
got_done(void *arg, struct http_call *c, const struct err *err)
{
	struct got *g = arg;
	cr_assert(++g->dones == 1);
	g->ok = err == NULL;
	if (err != NULL)
		g->err = *err;
	if (g->expect_header.ptr != NULL)
		cr_assert(
		    str_eq(http_call_header(c, "x-TEST"), g->expect_header), "%s", g->err.msg);
	maybe_cancel(g, CANCEL_IN_DONE);
	g->call = NULL;
	stop_if_last(g);
}

ssize_t
got_give(void *arg, char *dst, size_t n)
{
	struct got *g = arg;
	maybe_cancel(g, CANCEL_IN_UPLOAD);
	if (g->upload_abort && g->upload_given > 100000)
		return -1;
	if (g->upload_pause && ++g->pauses % 3 == 1) {
		resume_in_ms(g, 1);
		return -2;
	}
	n = n < g->upload_left ? n : g->upload_left;
	memset(dst, 'u', n);
	g->upload_left -= n;
	g->upload_given += n;
	return (ssize_t)n;
}

const struct http_call_ops got_ops = {got_head, got_data, got_done};

void
bench_start_with(struct bench *b, const struct http_server_config *cfg, bool tls)
{
	rig_start(&b->rig, cfg, tls);
	b->base = event_base_new();
	cr_assert(http_client_new(b->base, &b->client, NULL) == ERR_OK);
}

void
bench_start(struct bench *b)
{
	bench_start_with(b, NULL, false);
}

void
bench_stop(struct bench *b)
{
	http_client_free(&b->client);
	event_base_free(b->base);
	rig_stop(&b->rig);
}

void
got_init(struct got *g, struct bench *b)
{
	memset(g, 0, sizeof(*g));
	g->base = b->base;
	g->keep = true;
	buf_init(&g->body, 64u << 20);
}

void
got_end(struct got *g)
{
	if (g->timer != NULL)
		event_free(g->timer);
	g->timer = NULL;
	buf_done(&g->body);
}

void
got_begin(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec)
{
	char url[256];
	struct err e;
	(void)snprintf(url, sizeof(url), "http%s://127.0.0.1:%d%s",
	    b->rig.ca_path[0] != '\0' ? "s" : "", b->rig.port, path);
	spec.method = method;
	spec.url = str_c(url);
	cr_assert(
	    http_call_start(b->client, &spec, &got_ops, g, &g->call, &e) == ERR_OK, "%s", e.msg);
	cr_assert(g->heads == 0 && g->dones == 0);
}

void
got_run(struct bench *b, struct got *g, const char *method, const char *path,
    struct http_call_spec spec)
{
	got_begin(b, g, method, path, spec);
	event_base_dispatch(b->base);
}
