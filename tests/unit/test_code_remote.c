/* The remote backend against a sandbox that answers what the test says. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/buf.h"
#include "tests/unit/sandbox_rig.h"

static void
no_sigpipe(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

TestSuite(code_remote, .timeout = 60, .init = no_sigpipe);

#define RESULT(content)                                                                            \
	"{\"result_block\":{\"type\":\"code_execution_tool_result\",\"content\":" content "}}"

static bool
has(const struct buf *b, const char *text)
{
	return str_find(buf_str(b), str_c(text)) != SIZE_MAX;
}

Test(code_remote, a_session_is_made_used_and_deleted)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "secret");
	sandbox_rig_open(&r, NULL);
	sandbox_rig_exec(&r, "print(\"a\")");
	cr_assert(!r.has_failed && r.code == 0);
	cr_assert_str_eq(r.out, "hi");
	code_session_close(&r.s);
	sandbox_rig_wait(&r, &r.deletes, 1);
	cr_assert_str_eq(r.authorization, "Bearer secret");
	cr_assert_str_eq(r.log.ptr,
	    "POST /base/sessions {}\n"
	    "GET /base/sessions/s1/files/list\n"
	    "POST /base/sessions/s1/exec {\"tool\":\"code_execution\",\"input\":{\"code\":"
	    "\"print(\\\"a\\\")\"},\"timeout_seconds\":1}\n"
	    "GET /base/sessions/s1/files/list\n"
	    "DELETE /base/sessions/s1\n");
	sandbox_rig_done(&r);
}

Test(code_remote, no_token_no_header_and_the_image_in_the_body)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.create = (struct sandbox_answer){200, "{\"session_id\":\"a/../b c\",\"more\":1}"};
	sandbox_rig_open(&r, "py:3");
	cr_assert_null(r.s); /* a space is nothing that an id holds */
	r.create = (struct sandbox_answer){200, "{\"session_id\":\"a/../b\",\"more\":1}"};
	sandbox_rig_open(&r, "py:3");
	cr_assert_not_null(r.s);
	cr_assert_str_empty(r.authorization);
	sandbox_rig_exec(&r, "1");
	cr_assert(has(&r.log, "POST /base/sessions {\"image\":\"py:3\"}\n"));
	cr_assert(has(&r.log, "POST /base/sessions/a%2F..%2Fb/exec {"), "%s", r.log.ptr);
	sandbox_rig_done(&r);
}

static const struct {
	int status;
	const char *body;
	enum err_code code;
	const char *text;
} bad_creates[] = {
    {500, "oops", ERR_UPSTREAM, "status 500"},
    {401, "", ERR_UPSTREAM, "status 401"},
    {302, "", ERR_UPSTREAM, "status 302"},
    {503, "", ERR_BUSY, "no room"},
    {429, "", ERR_BUSY, "no room"},
    {200, "", ERR_PROTO, "not JSON"},
    {200, "[]", ERR_PROTO, "not an object"},
    {201, "{\"id\":\"sneaky-payload\"}", ERR_PROTO, "session_id: missing"},
    {201, "{\"session_id\":null}", ERR_PROTO, "session_id: missing"},
    {201, "{\"session_id\":7}", ERR_PROTO, "session_id: not a string"},
    {201, "{\"session_id\":\"\"}", ERR_PROTO, "session_id: not usable"},
    {201, "{\"session_id\":\"..\"}", ERR_PROTO, "session_id: not usable"},
    {201, "{\"session_id\":\"sneaky-payload\\r\\nX: y\"}", ERR_PROTO, "session_id: not usable"},
};

Test(code_remote, what_is_no_session_is_refused_loudly)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	for (size_t i = 0; i < ARRAY_LEN(bad_creates); i++) {
		r.create = (struct sandbox_answer){bad_creates[i].status, bad_creates[i].body};
		sandbox_rig_open(&r, NULL);
		cr_assert_null(r.s, "row %zu", i);
		cr_assert(r.open_err.code == bad_creates[i].code, "row %zu: %s", i, r.open_err.msg);
		cr_assert(strstr(r.open_err.msg, bad_creates[i].text) != NULL, "row %zu: %s", i,
		    r.open_err.msg);
		cr_assert_null(strstr(r.open_err.msg, "sneaky"), "row %zu: %s", i, r.open_err.msg);
	}
	sandbox_rig_done(&r);
}

Test(code_remote, an_unreachable_sandbox_and_one_that_says_when_to_come_back)
{
	static const struct {
		const char *sent;
		uint32_t seconds;
	} rows[] = {{"7", 7}, {NULL, 5}, {"soon", 5}, {"0", 5}, {"99999999", 5}, {"-1", 5}};
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.create = (struct sandbox_answer){503, ""};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		r.retry_after = rows[i].sent;
		sandbox_rig_open(&r, NULL);
		cr_assert(r.open_err.code == ERR_BUSY);
		cr_assert_eq(code_backend_retry_after_s(r.backend), rows[i].seconds, "row %zu", i);
	}
	http_server_free(&r.server);
	sandbox_rig_open(&r, NULL);
	cr_assert(r.s == NULL && r.open_err.code == ERR_UPSTREAM, "%s", r.open_err.msg);
	cr_assert(code_backend_opens_early(r.backend));
	sandbox_rig_done(&r);
}

Test(code_remote, a_session_that_nobody_waits_for_is_deleted)
{
	struct sandbox_rig r;
	struct code_open *o;
	sandbox_rig_init(&r, "");
	o = code_session_open(r.backend, STR("w"), 0, NULL, NULL);
	code_open_cancel(&o);
	sandbox_rig_wait(&r, &r.deletes, 1);
	cr_assert_eq(r.opens, 0);
	sandbox_rig_done(&r);
}

static const struct {
	const char *body, *out, *err;
	int32_t code;
	bool timed_out;
	size_t notes;
} results[] = {
    {RESULT("{\"stdout\":\"a\",\"stderr\":\"b\",\"return_code\":3}"), "a", "b", 3, false, 0},
    {RESULT("{\"stdout\":null,\"stderr\":null,\"return_code\":null,\"content\":null}"), "", "", 0,
	false, 0},
    {RESULT("{}"), "", "", 0, false, 0},
    {RESULT("{\"stderr\":{\"error\":\"x\"},\"return_code\":\"1\"}"), "", "{\"error\":\"x\"}", 1,
	false, 0},
    {RESULT("{\"stdout\":12,\"content\":\"no list\",\"zzz\":[]}"), "12", "", 0, false, 0},
    {"{\"x\":1,\"result_block\":{\"type\":\"new_block\",\"content\":{\"stdout\":\"s\"}}}", "s", "",
	0, false, 0},
    {RESULT("{\"type\":\"code_execution_tool_result_error\",\"error_code\":\"unavailable\"}"), "",
	"[the sandbox says: unavailable]\n", 1, false, 0},
    {RESULT("{\"error_code\":\"execution_time_exceeded\"}"), "",
	"[the sandbox says: execution_time_exceeded]\n", 124, true, 44},
    {RESULT("{\"stderr\":\"a\\nb\\n[over]\\n\",\"timed_out\":true}"), "", "a\nb\n[over]\n", 0, true,
	7},
};

Test(code_remote, results_are_read_with_tolerance)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	for (size_t i = 0; i < ARRAY_LEN(results); i++) {
		for (size_t j = 0; j < SANDBOX_ANSWERS_MAX; j++)
			r.exec[j] = (struct sandbox_answer){200, results[i].body};
		sandbox_rig_exec(&r, "1");
		cr_assert(!r.has_failed, "row %zu: %s", i, r.failed.msg);
		cr_assert_str_eq(r.out, results[i].out, "row %zu: %s", i, r.out);
		cr_assert_str_eq(r.err, results[i].err, "row %zu: %s", i, r.err);
		cr_assert_eq(r.notes, results[i].notes, "row %zu: %zu", i, r.notes);
		cr_assert(r.code == results[i].code && r.timed_out == results[i].timed_out,
		    "row %zu: %d", i, r.code);
	}
	sandbox_rig_done(&r);
}

static const struct {
	int status;
	const char *body;
	enum err_code code;
	const char *text;
	bool breaks;
} bad_execs[] = {
    {200, "{\"result\":{\"payload\":1}}", ERR_PROTO, "result_block: missing", false},
    {200, "{\"result_block\":\"payload\"}", ERR_PROTO, "result_block: not an object", false},
    {200, "{\"result_block\":{}}", ERR_PROTO, "result_block.content: missing", false},
    {200, RESULT("\"payload\""), ERR_PROTO, "result_block.content: not an object", false},
    {200, RESULT("{\"return_code\":\"payload\"}"), ERR_PROTO, "return_code: not an integer", false},
    {200, RESULT("{\"return_code\":99999999999}"), ERR_PROTO, "not an integer", false},
    {200, "payload", ERR_PROTO, "not JSON", false},
    {400, "payload", ERR_UNSUPPORTED, "does not run this", false},
    {422, "payload", ERR_UNSUPPORTED, "does not run this", false},
    {413, "", ERR_TOOLARGE, "too large", false},
    {500, "payload", ERR_UPSTREAM, "status 500", false},
    {503, "", ERR_BUSY, "no room", false},
    {429, "", ERR_BUSY, "no room", false},
    {404, "", ERR_NOTFOUND, "no such session", true},
};

Test(code_remote, a_bad_answer_fails_the_call_and_names_no_value)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad_execs); i++) {
		for (size_t j = 0; j < SANDBOX_ANSWERS_MAX; j++)
			r.exec[j] = (struct sandbox_answer){bad_execs[i].status, bad_execs[i].body};
		sandbox_rig_exec(&r, "1");
		cr_assert(r.has_failed && r.failed.code == bad_execs[i].code, "row %zu: %s", i,
		    r.failed.msg);
		cr_assert(strstr(r.failed.msg, bad_execs[i].text) != NULL, "row %zu: %s", i,
		    r.failed.msg);
		cr_assert_null(strstr(r.failed.msg, "payload"), "row %zu: %s", i, r.failed.msg);
		cr_assert(code_session_is_broken(r.s) == bad_execs[i].breaks, "row %zu", i);
	}
	/* It said that it knows no such session: there is nothing to delete. */
	sandbox_rig_done(&r);
	cr_assert_eq(r.deletes, 0);
}

Test(code_remote, an_answer_without_end_is_given_up)
{
	struct sandbox_rig r;
	struct buf big = BUF_INIT(4u << 20);
	sandbox_rig_init(&r, "");
	buf_printf(&big, "{\"result_block\":{\"content\":{\"stdout\":\"");
	for (unsigned i = 0; i < 2u << 20; i++)
		buf_addc(&big, 'x');
	buf_printf(&big, "\"}}}");
	r.exec[0] = (struct sandbox_answer){200, big.ptr};
	sandbox_rig_run(&r, "1");
	cr_assert(r.has_failed && r.failed.code == ERR_PROTO, "%s", r.failed.msg);
	cr_assert(!code_session_is_broken(r.s));
	sandbox_rig_done(&r);
	buf_done(&big);
}

static void
nobody(struct code_session *s, const struct err *e, void *arg)
{
	(void)s, (void)e, (void)arg;
	cr_assert_fail("it was cancelled");
}

Test(code_remote, who_comes_and_goes_does_not_fill_all_connections)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	for (int i = 0; i < 256; i++) {
		struct code_open *o = code_session_open(r.backend, STR("w"), 0, nobody, NULL);
		code_open_cancel(&o);
	}
	sandbox_rig_open(&r, NULL);
	cr_assert_null(r.s);
	cr_expect_eq(r.open_err.code, ERR_BUSY, "%s", r.open_err.msg);
	/* Whether they were made and deleted, or refused: the rig takes 64 connections. */
	while (!code_backend_is_idle(r.backend))
		sandbox_rig_turn(&r);
	sandbox_rig_open(&r, NULL);
	cr_expect_not_null(r.s);
	sandbox_rig_done(&r);
}

/* --- bash and the text editor ---------------------------------------------------------------- */

Test(code_remote, other_kinds_are_asked_for_by_their_names)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	code_session_exec(r.s, CODE_BASH, STR("ls"), 1500, &sandbox_rig_ops, &r);
	sandbox_rig_wait(&r, &r.dones, 1);
	cr_assert(
	    has(&r.log, "exec {\"tool\":\"bash_code_execution\",\"input\":{\"command\":\"ls\"},"
			"\"timeout_seconds\":2}\n"),
	    "%s", r.log.ptr);
	cr_assert(!r.has_failed && !r.has_edit);
	sandbox_rig_done(&r);
}

static const struct {
	struct code_edit edit;
	const char *asked, *answer, *out;
	struct code_edit_result result;
} edits[] = {
    {{.command = CODE_EDIT_VIEW, .path = STR_INIT("a"), .first_line = 2, .last_line = -1},
	"{\"command\":\"view\",\"path\":\"a\",\"view_range\":[2,-1]}",
	RESULT("{\"type\":\"text_editor_code_execution_view_result\",\"file_type\":\"text\","
	       "\"content\":\"two\\n\",\"num_lines\":1,\"start_line\":2,\"total_lines\":2}"),
	"two\n", {.first_line = 2, .line_count = 1, .total_lines = 2}},
    {{.command = CODE_EDIT_VIEW, .path = STR_INIT(".")}, "{\"command\":\"view\",\"path\":\".\"}",
	RESULT("{\"content\":\"a\\n\",\"num_lines\":null,\"total_lines\":null}"), "a\n",
	{.is_directory = true}},
    {{.command = CODE_EDIT_CREATE, .path = STR_INIT("a"), .text = STR_INIT("x")},
	"{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"x\"}",
	RESULT("{\"is_file_update\":true}"), "", {.is_update = true}},
    {{.command = CODE_EDIT_STR_REPLACE,
	 .path = STR_INIT("a"),
	 .old = STR_INIT("x"),
	 .text = STR_INIT("y")},
	"{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"x\",\"new_str\":\"y\"}",
	RESULT(
	    "{\"old_start\":1,\"old_lines\":1,\"new_start\":1,\"new_lines\":-9,\"lines\":[\"-x\","
	    "\"+y\"]}"),
	"-x\n+y\n", {.old_start = 1, .old_lines = 1, .new_start = 1}},
    {{.command = CODE_EDIT_CREATE, .path = STR_INIT("a")}, "\"create\"",
	RESULT("{\"error_code\":\"string_not_unique\",\"error_message\":null}"), "",
	{.error = CODE_EDIT_MANY_MATCHES}},
    {{.command = CODE_EDIT_CREATE, .path = STR_INIT("a")}, "\"create\"",
	RESULT("{\"error_code\":\"never_heard_of\"}"), "", {.error = CODE_EDIT_FAILED}},
};

Test(code_remote, edits_go_out_and_come_back)
{
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		struct sandbox_rig r;
		sandbox_rig_init(&r, "");
		r.exec[0].body = edits[i].answer;
		sandbox_rig_open(&r, NULL);
		code_session_edit(r.s, &edits[i].edit, 0, &sandbox_rig_ops, &r);
		sandbox_rig_wait(&r, &r.dones, 1);
		cr_assert(has(&r.log, "\"tool\":\"text_editor_code_execution\""));
		cr_assert(has(&r.log, edits[i].asked), "row %zu: %s", i, r.log.ptr);
		cr_assert(!r.has_failed && r.has_edit, "row %zu: %s", i, r.failed.msg);
		cr_assert_str_eq(r.out, edits[i].out, "row %zu: %s", i, r.out);
		cr_assert(memcmp(&r.edit, &edits[i].result, sizeof(r.edit)) == 0, "row %zu", i);
		sandbox_rig_done(&r);
	}
}
