/* Files as they are, of a local session: what init may say, and what it may not. */
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

TestSuite(code_files, .timeout = 20, .init = no_sigpipe);

struct seen {
	struct code_session *s;
	unsigned lists, dones, begins;
	char text[512]; /* "path=size@time," or the bytes */
	bool is_all, pause, close;
	struct err err;
};

static void
on_open(struct code_session *s, const struct err *e, void *arg)
{
	(void)e;
	((struct seen *)arg)->s = s;
}

static void
on_list(const struct err *e, const struct code_listed *files, size_t n, bool is_all, void *arg)
{
	struct seen *v = arg;
	v->lists++;
	v->is_all = is_all;
	if (e != NULL)
		v->err = *e;
	if (v->close)
		code_session_close(&v->s);
	for (size_t i = 0; i < n; i++)
		(void)snprintf(v->text + strlen(v->text), sizeof(v->text) - strlen(v->text),
		    "%.*s=%llu@%llu,", STR_FMT(files[i].path), (unsigned long long)files[i].size,
		    (unsigned long long)files[i].changed_ns);
}

static void
on_begin(void *arg, uint64_t size)
{
	struct seen *v = arg;
	v->begins++;
	(void)snprintf(v->text, sizeof(v->text), "%llu:", (unsigned long long)size);
}

static void
on_data(void *arg, struct str bytes)
{
	struct seen *v = arg;
	(void)snprintf(
	    v->text + strlen(v->text), sizeof(v->text) - strlen(v->text), "%.*s", STR_FMT(bytes));
	if (v->pause)
		code_session_pause(v->s);
}

static void
on_done(void *arg, const struct err *e)
{
	struct seen *v = arg;
	v->dones++;
	v->err = e != NULL ? *e : (struct err){0};
}

static const struct code_get_ops get_ops = {on_begin, on_data, on_done};

static void
start(struct session_rig *r, struct seen *v)
{
	memset(v, 0, sizeof(*v));
	session_rig_init(r);
	(void)code_session_open(r->backend, STR("w"), 0, on_open, v);
	session_rig_lend(r);
	cr_assert_not_null(v->s);
}

static void
stop(struct session_rig *r, struct seen *v)
{
	code_session_close(&v->s);
	session_rig_done(r);
}

static void
entry(struct session_rig *r, const char *path, uint64_t size, uint64_t ns)
{
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_entry e = {size, ns, str_c(path)};
	session_rig_send(r, FRAME_ENTRY, p, frame_entry_put(p, &e));
}

Test(code_files, a_list_is_given_whole)
{
	struct session_rig r;
	struct seen v;
	start(&r, &v);
	code_session_list(v.s, on_list, &v);
	cr_assert_eq(v.lists, 0);
	session_rig_turn(&r);
	entry(&r, "b/c.txt", 7, 99);
	entry(&r, "a", 0, 1);
	session_rig_end(&r, 2, 0);
	session_rig_turn(&r);
	cr_assert(v.lists == 1 && v.is_all);
	cr_assert_str_eq(v.text, "b/c.txt=7@99,a=0@1,");
	v.text[0] = '\0';
	v.close = true; /* inside the callback; the list stays readable in it */
	code_session_list(v.s, on_list, &v);
	session_rig_turn(&r);
	entry(&r, "x", 1, 2);
	session_rig_end(&r, 1, 5);
	session_rig_turn(&r);
	cr_assert(v.lists == 2 && !v.is_all);
	cr_assert_str_eq(v.text, "x=1@2,");
	stop(&r, &v);
}

Test(code_files, a_file_is_given_held_back_and_refused)
{
	struct session_rig r;
	struct seen v;
	uint8_t p[FRAME_FIXED_MAX];
	struct frame_put_done gone = {2};
	start(&r, &v);
	v.pause = true;
	code_session_get(v.s, STR("f"), &get_ops, &v);
	session_rig_turn(&r);
	session_rig_file(&r, "f", "bytes");
	session_rig_turn(&r);
	cr_assert(v.dones == 0 && v.begins == 1);
	code_session_resume(v.s);
	session_rig_turn(&r);
	cr_assert(v.dones == 1 && v.err.code == ERR_OK);
	cr_assert_str_eq(v.text, "5:bytes");
	code_session_get(v.s, STR("g"), &get_ops, &v);
	session_rig_turn(&r);
	session_rig_send(&r, FRAME_GET_FAILED, p, frame_put_done_put(p, &gone));
	session_rig_turn(&r);
	cr_assert(v.dones == 2 && v.err.code == ERR_NOTFOUND && v.err.sys_errno == 2);
	code_session_get(v.s, STR("../g"), &get_ops, &v);
	session_rig_turn(&r);
	cr_assert(v.dones == 3 && v.err.code == ERR_INPUT);
	cr_assert(!code_session_is_broken(v.s));
	stop(&r, &v);
}

Test(code_files, an_init_that_lies_is_dropped)
{
	for (int row = 0; row < 8; row++) {
		struct session_rig r;
		struct seen v;
		uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
		struct frame_file f = {3, STR("f")};
		struct frame_file_end whole = {1};
		start(&r, &v);
		if (row < 3)
			code_session_list(v.s, on_list, &v);
		else
			code_session_get(v.s, STR("f"), &get_ops, &v);
		session_rig_turn(&r);
		switch (row) {
		case 0: /* a count that is wrong */
			entry(&r, "a", 1, 1);
			session_rig_end(&r, 2, 0);
			break;
		case 1: /* a file unasked */
			session_rig_file(&r, "f", "x");
			break;
		case 2: /* more than there may be */
			for (unsigned i = 0; i <= FRAME_ENTRIES_MAX; i++) {
				entry(&r, "a", 1, 1);
				if (i % 64 == 0)
					session_rig_turn(&r);
			}
			break;
		case 3: /* another file */
			session_rig_file(&r, "g", "x");
			break;
		case 4: /* more bytes than announced */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_DATA, "four", 4);
			break;
		case 5: /* fewer, and whole all the same */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_END, p, frame_file_end_put(p, &whole));
			break;
		case 6: /* data that is none */
			session_rig_send(&r, FRAME_FILE, p, frame_file_put(p, &f));
			session_rig_send(&r, FRAME_FILE_DATA, NULL, 0);
			break;
		default:
			session_rig_end(&r, 0, 0);
			break;
		}
		session_rig_turn(&r);
		cr_assert(code_session_is_broken(v.s), "row %d", row);
		cr_assert(v.lists + v.dones == 1 && v.err.code == ERR_PROTO, "row %d", row);
		stop(&r, &v);
	}
}

static void
on_run_done(void *arg, const struct code_result *c)
{
	struct seen *v = arg;
	v->dones++;
	for (size_t i = 0; i < c->omitted_count; i++)
		(void)snprintf(v->text + strlen(v->text), sizeof(v->text) - strlen(v->text),
		    "%.*s,", STR_FMT(c->omitted[i].path));
}

Test(code_files, a_call_that_wants_no_files_gets_their_names)
{
	static const struct code_run_ops ops = {.done = on_run_done};
	struct session_rig r;
	struct seen v;
	uint8_t p[FRAME_FIXED_MAX + FRAME_PATH_MAX];
	struct frame_omitted o = {5, FRAME_OMIT_COUNT, STR("made.txt")};
	start(&r, &v);
	code_session_exec(v.s, CODE_PYTHON, STR("1"), 0, &ops, &v);
	session_rig_turn(&r);
	session_rig_result(&r, 0, 0);
	session_rig_send(&r, FRAME_OMITTED, p, frame_omitted_put(p, &o));
	session_rig_end(&r, 0, 1);
	session_rig_turn(&r);
	cr_assert(v.dones == 1 && !code_session_is_broken(v.s));
	cr_assert_str_eq(v.text, "made.txt,");
	/* and a file all the same breaks it */
	code_session_exec(v.s, CODE_PYTHON, STR("1"), 0, &ops, &v);
	session_rig_turn(&r);
	session_rig_result(&r, 0, 0);
	session_rig_file(&r, "f", "x");
	session_rig_turn(&r);
	cr_assert(code_session_is_broken(v.s));
	stop(&r, &v);
}
