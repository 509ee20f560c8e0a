/* Files that go into the sandbox with a request and come out of it. Rows E of the list of public
 * bug reports, and numbers of the acceptance list (tests/BEHAVIOUR.md). */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(code_files, .timeout = 240);

static struct text
upload(struct server *s, const char *name, const char *bytes)
{
	struct reply r;
	struct text id;

	server_upload(s, "/v1/files", name, "text/csv", str_c(bytes), "user_data", NULL, &r);
	cr_assert_eq(r.status, 200, "%s: %s", name, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(id.s, sizeof(id.s), str_c(at(root, "id"))));
	json_decref(root);
	reply_done(&r);
	return id;
}

#define UPLOADED "{\"type\":\"container_upload\",\"file_id\":\"%s\"}"

/* A user message: these files, then the text. */
static char *
message(const struct text *ids, size_t n, const char *text)
{
	struct buf b = BUF_INIT(65536);

	buf_add(&b, STR("{\"role\":\"user\",\"content\":["));
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s" UPLOADED, i > 0 ? "," : "", ids[i].s);
	if (text != NULL)
		buf_printf(&b, "%s{\"type\":\"text\",\"text\":\"%s\"}", n > 0 ? "," : "", text);
	buf_add(&b, STR("]}"));
	char *s = mem_strndup(b.ptr, b.len);
	buf_done(&b);
	return s;
}

static void
ask_with(struct server *s, const char *model, const char *tool, const char *header, char *talk,
    struct reply *r)
{
	const char *const headers[] = {header, NULL};
	char *body = talk_body(MESSAGES, model, tool, false, talk, "");

	server_ask(s, "POST", MESSAGES, str_c(body),
	    &(struct ask_opts){.headers = header != NULL ? headers : NULL}, r);
	mem_free(body);
	mem_free(talk);
}

#define READ "run: print(open('data.csv').read())"

/* Whoever runs the code decides: here the file is put beside it, and the model reads its name. */
Test(code_files, n37_n38_e4_files_go_where_the_code_runs)
{
	static const struct {
		const char *name, *model, *tool, *header;
		const char *pin; /* of the workspace */
		bool here;
	} rows[] = {
	    {"explicit", "claude:tool", OURS, NULL, NULL, true},
	    {"not native", "fake:tool", DATED, NULL, NULL, true},
	    {"not native, bare", "claude:tool", BARE, NULL, NULL, true},
	    {"native", "claude:tool", DATED, NULL, NULL, false},
	    {"header", "claude:tool", DATED, "Otari-Code-Execution: otari", NULL, true},
	    {"header", "claude:tool", BARE, "Otari-Code-Execution: provider", NULL, false},
	    {"pin", "claude:tool", DATED, NULL, "otari", true},
	    {"pin", "claude:tool", BARE, NULL, "provider", false},
	};
	struct server *s = start_with_sandbox();
	struct text id = upload(s, "data.csv", "month,sum\njune,4711\n");
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char policy[128];
		(void)snprintf(policy, sizeof(policy), "{\"enabled\":true,\"executor\":%s%s%s}",
		    rows[i].pin != NULL ? "\"" : "", rows[i].pin != NULL ? rows[i].pin : "null",
		    rows[i].pin != NULL ? "\"" : "");
		put_policy(s, policy);
		if (strcmp(rows[i].name, "native") == 0)
			provider_answers(s, "{\"id\":\"file_copy\"}", false);
		ask_with(s, rows[i].model, rows[i].tool, rows[i].header, message(&id, 1, READ), &r);
		cr_assert_eq(r.status, 200, "%s: %s", rows[i].name, r.body.ptr);
		char *saw = provider_saw(s, 0);
		bool is_seeded =
		    strstr(saw, "data.csv is available in the working directory") != NULL;
		cr_expect_eq(is_seeded, rows[i].here, "%s: %s", rows[i].name, saw);
		cr_expect_eq(strstr(r.body.ptr, "4711") != NULL && is_seeded, rows[i].here,
		    "%s: the code reads it: %s", rows[i].name, r.body.ptr);
		cr_expect(
		    strstr(saw, id.s) == NULL, "%s: our id goes to nobody: %s", rows[i].name, saw);
		mem_free(saw);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(code_files, e3_a_message_of_an_upload_alone_is_no_empty_message)
{
	struct server *s = start_with_sandbox();
	struct text id = upload(s, "data.csv", "4711");
	struct reply r;
	struct buf talk = BUF_INIT(4096);

	char *first = message(&id, 1, NULL), *second = message(NULL, 0, READ);
	buf_printf(
	    &talk, "%s,{\"role\":\"assistant\",\"content\":\"I see it.\"},%s", first, second);
	ask_with(s, "fake:tool", DATED, NULL, mem_strndup(talk.ptr, talk.len), &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"stdout\":\"4711\\n\"");
	reply_done(&r);
	/* in its place: before what follows it */
	char *saw = provider_saw(s, 0);
	const char *mark = strstr(saw, "data.csv is available"), *answer = strstr(saw, "I see it.");
	cr_expect(mark != NULL && answer != NULL && mark < answer, "%s", saw);
	mem_free(saw);
	mem_free(first);
	mem_free(second);
	buf_done(&talk);
	server_stop(&s);
}

Test(code_files, e7_two_files_of_one_name_are_both_there_and_named_apart)
{
	struct server *s = start_with_sandbox();
	struct text ids[] = {upload(s, "data.csv", "first"), upload(s, "data.csv", "second")};
	struct reply r;

	ask_with(s, "fake:tool", DATED, NULL,
	    message(ids, 2, "run: print(open('data.csv').read(), open('data-2.csv').read())"), &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"stdout\":\"first second\\n\"");
	reply_done(&r);
	char *saw = provider_saw(s, 0);
	cr_expect(strstr(saw, "The file data-2.csv is available") != NULL, "%s", saw);
	mem_free(saw);
	server_stop(&s);
}

/* Every round, and every later request of the conversation. */
Test(code_files, e8_all_files_are_there_in_every_round)
{
	struct server *s = start_with_sandbox();
	struct text ids[] = {
	    upload(s, "a.csv", "AAA"), upload(s, "b.csv", "BBB"), upload(s, "c.csv", "CCC")};
	struct reply r;

	for (int request = 0; request < 2; request++) {
		for (int round = 0; round < 3; round++) {
			char answer[1024];
			(void)snprintf(answer, sizeof(answer),
			    "{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"m\","
			    "\"choices\":[{"
			    "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,"
			    "\"tool_calls\":[{\"id\":\"call_%d\",\"type\":\"function\","
			    "\"function\":{"
			    "\"name\":\"code_execution\",\"arguments\":\"{\\\"code\\\":\\\"print("
			    "open('%c.csv').read())\\\"}\"}}]},"
			    "\"finish_reason\":\"tool_calls\"}]}",
			    round, 'a' + round);
			provider_answers(s, answer, false);
		}
		ask_with(s, "fake:text", DATED, NULL, message(ids, 3, "read them"), &r);
		cr_assert_eq(r.status, 200, "%s", r.body.ptr);
		HAS(r, "\"stdout\":\"AAA\\n\"");
		HAS(r, "\"stdout\":\"BBB\\n\"");
		HAS(r, "\"stdout\":\"CCC\\n\"");
		reply_done(&r);
	}
	server_stop(&s);
}

static void
remove_blobs(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	cr_assert(d != NULL, "%s", dir);
	while ((e = readdir(d)) != NULL) {
		char path[600];
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR)
			remove_blobs(path);
		else
			(void)unlink(path);
	}
	closedir(d);
}

Test(code_files, e10_nothing_runs_over_a_file_whose_bytes_are_gone)
{
	struct server *s = start_with_sandbox();
	struct text id = upload(s, "data.csv", "4711");
	char dir[320];
	struct reply r;

	(void)snprintf(dir, sizeof(dir), "%s/files", s->dir);
	remove_blobs(dir);
	json_int_t before = provider_count(s);
	ask_with(s, "fake:tool", DATED, NULL, message(&id, 1, READ), &r);
	cr_expect_eq(r.status, 502, "%ld %s", r.status, r.body.ptr);
	HAS(r, id.s);
	LACKS(r, "code_execution_tool_result");
	cr_expect_eq(provider_count(s), before, "the model is not asked");
	reply_done(&r);
	/* and one that was never there */
	ask_with(s, "fake:tool", DATED, NULL, message(&(struct text){"file-0000"}, 1, READ), &r);
	cr_expect_eq(r.status, 400, "%ld %s", r.status, r.body.ptr);
	HAS(r, "file-0000");
	reply_done(&r);
	server_stop(&s);
}

/* The provider's code gets the bytes, its prompt does not. */
Test(code_files, e12_a_provider_that_runs_the_code_gets_a_copy)
{
	struct server *s = start_with_sandbox();
	struct text ids[] = {upload(s, "data.csv", "month,sum\njune,4711\n"),
	    upload(s, "data.csv", "second"), {"file_of_the_providers"}};
	struct reply r;

	for (int i = 0; i < 2; i++) {
		(void)server_sql(s, "DELETE FROM file_copies");
		provider_answers(s, "{\"id\":\"file_copy1\",\"type\":\"file\"}", false);
		provider_answers(s, "{\"id\":\"file_copy2\",\"type\":\"file\"}", false);
		ask_with(s, "claude:text", DATED, "Otari-Code-Execution: auto",
		    message(ids, 3, "go"), &r);
		cr_assert_eq(r.status, 200, "%s", r.body.ptr);
		reply_done(&r);
		char *form = provider_saw(s, 2), *second = provider_saw(s, 1),
		     *saw = provider_saw(s, 0);
		cr_expect(
		    strstr(form,
			"name=\"file\"; filename=\"data.csv\"\r\nContent-Type: text/csv\r\n\r\n"
			"month,sum\njune,4711\n\r\n--otari-") != NULL,
		    "%s", form);
		cr_expect(strstr(form, "name=\"expires_in_seconds\"\r\n\r\n3600\r\n") != NULL, "%s",
		    form);
		cr_expect(strstr(second, "filename=\"data-2.csv\"") != NULL, "%s", second);
		cr_expect(
		    strstr(saw,
			"{\"type\":\"container_upload\",\"file_id\":\"file_copy1\"},{\"type\":"
			"\"container_upload\",\"file_id\":\"file_copy2\"},{\"type\":"
			"\"container_upload\",\"file_id\":\"file_of_the_providers\"}") != NULL,
		    "%s", saw);
		cr_expect(strstr(saw, "4711") == NULL && strstr(saw, ids[0].s) == NULL, "%s", saw);
		mem_free(form);
		mem_free(second);
		mem_free(saw);
		fake_ask(s, "GET", "/_last?back=2", STR_NULL, &r);
		HAS(r, "\"x-api-key\":\"fake-messages-key\"");
		HAS(r, "\"uri\":\"/v1/files\"");
		LACKS(r, s->key);
		reply_done(&r);
		cr_assert(server_wait_sql(s, "SELECT count(*) FROM file_copies", 2));
	}
	/* it is copied once an hour, whoever asks on whichever worker */
	cr_assert(server_wait_sql(s,
	    "SELECT count(*) FROM file_copies WHERE expires_at_s BETWEEN "
	    "unixepoch() + 3200 AND unixepoch() + 3300",
	    2));
	for (int i = 0; i < EVERY_WORKER; i++) {
		json_int_t before = provider_count(s);
		ask_with(s, "claude:text", DATED, NULL, message(ids, 2, "go"), &r);
		cr_assert_eq(r.status, 200, "%s", r.body.ptr);
		reply_done(&r);
		cr_expect_eq(provider_count(s), before + 1);
		char *saw = provider_saw(s, 0);
		cr_expect(strstr(saw, "file_copy1") != NULL && strstr(saw, "file_copy2") != NULL,
		    "%s", saw);
		mem_free(saw);
	}
	(void)server_sql(s, "UPDATE file_copies SET expires_at_s = 1");
	/* what the provider says of it is said with the file's id */
	static const char *const answers[] = {"{\"type\":\"error\",\"error\":{\"type\":\"invalid_"
					      "request_error\",\"message\":\"no\"}}",
	    "{}", "[", ""};
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		json_int_t before = provider_count(s);
		provider_answers(s, answers[i], false);
		ask_with(s, "claude:text", DATED, NULL, message(ids, 1, "go"), &r);
		cr_expect_eq(r.status, 502, "%zu: %ld %s", i, r.status, r.body.ptr);
		HAS(r, ids[0].s);
		cr_expect_eq(provider_count(s), before + 1, "the model is not asked");
		reply_done(&r);
	}
	static const struct {
		int status, shown;
	} refusals[] = {{413, 413}, {404, 502}, {400, 502}, {401, 502}, {500, 502}, {429, 429}};
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		char next[256];
		(void)snprintf(next, sizeof(next),
		    "{\"status\":%d,\"headers\":{\"Retry-After\":\"7\"},\"pieces\":[\"{"
		    "\\\"type\\\":"
		    "\\\"error\\\",\\\"error\\\":{\\\"type\\\":\\\"x\\\",\\\"message\\\":"
		    "\\\"no\\\"}}\"]}",
		    refusals[i].status);
		fake_ask(s, "POST", "/_next", str_c(next), &r);
		reply_done(&r);
		ask_with(s, "claude:text", DATED, NULL, message(ids, 1, "go"), &r);
		cr_expect_eq(r.status, refusals[i].shown, "%d: %ld %s", refusals[i].status,
		    r.status, r.body.ptr);
		HAS(r, ids[0].s);
		if (refusals[i].status == 429)
			cr_expect(
			    str_eq(reply_header(&r, "retry-after"), STR("7")), "%s", r.head.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(code_files, e12_the_same_for_the_container_of_an_interpreter)
{
	struct server *s = start_with_sandbox();
	struct text id = upload(s, "data.csv", "month,sum\njune,4711\n");
	char tool[512], want[512];
	struct reply r;

	provider_answers(s, "{\"id\":\"file-copy\",\"object\":\"file\"}", false);
	(void)snprintf(tool, sizeof(tool),
	    "{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\",\"memory_limit\":"
	    "\"4g\",\"file_ids\":[\"%s\",\"file-theirs\"]}}",
	    id.s);
	talk_ask(s, ANSWERS, "answers:text", tool, false, SAYS("go"), "", &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, id.s); /* the object repeats what was asked */
	reply_done(&r);
	char *form = provider_saw(s, 1), *saw = provider_saw(s, 0);
	cr_expect(strstr(form, "name=\"purpose\"\r\n\r\nuser_data\r\n") != NULL, "%s", form);
	cr_expect(strstr(form, "name=\"expires_after[anchor]\"\r\n\r\ncreated_at\r\n") != NULL,
	    "%s", form);
	cr_expect(
	    strstr(form, "name=\"expires_after[seconds]\"\r\n\r\n3600\r\n") != NULL, "%s", form);
	cr_expect(strstr(form, "\r\n\r\nmonth,sum\njune,4711\n\r\n--otari-") != NULL, "%s", form);
	(void)snprintf(want, sizeof(want),
	    "{\"type\":\"auto\",\"memory_limit\":\"4g\",\"file_ids\":[\"file-copy\",\"file-"
	    "theirs\"]}");
	cr_expect(strstr(saw, want) != NULL, "%s", saw);
	cr_expect(strstr(saw, id.s) == NULL, "%s", saw);
	mem_free(form);
	mem_free(saw);
	server_stop(&s);
}

/* It may have been deleted there; else each request would name it until its hour is over. */
Test(code_files, e12_a_copy_that_the_provider_may_not_have_any_more_is_made_again)
{
	static const struct {
		const char *model;
		json_int_t uploads;
		bool is_refused;
	} rows[] = {{"claude:text", 1, false}, {"claude:text", 0, false},
	    {"claude:err-429", 0, true}, {"claude:err-404", 0, true}, {"claude:text", 1, false},
	    {"claude:text", 0, false}};
	struct server *s = start_with_sandbox();
	struct text id = upload(s, "data.csv", "4711");
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_int_t before = provider_count(s);
		if (rows[i].uploads > 0)
			provider_answers(s, "{\"id\":\"file_copy\"}", false);
		ask_with(s, rows[i].model, DATED, NULL, message(&id, 1, "a"), &r);
		cr_expect_eq(r.status == 200, !rows[i].is_refused, "%zu: %s", i, r.body.ptr);
		cr_expect_eq(provider_count(s) - before, rows[i].uploads + 1, "request %zu", i);
		reply_done(&r);
		const char *sql = i == 3
				      ? "SELECT count(*) FROM file_copies WHERE expires_at_s = 0"
				      : "SELECT count(*) FROM file_copies WHERE expires_at_s > 0";
		cr_expect(server_wait_sql(s, sql, 1), "request %zu", i);
	}
	server_stop(&s);
}

Test(code_files, a_client_may_leave_while_its_file_is_copied)
{
	struct server *s = start_sandboxed(&(struct server_opts){.workers = 1});
	struct text id = upload(s, "data.csv", "4711");
	struct reply r;

	for (int i = 0; i < 3; i++) {
		fake_ask(s, "POST", "/_next", STR("{\"pieces\":[\"{\"],\"end\":\"stall\"}"), &r);
		reply_done(&r);
		json_int_t before = provider_count(s);
		char *talk = message(&id, 1, "go");
		char *body = talk_body(MESSAGES, "claude:text", DATED, true, talk, "");
		int fd = stream_open(s, MESSAGES, body);
		while (provider_count(s) == before)
			pause_short();
		(void)close(fd);
		mem_free(body);
		mem_free(talk);
	}
	for (int i = 0; i < 400 && server_metric(s, "otari_requests_active") > 1; i++)
		pause_short();
	cr_expect_eq(server_metric(s, "otari_requests_active"), 1, "this one alone");
	server_stop(&s);
}

Test(code_files, e14_every_file_that_was_made_can_be_downloaded)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char path[256];
	size_t i;
	json_t *file;

	json_t *root = talk_json(s, MESSAGES, "fake:tool", DATED,
	    SAYS("run: for i in range(4):\\n  n = open(f'p{i}.png', 'wb').write(b'png')\\nn = "
		 "open('d.docx', "
		 "'wb').write(b'docx')"),
	    "");
	const json_t *result = of_type(at_json(root, "content"), "code_execution_tool_result");
	const json_t *files = at_json(result, "content.content");
	cr_expect_eq(json_array_size(files), 5);
	json_array_foreach(files, i, file) {
		(void)snprintf(path, sizeof(path), "/v1/files/%s/content", at(file, "file_id"));
		server_ask(s, "GET", path, STR_NULL, NULL, &r);
		cr_expect_eq(r.status, 200, "%s", path);
		reply_done(&r);
		/* the model can tell the user */
		cr_expect(strstr(at(of_type(at_json(root, "content"), "text"), "text"),
			      at(file, "file_id")) != NULL);
	}
	json_decref(root);
	/* over the limit: named, and said so */
	root = talk_json(s, MESSAGES, "fake:tool", DATED,
	    SAYS("run: for i in range(30):\\n  n = open(f'p{i:02}.txt', 'w').write('x')"), "");
	result = of_type(at_json(root, "content"), "code_execution_tool_result");
	cr_expect_eq(json_array_size(at_json(result, "content.content")), 20);
	const char *text = at(of_type(at_json(root, "content"), "text"), "text");
	cr_expect(strstr(text, "p00.txt (file_id: file-") != NULL, "%s", text);
	cr_expect(strstr(text, "p29.txt") != NULL && strstr(text, "p29.txt (file_id") == NULL, "%s",
	    text);
	json_decref(root);
	server_stop(&s);
}
