/* The code-execution protocol's texts, as server and as client. */
#include <string.h>

#include <criterion/criterion.h>

#include "worker/code/protocol.h"

TestSuite(protocol, .timeout = 20);

static const struct {
	const char *body;
	enum err_code code;
	const char *says;
} bad[] = {
    {"", ERR_INPUT, "not a JSON object"},
    {"[]", ERR_INPUT, "not a JSON object"},
    {"{\"tool\":\"rm\",\"input\":{}}", ERR_UNSUPPORTED, "tool: unknown kind"},
    {"{\"input\":{\"code\":\"1\"}}", ERR_UNSUPPORTED, "tool"},
    {"{\"tool\":\"code_execution\",\"tool\":\"bash_code_execution\",\"input\":{}}", ERR_INPUT,
	"tool"},
    {"{\"tool\":\"code_execution\",\"input\":\"1\"}", ERR_INPUT, "input: not an object"},
    {"{\"tool\":\"code_execution\",\"input\":{}}", ERR_INPUT, "input.code: missing"},
    {"{\"tool\":\"code_execution\",\"input\":{\"code\":7}}", ERR_INPUT, "input.code: not a string"},
    {"{\"tool\":\"bash_code_execution\",\"input\":{\"code\":\"1\"}}", ERR_INPUT,
	"input.command: missing"},
    {"{\"tool\":\"code_execution\",\"input\":{\"code\":\"1\"},\"timeout_seconds\":0}", ERR_INPUT,
	"timeout_seconds"},
    {"{\"tool\":\"code_execution\",\"input\":{\"code\":\"1\"},\"timeout_seconds\":601}", ERR_INPUT,
	"timeout_seconds"},
    {"{\"tool\":\"text_editor_code_execution\",\"input\":{\"command\":\"view\"}}", ERR_INPUT,
	"input.path"},
    {"{\"tool\":\"text_editor_code_execution\",\"input\":{\"command\":\"undo\",\"path\":\"a\"}}",
	ERR_INPUT, "input.command"},
    {"{\"tool\":\"text_editor_code_execution\",\"input\":{\"command\":\"create\",\"path\":\"a\"}}",
	ERR_INPUT, "input.file_text"},
    {"{\"tool\":\"text_editor_code_execution\",\"input\":{\"command\":\"view\",\"path\":\"a\","
     "\"view_range\":[1]}}",
	ERR_INPUT, "input.view_range"},
};

Test(protocol, a_server_names_what_is_wrong_with_a_call)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct arena *a = arena_new(1u << 20);
		struct protocol_exec x;
		struct err e;
		cr_assert(
		    protocol_read_exec(a, str_c(bad[i].body), &x, &e) == bad[i].code, "row %zu", i);
		cr_assert(strstr(e.msg, bad[i].says) != NULL, "row %zu: %s", i, e.msg);
		arena_free(&a);
	}
}

/* What a client writes is what the server reads. */
Test(protocol, calls_arrive_as_they_were_meant)
{
	struct arena *a = arena_new(1u << 20);
	struct buf input = BUF_INIT(65536), body = BUF_INIT(65536);
	struct protocol_exec x;
	struct err e;
	protocol_write_program(CODE_BASH, STR("echo \"a\"\n"), &input);
	protocol_write_exec(CODE_BASH, buf_str(&input), 1001, &body);
	cr_assert(protocol_read_exec(a, buf_str(&body), &x, &e) == ERR_OK, "%s", e.msg);
	cr_assert(x.kind == CODE_BASH && str_eq(x.program, STR("echo \"a\"\n")));
	cr_assert(x.timeout_ms == 2000 && x.tool_use_id.len == 0);
	const struct code_edit edits[] = {
	    {.command = CODE_EDIT_VIEW, .path = STR("p"), .first_line = 3, .last_line = -1},
	    {.command = CODE_EDIT_CREATE, .path = STR("p"), .text = STR("x\ty")},
	    {.command = CODE_EDIT_STR_REPLACE, .path = STR("p"), .old = STR("o"), .text = STR("")},
	};
	for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
		buf_clear(&input);
		buf_clear(&body);
		protocol_write_edit(&edits[i], &input);
		protocol_write_exec(CODE_EDITOR, buf_str(&input), 1000, &body);
		cr_assert(protocol_read_exec(a, buf_str(&body), &x, &e) == ERR_OK, "%s", e.msg);
		cr_assert(x.kind == CODE_EDITOR && x.edit.command == edits[i].command);
		cr_assert(str_eq(x.edit.path, edits[i].path) && str_eq(x.edit.old, edits[i].old) &&
			  str_eq(x.edit.text, edits[i].text));
		cr_assert(x.edit.first_line == edits[i].first_line &&
			  x.edit.last_line == edits[i].last_line);
	}
	buf_done(&input);
	buf_done(&body);
	arena_free(&a);
}

static void
there_and_back(struct arena *a, const struct protocol_exec *x, const struct code_result *r,
    struct protocol_result *ret)
{
	struct buf body = BUF_INIT(1u << 20);
	struct err e;
	protocol_write_result(x, r, &body);
	cr_assert(protocol_read_result(a, x->kind, arena_str(a, buf_str(&body)), ret, &e) == ERR_OK,
	    "%s: %s", e.msg, body.ptr);
	buf_done(&body);
}

Test(protocol, results_arrive_as_they_were)
{
	struct arena *a = arena_new(1u << 20);
	struct protocol_exec x = {.kind = CODE_PYTHON, .tool_use_id = STR("t1")};
	const struct code_omitted made[] = {{STR("a.txt"), 1, 0}, {STR("dir/b\n.txt"), 1, 0}};
	struct code_result r = {.timed_out = true,
	    .return_code = 124,
	    .out = STR("out"),
	    .err = STR("e\"\xc3\xa4"),
	    .out_total = 3000,
	    .err_total = 5,
	    .omitted = made,
	    .omitted_count = 2,
	    .exec_ms = 12};
	struct protocol_result got;
	there_and_back(a, &x, &r, &got);
	cr_assert(got.timed_out && got.return_code == 124 && got.exec_ms == 12);
	cr_assert(str_eq(got.out, r.out) && str_eq(got.err, r.err));
	cr_assert(got.out_total == 3000 && got.err_total == 5);
	cr_assert(got.file_count == 2 && str_eq(got.files[1], STR("dir/b\n.txt")));
	for (int e = CODE_EDIT_OK; e <= CODE_EDIT_FAILED; e++) {
		const struct code_edit_result edit = {.error = (enum code_edit_error)e,
		    .first_line = 1,
		    .line_count = 2,
		    .total_lines = 9};
		x.kind = CODE_EDITOR;
		x.edit.command = CODE_EDIT_VIEW;
		r = (struct code_result){.out = STR("x\ny\n"), .edit = &edit};
		there_and_back(a, &x, &r, &got);
		cr_assert(got.has_edit && got.edit.error == edit.error, "%d", e);
		cr_assert(
		    e != CODE_EDIT_OK || (str_eq(got.out, r.out) && got.edit.total_lines == 9));
	}
	const struct code_edit_result listed = {.is_directory = true};
	r = (struct code_result){.out = STR("a\n"), .edit = &listed};
	there_and_back(a, &x, &r, &got);
	cr_assert(got.edit.is_directory && str_eq(got.out, STR("a\n")));
	const struct code_edit_result replaced = {
	    .old_start = 1, .old_lines = 2, .new_start = 1, .new_lines = 3};
	x.edit.command = CODE_EDIT_STR_REPLACE;
	r = (struct code_result){.out = STR("-a\n+b\n \n"), .edit = &replaced};
	there_and_back(a, &x, &r, &got);
	cr_assert(str_eq(got.out, r.out) && got.edit.new_lines == 3, "%.*s", STR_FMT(got.out));
	arena_free(&a);
}

Test(protocol, paths_stay_in_the_working_directory)
{
	static const struct {
		const char *path, *name;
	} rows[] = {{"a", "a"}, {"a/b c", "a/b c"}, {"./a", "a"}, {"/work/a", "a"}, {"", NULL},
	    {"/etc/passwd", NULL}, {"..", NULL}, {"a/../../b", NULL}, {"/work/../a", NULL},
	    {"/work/", NULL}, {"a//b", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str name;
		bool ok = protocol_read_path(str_c(rows[i].path), &name);
		cr_assert(ok == (rows[i].name != NULL), "%s", rows[i].path);
		cr_assert(!ok || str_eq(name, str_c(rows[i].name)), "%s", rows[i].path);
	}
	char when[PROTOCOL_TIME_SIZE];
	protocol_write_time(1785628800123456789u, when);
	cr_assert_str_eq(when, "2026-08-02T00:00:00.123456789Z");
}
