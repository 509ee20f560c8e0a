/* Which tools a remote sandbox has: told by it, or learnt from what it refuses. */
#include <signal.h>

#include <criterion/criterion.h>

#include "tests/unit/sandbox_rig.h"

static void
no_sigpipe(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

TestSuite(code_remote_kinds, .timeout = 60, .init = no_sigpipe);

#define PYTHON 1u
#define BASH   2u
#define EDITOR 4u
#define DONE   "{\"result_block\":{\"type\":\"x\",\"content\":{\"stdout\":\"\",\"return_code\":0}}}"

static void
run_bash(struct sandbox_rig *r, const char *command)
{
	unsigned before = r->dones;
	r->has_failed = false;
	code_session_exec(r->s, CODE_BASH, str_c(command), 0, &sandbox_rig_ops, r);
	sandbox_rig_wait(r, &r->dones, before + 1);
}

static bool
has(const struct buf *b, const char *text)
{
	return str_find(buf_str(b), str_c(text)) != SIZE_MAX;
}

Test(code_remote_kinds, a_tool_that_refuses_anything_is_one_that_it_has_not)
{
	static const int statuses[] = {400, 422};
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct sandbox_rig r;
		sandbox_rig_init(&r, "");
		cr_assert_eq(code_backend_kinds(r.backend), PYTHON | BASH | EDITOR);
		sandbox_rig_open(&r, NULL);
		r.exec[0] = (struct sandbox_answer){statuses[i], "{\"detail\":\"unknown tool\"}"};
		run_bash(&r, "ls -l");
		cr_assert(r.has_failed && r.failed.code == ERR_UNSUPPORTED, "%s", r.failed.msg);
		cr_expect_eq(code_backend_kinds(r.backend), PYTHON | EDITOR);
		cr_expect(has(&r.log, "{\"command\":\"ls -l\"}"), "%s", r.log.ptr);
		cr_expect(has(&r.log, "{\"command\":\"true\"}"), "%s", r.log.ptr);
		cr_expect_eq(r.execs, 2);
		/* It is known by now; and the session goes on. */
		run_bash(&r, "ls");
		cr_expect_eq(r.execs, 3);
		r.exec[0] = (struct sandbox_answer){200, DONE};
		sandbox_rig_exec(&r, "1");
		cr_expect(!r.has_failed);
		cr_expect_eq(code_backend_kinds(r.backend), PYTHON | EDITOR);
		/* Somebody has installed another one. */
		run_bash(&r, "ls");
		cr_expect_eq(code_backend_kinds(r.backend), PYTHON | BASH | EDITOR);
		sandbox_rig_done(&r);
	}
}

Test(code_remote_kinds, an_input_that_is_refused_takes_no_tool_away_from_others)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	r.exec[0] = (struct sandbox_answer){422, "{}"};
	r.exec[1] = (struct sandbox_answer){200, DONE};
	run_bash(&r, "what it does not like");
	cr_assert(r.has_failed && r.failed.code == ERR_INPUT, "%s", r.failed.msg);
	cr_expect_eq(code_backend_kinds(r.backend), PYTHON | BASH | EDITOR);
	run_bash(&r, "ls");
	cr_expect(!r.has_failed);
	sandbox_rig_done(&r);
}

Test(code_remote_kinds, another_failure_says_nothing_of_the_tool)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	r.exec[0] = (struct sandbox_answer){500, "{}"};
	run_bash(&r, "ls");
	cr_expect_eq(r.execs, 1);
	r.exec[0] = (struct sandbox_answer){422, "{}"};
	r.exec[1] = (struct sandbox_answer){503, "{}"};
	r.execs = 0;
	run_bash(&r, "ls");
	cr_assert(r.has_failed && r.failed.code == ERR_UNSUPPORTED, "%s", r.failed.msg);
	cr_expect_eq(code_backend_kinds(r.backend), PYTHON | BASH | EDITOR);
	sandbox_rig_done(&r);
}

Test(code_remote_kinds, what_it_says_itself_is_believed)
{
	static const struct {
		const char *create;
		uint32_t kinds;
	} rows[] = {
	    {"{\"session_id\":\"s\",\"tools\":[\"code_execution\"]}", PYTHON},
	    {"{\"session_id\":\"s\",\"tools\":[\"bash_code_execution\",7,\"x\"]}", PYTHON | BASH},
	    {"{\"session_id\":\"s\",\"tools\":[]}", PYTHON | BASH | EDITOR},
	    {"{\"session_id\":\"s\",\"tools\":[\"web_search\"]}", PYTHON | BASH | EDITOR},
	    {"{\"session_id\":\"s\",\"tools\":{\"code_execution\":1}}", PYTHON | BASH | EDITOR},
	    {"{\"session_id\":\"s\",\"tools\":[\"text_editor_code_execution\",\"code_execution\","
	     "\"bash_code_execution\"]}",
		PYTHON | BASH | EDITOR},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sandbox_rig r;
		sandbox_rig_init(&r, "");
		r.create = (struct sandbox_answer){201, rows[i].create};
		sandbox_rig_open(&r, NULL);
		cr_assert_not_null(r.s);
		cr_expect_eq(code_backend_kinds(r.backend), rows[i].kinds, "%s", rows[i].create);
		sandbox_rig_done(&r);
	}
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.create = (struct sandbox_answer){201, rows[0].create};
	r.exec[0] = (struct sandbox_answer){422, "{}"};
	sandbox_rig_open(&r, NULL);
	run_bash(&r, "ls");
	cr_expect_eq(r.execs, 1, "nothing to be found out");
	sandbox_rig_done(&r);
}
