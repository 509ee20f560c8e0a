/* Files out of a remote sandbox, and into it. */
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

TestSuite(code_remote_files, .timeout = 60, .init = no_sigpipe);

#define RESULT(content)                                                                            \
	"{\"result_block\":{\"type\":\"code_execution_tool_result\",\"content\":" content "}}"

/* --- files out ------------------------------------------------------------------------------- */

static const struct sandbox_file files[] = {
    {"a.txt", "AAAA", 0, false, false, 0, false},
    {"dir/b.txt", "BB", 0, true, false, 0, false},
    {"c.txt", "C", 0, false, false, 0, false},
    {"twenty", "12345678901234567890", 0, true, false, 0, false},
    {"twenty2", "abcdefghijklmnopqrst", 0, true, false, 0, false},
    {"gone", "", 404, false, false, 0, false},
    {"huge", "", 0, false, false, 1000000, false},
    {"cut", "123", 0, false, false, 9, false},
    {"endless", "", 0, false, true, 0, false},
    {"/work/abs", "abs", 0, false, false, 0, false},
    {"skip", "skipped", 0, false, false, 0, false},
    {"stuck", "", 0, false, false, 0, true},
    {NULL, NULL, 0, false, false, 0, false},
};

#define NAMED(names) RESULT("{\"stdout\":\"\",\"content\":[" names "]}")
#define OUTPUT(name)                                                                               \
	"{\"type\":\"code_execution_output\",\"file_id\":\"x\",\"filename\":\"" name "\"}"
#define LISTED(names) "{\"files\":[" names "]}"
#define FILE_AT(path, size, when)                                                                  \
	"{\"path\":\"" path "\",\"size_bytes\":" size ",\"modified_at\":" when "}"

static const struct {
	const char *exec, *before, *after, *got, *omitted;
	unsigned fetches;
} outputs[] = {
    /* named, without a listing that knows it */
    {NAMED(OUTPUT("a.txt")), LISTED(""), LISTED(""), "a.txt=AAAA;", "", 1},
    /* unfetchable: named, and the run stands */
    {NAMED(OUTPUT("gone")), LISTED(""), LISTED(""), "", "gone:2,", 1},
    /* found by the difference; what was there and did not change is left alone */
    {NAMED(""), LISTED(FILE_AT("c.txt", "1", "5")),
	LISTED(FILE_AT("c.txt", "1", "5") "," FILE_AT("dir/b.txt", "2", "6")), "dir/b.txt=BB;", "",
	1},
    /* rewritten: by time, by size */
    {NAMED(""), LISTED(FILE_AT("c.txt", "1", "5")), LISTED(FILE_AT("c.txt", "1", "\"6\"")),
	"c.txt=C;", "", 1},
    {NAMED(""), LISTED(FILE_AT("c.txt", "2", "5")), LISTED(FILE_AT("c.txt", "1", "5")), "c.txt=C;",
	"", 1},
    /* named first, then the rest in the listing's order; each once; two at most */
    {NAMED(OUTPUT("c.txt") "," OUTPUT("c.txt")), LISTED(""),
	LISTED(FILE_AT("a.txt", "4", "1") "," FILE_AT("c.txt", "1", "1") "," FILE_AT(
	    "dir/b.txt", "2", "1")),
	"c.txt=C;a.txt=AAAA;", "dir/b.txt:0,", 2},
    /* bytes: one that fits, one that crosses the limit while it comes, and is not kept */
    {NAMED(OUTPUT("twenty") "," OUTPUT("twenty2")), LISTED(""), LISTED(""),
	"twenty=12345678901234567890;twenty2=!", "", 2},
    /* announced too large: not a byte is read */
    {NAMED(OUTPUT("huge") "," OUTPUT("a.txt")), LISTED(""), LISTED(""), "a.txt=AAAA;", "huge:1,",
	2},
    /* listed as too large: not asked for */
    {NAMED(""), LISTED(""), LISTED(FILE_AT("a.txt", "33", "1") "," FILE_AT("c.txt", "1", "1")),
	"c.txt=C;", "a.txt:1,", 1},
    /* shorter than announced */
    {NAMED(OUTPUT("cut")), LISTED(""), LISTED(""), "cut=123!", "", 1},
    /* no listing */
    {NAMED(OUTPUT("a.txt")), "oops", "oops", "a.txt=AAAA;", "", 1},
    {NAMED(OUTPUT("a.txt")), "{\"files\":7}", "{}", "a.txt=AAAA;", "", 1},
    /* odd entries of both kinds */
    {NAMED("7,null,{},{\"filename\":7},{\"filename\":\"../x\"}," OUTPUT("a.txt")), LISTED(""),
	LISTED("7,{\"path\":\"../../etc\"},{\"path\":null},{\"size_bytes\":1},{\"path\":\"c.txt\","
	       "\"size_bytes\":\"x\"}"),
	"a.txt=AAAA;c.txt=C;", "", 2},
    /* the same one again and again, by other names of it */
    {NAMED(OUTPUT("a.txt") "," OUTPUT("./a.txt") "," OUTPUT("a.txt")), LISTED(""),
	LISTED(FILE_AT("a.txt", "4", "1") "," FILE_AT("/a.txt", "4", "2") "," FILE_AT(
	    ".//a.txt", "4", "3") "," FILE_AT("a.txt", "4", "4")),
	"a.txt=AAAA;", "", 1},
    /* no names */
    {NAMED(OUTPUT("") "," OUTPUT("a\\u0000.txt") "," OUTPUT("a//b") "," OUTPUT("..")), LISTED(""),
	LISTED(FILE_AT("a/./b", "1", "1") "," FILE_AT("/", "1", "1")), "", "", 0},
    /* sizes that are none, and that changed meanwhile */
    {NAMED(""), LISTED(""), LISTED(FILE_AT("a.txt", "-1", "1") "," FILE_AT("c.txt", "1e300", "1")),
	"a.txt=AAAA;c.txt=C;", "", 2},
    {NAMED(""), LISTED(""), LISTED(FILE_AT("a.txt", "1", "1")), "a.txt=AAAA;", "", 1},
    {NAMED(""), LISTED(""), LISTED(FILE_AT("/work/abs", "3", "1")), "work/abs=abs;", "", 1},
    {NAMED(OUTPUT("skip") "," OUTPUT("c.txt")), LISTED(""), LISTED(""), "skip=c.txt=C;", "", 2},
};

Test(code_remote_files, files_come_by_name_and_by_difference_within_the_limits)
{
	for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
		struct sandbox_rig r;
		sandbox_rig_init(&r, "");
		r.files = files;
		r.exec[0].body = outputs[i].exec;
		r.list[0].body = outputs[i].before;
		r.list[1] = (struct sandbox_answer){200, outputs[i].after};
		sandbox_rig_run(&r, "1");
		cr_assert(!r.has_failed, "row %zu: %s", i, r.failed.msg);
		cr_assert_str_eq(buf_str(&r.got).ptr, outputs[i].got, "row %zu: %s", i, r.got.ptr);
		cr_assert_str_eq(
		    buf_str(&r.omitted).ptr, outputs[i].omitted, "row %zu: %s", i, r.omitted.ptr);
		cr_assert_eq(r.fetches, outputs[i].fetches, "row %zu: %u", i, r.fetches);
		sandbox_rig_done(&r);
	}
}

Test(code_remote_files, a_model_is_told_of_so_many_files_and_not_of_all)
{
	struct sandbox_rig r;
	struct buf list = BUF_INIT(1u << 20);
	size_t told = 0;
	sandbox_rig_init(&r, "");
	buf_printf(&list, "{\"files\":[");
	for (int i = 0; i < 5000; i++)
		buf_printf(&list, "%s{\"path\":\"f%d\",\"size_bytes\":1000,\"modified_at\":1}",
		    i > 0 ? "," : "", i);
	buf_printf(&list, "]}");
	r.exec[0].body = NAMED("");
	r.list[0].body = LISTED("");
	r.list[1] = (struct sandbox_answer){200, list.ptr};
	sandbox_rig_run(&r, "1");
	cr_assert(!r.has_failed, "%s", r.failed.msg);
	for (size_t i = 0; i < r.omitted.len; i++)
		told += r.omitted.ptr[i] == ',' ? 1 : 0;
	cr_expect_eq(told, 256, "%zu", told);
	cr_expect(str_starts(buf_str(&r.omitted), STR("f0:1,f1:1,f2:0,")), "%s", r.omitted.ptr);
	sandbox_rig_done(&r);
	buf_done(&list);
}

Test(code_remote_files, an_endless_file_stops_at_the_limit)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.files = files;
	r.exec[0].body = NAMED(OUTPUT("endless") "," OUTPUT("c.txt"));
	sandbox_rig_run(&r, "1");
	cr_assert(!r.has_failed);
	/* 32 bytes and not one more were handed on, and the next one has all its room. */
	cr_assert_str_eq(r.got.ptr, "endless=12345678123456781234567812345678!c.txt=C;");
	sandbox_rig_done(&r);
}

Test(code_remote_files, all_files_of_a_call_share_one_deadline)
{
	struct sandbox_rig r;
	const struct code_config cfg = {.timeout_ms = 1000,
	    .max_files = 2,
	    .max_bytes = 32,
	    .output_bytes = 100,
	    .files_ms = 200};
	sandbox_rig_init(&r, "");
	code_backend_set_config(r.backend, &cfg);
	r.files = files;
	r.exec[0].body = NAMED(OUTPUT("stuck") "," OUTPUT("c.txt"));
	sandbox_rig_run(&r, "1");
	cr_assert(!r.has_failed);
	/* The second one is not even asked for: the first took all the time there was. */
	cr_assert_eq(r.fetches, 1, "%u", r.fetches);
	cr_assert_str_eq(buf_str(&r.got).ptr, "");
	cr_assert_str_eq(buf_str(&r.omitted).ptr, "stuck:2,c.txt:2,", "%s", r.omitted.ptr);
	sandbox_rig_done(&r);
}

Test(code_remote_files, the_next_call_is_compared_with_the_last_listing)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.files = files;
	r.list[1] = (struct sandbox_answer){200, LISTED(FILE_AT("a.txt", "4", "1"))};
	r.list[2] = (struct sandbox_answer){200, LISTED("")}; /* says nothing */
	r.list[3] = (struct sandbox_answer){
	    200, LISTED(FILE_AT("a.txt", "4", "1") "," FILE_AT("c.txt", "1", "1"))};
	sandbox_rig_run(&r, "1");
	cr_assert_str_eq(r.got.ptr, "a.txt=AAAA;");
	sandbox_rig_exec(&r, "2");
	cr_assert_eq(r.got.len, 0);
	sandbox_rig_exec(&r, "3");
	cr_assert_str_eq(r.got.ptr, "c.txt=C;");
	cr_assert_eq(r.lists, 4);
	sandbox_rig_done(&r);
}

Test(code_remote_files, a_sandbox_without_listings_is_asked_once)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.files = files;
	r.list[0] = (struct sandbox_answer){404, "{}"};
	r.exec[0].body = NAMED(OUTPUT("a.txt"));
	sandbox_rig_run(&r, "1");
	cr_assert_str_eq(r.got.ptr, "a.txt=AAAA;");
	sandbox_rig_exec(&r, "2");
	cr_assert(r.lists == 1 && r.execs == 2);
	sandbox_rig_done(&r);
}

Test(code_remote_files, without_files_none_is_asked_for)
{
	const struct code_config cfg = {.timeout_ms = 1000, .queue_ms = 100, .output_bytes = 100};
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	code_backend_set_config(r.backend, &cfg);
	r.files = files;
	r.exec[0].body = NAMED(OUTPUT("a.txt"));
	sandbox_rig_run(&r, "1");
	cr_assert_str_eq(r.omitted.ptr, "a.txt:0,");
	cr_assert(r.lists == 0 && r.fetches == 0);
	sandbox_rig_done(&r);
}

Test(code_remote_files, a_reader_that_pauses_gets_every_byte_later)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.files = files;
	r.pause_at_data = true;
	r.exec[0].body = NAMED(OUTPUT("twenty") "," OUTPUT("c.txt"));
	sandbox_rig_open(&r, NULL);
	code_session_exec(r.s, CODE_PYTHON, STR("1"), 0, &sandbox_rig_ops, &r);
	while (r.got.len == 0 || r.got.ptr[r.got.len - 1] == '=')
		(void)event_base_loop(r.base, EVLOOP_ONCE);
	sandbox_rig_turn(&r);
	cr_assert_str_eq(r.got.ptr, "twenty=12345678901234567890", "%s", r.got.ptr);
	r.pause_at_data = false;
	code_session_resume(r.s);
	sandbox_rig_wait(&r, &r.dones, 1);
	cr_assert_str_eq(r.got.ptr, "twenty=12345678901234567890;c.txt=C;");
	sandbox_rig_done(&r);
}

Test(code_remote_files, it_may_be_closed_inside_any_callback)
{
	for (int at = SANDBOX_CLOSE_AT_DATA; at <= SANDBOX_CLOSE_AT_DONE; at++) {
		struct sandbox_rig r;
		sandbox_rig_init(&r, "");
		r.files = files;
		r.close_at = at;
		r.exec[0].body = NAMED(OUTPUT("twenty"));
		sandbox_rig_open(&r, NULL);
		code_session_exec(r.s, CODE_PYTHON, STR("1"), 0, &sandbox_rig_ops, &r);
		sandbox_rig_wait(&r, &r.deletes, 1);
		cr_assert_eq(r.dones, at == SANDBOX_CLOSE_AT_DONE ? 1 : 0);
		sandbox_rig_done(&r);
	}
}

Test(code_remote_files, closed_while_it_runs_it_says_no_more)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	r.is_silent = true;
	sandbox_rig_open(&r, NULL);
	code_session_exec(r.s, CODE_PYTHON, STR("1"), 0, &sandbox_rig_ops, &r);
	sandbox_rig_wait(&r, &r.execs, 1);
	code_session_close(&r.s);
	sandbox_rig_wait(&r, &r.deletes, 1);
	cr_assert_eq(r.dones, 0);
	sandbox_rig_done(&r);
}

/* --- files in -------------------------------------------------------------------------------- */

Test(code_remote_files, a_file_is_put_as_a_form)
{
	struct sandbox_rig r;
	char boundary[128], expect[1024];
	sandbox_rig_init(&r, "t");
	sandbox_rig_open(&r, NULL);
	sandbox_rig_put(&r, "dir/na\"me\r.csv", "a,b\r\n--x");
	cr_assert(r.put_err.code == ERR_OK, "%s", r.put_err.msg);
	cr_assert(sscanf(r.put_type, "multipart/form-data; boundary=%100s", boundary) == 1);
	(void)snprintf(expect, sizeof(expect),
	    "--%s\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\ndir/na\"me\r.csv\r\n"
	    "--%s\r\nContent-Disposition: form-data; name=\"file\"; "
	    "filename=\"na%%22me%%0D.csv\"\r\nContent-Type: "
	    "text/csv\r\n\r\na,b\r\n--x\r\n--%s--\r\n",
	    boundary, boundary, boundary);
	cr_assert_str_eq(r.put_body.ptr, expect, "%s", r.put_body.ptr);
	/* What was put is no output of what runs then. */
	r.list[0].body = LISTED(FILE_AT("dir/x", "1", "1"));
	r.files = files;
	sandbox_rig_exec(&r, "1");
	cr_assert(r.got.len == 0 && r.lists == 2);
	sandbox_rig_done(&r);
}

Test(code_remote_files, a_refused_file_fails_and_the_session_stays)
{
	struct sandbox_rig r;
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	r.put = (struct sandbox_answer){413, ""};
	sandbox_rig_put(&r, "f", "xyz");
	cr_assert(r.put_err.code == ERR_TOOLARGE);
	sandbox_rig_put(&r, "../f", "xyz");
	cr_assert(r.put_err.code == ERR_INPUT);
	sandbox_rig_exec(&r, "1");
	cr_assert(!r.has_failed);
	sandbox_rig_done(&r);
	cr_assert_eq(r.deletes, 1);
}

struct pusher {
	struct sandbox_rig *r;
	unsigned left, dones;
	struct err err;
};

static void
push(void *arg)
{
	struct pusher *p = arg;
	while (p->left > 0) {
		p->left--;
		if (!code_session_put_data(p->r->s, STR("0123456789")))
			return;
	}
	code_session_put_end(p->r->s);
}

static void
on_pushed(const struct err *e, void *arg)
{
	struct pusher *p = arg;
	p->dones++;
	if (e != NULL)
		p->err = *e;
}

Test(code_remote_files, a_file_may_be_pushed)
{
	struct sandbox_rig r;
	struct pusher p = {.r = &r, .left = 60000};
	sandbox_rig_init(&r, "");
	sandbox_rig_open(&r, NULL);
	code_session_put_begin(r.s, STR("big"), 600000, push, on_pushed, &p);
	push(&p);
	sandbox_rig_wait(&r, &p.dones, 1);
	cr_assert(p.err.code == ERR_OK && p.left == 0, "%s", p.err.msg);
	cr_assert(r.put_body.len > 600000);
	/* less than was announced */
	p = (struct pusher){.r = &r, .left = 1};
	code_session_put_begin(r.s, STR("short"), 11, push, on_pushed, &p);
	push(&p);
	sandbox_rig_wait(&r, &p.dones, 1);
	cr_assert(p.err.code != ERR_OK);
	sandbox_rig_done(&r);
}
