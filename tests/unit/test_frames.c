#include <string.h>

#include <criterion/criterion.h>

#include "ipc/frames.h"

TestSuite(frames, .timeout = 10);

Test(frames, heads_outside_the_rules_are_refused)
{
	static const struct {
		const char *name;
		uint8_t raw[FRAME_HEAD];
		bool ok;
	} rows[] = {
	    {"smallest", {0, 0, 0, 0, FRAME_PUT, 0, 0, 0}, true},
	    {"largest", {0, 0, 1, 0, FRAME_FILE_DATA, 0, 0, 0}, true},
	    {"one over", {1, 0, 1, 0, FRAME_FILE_DATA, 0, 0, 0}, false},
	    {"length with the top bit", {0, 0, 0, 0x80, FRAME_PUT, 0, 0, 0}, false},
	    {"type 0", {0, 0, 0, 0, 0, 0, 0, 0}, false},
	    {"type over the last", {0, 0, 0, 0, FRAME_TYPE_END_, 0, 0, 0}, false},
	    {"padding", {0, 0, 0, 0, FRAME_PUT, 0, 0, 1}, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct frame_head h;
		cr_assert_eq(frame_head_get(rows[i].raw, &h), rows[i].ok, "%s", rows[i].name);
	}
	uint8_t raw[FRAME_HEAD];
	struct frame_head h;
	frame_head_put(raw, FRAME_RUN, 24);
	cr_assert(frame_head_get(raw, &h) && h.type == FRAME_RUN && h.len == 24);
}

Test(frames, paths_are_plain_and_relative)
{
	char deep16[64] = "", deep17[64], long_name[300], long_path[FRAME_PATH_MAX + 2];
	for (int i = 0; i < 16; i++)
		memcpy(deep16 + 2 * i, "d/", 2);
	memcpy(deep17, deep16, sizeof(deep17));
	deep17[32] = 'd';
	memset(long_name, 'n', sizeof(long_name));
	memset(long_path, 'n', sizeof(long_path));
	for (size_t i = 200; i < sizeof(long_path); i += 200)
		long_path[i] = '/';
	const struct {
		struct str path;
		bool ok;
	} rows[] = {
	    {STR("a"), true},
	    {STR("a/b.c"), true},
	    {STR("..."), true},
	    {STR(".a"), true},
	    {STR("a b\n\xff"), true},
	    {STR(""), false},
	    {STR("/"), false},
	    {STR("/a"), false},
	    {STR("a/"), false},
	    {STR("a//b"), false},
	    {STR("."), false},
	    {STR("./a"), false},
	    {STR("a/.."), false},
	    {STR("../a"), false},
	    {STR("a\0b"), false},
	    {str_n(deep16, 31), true},
	    {str_n(deep17, 33), false},
	    {str_n(long_name, 255), true},
	    {str_n(long_name, 256), false},
	    {str_n(long_path, FRAME_PATH_MAX), true},
	    {str_n(long_path, FRAME_PATH_MAX + 1), false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(frame_path_ok(rows[i].path), rows[i].ok, "row %zu: %.*s", i,
		    STR_FMT(rows[i].path));
}

/* Encodes, decodes, and checks that every shorter and longer payload is refused. */
#define ROUND_TRIP(name, value, text_len, check)                                                   \
	do {                                                                                       \
		struct frame_##name in = value, out;                                               \
		uint8_t p[FRAME_FIXED_MAX + 64] = {0};                                             \
		size_t n = frame_##name##_put(p, &in);                                             \
		cr_assert(frame_##name##_get(str_n(p, n), &out), #name);                           \
		cr_assert(check, #name);                                                           \
		for (size_t k = 0; k < n - (text_len); k++)                                        \
			cr_assert(!frame_##name##_get(str_n(p, k), &out), #name " %zu", k);        \
		if ((text_len) == 0)                                                               \
			cr_assert(!frame_##name##_get(str_n(p, n + 1), &out), #name " longer");    \
	} while (0)
#define V(...)                                                                                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

Test(frames, payloads_come_back_and_wrong_lengths_are_refused)
{
	ROUND_TRIP(file, V(1ull << 40, STR("a/b")), 2,
	    out.size == 1ull << 40 && str_eq(out.path, STR("a/b")));
	ROUND_TRIP(run, V(FRAME_KIND_PYTHON, 60000, 20, 77, 64ull << 20), 0,
	    out.kind == 0 && out.timeout_ms == 60000 && out.max_files == 20 &&
		out.source_bytes == 77 && out.max_bytes == 64ull << 20);
	ROUND_TRIP(ready, V(FRAME_VERSION, 2), 0, out.sys_errno == 2);
	ROUND_TRIP(put_done, V(-28), 0, out.sys_errno == -28);
	ROUND_TRIP(result, V(FRAME_RESULT_DIED, -1, 5), 0,
	    out.flags == FRAME_RESULT_DIED && out.return_code == -1 && out.exec_ms == 5);
	ROUND_TRIP(file_end, V(1), 0, out.whole == 1);
	ROUND_TRIP(omitted, V(9, FRAME_OMIT_BYTES, STR("x")), 0,
	    out.size == 9 && out.reason == FRAME_OMIT_BYTES && str_eq(out.path, STR("x")));
	ROUND_TRIP(end, V(20, 30, 4), 0, out.sent == 20 && out.omitted == 30 && out.skipped == 4);
	ROUND_TRIP(check, V(3, 1, 13, STR("mount")), 5,
	    out.layer == 3 && out.held == 1 && out.sys_errno == 13 &&
		str_eq(out.text, STR("mount")));
	ROUND_TRIP(edit, V(FRAME_EDIT_STR_REPLACE, -7, -1, STR("p"), STR("old"), STR("new!")), 4,
	    out.command == FRAME_EDIT_STR_REPLACE && out.first_line == -7 && out.last_line == -1 &&
		str_eq(out.path, STR("p")) && str_eq(out.old, STR("old")) &&
		str_eq(out.text, STR("new!")));
	ROUND_TRIP(convert, V(FRAME_EXTRACT_HTML, STR("a/b.html")), 7,
	    out.extractor == FRAME_EXTRACT_HTML && str_eq(out.path, STR("a/b.html")));
	ROUND_TRIP(edited, V(FRAME_EDIT_NOT_TEXT, 3, 1, 2, 3, 4, 5, 6, 7), 0,
	    out.error == FRAME_EDIT_NOT_TEXT && out.flags == 3 && out.first_line == 1 &&
		out.line_count == 2 && out.total_lines == 3 && out.old_start == 4 &&
		out.old_lines == 5 && out.new_start == 6 && out.new_lines == 7);
}

Test(frames, values_outside_the_rules_are_refused)
{
	uint8_t p[64];
	struct frame_run run = {FRAME_KIND_END_, 1, 1, 1, 1}, run_out;
	cr_assert(!frame_run_get(str_n(p, frame_run_put(p, &run)), &run_out), "kind");
	run = (struct frame_run){0, 0, 1, 1, 1};
	cr_assert(!frame_run_get(str_n(p, frame_run_put(p, &run)), &run_out), "no time");
	run = (struct frame_run){0, 1, 1, FRAME_SOURCE_MAX + 1, 1};
	cr_assert(!frame_run_get(str_n(p, frame_run_put(p, &run)), &run_out), "source");
	struct frame_result res = {FRAME_RESULT_FLAGS + 1, 0, 0}, res_out;
	cr_assert(!frame_result_get(str_n(p, frame_result_put(p, &res)), &res_out), "flags");
	struct frame_ready ready = {FRAME_VERSION + 1, 0}, ready_out;
	cr_assert(!frame_ready_get(str_n(p, frame_ready_put(p, &ready)), &ready_out),
	    "version"); /* K17 */
	struct frame_file file = {1, STR("../x")}, file_out;
	cr_assert(!frame_file_get(str_n(p, frame_file_put(p, &file)), &file_out), "path");
	struct frame_omitted om = {1, FRAME_OMIT_END_, STR("x")}, om_out;
	cr_assert(!frame_omitted_get(str_n(p, frame_omitted_put(p, &om)), &om_out), "reason");
	struct frame_check ck = {0, 0, 0, STR("a\nb")}, ck_out;
	cr_assert(!frame_check_get(str_n(p, frame_check_put(p, &ck)), &ck_out), "text");
	struct frame_edit ed = {.command = FRAME_EDIT_COMMAND_END_}, ed_out;
	cr_assert(!frame_edit_get(str_n(p, frame_edit_put(p, &ed)), &ed_out), "command");
	ed = (struct frame_edit){.path = STR("path"), .old = STR("o")};
	size_t n = frame_edit_put(p, &ed);
	p[12] = 6; /* over the end */
	cr_assert(!frame_edit_get(str_n(p, n), &ed_out), "path over the end");
	memset(p + 12, 0xff, 8); /* together past 32 bits */
	cr_assert(!frame_edit_get(str_n(p, n), &ed_out), "lengths that wrap");
	struct frame_convert cv = {FRAME_EXTRACT_END_, STR("p")}, cv_out;
	cr_assert(!frame_convert_get(str_n(p, frame_convert_put(p, &cv)), &cv_out), "extractor");
	cv = (struct frame_convert){FRAME_EXTRACT_PDF, STR("/etc/passwd")};
	cr_assert(!frame_convert_get(str_n(p, frame_convert_put(p, &cv)), &cv_out), "path");
	static const struct frame_edited wrong[] = {{.error = FRAME_EDIT_ERROR_END_}, {.flags = 4},
	    {.first_line = 1u << 31}, {.new_lines = UINT32_MAX}};
	struct frame_edited edited;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert(!frame_edited_get(str_n(p, frame_edited_put(p, &wrong[i])), &edited),
		    "edited %zu", i);
	struct frame_file_end fe = {2}, fe_out;
	cr_assert(!frame_file_end_get(str_n(p, frame_file_end_put(p, &fe)), &fe_out), "whole");
}
