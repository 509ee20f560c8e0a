#include <string.h>

#include <criterion/criterion.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "worker/turn/attach_plan.h"
#include "worker/turn/result_text.h"
#include "worker/upstream/failure.h"
#include "worker/upstream/target.h"

TestSuite(turn_text, .timeout = 10);

#define IS(s, lit) cr_assert(str_eq((s), STR(lit)), "got: %.*s", STR_FMT(s))

Test(turn_text, result_sections_and_error_marks)
{
	struct result_file files[] = {
	    {STR("chart.png"), STR("file-1")}, {STR("big.bin"), STR("")}, {STR(""), STR("")}};
	const struct edit_record part = {.first_line = 2, .line_count = 2, .total_lines = 9},
				 all = {.first_line = 1, .line_count = 1, .total_lines = 1},
				 list = {.is_directory = true}, none = {0},
				 made = {.answer = EDIT_ANSWER_CREATE},
				 over = {.answer = EDIT_ANSWER_CREATE, .is_update = true},
				 swap = {.answer = EDIT_ANSWER_REPLACE, .new_start = 4};
	const struct {
		struct result_text r;
		const char *text;
	} rows[] = {
	    {{.out = STR("42\n")}, "stdout:\n42\n"},
	    {{.out = STR("a"), .err = STR("b")}, "stdout:\na\nstderr:\nb"},
	    {{.err = STR("b")}, "[tool error] stderr:\nb"},
	    {{.out = STR("a"), .return_code = 1}, "[tool error] stdout:\na\nreturn_code: 1"},
	    {{.return_code = -9}, "[tool error] return_code: -9"},
	    {{.out = STR("")}, "(no output)"},
	    {{.failure = STR("gone"), .out = STR("x")}, "[tool error] gone"},
	    {{.files = files, .file_count = 3}, "files: chart.png (file_id: file-1), big.bin, ?"},
	    {{.out = STR("a\n"), .edit = &part, .path = STR("f")}, "[lines 2 to 3 of 9]\na\n"},
	    {{.out = STR("a\n"), .edit = &all}, "a\n"},
	    {{.out = STR("d/\n"), .edit = &list}, "d/\n"},
	    {{.out = STR(""), .edit = &none}, "(empty)"},
	    {{.edit = &made, .path = STR("f\x01"), .files = files, .file_count = 1},
		"created: f\xef\xbf\xbd\nfiles: chart.png (file_id: file-1)"},
	    {{.edit = &over, .path = STR("f")}, "written over: f"},
	    {{.out = STR("-a\n+b\n"), .edit = &swap, .path = STR("f")},
		"replaced in f, from line 4:\n-a\n+b\n"},
	    {{.out = STR(""), .edit = &swap, .path = STR("f")}, "nothing changed in f"},
	    {{.failure = STR("f: there is no such file"), .edit = &all},
		"[tool error] f: there is no such file"},
	    {{.out = STR("x"), .files = files, .file_count = 1},
		"stdout:\nx\nfiles: chart.png (file_id: file-1)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(4096);
		result_text_write(&rows[i].r, &b);
		cr_assert_eq(result_is_error(&rows[i].r), b.ptr[0] == '[' && b.ptr[1] == 't');
		cr_assert_str_eq(b.ptr, rows[i].text, "row %zu", i);
		buf_done(&b);
	}
}

Test(turn_text, an_edit_that_was_refused_says_why)
{
	static const struct {
		enum code_edit_error error;
		const char *path, *text, *code;
	} rows[] = {
	    {CODE_EDIT_NOT_FOUND, "a", "a: there is no such file", "file_not_found"},
	    {CODE_EDIT_INVALID, "/etc/x", "/etc/x: the path is outside", "invalid_tool_input"},
	    {CODE_EDIT_NO_MATCH, "a\x1b[1m", "a: old_str does not occur", "invalid_tool_input"},
	    {CODE_EDIT_MANY_MATCHES, "a", "a: old_str occurs more than once", "invalid_tool_input"},
	    {CODE_EDIT_NOT_TEXT, "a", "a: it is not a text file", "invalid_tool_input"},
	    {CODE_EDIT_TOO_LARGE, "a", "a: it is too large", "invalid_tool_input"},
	    {CODE_EDIT_FAILED, "a", "a: it could not be", "unavailable"},
	    {(enum code_edit_error)99, "a", "a: it could not be", "unavailable"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(4096);
		struct str code = result_edit_refusal(rows[i].error, str_c(rows[i].path), &b);
		cr_expect(str_starts(buf_str(&b), str_c(rows[i].text)), "%s", b.ptr);
		cr_expect(str_eq(code, str_c(rows[i].code)), "%s", rows[i].code);
		buf_done(&b);
	}
}

Test(turn_text, d5_d6_output_becomes_bounded_text)
{
	struct buf b = BUF_INIT(4 << 20);
	result_clean(str_n("a\0b\xff", 4), 4, STR(""), &b);
	cr_assert(str_eq(buf_str(&b), STR("a\xef\xbf\xbd"
					  "b\xef\xbf\xbd")));
	buf_clear(&b);
	result_clean(
	    STR("\x1b[31mred\x1b[0m\xff\x01\x1b]0;title\a.\x1b(B\tok\r\n\x1b["), 0, STR(""), &b);
	cr_assert(str_eq(buf_str(&b), STR("red\xef\xbf\xbd\xef\xbf\xbd.\tok\r\n")), "%s", b.ptr);
	buf_clear(&b);
	result_clean(STR("abc"), 900, STR(""), &b);
	cr_assert_neq(str_find(buf_str(&b), STR("900 bytes were written")), SIZE_MAX);
	buf_clear(&b);
	size_t n = RESULT_STREAM_MAX_BYTES + 1;
	char *big = mem_alloc(n + 2);
	memset(big, 'x', n + 2);
	memcpy(
	    big + RESULT_STREAM_MAX_BYTES - 1, "\xc3\xa9", 2); /* the cut falls into a character */
	result_clean(str_n(big, n + 2), n + 2, STR(""), &b);
	cr_assert_eq(b.ptr[RESULT_STREAM_MAX_BYTES - 2], 'x');
	cr_assert_eq(b.ptr[RESULT_STREAM_MAX_BYTES - 1], '\n');
	mem_free(big);
	buf_done(&b);
}

/* Whatever a terminal makes of it: no half of a character, and no line that goes with it. */
Test(turn_text, d6_a_broken_escape_takes_nothing_else_along)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
	    {"a\x1b\xc3\xa9z", "a\xc3\xa9z"},
	    {"a\x1b(\xe6\xbc\xa2", "a\xe6\xbc\xa2"},
	    {"a\x1b[3\xc3\xa9z", "a\xc3\xa9z"},
	    {"a\x1b[\n12\n34", "a\n12\n34"},
	    {"a\x1b\nb", "a\nb"},
	    {"\x1b]0;title\nnext line\n", "\nnext line\n"},
	    {"\x1b]0;title\x1b\\x", "x"},
	    {"\x1b]8;;http://x\x1b[1mb", "b"},
	    {"\x1b\x1b[1mb", "b"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = BUF_INIT(4096);
		cr_expect(!result_clean(str_c(rows[i].in), 0, STR(""), &b));
		cr_expect_str_eq(b.ptr, rows[i].out, "row %zu: %s", i, b.ptr);
		buf_done(&b);
	}
}

/* As much as a stream may hold, of the worst kinds: what we say of it is never lost. */
Test(turn_text, d5_the_longest_output_keeps_its_notes)
{
	static const struct str kinds[] = {STR_INIT("x"), STR_INIT("\x01"), STR_INIT("\xff"),
	    STR_INIT("\x80"), STR_INIT("\xff y"), STR_INIT("\x1b"), STR_INIT("\xe6\xbc\xa2")};
	size_t n = 1u << 20;
	char *big = mem_alloc(n);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct buf out = BUF_INIT(RESULT_CLEAN_MAX_BYTES),
			   text = BUF_INIT(RESULT_TEXT_MAX_BYTES);
		for (size_t i = 0; i < n; i++)
			big[i] = kinds[k].ptr[i % kinds[k].len];
		cr_expect(
		    result_clean(str_n(big, n), n, STR("[the time limit was exceeded]\n"), &out));
		cr_expect(!out.overflowed && utf8_valid(buf_str(&out)), "kind %zu", k);
		cr_expect(str_ends(buf_str(&out), STR("shown]\n[the time limit was exceeded]\n")));
		cr_expect_neq(str_find(buf_str(&out), STR("1048576 bytes were written")), SIZE_MAX);
		const struct result_text r = {
		    .out = buf_str(&out), .err = buf_str(&out), .return_code = 124};
		result_text_write(&r, &text);
		cr_expect(!text.overflowed && str_ends(buf_str(&text), STR("\nreturn_code: 124")));
		buf_done(&out);
		buf_done(&text);
	}
	mem_free(big);
}

Test(turn_text, names_of_files_are_bounded_and_stay_on_their_line)
{
	static struct result_file files[1000];
	char name[3000];
	struct buf text = BUF_INIT(RESULT_TEXT_MAX_BYTES);
	memset(name, 'n', sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		files[i] = (struct result_file){str_n(name, sizeof(name)), STR("file-1")};
	files[0].name = STR("a\nfiles: b (file_id: file-2)\x1b[1m");
	result_text_write(&(struct result_text){.files = files, .file_count = 1000}, &text);
	cr_expect(!text.overflowed && text.len < 2 * RESULT_FILES_BYTES);
	cr_expect(str_starts(buf_str(&text),
	    STR("files: a\xef\xbf\xbd"
		"files: b (file_id: file-2)\xef\xbf\xbd[1m (file_id: file-1), nnn")));
	cr_expect(str_ends(buf_str(&text), STR(" more")));
	buf_done(&text);
}

static struct part *
add_part(struct conversation *c, enum part_kind kind, enum media_source source, const char *file_id)
{
	if (c->messages == NULL) {
		c->messages = c->last = ARENA_NEW(c->arena, struct message);
		c->messages->role = MESSAGE_USER;
	}
	struct part *p = ARENA_NEW(c->arena, struct part);
	p->kind = kind;
	p->media.source = source;
	p->media.file_id = str_c(file_id);
	p->raw = STR("{}");
	struct part **end = &c->messages->parts;
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	return p;
}

Test(turn_text, attachments_are_collected_once_and_named_apart)
{
	struct arena *a = arena_new(1 << 18);
	struct conversation c = {.arena = a};
	struct part *up = add_part(&c, PART_UPLOAD, MEDIA_FILE_ID, "f1");
	struct part *doc = add_part(&c, PART_DOCUMENT, MEDIA_FILE_ID, "f1");
	(void)add_part(&c, PART_UPLOAD, MEDIA_FILE_ID, "f2");
	struct part *lost = add_part(&c, PART_UPLOAD, MEDIA_FILE_ID, "f3");
	(void)add_part(&c, PART_IMAGE, MEDIA_URL, "");
	struct str more[] = {STR("f4"), STR("f2")};
	struct tool claimed = {.container_files = more, .container_file_count = 2};
	struct attach_plan plan;
	cr_assert_eq(attach_collect(&c, ATTACH_SANDBOX, &claimed, &plan, NULL), ERR_OK);
	cr_assert_eq(plan.count, 4);
	struct attachment *f1 = plan.first, *f2 = f1->next, *f3 = f2->next, *f4 = f3->next;
	cr_assert(f1->for_sandbox && f1->for_model && f2->for_sandbox && !f2->for_model);
	cr_assert(f4->for_sandbox && !f4->for_model);
	f1->is_found = f2->is_found = f4->is_found = true;
	f1->filename = STR("data.csv");
	f2->filename = STR("../dir\\data.csv");
	f4->filename = STR("..");
	f1->content = STR("x,y\n");
	f1->is_text = true;
	attach_name(a, &plan);
	IS(f1->name, "data.csv");
	IS(f2->name, "data-2.csv");
	IS(f4->name, "file");
	attach_rewrite(&c, &plan);
	cr_assert_eq(up->kind, PART_TEXT);
	cr_assert_neq(str_find(up->text, STR("data.csv")), SIZE_MAX);
	cr_assert_null(up->raw.ptr);
	cr_assert_neq(str_find(doc->text, STR("x,y\n")), SIZE_MAX);
	cr_assert_eq(lost->kind, PART_UPLOAD, "an unresolved reference is left as it is");
	IS(lost->raw, "{}");
	arena_free(&a);
}

Test(turn_text, without_a_sandbox_an_upload_is_shown_as_a_document)
{
	struct arena *a = arena_new(1 << 16);
	struct conversation c = {.arena = a};
	struct part *up = add_part(&c, PART_UPLOAD, MEDIA_FILE_ID, "f1");
	struct part *picture = add_part(&c, PART_DOCUMENT, MEDIA_FILE_ID, "f1");
	struct attach_plan plan;
	cr_assert_eq(attach_collect(&c, ATTACH_NOWHERE, NULL, &plan, NULL), ERR_OK);
	cr_assert(plan.first->for_model && !plan.first->for_sandbox);
	plan.first->is_found = true;
	plan.first->filename = STR("a.png");
	plan.first->mime_type = STR("image/png");
	plan.first->content = STR("iVBO");
	attach_name(a, &plan);
	attach_rewrite(&c, &plan);
	cr_assert_eq(up->kind, PART_IMAGE);
	cr_assert_eq(picture->kind, PART_IMAGE, "a file that is a picture");
	cr_assert_eq(up->media.source, MEDIA_BASE64);
	IS(up->media.data, "iVBO");
	cr_assert_null(up->media.file_id.ptr);
	arena_free(&a);
}

Test(turn_text, too_many_files_are_refused)
{
	struct arena *a = arena_new(1 << 20);
	struct conversation c = {.arena = a};
	struct attach_plan plan;
	for (int i = 0; i <= (int)ATTACH_FILES_MAX; i++) {
		struct part *p = add_part(&c, PART_UPLOAD, MEDIA_FILE_ID, "");
		p->media.file_id = arena_printf(a, "f%d", i);
	}
	cr_assert_eq(attach_collect(&c, ATTACH_SANDBOX, NULL, &plan, NULL), ERR_INPUT);
	arena_free(&a);
}

/* Bounded by the suite's time: this took minutes when each was compared with all before it. */
Test(turn_text, very_many_files_are_refused_at_once)
{
	struct arena *a = arena_new(256u << 20);
	struct conversation c = {.arena = a};
	struct attach_plan plan;
	struct message *m = conversation_add(&c, MESSAGE_USER);
	for (int i = 0; i < 150000; i++) {
		struct part *p = message_add(&c, m, PART_DOCUMENT);
		p->media.source = MEDIA_FILE_ID;
		p->media.file_id = arena_printf(a, "f%d", i);
	}
	cr_assert_eq(attach_collect(&c, ATTACH_NOWHERE, NULL, &plan, NULL), ERR_INPUT);
	arena_free(&a);
}

/* OpenAI's clients decide by them: to compact the conversation, not to try again. */
Test(turn_text, a_failure_keeps_the_words_that_programs_act_on)
{
	static const struct {
		int upstream;
		const char *body, *code, *param;
	} words[] = {
	    {400, "{\"error\":{\"code\":\"context_length_exceeded\",\"param\":\"messages[2]\"}}",
		"context_length_exceeded", "messages[2]"},
	    {429, "{\"error\":{\"code\":\"insufficient_quota\",\"param\":null}}",
		"insufficient_quota", ""},
	    {400, "{\"error\":{\"code\":\"no word\\n\",\"param\":7}}", "", ""},
	    {400, "{\"error\":{\"code\":\"sk_secret_1\"}}", "***********", ""},
	    {401, "{\"error\":{\"code\":\"invalid_api_key\"}}", "", ""},
	};
	const struct target target = {.key = STR("sk_secret_1")};
	struct arena *a = arena_new(1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct failure f;
		failure_from_status(
		    a, words[i].upstream, str_c(words[i].body), STR(""), &target, &f);
		cr_expect(str_eq(f.code, str_c(words[i].code)), "%zu: %.*s", i, STR_FMT(f.code));
		cr_expect(str_eq(f.param, str_c(words[i].param)), "%zu: %.*s", i, STR_FMT(f.param));
	}
	arena_free(&a);
}

Test(turn_text, failures_never_blame_the_client_for_our_credential)
{
	struct arena *a = arena_new(1 << 20);
	static const struct {
		int upstream, status;
		const char *body, *says;
	} rows[] = {
	    {400, 400, "{\"error\":{\"message\":\"bad temperature\"}}", "bad temperature"},
	    {400, 400, "not json", "the provider refused the request"},
	    {401, 502, "{\"error\":{\"message\":\"sk-secret-1 is wrong\"}}",
		"the provider did not accept the gateway's credential"},
	    {403, 502, "{}", "the provider did not accept the gateway's credential"},
	    {404, 404, "{\"error\":\"no such model\"}", "no such model"},
	    {422, 400, "{\"message\":\"m\"}", "m"},
	    {429, 429, "{\"type\":\"error\",\"error\":{\"message\":\"slow down\"}}", "slow down"},
	    {500, 502, "{\"error\":{\"message\":\"stack trace\"}}",
		"the provider failed to answer"},
	    {529, 529, "{}", "the provider is overloaded"},
	    {302, 502, "", "the provider failed to answer"},
	    {400, 400, "{\"error\":{\"message\":\"key sk-secret-1 in use\"}}",
		"key *********** in use"},
	    {400, 400, "{\"error\":{\"message\":\"you sent x-team-key: team-secret\"}}",
		"you sent x-team-key: ***********"},
	    {400, 400, "{\"error\":{\"message\":\"Authorization: Bearer other-1 team-note\"}}",
		"Authorization: Bearer ******* team-note"},
	};
	struct target_header headers[] = {
	    {STR("X-Team-Key"), STR("team-secret")},
	    {STR("authorization"), STR("Bearer other-1")},
	    {STR("x-note"), STR("team-note")},
	};
	const struct target target = {
	    .key = STR("sk-secret-1"), .headers = headers, .header_count = ARRAY_LEN(headers)};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct failure f;
		failure_from_status(
		    a, rows[i].upstream, str_c(rows[i].body), STR("7"), &target, &f);
		cr_assert_eq(f.status, rows[i].status, "row %zu", i);
		cr_assert(
		    str_eq(f.message, str_c(rows[i].says)), "row %zu: %.*s", i, STR_FMT(f.message));
		IS(f.retry_after, "7");
	}
	static const char *const bad[] = {
	    "", "x", "-1", "1234567", "Wed, 21 Oct 2015 07:28:00 GMT", "1\r\nX: y"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct failure f;
		failure_from_status(a, 429, STR(""), str_c(bad[i]), &target, &f);
		cr_assert_eq(f.retry_after.len, 0, "%s", bad[i]);
	}
	arena_free(&a);
}
