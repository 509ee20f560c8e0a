/* The files of an exec, one after the other, within the limits: by what the listing says, by what
 * the answer announces, and by what arrives. */
#include "base/check.h"
#include "base/clock.h"
#include "sandbox/collect/select.h"
#include "worker/code/remote.h"
#include "worker/http/uri.h"

/* All of one call, also while their reader pauses: so long a sandbox may keep a request waiting. */
#define FILES_MS 600000u

static const struct code_op *
running(struct remote_session *s)
{
	return code_session_op(&s->port);
}

void
remote_omit(struct remote_session *s, const struct remote_candidate *c, enum code_omit why)
{
	uint64_t size = c->size != UINT64_MAX ? c->size : 0;
	/* A model is told of as many as of its own host's. */
	if (s->omitted_total++ < COLLECT_LISTED_MAX)
		s->omitted[s->omitted_count++] = (struct code_omitted){c->name, size, why};
}

/* The file under way has come to an end, of whatever kind. The next one begins from the loop. */
static void
end_file(struct remote_session *s, bool is_whole, enum code_omit why)
{
	struct remote_fetch *f = &s->fetch;
	const struct code_op *op = running(s);
	(void)event_del(f->late);
	http_call_cancel(&f->http);
	f->is_over = true;
	if (!f->is_begun)
		remote_omit(s, &s->candidates[s->next - 1], why);
	bool is_told = f->is_begun && !f->is_skipped;
	f->is_begun = false;
	if (is_whole && is_told)
		s->bytes_left -= f->got;
	if (is_told)
		op->ops->file_end(op->arg, is_whole);
	if (!s->port.is_closed)
		code_session_turn(&s->port);
}

void
remote_fetch_stop(struct remote_session *s)
{
	struct remote_fetch *f = &s->fetch;
	const struct code_op *op = running(s);
	bool is_told = f->is_begun && !f->is_skipped;
	(void)event_del(f->late);
	http_call_cancel(&f->http);
	f->is_begun = f->has_ended = f->is_over = false;
	if (is_told && op != NULL && !s->port.is_closed)
		op->ops->file_end(op->arg, false);
}

/* --- the answer ------------------------------------------------------------------------------ */

static uint64_t
announced(const struct http_call *c)
{
	uint64_t n;
	struct str h = http_call_header(c, "content-length");
	return h.ptr != NULL && str_u64(h, &n) ? n : UINT64_MAX;
}

/* The reader hears of a file with its first byte, or with the end of one that has none. */
static void
begin(struct remote_session *s)
{
	struct remote_fetch *f = &s->fetch;
	const struct code_op *op = running(s);
	if (f->is_begun)
		return;
	f->is_begun = true;
	f->is_skipped =
	    !op->ops->file_begin(op->arg, s->candidates[s->next - 1].name, f->announced);
	if (f->is_skipped && !s->port.is_closed)
		end_file(s, true, CODE_OMIT_UNREADABLE);
}

void
remote_fetch_ended(struct remote_session *s)
{
	struct remote_fetch *f = &s->fetch;
	if (s->port.is_paused) {
		f->has_ended = true;
		return;
	}
	f->has_ended = false;
	if (f->is_whole)
		begin(s);
	if (!s->port.is_closed && !f->is_over)
		end_file(s, f->is_whole, CODE_OMIT_UNREADABLE);
}

static void
ended(struct remote_session *s, bool is_whole)
{
	s->fetch.is_whole = is_whole;
	code_session_hold(&s->port);
	remote_fetch_ended(s);
	code_session_let_go(&s->port);
}

static void
on_head(void *arg, struct http_call *c, int status)
{
	struct remote_session *s = arg;
	struct remote_fetch *f = &s->fetch;
	f->announced = announced(c);
	if (status < 200 || status > 299) {
		end_file(s, false, CODE_OMIT_UNREADABLE);
	} else if (f->announced != UINT64_MAX && f->announced > s->bytes_left) {
		s->candidates[s->next - 1].size = f->announced;
		end_file(s, false, CODE_OMIT_BYTES);
	}
}

static bool
on_data(void *arg, struct http_call *c, struct str bytes)
{
	struct remote_session *s = arg;
	struct remote_fetch *f = &s->fetch;
	const struct code_op *op = running(s);
	(void)c;
	if (s->port.is_paused)
		return false;
	code_session_hold(&s->port);
	begin(s);
	f->got += bytes.len;
	if (s->port.is_closed || f->is_over)
		;
	else if (f->got > s->bytes_left)
		end_file(s, false, CODE_OMIT_BYTES);
	else
		op->ops->file_data(op->arg, bytes);
	code_session_let_go(&s->port);
	return true;
}

static void
on_done(void *arg, struct http_call *c, const struct err *err)
{
	struct remote_session *s = arg;
	struct remote_fetch *f = &s->fetch;
	(void)c;
	f->http = NULL;
	ended(s, err == NULL && (f->announced == UINT64_MAX || f->announced == f->got));
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct remote_session *s = arg;
	http_call_cancel(&s->fetch.http);
	ended(s, false);
}

/* --- asking ---------------------------------------------------------------------------------- */

void
remote_fetch_init(struct remote_session *s)
{
	s->fetch.late = evtimer_new(s->port.backend->base, on_late, s);
	CHECK(s->fetch.late != NULL);
}

static bool
ask(struct remote_session *s, struct str path)
{
	static const struct http_call_ops ops = {on_head, on_data, on_done};
	const struct remote_backend *b = remote_backend_of(s);
	struct buf url = BUF_INIT(16384);
	struct http_client_header auth = {STR("Authorization"), str_c(b->authorization)};
	buf_printf(&url, "%s/files?path=", s->url);
	uri_encode(path, &url);
	struct http_call_spec spec = {
	    .method = "GET",
	    .url = buf_str(&url),
	    .headers = &auth,
	    .header_count = b->authorization != NULL ? 1 : 0,
	    .ca_file = b->ca_file,
	    .connect_timeout_ms = REMOTE_CONNECT_MS,
	    .first_byte_timeout_ms = REMOTE_ANSWER_MS,
	    .idle_timeout_ms = CODE_STALL_MS,
	};
	struct remote_fetch *f = &s->fetch;
	bool ok =
	    !url.overflowed && http_call_start(b->client, &spec, &ops, s, &f->http, NULL) == ERR_OK;
	if (!ok)
		f->http = NULL;
	f->got = 0;
	f->announced = UINT64_MAX;
	f->is_begun = f->is_skipped = f->has_ended = f->is_over = false;
	int64_t left = f->until_ms - clock_mono_ms();
	const struct timeval t = {left / 1000, left % 1000 * 1000};
	if (ok)
		(void)event_add(f->late, &t);
	buf_done(&url);
	return ok;
}

void
remote_fetch_first(struct remote_session *s)
{
	uint32_t ms = s->port.backend->cfg.files_ms;
	s->fetch.until_ms = clock_mono_ms() + (ms != 0 ? ms : FILES_MS);
	remote_fetch_next(s);
}

void
remote_fetch_next(struct remote_session *s)
{
	uint32_t max = s->port.backend->cfg.max_files;
	struct code_op *op = code_session_op(&s->port);
	bool has_time = clock_mono_ms() < s->fetch.until_ms;
	s->fetch.is_over = false;
	while (s->next < s->candidate_count) {
		const struct remote_candidate *c = &s->candidates[s->next++];
		if (s->next > max || op->ops->file_begin == NULL)
			remote_omit(s, c, CODE_OMIT_COUNT);
		else if (c->size != UINT64_MAX && c->size > s->bytes_left)
			remote_omit(s, c, CODE_OMIT_BYTES);
		else if (has_time && ask(s, c->path))
			return;
		else
			remote_omit(s, c, CODE_OMIT_UNREADABLE);
	}
	remote_exec_end(s, op, NULL);
}
