#include "base/check.h"
#include "worker/code/remote.h"

static void
set_late(struct event *ev, uint32_t ms)
{
	struct timeval t = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
	(void)event_add(ev, &t);
}

static void
finish(struct remote_call *c, int status, const struct err *err)
{
	(void)event_del(c->late);
	c->http = NULL;
	/* Not kept until the next call; and this one may be freed, or started again. */
	struct buf answer = c->answer;
	buf_init(&c->answer, 0);
	c->done(c->arg, status, buf_str(&answer), err);
	buf_done(&answer);
}

static bool
on_data(void *arg, struct http_call *http, struct str bytes)
{
	struct remote_call *c = arg;
	(void)http;
	buf_add(&c->answer, bytes);
	if (c->answer.overflowed && !c->is_too_large) {
		c->is_too_large = true;
		event_active(c->late, EV_TIMEOUT, 0); /* not inside libcurl */
	}
	return !c->is_too_large;
}

static void
on_done(void *arg, struct http_call *http, const struct err *err)
{
	struct remote_call *c = arg;
	c->retry_after_s = protocol_retry_after_s(http_call_header(http, "retry-after"));
	finish(c, http_call_status(http), err);
}

/* Too late, too large, or never started. */
static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct remote_call *c = arg;
	struct err e;
	if (c->refused.code != ERR_OK)
		e = c->refused;
	else if (c->is_too_large)
		(void)err_set(&e, ERR_PROTO, "the sandbox's answer is too large");
	else if (c->http != NULL)
		(void)err_set(&e, ERR_TIMEOUT, "the sandbox does not answer");
	else
		(void)err_set(&e, ERR_UPSTREAM, "the sandbox cannot be called");
	http_call_cancel(&c->http);
	finish(c, 0, &e);
}

void
remote_call_init(struct remote_call *c, struct event_base *base, void *arg)
{
	*c = (struct remote_call){.arg = arg};
	buf_init(&c->request, 8u * CODE_SOURCE_MAX);
	c->late = evtimer_new(base, on_late, c);
	CHECK(c->late != NULL);
}

void
remote_call_cancel(struct remote_call *c)
{
	http_call_cancel(&c->http);
	(void)event_del(c->late);
}

void
remote_call_done(struct remote_call *c)
{
	remote_call_cancel(c);
	event_free(c->late);
	buf_done(&c->request);
	buf_done(&c->answer);
}

void
remote_call_start(struct remote_call *c, struct remote_backend *b, const struct remote_ask *ask,
    void (*done)(void *arg, int status, struct str answer, const struct err *err))
{
	static const struct http_call_ops ops = {NULL, on_data, on_done};
	struct http_client_header headers[2];
	size_t n = 0;
	struct err e;
	CHECK(c->http == NULL);
	if (b->authorization != NULL)
		headers[n++] =
		    (struct http_client_header){STR("Authorization"), str_c(b->authorization)};
	if (ask->content_type.len > 0)
		headers[n++] = (struct http_client_header){STR("Content-Type"), ask->content_type};
	struct http_call_spec spec = {
	    .method = ask->method,
	    .url = ask->url,
	    .headers = headers,
	    .header_count = n,
	    .body = buf_str(&c->request),
	    .read_body = ask->read_body,
	    .body_bytes = (int64_t)ask->body_bytes,
	    .ca_file = b->ca_file,
	    .connect_timeout_ms = REMOTE_CONNECT_MS,
	};
	buf_done(&c->answer);
	buf_init(&c->answer, ask->max_answer);
	c->is_too_large = false;
	c->refused = (struct err){0};
	c->retry_after_s = 0;
	c->done = done;
	if (http_call_start(b->client, &spec, &ops, c, &c->http, &e) == ERR_OK) {
		set_late(c->late, ask->timeout_ms);
		return;
	}
	c->http = NULL;
	event_active(c->late, EV_TIMEOUT, 0);
}

void
remote_call_refuse(struct remote_call *c, const struct err *e,
    void (*done)(void *arg, int status, struct str answer, const struct err *err))
{
	CHECK(c->http == NULL);
	c->refused = *e;
	c->done = done;
	event_active(c->late, EV_TIMEOUT, 0);
}

enum err_code
remote_status_error(int status, struct err *ret)
{
	switch (status) {
	case 400:
	case 422:
		return err_set(
		    ret, ERR_UNSUPPORTED, "the sandbox does not run this (status %d)", status);
	case 404:
	case 410:
		return err_set(ret, ERR_NOTFOUND, "the sandbox has no such session any more");
	case 413:
		return err_set(ret, ERR_TOOLARGE, "the sandbox says that it is too large");
	case 429:
	case 503:
		return err_set(ret, ERR_BUSY, "the sandbox has no room now");
	default:
		return err_set(ret, ERR_UPSTREAM, "the sandbox answered with status %d", status);
	}
}
