/* One turn with a call of our tool and one of the client's: what ours gave reaches the model with
 * the client's next request, in every dialect, whatever the client sends back of what it was shown.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/talks.h"
#include "tests/unit/dbfix.h"

TestSuite(mixed, .timeout = 240);

#define CHAT_TOOLS                                                                                 \
	"\"tools\":[{\"type\":\"otari_code_execution\"},{\"type\":\"function\",\"function\":{"     \
	"\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\"}}}]"
#define MESSAGES_TOOLS(declaration)                                                                \
	"\"tools\":[" declaration ",{\"name\":\"get_weather\",\"input_schema\":{\"type\":"         \
	"\"object\"}}]"
#define RESPONSES_TOOLS(declaration)                                                               \
	"\"tools\":[" declaration ",{\"type\":\"function\",\"name\":\"get_weather\","              \
	"\"parameters\":{\"type\":\"object\"}}]"

#define QUESTION "{\"role\":\"user\",\"content\":\"run: print(6 * 7, 'from ours')\"}"
#define OUTPUT   "42 from ours"

/* A client's way to ask; %s of the resume is the id of its call. */
struct way {
	const char *name, *path, *tools;
	const char *resume; /* what comes behind the question */
};

static const struct way ways[] = {
    {"chat", "/v1/chat/completions", CHAT_TOOLS,
	",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"%1$s\",\"type\":"
	"\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}}]},{\"role\":"
	"\"tool\",\"tool_call_id\":\"%1$s\",\"content\":\"rain\"}"},
    {"messages, plain", "/v1/messages", MESSAGES_TOOLS(OURS),
	",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"%1$s\",\"name\":"
	"\"get_weather\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	"\"tool_result\",\"tool_use_id\":\"%1$s\",\"content\":\"rain\"}]}"},
    {"messages, blocks dropped", "/v1/messages", MESSAGES_TOOLS(DATED),
	",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"%1$s\",\"name\":"
	"\"get_weather\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	"\"tool_result\",\"tool_use_id\":\"%1$s\",\"content\":\"rain\"}]}"},
    {"responses, plain", "/v1/responses", RESPONSES_TOOLS(OURS),
	",{\"type\":\"function_call\",\"call_id\":\"%1$s\",\"name\":\"get_weather\","
	"\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"%1$s\","
	"\"output\":\"rain\"}"},
    {"responses, items dropped", "/v1/responses", RESPONSES_TOOLS(INTERP),
	",{\"type\":\"function_call\",\"call_id\":\"%1$s\",\"name\":\"get_weather\","
	"\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"%1$s\","
	"\"output\":\"rain\"}"},
};

/* A whole request; rest: what comes behind the question. */
static void
ask(struct server *s, const struct way *w, const char *provider, bool stream, const char *rest,
    const char *key, struct reply *r)
{
	bool is_responses = strcmp(w->path, "/v1/responses") == 0;
	struct buf b = BUF_INIT(1u << 20);

	buf_printf(&b, "{\"model\":\"%s:mixed\",\"stream\":%s,\"%s\":[" QUESTION "%s],%s%s}",
	    provider, stream ? "true" : "false", is_responses ? "input" : "messages", rest,
	    w->tools, strcmp(w->path, "/v1/messages") == 0 ? ",\"max_tokens\":99" : "");
	server_ask(s, "POST", w->path, buf_str(&b),
	    &(struct ask_opts){
		.key = key, .headers = (const char *const[]){"Otari-Code-Execution: otari", NULL}},
	    r);
	buf_done(&b);
	cr_assert_eq(r->status, 200, "%s: %s", w->name, r->body.ptr);
}

/* The id of the client's call in an answer. */
static void
call_of(const struct way *w, const struct reply *r, char *id, size_t size)
{
	static const char *const marks[] = {"\"call_id\":\"", "\"id\":\"call_", "\"id\":\"toolu_"};
	const char *from = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(marks) && from == NULL; i++)
		from = strstr(r->body.ptr, marks[i]);
	cr_assert(from != NULL, "%s: %s", w->name, r->body.ptr);
	from = strchr(from, ':') + 2;
	while (from[n] != '"' && n + 1 < size)
		n++;
	cr_assert(str_copy(id, size, str_n(from, n)));
}

static char *
formatted(const char *fmt, const char *id)
{
	char *text = mem_alloc(8192);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(text, 8192, fmt, id);
#pragma GCC diagnostic pop
	return text;
}

/* The first turn; the id of the client's call. */
static void
first_turn(
    struct server *s, const struct way *w, const char *provider, bool stream, char *id, size_t size)
{
	struct reply r;

	ask(s, w, provider, stream, "", NULL, &r);
	call_of(w, &r, id, size);
	reply_done(&r);
}

/* Resumes twice: the result is there once, in front of the call, and the bytes are the same. */
static void
resume(struct server *s, const struct way *w, const char *provider, bool stream, const char *rest)
{
	struct reply r;
	char *body[2];

	for (int i = 0; i < 2; i++) {
		ask(s, w, provider, stream, rest, NULL, &r);
		reply_done(&r);
		body[i] = provider_saw(s, 0);
	}
	cr_expect_str_eq(body[0], body[1], "%s to %s", w->name, provider);
	cr_expect_eq(occurrences(body[0], OUTPUT "\\n") + occurrences(body[0], OUTPUT "\""), 1,
	    "%s to %s: %s", w->name, provider, body[0]);
	const char *ours = strstr(body[0], "[code was executed]");
	const char *theirs = strstr(body[0], "\"rain\"");
	cr_expect(ours != NULL && theirs != NULL && ours < theirs, "%s to %s: %s", w->name,
	    provider, body[0]);
	mem_free(body[0]);
	mem_free(body[1]);
}

static void
all_ways(struct server *s)
{
	static const char *const providers[] = {"fake", "claude", "answers"};
	char id[128];

	for (size_t i = 0; i < ARRAY_LEN(ways) * ARRAY_LEN(providers) * 2; i++) {
		const struct way *w = &ways[i / 6];
		const char *provider = providers[i / 2 % 3];
		bool stream = i % 2 == 1;
		first_turn(s, w, provider, stream, id, sizeof(id));
		char *rest = formatted(w->resume, id);
		resume(s, w, provider, stream, rest);
		mem_free(rest);
	}
}

Test(mixed, d9_the_result_reaches_the_model_on_the_resume)
{
	struct server *s = start_with_sandbox();

	all_ways(s);
	cr_expect_eq(
	    server_sql(s, "SELECT COUNT(*) FROM tool_results"), (int64_t)ARRAY_LEN(ways) * 6);
	cr_expect_eq(server_sql(s, "SELECT COUNT(*) FROM tool_results WHERE expires_at_s BETWEEN "
				   "unixepoch() + 86000 AND unixepoch() + 86400"),
	    (int64_t)ARRAY_LEN(ways) * 6);
	server_stop(&s);
}

Test(mixed, d9_the_same_on_mysql)
{
	struct dbfix f;

	if (!dbfix_has_mysql())
		cr_skip_test("no mariadbd");
	dbfix_open(&f, DB_MYSQL);
	struct server *s =
	    start_sandboxed(&(struct server_opts){.database = f.url, .keep = f.server});
	all_ways(s);
	server_stop(&s);
	dbfix_close(&f);
}

/* --- what the client was shown and sends back ------------------------------------------------- */

/* A whole answer's own list, as a client appends it. */
static json_t *
shown(const struct reply *r, const char *member)
{
	json_t *root = reply_json(r);
	json_t *list = json_incref(json_object_get(root, member));

	json_decref(root);
	cr_assert(json_is_array(list), "%s", r->body.ptr);
	return list;
}

Test(mixed, d9_an_echoed_execution_is_not_attached_once_more)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char id[128];

	ask(s, &ways[2], "fake", false, "", NULL, &r);
	call_of(&ways[2], &r, id, sizeof(id));
	json_t *content = shown(&r, "content");
	char *blocks = json_dumps(content, 0);
	struct buf rest = BUF_INIT(1u << 20);
	buf_printf(&rest,
	    ",{\"role\":\"assistant\",\"content\":%s},{\"role\":\"user\",\"content\":[{\"type\":"
	    "\"tool_result\",\"tool_use_id\":\"%s\",\"content\":\"rain\"}]}",
	    blocks, id);
	resume(s, &ways[2], "fake", false, rest.ptr);
	reply_done(&r);
	json_decref(content);
	free(blocks);
	buf_clear(&rest);

	ask(s, &ways[4], "fake", false, "", NULL, &r);
	call_of(&ways[4], &r, id, sizeof(id));
	json_t *output = shown(&r, "output"), *item;
	size_t i;
	json_array_foreach(output, i, item) {
		char *text = json_dumps(item, 0);
		buf_printf(&rest, ",%s", text);
		free(text);
	}
	buf_printf(&rest,
	    ",{\"type\":\"function_call_output\",\"call_id\":\"%s\",\"output\":\"rain\"}", id);
	resume(s, &ways[4], "fake", false, rest.ptr);
	reply_done(&r);
	json_decref(output);
	buf_done(&rest);
	server_stop(&s);
}

Test(mixed, nobody_else_gets_the_result)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char id[128];

	admin_must(s, "POST", "/api/v1/users", "{\"user_id\":\"eve\"}", 200);
	struct text eve =
	    admin_kept(admin(s, "POST", "/api/v1/keys", "{\"user_id\":\"eve\"}", 200), "key");
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		first_turn(s, &ways[i], "fake", false, id, sizeof(id));
		char *rest = formatted(ways[i].resume, id);
		ask(s, &ways[i], "fake", false, rest, eve.s, &r);
		reply_done(&r);
		char *body = provider_saw(s, 0);
		cr_expect_eq(
		    occurrences(body, "[code was executed]"), 0, "%s: %s", ways[i].name, body);
		mem_free(body);
		mem_free(rest);
	}
	server_stop(&s);
}

/* --- providers that give their call ids again ------------------------------------------------- */

static void
add_call(json_t *calls, const char *id, const char *name, const char *arguments)
{
	if (id != NULL)
		json_array_append_new(
		    calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", id, "type", "function",
			       "function", "name", name, "arguments", arguments));
}

/* The next answer: a call of our tool, of the client's, or both (NULL: not). */
static void
answer_with_ids(struct server *s, const char *ours, const char *theirs)
{
	json_t *calls = json_array();

	add_call(calls, ours, "code_execution", "{\"code\":\"print(6 * 7, 'from ours')\"}");
	add_call(calls, theirs, "get_weather", "{}");
	json_t *answer = json_pack("{s:s, s:s, s:s, s:[{s:i, s:{s:s, s:n, s:o}, s:s}]}", "id", "c",
	    "object", "chat.completion", "model", "m", "choices", "index", 0, "message", "role",
	    "assistant", "content", "tool_calls", calls, "finish_reason", "tool_calls");
	char *text = json_dumps(answer, 0);
	provider_answers(s, text, false);
	free(text);
	json_decref(answer);
}

Test(mixed, what_ran_in_an_earlier_round_of_the_turn_comes_along)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char id[128];

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		answer_with_ids(s, "call_0", NULL);
		answer_with_ids(s, NULL, "call_A1b2C3d4E5f6G7h8");
		(void)server_sql(s, "DELETE FROM tool_results");
		ask(s, &ways[i], "fake", false, "", NULL, &r);
		call_of(&ways[i], &r, id, sizeof(id));
		reply_done(&r);
		char *rest = formatted(ways[i].resume, id);
		resume(s, &ways[i], "fake", false, rest);
		mem_free(rest);
	}
	server_stop(&s);
}

Test(mixed, ids_that_a_provider_gives_again_are_replaced)
{
	static const char *const weak[] = {"call_1", "functions.get_weather:0", "0", ""};
	struct server *s = start_with_sandbox();
	struct reply r;
	char id[128];

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		answer_with_ids(s, "call_0", weak[i % ARRAY_LEN(weak)]);
		ask(s, &ways[i], "fake", false, "", NULL, &r);
		call_of(&ways[i], &r, id, sizeof(id));
		cr_expect(strlen(id) >= 29, "%s: %s", ways[i].name, id);
		reply_done(&r);
		char *rest = formatted(ways[i].resume, id);
		resume(s, &ways[i], "fake", false, rest);
		mem_free(rest);
	}
	server_stop(&s);
}

Test(mixed, a_result_that_could_be_anothers_is_nobodys)
{
	static const char same[] = "call_A1b2C3d4E5f6G7h8";
	struct server *s = start_with_sandbox();
	struct reply r;

	answer_with_ids(s, "call_0", same);
	ask(s, &ways[0], "fake", false, "", NULL, &r);
	cr_expect(strstr(r.body.ptr, same) != NULL, "a good id stays: %s", r.body.ptr);
	reply_done(&r);
	char *rest = formatted(ways[0].resume, same);
	resume(s, &ways[0], "fake", false, rest);
	(void)server_sql(s, "UPDATE tool_results SET result = 'of another conversation'");
	answer_with_ids(s, "call_0", same);
	ask(s, &ways[0], "fake", false, "", NULL, &r);
	reply_done(&r);
	ask(s, &ways[0], "fake", false, rest, NULL, &r);
	reply_done(&r);
	char *body = provider_saw(s, 0);
	cr_expect_eq(occurrences(body, "another conversation"), 0, "%s", body);
	cr_expect_eq(occurrences(body, "[code was executed]"), 0, "%s", body);
	mem_free(body);
	mem_free(rest);
	server_stop(&s);
}

/* --- a database that does not take it --------------------------------------------------------- */

Test(mixed, an_answer_goes_out_although_its_result_cannot_be_kept)
{
	struct server *s = start_with_sandbox();
	struct reply r;
	char id[128];

	server_expect(s, "a tool result could not be kept");
	server_expect(s, "kept tool results could not be read");
	server_expect(s, "the sweep of responses and tool results");
	(void)server_sql(s, "ALTER TABLE tool_results RENAME TO gone");
	first_turn(s, &ways[0], "fake", true, id, sizeof(id));
	cr_expect(server_wait_log(s, "a tool result could not be kept", NULL));
	char *rest = formatted(ways[0].resume, id);
	ask(s, &ways[0], "fake", true, rest, NULL, &r);
	cr_expect(strstr(r.body.ptr, "[DONE]") != NULL, "%s", r.body.ptr);
	cr_expect(server_wait_log(s, "kept tool results could not be read", NULL));
	reply_done(&r);
	mem_free(rest);
	server_stop(&s);
}
