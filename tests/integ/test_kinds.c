/* Bash and the text editor beside Python: what a dated declaration means on Messages. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/admin.h"

TestSuite(kinds, .timeout = 180);

#define DATED "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define OLD   "{\"type\":\"code_execution_20250522\",\"name\":\"code_execution\"}"

static void
ask_model(struct server *s, const char *path, const char *model, json_t *messages,
    const char *tools, bool stream, struct reply *r)
{
	bool is_responses = strcmp(path, "/v1/responses") == 0;
	json_t *body = json_pack("{s:s, s:b, s:o, s:o}", "model", model, "stream", stream,
	    is_responses ? "input" : "messages", messages, "tools", json_loads(tools, 0, NULL));
	if (!is_responses)
		json_object_set_new(body, "max_tokens", json_integer(1000));
	char *text = json_dumps(body, 0);

	server_ask(s, "POST", path, str_c(text), NULL, r);
	free(text);
	json_decref(body);
}

static json_t *
said(const char *prompt)
{
	return json_pack("[{s:s, s:s}]", "role", "user", "content", prompt);
}

/* A whole answer on Messages; owned by the caller. */
static json_t *
run(struct server *s, const char *model, const char *prompt, const char *tools)
{
	struct reply r;

	ask_model(s, "/v1/messages", model, said(prompt), tools, false, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

/* Names of the functions in the provider's last request, "a b c". */
static struct text
shown_tools(struct server *s)
{
	struct text ret = {""};
	struct reply r;
	size_t i, used = 0;
	json_t *tool;

	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	json_t *last = reply_json(&r), *body = json_loads(at(last, "body"), 0, NULL);
	json_array_foreach(json_object_get(body, "tools"), i, tool)
		used += (size_t)snprintf(ret.s + used, sizeof(ret.s) - used, "%s%s",
		    i > 0 ? " " : "", at(tool, "function.name"));
	json_decref(body);
	json_decref(last);
	reply_done(&r);
	return ret;
}

static void
expect_pair(const json_t *root, int at_block, const char *name, const char *result)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "content.%d.type", at_block);
	cr_expect_str_eq(at(root, path), "server_tool_use");
	(void)snprintf(path, sizeof(path), "content.%d.name", at_block);
	cr_expect_str_eq(at(root, path), name);
	(void)snprintf(path, sizeof(path), "content.%d.id", at_block);
	cr_expect(strncmp(at(root, path), "otari_srvtoolu_", 15) == 0);
	const char *id = at(root, path);
	(void)snprintf(path, sizeof(path), "content.%d.tool_use_id", at_block + 1);
	cr_expect_str_eq(at(root, path), id);
	(void)snprintf(path, sizeof(path), "content.%d.type", at_block + 1);
	cr_expect_str_eq(at(root, path), result);
}

Test(kinds, bash_is_answered_in_its_own_blocks)
{
	struct server *s = start_with_sandbox();
	json_t *root = run(s, "fake:parallel",
	    "run: bash: echo 'hi there'; echo w >&2; printf made > out.txt\n---\n"
	    "print(open('out.txt').read())\n---\nbash: exit 3",
	    "[" DATED "]");

	expect_pair(root, 0, "bash_code_execution", "bash_code_execution_tool_result");
	cr_expect_str_eq(at(root, "content.0.input.command"),
	    "echo 'hi there'; echo w >&2; printf made > out.txt");
	cr_expect_str_eq(at(root, "content.1.content.type"), "bash_code_execution_result");
	cr_expect_str_eq(at(root, "content.1.content.stdout"), "hi there\n");
	cr_expect_str_eq(at(root, "content.1.content.stderr"), "w\n");
	cr_expect_eq(at_int(root, "content.1.content.return_code"), 0);
	cr_expect_str_eq(
	    at(root, "content.1.content.content.0.type"), "bash_code_execution_output");
	expect_pair(root, 2, "code_execution", "code_execution_tool_result");
	cr_expect_str_eq(at(root, "content.3.content.stdout"), "made\n", "one working directory");
	expect_pair(root, 4, "bash_code_execution", "bash_code_execution_tool_result");
	cr_expect_str_eq(at(root, "content.5.content.type"), "bash_code_execution_result",
	    "a command that fails is no error");
	cr_expect_eq(at_int(root, "content.5.content.return_code"), 3);
	cr_expect_str_eq(at(root, "content.6.type"), "text");
	cr_expect_str_eq(at(root, "stop_reason"), "end_turn");
	cr_expect_eq(at_int(root, "usage.server_tool_use.code_execution_requests"), 3);
	cr_expect(strstr(at(root, "content.6.text"), "[tool error]") != NULL, "%s",
	    at(root, "content.6.text"));

	struct reply file;
	char path[256];
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content",
	    at(root, "content.1.content.content.0.file_id"));
	server_ask(s, "GET", path, STR_NULL, NULL, &file);
	cr_expect_eq(file.status, 200);
	cr_expect_str_eq(file.body.ptr, "made");
	reply_done(&file);
	json_decref(root);
	cr_expect(server_wait_sql(s,
		      "SELECT count(*) FROM usage_logs WHERE tools LIKE "
		      "'%\"code_execution\":{\"billed\":2,\"errors\":1%'",
		      1),
	    "every kind is counted as code_execution");
	server_stop(&s);
}

#define EDITOR "text_editor_code_execution"

Test(kinds, the_editor_answers_each_command)
{
	struct server *s = start_with_sandbox();
	json_t *root = run(s, "fake:parallel",
	    "run: edit: {\"command\":\"create\",\"path\":\"src/a.py\",\"file_text\":\"x = "
	    "1\\nprint(x)\\n\"}"
	    "\n---\nedit: {\"command\": \"view\", \"path\": \"src/a.py\", \"view_range\": [2, 2]}"
	    "\n---\nedit: "
	    "{\"command\":\"str_replace\",\"path\":\"src/"
	    "a.py\",\"old_str\":\"1\",\"new_str\":\"2\"}"
	    "\n---\nbash: python3 src/a.py"
	    "\n---\nedit: {\"command\":\"create\",\"path\":\"src/a.py\",\"file_text\":\"\"}",
	    "[" DATED "]");

	for (int i = 0; i < 10; i += 2)
		if (i != 6)
			expect_pair(root, i, EDITOR, EDITOR "_tool_result");
	cr_expect_str_eq(at(root, "content.0.input.command"), "create");
	cr_expect_str_eq(at(root, "content.0.input.file_text"), "x = 1\nprint(x)\n");
	cr_expect_str_eq(at(root, "content.1.content.type"), EDITOR "_create_result");
	cr_expect(json_is_false(at_json(root, "content.1.content.is_file_update")));
	cr_expect_eq(at_int(root, "content.2.input.view_range.1"), 2);
	cr_expect_str_eq(at(root, "content.3.content.type"), EDITOR "_view_result");
	cr_expect_str_eq(at(root, "content.3.content.file_type"), "text");
	cr_expect_str_eq(at(root, "content.3.content.content"), "print(x)\n");
	cr_expect_eq(at_int(root, "content.3.content.start_line"), 2);
	cr_expect_eq(at_int(root, "content.3.content.num_lines"), 1);
	cr_expect_eq(at_int(root, "content.3.content.total_lines"), 2);
	cr_expect_str_eq(at(root, "content.5.content.type"), EDITOR "_str_replace_result");
	cr_expect_str_eq(at(root, "content.5.content.lines.0"), "-x = 1");
	cr_expect_str_eq(at(root, "content.5.content.lines.1"), "+x = 2");
	cr_expect_str_eq(at(root, "content.5.content.lines.2"), " print(x)");
	cr_expect_eq(at_int(root, "content.5.content.new_start"), 1);
	cr_expect_str_eq(at(root, "content.7.content.stdout"), "2\n", "bash sees what was edited");
	cr_expect(json_is_true(at_json(root, "content.9.content.is_file_update")));

	/* What the model reads: the text, the diff, and the ids of the files. */
	const char *text = at(root, "content.10.text");
	cr_expect(
	    strstr(text, "created: src/a.py\nfiles: src/a.py (file_id: file-") != NULL, "%s", text);
	cr_expect(strstr(text, "[lines 2 to 2 of 2]\nprint(x)\n") != NULL, "%s", text);
	cr_expect(strstr(text, "replaced in src/a.py, from line 1:\n-x = 1\n+x = 2\n") != NULL,
	    "%s", text);
	json_decref(root);
	server_stop(&s);
}

Test(kinds, what_the_editor_cannot_do_is_an_error_of_its_own)
{
	static const struct {
		const char *arguments, *code, *says;
	} rows[] = {
	    {"{\"command\":\"view\",\"path\":\"none\"}", "file_not_found", "no such file"},
	    {"{\"command\":\"view\",\"path\":\"/etc/passwd\"}", "invalid_tool_input", "outside"},
	    {"{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"z\",\"new_str\":\"\"}",
		"invalid_tool_input", "does not occur"},
	    {"{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"b\",\"new_str\":\"\"}",
		"invalid_tool_input", "more than once"},
	    {"{\"command\":\"insert\",\"path\":\"a\"}", "invalid_tool_input",
		"must be \"view\", \"create\" or \"str_replace\"; nothing was run"},
	    {"{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"half of", "invalid_tool_input",
		"not a JSON object"},
	};
	struct server *s = start_with_sandbox();
	struct buf prompt = BUF_INIT(4096);

	buf_add(&prompt, STR("run: bash: echo b b > a"));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		buf_printf(&prompt, "\n---\nedit: %s", rows[i].arguments);
	buf_add(&prompt, STR("\n---\nbash: cat a"));
	json_t *root = run(s, "fake:parallel", prompt.ptr, "[" DATED "]");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[64];
		int n = 2 * (int)i + 2;
		expect_pair(root, n, EDITOR, EDITOR "_tool_result");
		(void)snprintf(path, sizeof(path), "content.%d.content.type", n + 1);
		cr_expect_str_eq(at(root, path), EDITOR "_tool_result_error");
		(void)snprintf(path, sizeof(path), "content.%d.content.error_code", n + 1);
		cr_expect_str_eq(at(root, path), rows[i].code, "%s", rows[i].arguments);
		(void)snprintf(path, sizeof(path), "content.%d.content.error_message", n + 1);
		cr_expect(strstr(at(root, path), rows[i].says) != NULL, "%s", at(root, path));
	}
	cr_expect_str_eq(at(root, "content.15.content.stdout"), "b b\n", "nothing was changed");
	json_decref(root);
	buf_done(&prompt);
	server_stop(&s);
}

/* By the token limit, or by a model that forgets the end. */
Test(kinds, half_an_edit_is_closed_shown_and_never_done)
{
	static const char *const models[] = {"fake:length", "claude:length", "fake:badjson"};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < 2 * ARRAY_LEN(models); i++) {
		const char *const headers[] = {"Otari-Code-Execution: otari", NULL};
		const struct ask_opts o = {.headers = headers};
		struct buf body = BUF_INIT(4096);
		struct reply r;

		buf_printf(&body,
		    "{\"model\":\"%s\",\"max_tokens\":100,\"stream\":%s,\"tools\":[" DATED
		    "],\"messages\":[{\"role\":\"user\",\"content\":\"run: edit: {\\\"command\\\":"
		    "\\\"create\\\",\\\"path\\\":\\\"f\\\",\\\"file_text\\\":\\\"half\\\"}\"}]}",
		    models[i / 2], i % 2 ? "true" : "false");
		server_ask(s, "POST", "/v1/messages", buf_str(&body), &o, &r);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "\"type\":\"" EDITOR "_tool_result_error\","
					     "\"error_code\":\"invalid_tool_input\"") != NULL,
		    "%s: %s", models[i / 2], r.body.ptr);
		cr_expect(strstr(r.body.ptr, "create_result") == NULL, "%s", r.body.ptr);
		if (i % 2 == 0 && strcmp(models[i / 2], "claude:length") != 0) {
			json_t *root = reply_json(&r);
			cr_expect_str_eq(at(root, "content.0.input.file_text"), "half", "%s: %s",
			    models[i / 2], r.body.ptr);
			json_decref(root);
		}
		reply_done(&r);
		buf_done(&body);
	}
	server_stop(&s);
}

Test(kinds, a_stream_holds_the_same_blocks)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	const char *use, *result, *stop;

	ask_model(s, "/v1/messages", "fake:steps", said("run: bash: echo one\n---\nprint(2)"),
	    "[" DATED "]", true, &r);
	cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	use = strstr(r.body.ptr, "\"name\":\"bash_code_execution\"");
	result = strstr(r.body.ptr, "\"bash_code_execution_tool_result\"");
	stop = strstr(r.body.ptr, "event: message_stop\n");
	cr_assert(use != NULL && result != NULL && stop != NULL, "%s", r.body.ptr);
	cr_expect(use < result && result < stop);
	cr_expect(strstr(r.body.ptr, "\"stdout\":\"one\\n\"") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(result, "\"code_execution_tool_result\"") != NULL, "%s", r.body.ptr);
	cr_expect(strstr(r.body.ptr, "\"tool_use\"") == NULL);
	reply_done(&r);
	server_stop(&s);
}

Test(kinds, a_policy_decides_which_are_shown)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	json_t *root;

	put_policy(s, "{\"enabled\":true,\"tools\":[\"bash_code_execution\"]}");
	root = run(s, "fake:parallel", "run: bash: echo $((6 * 7))", "[" DATED "]");
	cr_expect_str_eq(at(root, "content.1.content.stdout"), "42\n");
	json_decref(root);
	cr_expect_str_eq(shown_tools(s).s, "bash_code_execution");
	ask_model(s, "/v1/messages", "fake:text", said("hi"), "[" OLD "]", false, &r);
	cr_expect_eq(r.status, 403, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	ask_model(s, "/v1/chat/completions", "fake:text", said("hi"),
	    "[{\"type\":\"code_execution\"}]", false, &r);
	cr_expect_eq(r.status, 403, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);

	/* What is not shown is not ours: such a call is the client's to see. */
	put_policy(s, "{\"enabled\":true,\"tools\":[\"code_execution\"]}");
	root = run(s, "fake:parallel", "run: bash: echo 1", "[" DATED "]");
	cr_expect_str_eq(shown_tools(s).s, "code_execution");
	cr_expect_str_eq(at(root, "content.0.type"), "tool_use");
	json_decref(root);
	server_stop(&s);
}

Test(kinds, a_clients_tool_of_that_name_stays_its_own)
{
	static const char tools[] =
	    "[{\"name\":\"bash_code_execution\",\"input_schema\":{\"type\":\"object\"}}," DATED "]";
	struct server *s = start_with_sandbox();
	json_t *root = run(s, "fake:parallel", "run: bash: echo ours", tools);

	expect_pair(root, 0, "bash_code_execution", "bash_code_execution_tool_result");
	cr_expect_str_eq(at(root, "content.1.content.stdout"), "ours\n");
	json_decref(root);
	cr_expect_str_eq(shown_tools(s).s, "bash_code_execution code_execution "
					   "bash_code_execution_2 text_editor_code_execution");
	root = run(s, "fake:client", "run: bash: echo ours", tools);
	cr_expect_str_eq(at(root, "content.0.type"), "tool_use");
	cr_expect_str_eq(at(root, "content.0.name"), "bash_code_execution");
	json_decref(root);
	server_stop(&s);
}

Test(kinds, what_is_sent_back_becomes_text_for_every_provider)
{
	static const char *const models[] = {"fake:text", "claude:text"};
	struct server *s = start_with_sandbox();
	json_t *root = run(s, "fake:parallel",
	    "run: bash: echo one; printf x > kept.txt\n---\nprint(2)", "[" DATED "]");
	const char *file = at(root, "content.1.content.content.0.file_id");

	cr_assert(file[0] != '\0');
	for (size_t i = 0; i < 2; i++) {
		struct reply r, last;
		json_t *messages = json_pack("[{s:s, s:s}, {s:s, s:O}, {s:s, s:s}]", "role", "user",
		    "content", "go", "role", "assistant", "content",
		    json_object_get(root, "content"), "role", "user", "content", "and?");

		ask_model(s, "/v1/messages", models[i], messages, "[" DATED "]", false, &r);
		cr_expect_eq(r.status, 200, "%s: %ld %s", models[i], r.status, r.body.ptr);
		fake_ask(s, "GET", "/_last", STR_NULL, &last);
		cr_expect(strstr(last.body.ptr, "echo one; printf x") != NULL, "%s", last.body.ptr);
		cr_expect(strstr(last.body.ptr, "```bash") != NULL, "%s", last.body.ptr);
		cr_expect(strstr(last.body.ptr, file) != NULL, "%s", last.body.ptr);
		cr_expect(strstr(last.body.ptr, "otari_srvtoolu_") == NULL, "%s", last.body.ptr);
		reply_done(&last);
		reply_done(&r);
	}
	json_decref(root);
	server_stop(&s);
}

/* The transcript of a Chat client has no place for what our call gave. */
Test(kinds, a_result_beside_a_clients_call_is_told_on_the_resume)
{
	static const char tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"get_time\","
				    "\"parameters\":{\"type\":\"object\"}}}," DATED "]";
	static const struct {
		const char *prompt, *says;
	} rows[] = {
	    {"run: bash: echo $((6 * 7))", "```bash\\necho $((6 * 7))\\n```"},
	    {"run: edit: {\"command\":\"create\",\"path\":\"f42\",\"file_text\":\"x\"}",
		"created: f42"},
	};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reply r, last;

		ask_model(s, "/v1/chat/completions", "fake:mixed", said(rows[i].prompt), tools,
		    false, &r);
		json_t *root = reply_json(&r);
		const char *id = at(root, "choices.0.message.tool_calls.0.id");
		cr_assert_str_eq(
		    at(root, "choices.0.message.tool_calls.0.function.name"), "get_time");
		json_t *messages = json_pack("[{s:s, s:s}, O, {s:s, s:s, s:s}]", "role", "user",
		    "content", rows[i].prompt, at_json(root, "choices.0.message"), "role", "tool",
		    "tool_call_id", id, "content", "noon");
		reply_done(&r);
		ask_model(s, "/v1/chat/completions", "fake:text", messages, tools, false, &r);
		cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		fake_ask(s, "GET", "/_last", STR_NULL, &last);
		json_t *sent = reply_json(&last);
		cr_expect(strstr(at(sent, "body"), rows[i].says) != NULL, "%s", at(sent, "body"));
		cr_expect(strstr(at(sent, "body"), "42") != NULL);
		json_decref(sent);
		reply_done(&last);
		json_decref(root);
		reply_done(&r);
	}
	server_stop(&s);
}

/* A model that obeys would never come to an end. */
Test(kinds, a_forced_choice_is_for_the_first_call)
{
	static const char *const models[] = {"fake:tool", "claude:tool", "answers:tool"};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		struct reply r, last;
		struct buf body = BUF_INIT(4096);

		buf_printf(&body,
		    "{\"model\":\"%s\",\"max_tokens\":100,\"tools\":[" DATED
		    "],\"tool_choice\":{\"type\":\"tool\",\"name\":\"code_execution\"},"
		    "\"messages\":"
		    "[{\"role\":\"user\",\"content\":\"run: print(6 * 7)\"}]}",
		    models[i]);
		const char *const headers[] = {"Otari-Code-Execution: otari", NULL};
		server_ask(s, "POST", "/v1/messages", buf_str(&body),
		    &(struct ask_opts){.headers = headers}, &r);
		cr_expect_eq(r.status, 200, "%s: %ld %s", models[i], r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "42") != NULL, "%s", r.body.ptr);
		fake_ask(s, "GET", "/_last", STR_NULL, &last);
		json_t *root = reply_json(&last), *sent = json_loads(at(root, "body"), 0, NULL);
		const char *word = i == 1 ? at(sent, "tool_choice.type") : at(sent, "tool_choice");
		cr_expect_str_eq(word, "auto", "%s: %s", models[i], last.body.ptr);
		json_decref(sent);
		json_decref(root);
		reply_done(&last);
		reply_done(&r);
		buf_done(&body);
	}
	server_stop(&s);
}

Test(kinds, declarations_of_2026_say_who_called)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (int i = 0; i < 4; i++) {
		bool says = i < 2;
		ask_model(s, "/v1/messages", "fake:steps", said("run: bash: true"),
		    says ? "[{\"type\":\"code_execution_20260120\",\"name\":\"code_execution\"}]"
			 : "[" DATED "]",
		    i % 2, &r);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		const char *caller = strstr(r.body.ptr, ",\"caller\":{\"type\":\"direct\"}}");
		cr_expect_eq(caller != NULL, says, "%s", r.body.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}

/* The declaration is Anthropic's; elsewhere it runs and is not shown in blocks. */
Test(kinds, other_dialects_get_plain_answers)
{
	static const char *const paths[] = {"/v1/chat/completions", "/v1/responses"};
	struct server *s = start_with_sandbox();

	for (int i = 0; i < 4; i++) {
		struct reply r;

		ask_model(s, paths[i / 2], "fake:parallel", said("run: bash: echo $((6 * 7))"),
		    "[" DATED "]", i % 2, &r);
		cr_assert_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		cr_expect(strstr(r.body.ptr, "42") != NULL, "%s", r.body.ptr);
		cr_expect(strstr(r.body.ptr, "server_tool_use") == NULL, "%s", r.body.ptr);
		cr_expect(
		    strstr(r.body.ptr, "\"otari_code_executions\":[{") != NULL, "%s", r.body.ptr);
		cr_expect(strstr(r.body.ptr, "\"tool\":\"bash_code_execution\",\"input\":{"
					     "\"command\":\"echo $((6 * 7))\"}") != NULL,
		    "%s", r.body.ptr);
		cr_expect(strstr(r.body.ptr, "code_interpreter_call") == NULL, "%s", r.body.ptr);
		reply_done(&r);
	}
	server_stop(&s);
}
