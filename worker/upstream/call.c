#include "worker/upstream/call.h"

#include "base/buf.h"
#include "base/http_client.h"
#include "base/limits.h"
#include "base/mem.h"
#include "worker/http/http.h"
#include "worker/upstream/beta.h"
#include "worker/upstream/headers.h"

#define RETRIES 1

struct upstream_call {
	struct http_client *client;
	struct http_call *http;
	struct arena *arena;
	const struct target *target;
	const struct upstream_ops *ops;
	void *arg;
	struct http_call_spec spec;
	struct upstream_headers headers;
	struct buf error_body; /* of an answer that is not 2xx */
	unsigned attempts;
	bool is_accepted, has_head;
};

/* Headers of the client that mean something to a provider of the Messages wire. */
static void
add_clients(struct upstream_call *c, const struct http_exchange *from)
{
	const struct target *t = c->target;
	struct str version = http_header(from, "anthropic-version");
	if (version.ptr != NULL)
		upstream_header(
		    &c->headers, STR("anthropic-version"), arena_str(c->arena, version));
	upstream_header(&c->headers, STR("anthropic-beta"),
	    beta_header(c->arena, http_head(from), t->provider_type, t->runs_no_code));
}

static void
make_headers(struct upstream_call *c, bool stream, const struct http_exchange *from)
{
	upstream_headers_begin(&c->headers, c->arena, c->target, STR("application/json"),
	    stream ? STR("text/event-stream") : STR("application/json"));
	if (c->target->wire == WIRE_MESSAGES && from != NULL)
		add_clients(c, from);
	upstream_headers_end(&c->headers, c->target);
	c->spec.headers = c->headers.list;
	c->spec.header_count = c->headers.count;
}

static void
release(struct upstream_call *c)
{
	buf_done(&c->error_body);
	mem_free(c);
}

static void
on_head(void *arg, struct http_call *http, int status)
{
	struct upstream_call *c = arg;
	c->http = http;
	c->has_head = true;
	c->is_accepted = status >= 200 && status < 300;
	if (c->is_accepted)
		c->ops->on_accept(c->arg, c);
}

/* Frees c, then tells. */
static void
finish(struct upstream_call *c, const struct failure *f)
{
	const struct upstream_ops *ops = c->ops;
	void *arg = c->arg;
	release(c);
	ops->on_done(arg, f);
}

static void
refused(struct upstream_call *c, const struct http_call *http, struct failure *f)
{
	failure_from_status(c->arena, http_call_status(http), buf_str(&c->error_body),
	    http_call_header(http, "retry-after"), c->target, f);
}

static bool
on_data(void *arg, struct http_call *http, struct str bytes)
{
	struct upstream_call *c = arg;
	if (c->is_accepted)
		return c->ops->on_data(c->arg, bytes);
	size_t room = c->error_body.max - c->error_body.len;
	buf_add(&c->error_body, str_sub(bytes, 0, room));
	if (bytes.len > room) { /* enough is known; an error without an end is not waited for */
		struct failure f;
		refused(c, http, &f);
		http_call_cancel(&c->http);
		finish(c, &f);
	}
	return true;
}

static bool try_again(struct upstream_call *c);

static void
on_done(void *arg, struct http_call *http, const struct err *err)
{
	struct upstream_call *c = arg;
	struct failure f;
	c->http = NULL;
	if (err != NULL && err->code == ERR_UPSTREAM && !c->has_head && try_again(c))
		return;
	bool failed = err != NULL || !c->is_accepted;
	if (c->has_head && !c->is_accepted)
		refused(c, http, &f);
	else if (err != NULL)
		failure_from_err(c->arena, err, &f);
	finish(c, failed ? &f : NULL);
}

static const struct http_call_ops call_ops = {on_head, on_data, on_done};

static bool
try_again(struct upstream_call *c)
{
	if (c->attempts > RETRIES)
		return false;
	c->attempts++;
	return http_call_start(c->client, &c->spec, &call_ops, c, &c->http, NULL) == ERR_OK;
}

enum err_code
upstream_start(struct http_client *client, struct arena *a, const struct target *target,
    const char *path, struct str body, bool stream, const struct http_exchange *from,
    const struct upstream_ops *ops, void *arg, struct upstream_call **ret, struct err *reterr)
{
	struct upstream_call *c = MEM_NEW(struct upstream_call);
	c->client = client;
	c->arena = a;
	c->target = target;
	c->ops = ops;
	c->arg = arg;
	c->attempts = 1;
	buf_init(&c->error_body, LIMIT_UPSTREAM_ERROR_BYTES);
	c->spec = (struct http_call_spec){
	    .method = "POST",
	    .url = arena_printf(a, "%.*s%s", STR_FMT(target->api_base), path),
	    .body = body,
	    .connect_timeout_ms = target->connect_ms,
	    .first_byte_timeout_ms = target->first_byte_ms,
	    .idle_timeout_ms = target->idle_ms,
	    .proxy = target->proxy.len > 0 ? arena_cstr(a, target->proxy) : NULL,
	};
	make_headers(c, stream, from);
	enum err_code rc = http_call_start(client, &c->spec, &call_ops, c, &c->http, reterr);
	if (rc != ERR_OK) {
		release(c);
		return rc;
	}
	*ret = c;
	return ERR_OK;
}

void
upstream_cancel(struct upstream_call **cp)
{
	struct upstream_call *c = *cp;
	if (c == NULL)
		return;
	*cp = NULL;
	http_call_cancel(&c->http);
	release(c);
}

void
upstream_resume(struct upstream_call *c)
{
	if (c->http != NULL)
		http_call_resume(c->http);
}

bool
upstream_is_event_stream(const struct upstream_call *c)
{
	return str_starts_nocase(
	    str_trim(http_call_header(c->http, "content-type")), STR("text/event-stream"));
}

void
upstream_relay_headers(const struct upstream_call *c, struct http_exchange *to)
{
	static const char *const prefixes[] = {
	    "x-ratelimit-", "anthropic-ratelimit-", "retry-after", "x-should-retry"};
	size_t n;
	const struct http_client_header *h = http_call_headers(c->http, &n);
	for (size_t i = 0; i < n; i++) {
		if (h[i].value.len > 256 || str_chr(h[i].value, '\0') != SIZE_MAX)
			continue;
		for (size_t k = 0; k < ARRAY_LEN(prefixes); k++)
			if (str_starts_nocase(h[i].name, str_c(prefixes[k])))
				http_reply_header(to, arena_cstr(c->arena, h[i].name), h[i].value);
	}
}
