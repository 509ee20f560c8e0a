#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "sandbox/edit/edit.h"

TestSuite(edit, .timeout = 20);

Test(edit, paths_are_taken_below_the_working_directory)
{
	static const struct {
		const char *in, *out; /* NULL: refused */
	} rows[] = {
	    {"a.txt", "a.txt"},
	    {"./a//b/./c.txt", "a/b/c.txt"},
	    {"/work/a.txt", "a.txt"},
	    {"/mnt/data/sub/a.txt", "sub/a.txt"},
	    {"/work", ""},
	    {"/work/", ""},
	    {".", ""},
	    {"a/../b", "b"},
	    {"a/b/../../c/", "c"},
	    {"/work/x/..", ""},
	    {"a b/\xff", "a b/\xff"},
	    {"", NULL},
	    {"/", NULL},
	    {"/etc/passwd", NULL},
	    {"/workshop/a", NULL},
	    {"/mnt/database", NULL},
	    {"..", NULL},
	    {"a/../../b", NULL},
	    {"/work/../etc/passwd", NULL},
	    {"/mnt/data/../../etc/passwd", NULL},
	    {"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", NULL},
	};
	char dst[FRAME_PATH_MAX];
	struct str got;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool ok = edit_path(str_c(rows[i].in), dst, &got);
		cr_assert_eq(ok, rows[i].out != NULL, "%s", rows[i].in);
		if (ok)
			cr_assert(
			    str_eq(got, str_c(rows[i].out)), "%s: %.*s", rows[i].in, STR_FMT(got));
	}
	cr_assert(!edit_path(str_n("a\0b", 3), dst, &got));
	static char longest[2 * FRAME_PATH_MAX];
	memset(longest, 'n', sizeof(longest));
	cr_assert(!edit_path(str_n(longest, sizeof(longest)), dst, &got));
	for (size_t i = 200; i < sizeof(longest); i += 200)
		longest[i] = '/';
	cr_assert(edit_path(str_n(longest, FRAME_PATH_MAX), dst, &got));
	cr_assert(!edit_path(str_n(longest, FRAME_PATH_MAX + 1), dst, &got));
}

Test(edit, only_text_is_text)
{
	cr_assert(edit_is_text(STR("")) && edit_is_text(STR("a\n\t\xc3\xa9")));
	cr_assert(!edit_is_text(STR("a\0b")) && !edit_is_text(STR("\xff")));
	cr_assert(!edit_is_text(STR("\xed\xa0\x80")) && !edit_is_text(STR("cut \xc3")));
}

Test(edit, a_view_is_a_range_of_lines)
{
	static const struct {
		const char *text;
		int32_t first, last;
		const char *view; /* NULL: refused */
		uint32_t at, count, total;
	} rows[] = {
	    {"a\nb\nc\n", 0, 0, "a\nb\nc\n", 1, 3, 3},
	    {"a\nb\nc", 0, 0, "a\nb\nc", 1, 3, 3},
	    {"a\nb\nc", 2, 2, "b\n", 2, 1, 3},
	    {"a\nb\nc", 2, -1, "b\nc", 2, 2, 3},
	    {"a\nb\nc", 3, 99, "c", 3, 1, 3},
	    {"\n\n", 2, 2, "\n", 2, 1, 2},
	    {"", 0, 0, "", 1, 0, 0},
	    {"", 1, -1, NULL, 0, 0, 0},
	    {"a\n", 2, -1, NULL, 0, 0, 0},
	    {"a\nb\n", 2, 1, NULL, 0, 0, 0},
	    {"a\n", 0, 1, NULL, 0, 0, 0},
	    {"a\n", -1, -1, NULL, 0, 0, 0},
	    {"a\n", 1, -2, NULL, 0, 0, 0},
	    {"a\n", 1, 0, NULL, 0, 0, 0},
	    {"a\n", INT32_MIN, INT32_MAX, NULL, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct edit_view v;
		bool ok = edit_view_lines(str_c(rows[i].text), rows[i].first, rows[i].last, &v);
		cr_assert_eq(ok, rows[i].view != NULL, "row %zu", i);
		if (!ok)
			continue;
		cr_assert(str_eq(v.text, str_c(rows[i].view)), "row %zu: %.*s", i, STR_FMT(v.text));
		cr_assert(v.first_line == rows[i].at && v.line_count == rows[i].count &&
			      v.total_lines == rows[i].total,
		    "row %zu: %u %u %u", i, v.first_line, v.line_count, v.total_lines);
	}
}

Test(edit, one_match_is_replaced_none_and_many_are_told)
{
	char dst[16];
	size_t n = 0;
	struct str f = STR("aXbbXc");
	cr_assert_eq(edit_replace(f, STR("bb"), STR("-"), dst, sizeof(dst), &n), FRAME_EDIT_OK);
	cr_assert(str_eq(str_n(dst, n), STR("aX-Xc")), "%.*s", (int)n, dst);
	cr_assert_eq(edit_replace(f, STR("aXbbXc"), STR(""), dst, sizeof(dst), &n), FRAME_EDIT_OK);
	cr_assert_eq(n, 0u);
	cr_assert_eq(
	    edit_replace(f, STR("X"), STR("-"), dst, sizeof(dst), &n), FRAME_EDIT_MANY_MATCHES);
	cr_assert_eq(
	    edit_replace(f, STR("y"), STR("-"), dst, sizeof(dst), &n), FRAME_EDIT_NO_MATCH);
	cr_assert_eq(edit_replace(f, STR(""), STR("-"), dst, sizeof(dst), &n), FRAME_EDIT_NO_MATCH);
	cr_assert_eq(
	    edit_replace(STR(""), STR("a"), STR("-"), dst, sizeof(dst), &n), FRAME_EDIT_NO_MATCH);
	cr_assert_eq(
	    edit_replace(STR("aXbbXcLonger"), STR("bb"), STR("0123456789"), dst, sizeof(dst), &n),
	    FRAME_EDIT_TOO_LARGE);
	cr_assert_eq(edit_replace(STR("ab\0c\xff"), STR("\0c"), STR("\0\0"), dst, sizeof(dst), &n),
	    FRAME_EDIT_OK);
	cr_assert(str_eq(str_n(dst, n), STR("ab\0\0\xff")));
}

static const struct {
	const char *a, *b, *hunk;
	struct edit_hunk at;
} diffs[] = {
    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
	" 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n", {2, 7, 2, 7}},
    {"a\nb\n", "A\nb\n", "-a\n+A\n b\n", {1, 2, 1, 2}},
    {"a\nb\nc\n", "a\nc\n", " a\n-b\n c\n", {1, 3, 1, 2}},
    {"a\nc\n", "a\nb\nc\n", " a\n+b\n c\n", {1, 2, 1, 3}},
    {"a\nb\n", "xb\n", "-a\n-b\n+xb\n", {1, 2, 1, 1}}, /* two lines became one */
    {"ab\n", "a\nb\n", "-ab\n+a\n+b\n", {1, 1, 1, 2}},
    {"a", "a\n", "-a\n+a\n", {1, 1, 1, 1}}, /* the last line's end */
    {"a\n", "", "-a\n", {1, 1, 0, 0}},
    {"", "a\nb", "+a\n+b\n", {0, 0, 1, 2}},
    {"x", "x\nx", "+x\n x\n", {1, 1, 1, 2}},
    {"a\na\na\na\na\n", "a\na\na\na\na\na\n", " a\n a\n a\n+a\n", {3, 3, 3, 4}},
    {"same\n", "same\n", "", {0, 0, 0, 0}},
    {"", "", "", {0, 0, 0, 0}},
};

Test(edit, a_diff_is_one_hunk_with_three_lines_around)
{
	for (size_t i = 0; i < sizeof(diffs) / sizeof(diffs[0]); i++) {
		char dst[200];
		size_t n;
		struct edit_hunk h;
		cr_assert(
		    edit_diff(str_c(diffs[i].a), str_c(diffs[i].b), dst, sizeof(dst), &n, &h));
		cr_assert(
		    str_eq(str_n(dst, n), str_c(diffs[i].hunk)), "row %zu: %.*s", i, (int)n, dst);
		cr_assert(h.old_start == diffs[i].at.old_start &&
			      h.old_lines == diffs[i].at.old_lines &&
			      h.new_start == diffs[i].at.new_start &&
			      h.new_lines == diffs[i].at.new_lines,
		    "row %zu: %u,%u %u,%u", i, h.old_start, h.old_lines, h.new_start, h.new_lines);
		for (size_t room = 0; room < n; room++)
			cr_assert(
			    !edit_diff(str_c(diffs[i].a), str_c(diffs[i].b), dst, room, &n, &h),
			    "row %zu in %zu", i, room);
	}
}
