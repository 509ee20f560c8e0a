#include <sys/socket.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/session_rig.h"

static void
no_sigpipe(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

TestSuite(code_edit, .timeout = 20, .init = no_sigpipe);

struct seen {
	struct code_session *s;
	unsigned dones, whole;
	struct err failed;
	char out[200];
	bool has_edit;
	struct code_edit_result edit;
};

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	struct seen *v = arg;
	(void)e;
	v->s = s;
}

static bool
on_begin(void *arg, struct str path, uint64_t size)
{
	(void)arg, (void)path, (void)size;
	return true;
}

static void
on_data(void *arg, struct str bytes)
{
	(void)arg, (void)bytes;
}

static void
on_end(void *arg, bool whole)
{
	struct seen *v = arg;
	v->whole += whole;
}

static void
on_done(void *arg, const struct code_result *c)
{
	struct seen *v = arg;
	v->dones++;
	if (c->failed != NULL)
		v->failed = *c->failed;
	(void)snprintf(v->out, sizeof(v->out), "%.*s", STR_FMT(c->out));
	v->has_edit = c->edit != NULL;
	if (c->edit != NULL)
		v->edit = *c->edit;
}

static const struct code_run_ops ops = {on_begin, on_data, on_end, on_done};

static const struct code_edit replace_edit = {.command = CODE_EDIT_STR_REPLACE,
    .path = STR_INIT("a.py"),
    .old = STR_INIT("x"),
    .text = STR_INIT("yz")};

static void
send_edited(struct session_rig *r, uint32_t error)
{
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_edited f = {error, FRAME_EDITED_UPDATE, 1, 2, 3, 4, 5, 6, 7};
	session_rig_send(r, FRAME_EDITED, p, frame_edited_put(p, &f));
}

/* A session that has just been asked to edit, or to run a program. */
static void
start(struct session_rig *r, struct seen *v, bool edit)
{
	memset(v, 0, sizeof(*v));
	session_rig_init(r);
	(void)code_session_open(r->backend, STR("w"), 0, on_open, v);
	session_rig_lend(r);
	cr_assert_not_null(v->s);
	if (edit)
		code_session_edit(v->s, &replace_edit, 0, &ops, v);
	else
		code_session_exec(v->s, CODE_PYTHON, STR("x"), 0, &ops, v);
	cr_assert_eq(v->dones, 0u, "never inside the call");
	session_rig_turn(r);
}

static void
stop(struct session_rig *r, struct seen *v)
{
	code_session_close(&v->s);
	session_rig_done(r);
}

Test(code_edit, an_edit_is_sent_and_answered)
{
	struct session_rig r;
	struct seen v;
	char in[4096];
	struct frame_run run;
	struct frame_edit e;
	start(&r, &v, true);
	ssize_t n = recv(r.ctl, in, sizeof(in), MSG_DONTWAIT);
	cr_assert_gt(n, 2 * FRAME_HEAD + 24);
	cr_assert(frame_run_get(str_n(in + FRAME_HEAD, 24), &run));
	cr_assert(run.kind == FRAME_KIND_EDITOR && run.timeout_ms == 1000);
	size_t at = 2 * FRAME_HEAD + 24;
	cr_assert_eq((size_t)n - at, run.source_bytes);
	cr_assert(frame_edit_get(str_n(in + at, (size_t)n - at), &e));
	cr_assert(e.command == FRAME_EDIT_STR_REPLACE && str_eq(e.path, STR("a.py")) &&
		  str_eq(e.old, STR("x")) && str_eq(e.text, STR("yz")));
	session_rig_send(&r, FRAME_EDIT_TEXT, "-x\n", 3);
	session_rig_send(&r, FRAME_EDIT_TEXT, "+yz\n", 4);
	send_edited(&r, FRAME_EDIT_OK);
	session_rig_result(&r, 0, 0);
	session_rig_file(&r, "a.py", "yz");
	session_rig_end(&r, 1, 0);
	session_rig_turn(&r);
	cr_assert(v.dones == 1 && v.has_edit && v.failed.code == ERR_OK, "%s", v.failed.msg);
	cr_assert_str_eq(v.out, "-x\n+yz\n");
	const struct code_edit_result *g = &v.edit;
	cr_assert(g->error == CODE_EDIT_OK && g->is_update && !g->is_directory);
	cr_assert(g->first_line == 1 && g->line_count == 2 && g->total_lines == 3 &&
		  g->old_start == 4 && g->old_lines == 5 && g->new_start == 6 && g->new_lines == 7);
	cr_assert_eq(v.whole, 1u);
	stop(&r, &v);
}

Test(code_edit, every_error_of_an_edit_has_its_name)
{
	static const enum code_edit_error errors[] = {CODE_EDIT_OK, CODE_EDIT_NOT_FOUND,
	    CODE_EDIT_INVALID, CODE_EDIT_NO_MATCH, CODE_EDIT_MANY_MATCHES, CODE_EDIT_NOT_TEXT,
	    CODE_EDIT_TOO_LARGE, CODE_EDIT_FAILED};
	for (uint32_t i = 0; i < FRAME_EDIT_ERROR_END_; i++) {
		struct session_rig r;
		struct seen v;
		start(&r, &v, true);
		send_edited(&r, i);
		session_rig_result(&r, 0, 1);
		session_rig_end(&r, 0, 0);
		session_rig_turn(&r);
		cr_assert(v.dones == 1 && v.has_edit && v.edit.error == errors[i], "%u", i);
		stop(&r, &v);
	}
}

Test(code_edit, a_view_that_does_not_fit_is_told_so)
{
	struct session_rig r;
	struct seen v;
	char big[101];
	memset(big, 'b', sizeof(big));
	start(&r, &v, true);
	session_rig_send(&r, FRAME_EDIT_TEXT, big, sizeof(big)); /* output_bytes is 100 */
	send_edited(&r, FRAME_EDIT_OK);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	cr_assert(v.dones == 1 && v.has_edit && v.edit.error == CODE_EDIT_TOO_LARGE);
	cr_assert_str_eq(v.out, "");
	stop(&r, &v);
}

Test(code_edit, a_wrong_answer_to_an_edit_drops_the_session)
{
	static char chunk[FRAME_MAX];
	for (int row = 0; row < 7; row++) {
		struct session_rig r;
		struct seen v;
		start(&r, &v, row != 0); /* of a program */
		switch (row) {
		case 0:
		case 1:
			send_edited(&r, 0);
			if (row == 1) /* twice */
				send_edited(&r, 0);
			break;
		case 2: /* text after it */
			send_edited(&r, 0);
			session_rig_send(&r, FRAME_EDIT_TEXT, "x", 1);
			break;
		case 3: /* after the result */
			session_rig_result(&r, 0, 0);
			send_edited(&r, 0);
			break;
		case 4: /* empty text, for ever */
			session_rig_send(&r, FRAME_EDIT_TEXT, "", 0);
			break;
		case 5: /* unknown error */
			send_edited(&r, FRAME_EDIT_ERROR_END_);
			break;
		default: /* more than it may say */
			for (size_t i = 0; i <= FRAME_EDIT_MAX / FRAME_MAX; i++) {
				session_rig_send(&r, FRAME_EDIT_TEXT, chunk, sizeof(chunk));
				session_rig_turn(&r);
			}
			break;
		}
		session_rig_turn(&r);
		cr_assert_eq(v.failed.code, ERR_PROTO, "row %d: %s", row, v.failed.msg);
		cr_assert(code_session_is_broken(v.s) && !v.has_edit, "row %d", row);
		stop(&r, &v);
	}
}

Test(code_edit, one_that_is_too_long_is_refused_and_the_session_stays)
{
	static char big[CODE_EDIT_TEXT_MAX + 1];
	const struct code_edit text = {
	    .command = CODE_EDIT_CREATE, .path = STR("a"), .text = str_n(big, sizeof(big))};
	const struct code_edit path = {
	    .command = CODE_EDIT_VIEW, .path = str_n(big, CODE_EDIT_PATH_MAX + 1)};
	struct session_rig r;
	struct seen v;
	start(&r, &v, true);
	send_edited(&r, FRAME_EDIT_OK);
	session_rig_result(&r, 0, 0);
	session_rig_end(&r, 0, 0);
	session_rig_turn(&r);
	code_session_edit(v.s, &text, 0, &ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 2 && v.failed.code == ERR_TOOLARGE && !v.has_edit);
	v.failed.code = ERR_OK;
	code_session_edit(v.s, &path, 0, &ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 3 && v.failed.code == ERR_TOOLARGE);
	cr_assert(!code_session_is_broken(v.s));
	stop(&r, &v);
}
