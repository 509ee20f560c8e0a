/* What an execution that ran here looks like to its caller, in the vendor's own blocks. By the
 * numbers of the acceptance list (tests/BEHAVIOUR.md); what is common to all dialects is in
 * test_loop.c. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(native, .timeout = 240);

/* differs: row 2, what earlier rounds said stays in its place. */
Test(native, n50_55_a_native_pair_holds_code_output_and_stored_files)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char path[256];

	json_t *root = talk_json(s, MESSAGES, "fake:tool", DATED,
	    SAYS("run: print(6 * 7)\\nn = open('made.csv', 'w').write('a,b')"), "");
	const json_t *content = at_json(root, "content");
	cr_expect_str_eq(types_of(content).s, "server_tool_use code_execution_tool_result text");
	cr_expect_str_eq(at(content, "0.name"), "code_execution");
	cr_expect(strstr(at(content, "0.input.code"), "print(6 * 7)") != NULL);
	cr_expect(strncmp(at(content, "0.id"), "otari_srvtoolu_", 15) == 0);
	cr_expect_str_eq(at(content, "1.tool_use_id"), at(content, "0.id"));
	cr_expect_str_eq(at(content, "1.content.stdout"), "42\n");
	cr_expect_eq(at_int(content, "1.content.return_code"), 0);
	/* 55: nobody named the file; it is found, stored and announced by its stored id */
	cr_expect_eq(json_array_size(at_json(content, "1.content.content")), 1);
	(void)snprintf(
	    path, sizeof(path), "/v1/files/%s/content", at(content, "1.content.content.0.file_id"));
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect_eq(r.status, 200, "%s", path);
	cr_expect_str_eq(r.body.ptr, "a,b");
	reply_done(&r);
	json_decref(root);
	server_stop(&s);
}

/* The sandbox goes away under a running call. */
Test(native, n52_a_sandbox_that_never_answered_is_unavailable)
{
	struct server *s = start_sandboxed(&(struct server_opts){.workers = 1});
	pid_t spawner[4];

	server_expect(s, "code session broke");
	server_expect(s, "spawner");
	server_expect(s, "sandbox");
	char *body = talk_body(MESSAGES, "fake:tool", DATED, true,
	    SAYS("run: import time\\nprint(1, flush=True)\\ntime.sleep(300)"), "");
	int fd = stream_open(s, MESSAGES, body);
	for (int i = 0; i < 3000 && server_metric(s, "otari_sandbox_sessions_leased") < 1; i++)
		pause_short();
	cr_assert_geq(server_pids(s, "otari: spawner", spawner, 4), 1);
	cr_assert_eq(kill(spawner[0], SIGKILL), 0);
	cr_expect(stream_wait(fd, "{\"type\":\"code_execution_tool_result_error\",\"error_code\":"
				  "\"unavailable\"}"));
	(void)close(fd);
	mem_free(body);
	server_stop(&s);
}

Test(native, n53_61_nothing_is_shown_to_who_did_not_opt_in)
{
	static const struct {
		const char *path, *tool, *list, *types;
	} rows[] = {
	    {MESSAGES, OURS, "content", "text"},
	    {MESSAGES, BARE, "content", "text"},
	    {MESSAGES, INTERP, "content", "text"},
	    {ANSWERS, OURS, "output", "message"},
	    {ANSWERS, BARE, "output", "message"},
	    {ANSWERS, DATED, "output", "message"},
	};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *root = talk_json(
		    s, rows[i].path, "fake:tool", rows[i].tool, SAYS("run: print(6 * 7)"), "");
		cr_expect_str_eq(
		    types_of(at_json(root, rows[i].list)).s, rows[i].types, "row %zu", i);
		json_decref(root);
	}
	server_stop(&s);
}

/* Chat has no blocks for it: a member of its own says what ran, and a client that sends it back
 * does no harm. */
Test(native, e1_a_chat_client_sees_what_the_code_printed)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	json_t *root = talk_json(s, CHAT, "fake:tool", DATED,
	    SAYS("run: import sys\\nn = open('made.csv', 'w').write('a')\\nprint(6 * "
		 "7)\\nsys.exit(3)"),
	    "");
	json_t *said = json_incref((json_t *)(uintptr_t)at_json(root, "choices.0.message"));
	const json_t *ran = at_json(said, "otari_code_executions");
	cr_assert_eq(json_array_size(ran), 1);
	cr_expect_str_eq(at(ran, "0.tool"), "code_execution");
	cr_expect(strstr(at(ran, "0.input.code"), "print(6 * 7)") != NULL);
	cr_expect_str_eq(at(ran, "0.stdout"), "42\n");
	cr_expect_eq(at_int(ran, "0.return_code"), 3);
	cr_expect_str_eq(at(ran, "0.files.0.filename"), "made.csv");
	char *echo = json_dumps(said, JSON_COMPACT);
	struct buf talk = BUF_INIT(65536);
	buf_printf(&talk, SAYS("go") ",%s," SAYS("thanks"), echo);
	for (int with_tool = 0; with_tool < 2; with_tool++) { /* translated, and as it came */
		talk_ask(s, CHAT, "fake:text", with_tool ? OURS : "", false, talk.ptr, "", &r);
		cr_expect_eq(r.status, 200, "%s", r.body.ptr);
		reply_done(&r);
		char *saw = provider_saw(s, 0);
		cr_expect(strstr(saw, "otari_") == NULL, "%s", saw);
		mem_free(saw);
	}
	buf_done(&talk);
	free(echo);
	json_decref(said);
	json_decref(root);
	server_stop(&s);
}

Test(native, n57_an_interpreter_item_holds_code_container_and_logs)
{
	struct server *s = start_with_sandbox();

	json_t *root = talk_json(s, ANSWERS, "fake:parallel", INTERP,
	    SAYS("run: print(6 * 7)\\n---\\nimport sys; print('e', file=sys.stderr)"), "");
	const json_t *output = at_json(root, "output");
	cr_expect_str_eq(types_of(output).s, "code_interpreter_call code_interpreter_call message");
	cr_expect(strncmp(at(output, "0.id"), "otari_ci_", 9) == 0);
	cr_expect_str_eq(at(output, "0.code"), "print(6 * 7)");
	cr_expect_str_eq(at(output, "0.status"), "completed");
	cr_expect(strncmp(at(output, "0.container_id"), "otari_cntr_", 11) == 0);
	cr_expect_str_eq(at(output, "1.container_id"), at(output, "0.container_id"));
	cr_expect_eq(json_array_size(at_json(output, "0.outputs")), 1);
	cr_expect_str_eq(at(output, "0.outputs.0.type"), "logs");
	cr_expect_str_eq(at(output, "0.outputs.0.logs"), "42\n");
	cr_expect_str_eq(at(output, "1.outputs.0.logs"), "e\n");
	json_decref(root);
	server_stop(&s);
}

Test(native, n63_an_image_is_an_output_with_a_link_and_another_file_is_not)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	json_t *root = talk_json(s, ANSWERS, "fake:tool", INTERP,
	    SAYS("run: n = open('a.png', 'wb').write(b'png')\\nn = open('b.csv', 'w').write('x')"),
	    "");
	const json_t *outputs =
	    at_json(of_type(at_json(root, "output"), "code_interpreter_call"), "outputs");
	cr_expect_eq(json_array_size(outputs), 1, "%s", types_of(outputs).s);
	const char *url = at(of_type(outputs, "image"), "url");
	const char *path = strstr(url, "/v1/files/");
	cr_assert(path != NULL && strncmp(url, "http://", 7) == 0, "%s", url);
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect_str_eq(r.body.ptr, "png");
	reply_done(&r);
	json_decref(root);
	server_stop(&s);
}
