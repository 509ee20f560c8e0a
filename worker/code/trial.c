#include "worker/code/trial.h"

#include <stdio.h>

#include "base/mem.h"
#include "worker/code/session.h"

#define TRY_MS     5000u
#define TRY_CODE   "print(6 * 7)"
#define TRY_PRINTS "42\n"
#define TEXT_BYTES 512

struct code_trial {
	struct code_open *opening;
	struct code_session *session;
	code_on_trial *on_trial;
	void *arg;
};

void
code_trial_cancel(struct code_trial **tp)
{
	struct code_trial *t = *tp;
	*tp = NULL;
	if (t == NULL)
		return;
	code_open_cancel(&t->opening);
	code_session_close(&t->session);
	mem_free(t);
}

static void
report(struct code_trial *t, bool ok, const char *text)
{
	code_on_trial *on_trial = t->on_trial;
	void *arg = t->arg;
	code_trial_cancel(&t);
	on_trial(arg, ok, text);
}

static bool
on_file_begin(void *arg, struct str path, uint64_t size)
{
	(void)arg, (void)path, (void)size;
	return false;
}

static void
on_file_data(void *arg, struct str bytes)
{
	(void)arg, (void)bytes;
}

static void
on_file_end(void *arg, bool whole)
{
	(void)arg, (void)whole;
}

static void
on_done(void *arg, const struct code_result *r)
{
	char text[TEXT_BYTES];
	bool ok = r->failed == NULL && r->return_code == 0 && str_eq(r->out, STR(TRY_PRINTS));
	if (ok)
		(void)snprintf(text, sizeof(text), "code ran in %u ms", r->exec_ms);
	else if (r->failed != NULL)
		(void)snprintf(text, sizeof(text), "the session broke: %s", r->failed->msg);
	else
		(void)snprintf(text, sizeof(text),
		    "code ran, but not well: return code %d, %zu bytes on stdout", r->return_code,
		    r->out.len);
	report(arg, ok, text);
}

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	static const struct code_run_ops ops = {on_file_begin, on_file_data, on_file_end, on_done};
	struct code_trial *t = arg;
	t->opening = NULL;
	t->session = s;
	if (s == NULL)
		report(t, false, e->msg);
	else
		code_session_exec(s, CODE_PYTHON, STR(TRY_CODE), TRY_MS, &ops, t);
}

struct code_trial *
code_trial_start(struct code_backend *b, struct str workspace, code_on_trial *on_trial, void *arg)
{
	struct code_trial *t = MEM_NEW(struct code_trial);
	t->on_trial = on_trial;
	t->arg = arg;
	t->opening = code_session_open(b, workspace, TRY_MS, on_open, t);
	return t;
}
