#include "worker/turn/extract.h"

#include <stdio.h>

#include <event2/event.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/board.h"
#include "worker/env.h"
#include "worker/request.h"
#include "worker/upstream/target.h"

/* Decoded and handed on at once: the loop serves others in between. */
#define PIECE_BYTES (24u << 10)

struct extract {
	struct request *req;
	struct extract_options opt;
	void (*done)(void *arg);
	void *arg;
	struct extract_document *next; /* the one under way */
	unsigned number;               /* of it: its name in the session */
	size_t sent;                   /* of its base64 */
	uint64_t budget;
	struct code_open *opening;
	int64_t opening_us;
	struct code_session *session;
	struct event *deadline;
};

static void put_next(struct extract *x);

uint32_t
extract_leaves(const struct worker_env *env, const struct target *target)
{
	struct str why;
	if (!snapshot_policy(env->policy)->settings.file_understanding_enabled)
		return DOCUMENTS_ALL;
	uint32_t read =
	    documents_read(target->provider_type, target->wire, target->native_documents);
	if (env->code == NULL || !code_backend_converts(env->code) ||
	    !code_backend_ready(env->code, &why))
		read |= DOCUMENTS_EXTRACTED;
	return read;
}

static void
release(struct extract *x)
{
	code_open_cancel(&x->opening);
	code_session_close(&x->session);
	event_free(x->deadline);
	mem_free(x);
}

/* What was not read by now stays as it is. */
static void
finish(struct extract *x)
{
	void (*done)(void *) = x->done;
	void *arg = x->arg;
	for (; x->next != NULL; x->next = x->next->next)
		if (!x->next->is_text_file)
			board_count(x->req->env->slot, BC_DOCUMENTS_LEFT, 1);
	release(x);
	done(arg);
}

static void
give_up(struct extract *x, const char *why, const struct err *e)
{
	log_warn("documents of a request stay as they are", LOG_C("request_id", x->req->id),
	    LOG_C("why", why), LOG_ERR(e));
	finish(x);
}

static void
leave(struct extract *x, const char *why)
{
	log_info("a document of a request stays as it is", LOG_C("request_id", x->req->id),
	    LOG_C("why", why));
	board_count(x->req->env->slot, BC_DOCUMENTS_LEFT, 1);
	x->next = x->next->next;
	put_next(x);
}

/* --- out ------------------------------------------------------------------------------------- */
/* NULL: there is text. */
static const char *
failure_of(const struct code_result *r)
{
	if (r->timed_out)
		return "it took too long";
	if (r->flooded)
		return "it holds too much text";
	if (r->out_of_memory)
		return "it took too much memory";
	if (r->return_code == 127)
		return "this host has no program for its format";
	return r->return_code != 0 ? "it cannot be read" : NULL;
}

static void
on_converted(void *arg, const struct code_result *r)
{
	struct extract *x = arg;
	struct arena *a = x->req->arena;
	if (r->failed != NULL) {
		give_up(x, "the code session failed", r->failed);
		return;
	}
	const char *why = failure_of(r);
	if (why != NULL) {
		leave(x, why);
		return;
	}
	uint64_t most = r->out.len < x->budget ? r->out.len : x->budget;
	struct str text = extract_text(a, r->out, r->out_total, (size_t)most);
	if (text.ptr == NULL || arena_overflowed(a)) {
		leave(x, "it holds no text");
		return;
	}
	x->budget -= text.len < x->budget ? text.len : x->budget;
	x->next->text = text;
	board_count(x->req->env->slot, BC_DOCUMENTS_READ, 1);
	x->next = x->next->next;
	put_next(x);
}

static const struct code_run_ops run_ops = {.done = on_converted};

/* --- in -------------------------------------------------------------------------------------- */
struct name {
	char s[24];
};

/* Its own name is for the model alone. */
static struct str
name_of(const struct extract *x, struct name *ret)
{
	int n = snprintf(ret->s, sizeof(ret->s), "document-%u", x->number);
	return str_n(ret->s, (size_t)n);
}

static void
on_put(const struct err *e, void *arg)
{
	struct extract *x = arg;
	struct name name;
	if (code_session_is_broken(x->session))
		give_up(x, "the code session failed", e);
	else if (e != NULL)
		leave(x, "the code session did not take it");
	else
		code_session_convert(x->session, x->next->extractor, name_of(x, &name),
		    EXTRACT_CALL_MS, &run_ops, x);
}

/* Broken base64 ends short of the size that was announced, which the session then refuses. */
static void
push(void *arg)
{
	struct extract *x = arg;
	struct str data = x->next->data;
	bool has_room = true;
	struct buf piece = BUF_INIT(PIECE_BYTES + 4);
	while (has_room && x->sent < data.len) {
		struct str part = str_sub(data, x->sent, BASE64_LEN(PIECE_BYTES));
		x->sent += part.len;
		buf_clear(&piece);
		if (!base64_decode(part, &piece))
			x->sent = data.len;
		else
			has_room = code_session_put_data(x->session, buf_str(&piece));
	}
	buf_done(&piece);
	if (has_room)
		code_session_put_end(x->session);
}

static void
put_next(struct extract *x)
{
	struct name name;
	while (x->next != NULL && x->next->is_text_file)
		x->next = x->next->next;
	if (x->next == NULL || x->budget == 0) {
		finish(x);
		return;
	}
	struct str data = x->next->data;
	size_t n = data.len / 4 * 3;
	for (size_t i = 1; i <= 2 && i <= data.len && data.ptr[data.len - i] == '='; i++)
		n--;
	x->number++;
	x->sent = 0;
	code_session_put_begin(x->session, name_of(x, &name), n, push, on_put, x);
	push(x);
}

/* --- the session ----------------------------------------------------------------------------- */
static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct err e;
	(void)err_set(&e, ERR_TIMEOUT, "not all of them in %u s", EXTRACT_ALL_MS / 1000);
	give_up(arg, "they took too long", &e);
}

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct extract *x = arg;
	struct board_slot *slot = x->req->env->slot;
	x->opening = NULL;
	x->session = s;
	if (s == NULL) {
		board_count(slot, BC_LEASE_REFUSALS, 1);
		give_up(x, "there is no code session", e);
		return;
	}
	board_count(slot, BC_LEASES, 1);
	board_count(slot, BC_LEASE_WAIT_US, (uint64_t)(clock_mono_us() - x->opening_us));
	const struct timeval all = {EXTRACT_ALL_MS / 1000, 0};
	(void)event_add(x->deadline, &all);
	put_next(x);
}

struct extract *
extract_start(struct request *req, struct extract_plan *plan, const struct extract_options *opt,
    void (*done)(void *arg), void *arg)
{
	struct extract *x = MEM_NEW(struct extract);
	x->req = req;
	x->opt = *opt;
	x->budget = opt->max_text_bytes;
	x->done = done;
	x->arg = arg;
	x->next = plan->first;
	x->deadline = evtimer_new(req->env->base, on_deadline, x);
	CHECK(x->deadline != NULL);
	x->opening_us = clock_mono_us();
	x->opening =
	    code_session_open(req->env->code, opt->workspace_id, opt->queue_ms, on_open, x);
	return x;
}

void
extract_cancel(struct extract **xp)
{
	struct extract *x = *xp;
	*xp = NULL;
	if (x != NULL)
		release(x);
}
