#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/clock.h"
#include "worker/http/conn.h"

/* Which clock runs in which state. While the handler works there is none: a model may think for
 * minutes; only a client that does not take what is there for it is timed then (the stall timer).
 */

static void
add_ms(struct event *ev, int64_t ms)
{
	const struct timeval tv = {ms / 1000, (ms % 1000) * 1000};
	(void)event_add(ev, &tv);
}

static enum http_conn_timer
wanted(const struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_TLS:
		return HTTP_TIMER_HANDSHAKE;
	case HTTP_CONN_IDLE:
		return HTTP_TIMER_IDLE;
	case HTTP_CONN_HEAD:
		return HTTP_TIMER_HEAD;
	case HTTP_CONN_EXCHANGE:
		return http_body_is_awaited(c->x) ? HTTP_TIMER_BODY : HTTP_TIMER_NONE;
	case HTTP_CONN_LINGER:
		return HTTP_TIMER_LINGER;
	}
	return HTTP_TIMER_NONE;
}

static int64_t
duration_ms(const struct http_conn *c, enum http_conn_timer kind)
{
	const struct http_server_config *cfg = &c->server->cfg;
	switch (kind) {
	case HTTP_TIMER_HANDSHAKE:
	case HTTP_TIMER_HEAD:
		return cfg->head_timeout_ms;
	case HTTP_TIMER_IDLE:
		/* A connection that was accepted just before the drain may bring its request. */
		if (c->server->is_draining)
			return 1000;
		return c->has_served ? cfg->idle_timeout_ms : cfg->head_timeout_ms;
	case HTTP_TIMER_BODY:
		return HTTP_BODY_WINDOW_MS;
	case HTTP_TIMER_LINGER:
		return HTTP_LINGER_MS;
	case HTTP_TIMER_NONE:
		break;
	}
	return 0;
}

void
http_conn_timers_update(struct http_conn *c)
{
	enum http_conn_timer kind = wanted(c);
	if (kind == c->timer_kind && (kind == HTTP_TIMER_NONE || c->serial == c->timer_serial))
		return;
	c->timer_kind = kind;
	c->timer_serial = c->serial;
	if (kind == HTTP_TIMER_NONE) {
		(void)event_del(&c->timer);
		return;
	}
	if (kind == HTTP_TIMER_BODY)
		c->window_bytes = c->x->body.got_bytes;
	add_ms(&c->timer, duration_ms(c, kind));
}

static void
head_is_late(struct http_conn *c)
{
	if (c->x->parser.raw.len == 0) { /* nothing but an empty line */
		c->is_gone = true;
		return;
	}
	c->must_linger = true;
	c->state = HTTP_CONN_EXCHANGE;
	http_exchange_refuse(c->x, 408, "request head not complete in time");
}

static void
body_window_ends(struct http_conn *c)
{
	struct http_exchange_body *b = &c->x->body;
	uint64_t least = (uint64_t)c->server->cfg.body_min_bytes_per_s * HTTP_BODY_WINDOW_MS / 1000;
	if (b->got_bytes - c->window_bytes >= least)
		return;
	if (b->mode == HTTP_BODY_DROP)
		c->is_gone = true;
	else
		http_body_fail(c->x, 408, "request body too slow");
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	(void)fd;
	(void)what;
	enum http_conn_timer kind = c->timer_kind;
	c->timer_kind = HTTP_TIMER_NONE;
	switch (kind) {
	case HTTP_TIMER_HEAD:
		head_is_late(c);
		break;
	case HTTP_TIMER_BODY:
		body_window_ends(c);
		break;
	case HTTP_TIMER_HANDSHAKE:
	case HTTP_TIMER_IDLE:
	case HTTP_TIMER_LINGER:
		c->is_gone = true;
		break;
	case HTTP_TIMER_NONE:
		break;
	}
	http_conn_pump(c);
}

/* Not re-armed at each write: it looks when bytes last went, and sleeps for the rest. */
static void
on_stall(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	(void)fd;
	(void)what;
	c->is_stall_armed = false;
	if (http_conn_unsent(c) == 0)
		return;
	int64_t left = c->progress_ms + c->server->cfg.write_stall_ms - clock_mono_ms();
	if (left > 0) {
		c->is_stall_armed = true;
		add_ms(&c->stall, left);
		return;
	}
	c->is_gone = true;
	http_conn_pump(c);
}

static void
on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_conn *c = arg;
	(void)out;
	if (info->n_deleted > 0 || info->orig_size == 0)
		c->progress_ms = clock_mono_ms();
	if (info->n_added > 0 && !c->is_stall_armed) {
		c->is_stall_armed = true;
		add_ms(&c->stall, c->server->cfg.write_stall_ms);
	}
}

void
http_conn_timers_init(struct http_conn *c)
{
	(void)evtimer_assign(&c->timer, c->server->base, on_timer, c);
	(void)evtimer_assign(&c->stall, c->server->base, on_stall, c);
	(void)evbuffer_add_cb(bufferevent_get_output(c->bev), on_output, c);
}

void
http_conn_timers_done(struct http_conn *c)
{
	(void)event_del(&c->timer);
	(void)event_del(&c->stall);
	(void)evbuffer_remove_cb(bufferevent_get_output(c->bev), on_output, c);
}
