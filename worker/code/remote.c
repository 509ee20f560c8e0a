#include "worker/code/remote.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/http/uri.h"

#define FAREWELL_MS  10000u
#define ARENA_SMALL  (1u << 20)
#define TOKEN_PREFIX "Bearer "

static struct remote_backend *
backend_of(const struct remote_open *o)
{
	return (struct remote_backend *)o->port.backend;
}

/* --- farewell -------------------------------------------------------------------------------- */

static void
farewell_free(struct remote_farewell *f)
{
	TAILQ_REMOVE(&f->backend->farewells, f, link);
	f->backend->left_count--;
	remote_call_done(&f->call);
	event_free(f->turn);
	mem_free(f->url);
	mem_free(f);
}

static void
on_deleted(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_farewell *f = arg;
	(void)answer;
	if (err != NULL)
		log_notice("a remote code session was not closed", LOG_ERR(err));
	else if (status >= 300 && status != 404 && status != 410)
		log_notice("a remote code session was not closed", LOG_INT("status", status));
	farewell_free(f);
}

static void
on_farewell(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct remote_farewell *f = arg;
	const struct remote_ask ask = {.method = "DELETE",
	    .url = str_c(f->url),
	    .max_answer = PROTOCOL_SESSION_MAX_BYTES,
	    .timeout_ms = FAREWELL_MS};
	remote_call_start(&f->call, f->backend, &ask, on_deleted);
}

/* From the loop: a session may be closed inside libcurl. */
void
remote_delete(struct remote_backend *b, struct str session_url)
{
	struct remote_farewell *f = MEM_NEW(struct remote_farewell);
	f->backend = b;
	f->url = mem_strndup(session_url.ptr, session_url.len);
	f->turn = event_new(b->port.base, -1, 0, on_farewell, f);
	CHECK(f->turn != NULL);
	remote_call_init(&f->call, b->port.base, f);
	TAILQ_INSERT_TAIL(&b->farewells, f, link);
	b->left_count++;
	event_active(f->turn, EV_TIMEOUT, 0);
}

/* --- opening --------------------------------------------------------------------------------- */

static void
open_free(struct remote_open *o)
{
	TAILQ_REMOVE(&backend_of(o)->opens, o, link);
	backend_of(o)->left_count -= o->is_orphan ? 1 : 0;
	remote_call_done(&o->call);
	mem_free(o);
}

static void
open_failed(struct remote_open *o, const struct err *e)
{
	code_on_open *on_open = o->is_orphan ? NULL : o->port.on_open;
	void *arg = o->port.arg;
	open_free(o);
	if (on_open != NULL)
		on_open(NULL, e, arg);
}

static void
open_succeeded(struct remote_open *o, struct str id)
{
	code_on_open *on_open = o->port.on_open;
	void *arg = o->port.arg;
	bool is_orphan = o->is_orphan;
	struct code_session *s = remote_session_new(backend_of(o), id);
	open_free(o);
	if (is_orphan)
		code_session_close(&s);
	else
		on_open(s, NULL, arg);
}

static void
on_created(void *arg, int status, struct str answer, const struct err *err)
{
	struct remote_open *o = arg;
	struct err e;
	if (err == NULL && (status < 200 || status > 299)) {
		(void)remote_status_error(status, &e);
		o->port.backend->retry_after_s = o->call.retry_after_s;
		/* There is no session yet that could be missing, and nothing that could be wrong
		 * about the request but the contract. */
		if (e.code != ERR_BUSY)
			(void)err_set(
			    &e, ERR_UPSTREAM, "the sandbox answered with status %d", status);
		err = &e;
	}
	if (err != NULL) {
		open_failed(o, err);
		return;
	}
	struct arena *a = arena_new(ARENA_SMALL);
	struct str id;
	uint32_t kinds;
	if (protocol_read_session(a, answer, &id, &kinds, &e) == ERR_OK) {
		backend_of(o)->kinds_said = kinds;
		open_succeeded(o, id);
	} else {
		err_prefix(&e, "the sandbox broke the protocol: ");
		open_failed(o, &e);
	}
	arena_free(&a);
}

static struct code_open *
remote_open(struct code_backend *port, struct str workspace, struct str image, uint32_t queue_ms,
    code_on_open *on_open, void *arg)
{
	struct remote_backend *b = (struct remote_backend *)port;
	struct remote_open *o = MEM_NEW(struct remote_open);
	(void)workspace; /* the protocol has none */
	o->port = (struct code_open){port, on_open, arg};
	remote_call_init(&o->call, port->base, o);
	TAILQ_INSERT_TAIL(&b->opens, o, link);
	if (b->left_count >= REMOTE_LEFT_MAX) { /* else who comes and goes fills all connections */
		struct err e;
		(void)err_set(&e, ERR_BUSY, "the sandbox does not keep up");
		remote_call_refuse(&o->call, &e, on_created);
		return &o->port;
	}
	struct buf url = BUF_INIT(4096);
	buf_printf(&url, "%s/sessions", b->url);
	protocol_write_create(image, &o->call.request);
	const struct remote_ask ask = {.method = "POST",
	    .url = buf_str(&url),
	    .content_type = STR("application/json"),
	    .max_answer = PROTOCOL_SESSION_MAX_BYTES,
	    .timeout_ms = queue_ms + REMOTE_ANSWER_MS};
	remote_call_start(&o->call, b, &ask, on_created);
	buf_done(&url);
	return &o->port;
}

/* The answer is waited for all the same: the session that it names must be deleted. */
static void
remote_open_cancel(struct code_open *port)
{
	struct remote_open *o = (struct remote_open *)port;
	o->is_orphan = true;
	backend_of(o)->left_count++;
}

/* --- backend --------------------------------------------------------------------------------- */

static bool
remote_ready(const struct code_backend *port, struct str *ret_why_not)
{
	(void)port, (void)ret_why_not;
	return true; /* known when a session is opened, which is before the model is asked */
}

static bool
remote_is_idle(const struct code_backend *port)
{
	const struct remote_backend *b = (const struct remote_backend *)port;
	return TAILQ_EMPTY(&b->opens) && TAILQ_EMPTY(&b->farewells);
}

static void
remote_free(struct code_backend *port)
{
	struct remote_backend *b = (struct remote_backend *)port;
	struct remote_open *o;
	struct remote_farewell *f;
	while ((o = TAILQ_FIRST(&b->opens)) != NULL) {
		CHECK(o->is_orphan);
		open_free(o);
	}
	while ((f = TAILQ_FIRST(&b->farewells)) != NULL)
		farewell_free(f);
	if (b->authorization != NULL)
		mem_wipe(b->authorization, str_c(b->authorization).len);
	mem_free(b->authorization);
	mem_free(b->ca_file);
	mem_free(b->url);
	mem_free(b);
}

static size_t
remote_in_flight(const struct code_session *s)
{
	(void)s;
	return 0; /* libcurl asks for bytes when it can send them */
}

static const struct code_backend_ops remote_ops = {
    .opens_early = true,
    .free = remote_free,
    .ready = remote_ready,
    .kinds = remote_kinds,
    .is_idle = remote_is_idle,
    .open = remote_open,
    .open_cancel = remote_open_cancel,
    .start = remote_session_start,
    .more = remote_put_more,
    .in_flight = remote_in_flight,
    .fail = remote_session_fail,
    .go_on = remote_session_go_on,
    .paused = remote_session_paused,
    .resumed = remote_session_resumed,
    .stop = remote_session_stop,
    .close = remote_session_close,
};

static char *
copy_text(struct str s)
{
	return s.len > 0 ? mem_strndup(s.ptr, s.len) : NULL;
}

struct code_backend *
code_backend_new_remote(struct event_base *base, struct http_client *client,
    const struct code_remote *r, const struct code_config *cfg)
{
	struct remote_backend *b = MEM_NEW(struct remote_backend);
	struct str url = r->url;
	code_backend_init(&b->port, &remote_ops, base, cfg);
	TAILQ_INIT(&b->opens);
	TAILQ_INIT(&b->farewells);
	b->client = client;
	while (str_ends(url, STR("/")))
		url.len--;
	b->url = mem_strndup(url.ptr, url.len);
	b->ca_file = copy_text(r->ca_file);
	if (r->token.len > 0) {
		struct buf line = BUF_INIT(16384);
		buf_printf(&line, TOKEN_PREFIX "%.*s", STR_FMT(r->token));
		b->authorization = copy_text(buf_str(&line));
		mem_wipe(line.ptr, line.len);
		buf_done(&line);
	}
	return &b->port;
}
