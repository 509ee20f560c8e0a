#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/http_client_impl.h"
#include "base/mem.h"

/* --- clocks ---
 * One clock runs at a time: until the head, first_byte; then idle, fed by every piece. It is looked
 * at when its time could be up, not set anew at each piece, and stands while the caller has paused.
 */

static bool
clock_stands(const struct http_call *c)
{
	return c->status == 0 ? c->is_upload_paused : c->is_paused;
}

void
http_call_clock_start(struct http_call *c)
{
	int64_t limit = c->status == 0 ? c->first_byte_timeout_ms : c->idle_timeout_ms;
	if (limit == 0 || clock_stands(c)) {
		(void)evtimer_del(&c->timer);
		return;
	}
	c->clock_ms = clock_mono_ms();
	int64_t left = c->status == 0 ? limit - c->spent_ms : limit;
	const struct timeval tv = {left > 0 ? left / 1000 : 0, left > 0 ? left % 1000 * 1000 : 0};
	(void)evtimer_add(&c->timer, &tv);
}

static void
on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *c = arg;
	(void)fd;
	(void)what;
	if (clock_stands(c))
		return;
	int64_t limit = c->status == 0 ? c->first_byte_timeout_ms : c->idle_timeout_ms;
	int64_t spent = clock_mono_ms() - c->clock_ms + (c->status == 0 ? c->spent_ms : 0);
	if (spent < limit) {
		const struct timeval tv = {(limit - spent) / 1000, (limit - spent) % 1000 * 1000};
		(void)evtimer_add(&c->timer, &tv);
		return;
	}
	http_call_finish(c, CURLE_OPERATION_TIMEDOUT);
}

static void
call_later(struct http_call *c)
{
	event_active(&c->later, EV_TIMEOUT, 0);
}

/* --- libcurl's callbacks --- */

/* What a caller may put into a header of its own: a token, and text without control characters. */
static bool
is_plain_header(struct str name, struct str value)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] <= ' ' || name.ptr[i] > '~' ||
		    strchr("\"(),/;<=>?@[\\]{}", name.ptr[i]))
			return false;
	for (size_t i = 0; i < value.len; i++)
		if (((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t') ||
		    value.ptr[i] == 0x7f)
			return false;
	return name.len > 0;
}

/* Lines that are no headers are left out: libcurl has judged already what matters for framing. */
static bool
add_header(struct http_call *c, struct str line)
{
	size_t colon = str_chr(line, ':');
	if (colon == SIZE_MAX)
		return true;
	struct str name = str_sub(line, 0, colon), value = str_trim(str_from(line, colon + 1));
	if (!is_plain_header(name, value))
		return true;
	if (c->header_count == CALL_HEADERS_MAX || c->head.len + line.len > CALL_HEAD_MAX_BYTES) {
		c->is_head_too_large = true;
		return false;
	}
	c->spans[c->header_count++] = (struct call_span){(unsigned)c->head.len, (unsigned)colon,
	    (unsigned)(c->head.len + colon), (unsigned)value.len};
	buf_add(&c->head, name);
	buf_add(&c->head, value);
	return true;
}

static void
head_is_complete(struct http_call *c, long status)
{
	for (size_t i = 0; i < c->header_count; i++) {
		const struct call_span *s = &c->spans[i];
		c->headers[i] =
		    (struct http_client_header){str_n(c->head.ptr + s->name, s->name_len),
			str_n(c->head.ptr + s->value, s->value_len)};
	}
	c->status = (int)status;
	http_call_clock_start(c);
	if (c->ops->on_head != NULL)
		c->ops->on_head(c->arg, c, c->status);
}

static size_t
on_header_line(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	struct str line = str_trim(str_n(p, n));
	(void)size;
	if (c->is_cancelled)
		return 0;
	if (c->status != 0) /* trailers */
		return n;
	if (str_starts(line, STR("HTTP/"))) { /* the next head: 1xx ones came before */
		c->header_count = 0;
		buf_clear(&c->head);
	} else if (line.len > 0) {
		return add_header(c, line) ? n : 0;
	} else {
		long status = 0;
		(void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
		if (status >= 200)
			head_is_complete(c, status);
	}
	return c->is_cancelled ? 0 : n;
}

static size_t
on_body(char *p, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	(void)size;
	if (c->is_cancelled || c->status == 0)
		return CURL_WRITEFUNC_ERROR;
	if (c->is_paused)
		return CURL_WRITEFUNC_PAUSE;
	c->clock_ms = clock_mono_ms();
	c->wants_resume = false;
	bool goes_on = c->ops->on_data == NULL || c->ops->on_data(c->arg, c, str_n(p, n));
	if (c->is_cancelled)
		return CURL_WRITEFUNC_ERROR;
	if (goes_on)
		return n;
	c->is_paused = true;
	if (c->wants_resume) /* said inside on_data */
		call_later(c);
	return CURL_WRITEFUNC_PAUSE;
}

static size_t
on_upload(char *dst, size_t size, size_t n, void *arg)
{
	struct http_call *c = arg;
	if (c->is_cancelled)
		return CURL_READFUNC_ABORT;
	c->wants_upload_resume = false;
	ssize_t got = c->read_body(c->arg, dst, size * n);
	if (c->is_cancelled || got == -1)
		return CURL_READFUNC_ABORT;
	if (got >= 0) {
		CHECK((size_t)got <= size * n);
		return (size_t)got;
	}
	c->is_upload_paused = true;
	if (c->status == 0)
		c->spent_ms += clock_mono_ms() - c->clock_ms;
	if (c->wants_upload_resume)
		call_later(c);
	return CURL_READFUNC_PAUSE;
}

static int
on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg;
	(void)purpose;
	return fd_set_cloexec(fd, true) ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR;
}

void
http_call_set_callbacks(struct http_call *c)
{
	CURL *e = c->easy;
	(void)curl_easy_setopt(e, CURLOPT_PRIVATE, c);
	(void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header_line);
	(void)curl_easy_setopt(e, CURLOPT_HEADERDATA, c);
	(void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	(void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_upload);
	(void)curl_easy_setopt(e, CURLOPT_READDATA, c);
	(void)curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
}

/* --- end --- */

void
http_call_destroy(struct http_call *c)
{
	CHECK_MAGIC(c, HTTP_CALL_MAGIC);
	struct http_client *client = c->client;
	(void)evtimer_del(&c->timer);
	(void)event_del(&c->later);
	if (c->is_added) {
		http_client_enter(client);
		(void)curl_multi_remove_handle(client->multi, c->easy);
		client->depth--;
		TAILQ_REMOVE(&client->calls, c, link);
	}
	if (c->easy != NULL)
		curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->fields);
	buf_done(&c->head);
	c->magic = 0;
	mem_free(c);
}

/* What went wrong, for the operator: no URL and nothing that the peer sent. */
static void
describe(struct http_call *c, CURLcode code, struct err *e)
{
	long sys = 0;
	(void)curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &sys);
	if (c->is_head_too_large)
		(void)err_set(e, ERR_UPSTREAM, "%s: response head too large", c->label);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		(void)err_set(e, ERR_TIMEOUT, "%s: %s", c->label,
		    c->status != 0 ? "no bytes for too long" : "no answer in time");
	else if (code == CURLE_ABORTED_BY_CALLBACK)
		(void)err_set(e, ERR_INPUT, "%s: the request body broke off", c->label);
	else if (code == CURLE_OK)
		(void)err_set(e, ERR_UPSTREAM, "%s: no HTTP answer", c->label);
	else
		(void)err_set(e, ERR_UPSTREAM, "%s: %s%s%s", c->label, curl_easy_strerror(code),
		    sys != 0 ? ": " : "", sys != 0 ? strerror((int)sys) : "");
}

void
http_call_finish(struct http_call *c, CURLcode code)
{
	CHECK_MAGIC(c, HTTP_CALL_MAGIC);
	struct err e;
	bool ok = code == CURLE_OK && c->status != 0;
	if (!c->is_cancelled) {
		if (!ok)
			describe(c, code, &e);
		c->is_finishing = true;
		(void)evtimer_del(&c->timer);
		(void)event_del(&c->later);
		if (c->ops->on_done != NULL)
			c->ops->on_done(c->arg, c, ok ? NULL : &e);
	}
	http_call_destroy(c);
}

static void
resume(struct http_call *c)
{
	bool is_down = c->is_paused && c->wants_resume;
	bool is_up = c->is_upload_paused && c->wants_upload_resume;
	c->wants_resume = c->wants_upload_resume = false;
	if (!is_down && !is_up)
		return;
	if (is_down)
		c->is_paused = false;
	if (is_up)
		c->is_upload_paused = false;
	http_call_clock_start(c);
	struct http_client *client = c->client;
	http_client_enter(client);
	/* It may call the body callback right here, which may pause or cancel again. */
	CURLcode code = curl_easy_pause(c->easy,
	    (c->is_paused ? CURLPAUSE_RECV : 0) | (c->is_upload_paused ? CURLPAUSE_SEND : 0));
	client->depth--;
	if (code != CURLE_OK || c->is_cancelled)
		http_call_finish(c, code);
}

static void
on_later(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *c = arg;
	(void)fd;
	(void)what;
	if (c->is_cancelled)
		http_call_destroy(c);
	else
		resume(c);
}

void
http_call_init_events(struct http_call *c)
{
	(void)evtimer_assign(&c->timer, c->client->base, on_clock, c);
	(void)event_assign(&c->later, c->client->base, -1, 0, on_later, c);
}

void
http_call_cancel(struct http_call **cp)
{
	struct http_call *c = *cp;
	*cp = NULL;
	if (c == NULL)
		return;
	CHECK_MAGIC(c, HTTP_CALL_MAGIC);
	if (c->is_finishing || c->is_cancelled)
		return;
	c->is_cancelled = true;
	(void)evtimer_del(&c->timer);
	if (c->client->depth > 0)
		call_later(c);
	else
		http_call_destroy(c);
}

void
http_call_resume(struct http_call *c)
{
	CHECK_MAGIC(c, HTTP_CALL_MAGIC);
	c->wants_resume = true;
	if (c->is_paused && !c->is_cancelled && !c->is_finishing)
		call_later(c);
}

void
http_call_resume_upload(struct http_call *c)
{
	CHECK_MAGIC(c, HTTP_CALL_MAGIC);
	c->wants_upload_resume = true;
	if (c->is_upload_paused && !c->is_cancelled && !c->is_finishing)
		call_later(c);
}

/* --- answer --- */

struct str
http_call_header(const struct http_call *c, const char *name)
{
	struct str want = str_c(name);
	for (size_t i = 0; c->status != 0 && i < c->header_count; i++)
		if (str_eq_nocase(c->headers[i].name, want))
			return c->headers[i].value;
	return STR_NULL;
}

const struct http_client_header *
http_call_headers(const struct http_call *c, size_t *ret_count)
{
	*ret_count = c->status != 0 ? c->header_count : 0;
	return c->headers;
}

int
http_call_status(const struct http_call *c)
{
	return c->status;
}
