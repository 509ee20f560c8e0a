/* Blocks that the gateway had shown, in the next request: what becomes text, what goes, and what is
 * the client's or a provider's own. By the numbers of the acceptance list (tests/BEHAVIOUR.md). */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"

TestSuite(fold, .timeout = 20);

#define M(messages) "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[" messages "]}"
#define USER        "{\"role\":\"user\",\"content\":\"q\"}"
#define SAID(blocks)                                                                               \
	"{\"role\":\"assistant\",\"content\":[" blocks "]},{\"role\":\"user\",\"content\":\"go\"}"
#define TEXT(t) "{\"type\":\"text\",\"text\":\"" t "\"}"
#define CODE_USE(id, code)                                                                         \
	"{\"type\":\"server_tool_use\",\"id\":\"" id                                               \
	"\",\"name\":\"code_execution\",\"input\":{\"code\":\"" code "\"}}"
#define CODE_RESULT(id, content)                                                                   \
	"{\"type\":\"code_execution_tool_result\",\"tool_use_id\":\"" id                           \
	"\",\"content\":{" content "}}"
#define RAN(out, err, rc)                                                                          \
	"\"type\":\"code_execution_result\",\"stdout\":\"" out "\",\"stderr\":\"" err              \
	"\",\"return_code\":" rc ",\"content\":[]"
#define SEARCH(id)                                                                                 \
	"{\"type\":\"server_tool_use\",\"id\":\"" id                                               \
	"\",\"name\":\"web_search\",\"input\":{\"query\":\"q\"}},{\"type\":"                       \
	"\"web_search_tool_result\",\"tool_use_id\":\"" id "\",\"content\":[{\"type\":"            \
	"\"web_search_result\",\"url\":\"u\",\"title\":\"t\",\"encrypted_content\":\"e\"}]}"

struct row {
	const char *name, *body;
	const char *has[4], *lacks[4];
};

static void
check(enum wire from, enum wire to, const struct row *rows, size_t n)
{
	struct arena *a = arena_new(16u << 20);

	for (size_t i = 0; i < n; i++) {
		struct str got = fix_translate(a, from, to, str_c(rows[i].body));
		for (size_t k = 0; k < 4 && rows[i].has[k] != NULL; k++)
			cr_expect(str_find(got, str_c(rows[i].has[k])) != SIZE_MAX,
			    "%s lacks %s\n%.*s", rows[i].name, rows[i].has[k], STR_FMT(got));
		for (size_t k = 0; k < 4 && rows[i].lacks[k] != NULL; k++)
			cr_expect_eq(str_find(got, str_c(rows[i].lacks[k])), SIZE_MAX,
			    "%s has %s\n%.*s", rows[i].name, rows[i].lacks[k], STR_FMT(got));
	}
	arena_free(&a);
}

/* What is not ours is byte for byte what the client sent. */
static void
check_untouched(enum wire w, const char *const *items, size_t n, const char *body)
{
	struct arena *a = arena_new(16u << 20);
	struct str got = fix_translate(a, w, w, str_c(body));

	for (size_t i = 0; i < n; i++)
		cr_expect(
		    str_find(got, str_c(items[i])) != SIZE_MAX, "%s\n%.*s", items[i], STR_FMT(got));
	arena_free(&a);
}

Test(fold, n64_our_searches_go_and_everything_else_stays)
{
	static const struct row rows[] = {
	    {"64", M(USER "," SAID(SEARCH("otari_srvtoolu_1") "," TEXT("found"))), {"found", "go"},
		{"web_search", "otari_"}},
	    {"64, a message of nothing else", M(USER "," SAID(SEARCH("otari_srvtoolu_1"))),
		{"\"q\"", "go"}, {"\"assistant\"", "otari_"}},
	};
	static const char *const kept[] = {
	    "{\"role\":\"assistant\",\"content\":\"a string\"}",
	    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":"
	    "\"f\",\"input\":{\"n\":1.0}}]}",
	    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\","
	    "\"content\":\"r\"}]}",
	};

	check(WIRE_MESSAGES, WIRE_MESSAGES, rows, ARRAY_LEN(rows));
	char body[1024];
	(void)snprintf(body, sizeof(body), M(USER ",%s," USER ",%s,%s"), kept[0], kept[1], kept[2]);
	check_untouched(WIRE_MESSAGES, kept, ARRAY_LEN(kept), body);
}

Test(fold, n65_a_providers_own_searches_survive_whole)
{
	static const char error[] =
	    "{\"type\":\"web_search_tool_result\",\"tool_use_id\":\"srvtoolu_2\",\"content\":{"
	    "\"type\":\"web_search_tool_result_error\",\"error_code\":\"max_uses_exceeded\"}}";
	static const char *const kept[] = {SEARCH("srvtoolu_1"), error};
	char body[2048];

	(void)snprintf(body, sizeof(body), M(USER "," SAID("%s,%s")), SEARCH("srvtoolu_1"), error);
	check_untouched(WIRE_MESSAGES, kept, ARRAY_LEN(kept), body);
	/* both kinds in one turn */
	static const struct row rows[] = {{"65",
	    M(USER "," SAID(SEARCH("srvtoolu_1") "," SEARCH("otari_srvtoolu_2") "," TEXT("x"))),
	    {SEARCH("srvtoolu_1"), "\"x\""}, {"otari_"}}};
	check(WIRE_MESSAGES, WIRE_MESSAGES, rows, 1);
}

Test(fold, n66_our_calls_of_mcp_servers_go_and_a_providers_stay)
{
	static const char theirs[] =
	    "{\"type\":\"mcp_tool_use\",\"id\":\"mcptoolu_1\",\"name\":\"f\",\"server_name\":\"s\","
	    "\"input\":{}},{\"type\":\"mcp_tool_result\",\"tool_use_id\":\"mcptoolu_1\","
	    "\"is_error\":false,\"content\":[]}";
	static const char *const kept[] = {theirs};
	static const struct row rows[] = {
	    {"66",
		M(USER "," SAID("{\"type\":\"mcp_tool_use\",\"id\":\"otari_mcptoolu_1\",\"name\":"
				"\"f\",\"server_name\":\"s\",\"input\":{}},{\"type\":"
				"\"mcp_tool_result\",\"tool_use_id\":\"otari_mcptoolu_1\","
				"\"is_error\":false,\"content\":[]}," TEXT("x"))),
		{"\"x\""}, {"otari_", "mcp_tool"}},
	    {"66, a result alone",
		M(USER
		    "," SAID("{\"type\":\"mcp_tool_result\",\"tool_use_id\":\"otari_mcptoolu_1\","
			     "\"is_error\":false,\"content\":[]}," TEXT("x"))),
		{"\"x\""}, {"otari_", "mcp_tool"}},
	};
	char body[1024];

	check(WIRE_MESSAGES, WIRE_MESSAGES, rows, ARRAY_LEN(rows));
	(void)snprintf(body, sizeof(body), M(USER "," SAID("%s")), theirs);
	check_untouched(WIRE_MESSAGES, kept, 1, body);
}

/* differs: row 8, the ids of produced files stay. */
Test(fold, n67_68_an_execution_becomes_one_text_in_its_place)
{
#define PAIR(content)                                                                              \
	CODE_USE("otari_srvtoolu_1", "print(6 * 7)") "," CODE_RESULT("otari_srvtoolu_1", content)
	static const struct row rows[] = {
	    {"67", M(USER "," SAID(PAIR(RAN("42\\n", "", "0")) "," TEXT("behind"))),
		{"\"content\":[{\"type\":\"text\",\"text\":\"[code was "
		 "executed]\\n```python\\nprint(6 * 7)\\n```\\nstdout:\\n42\"},{\"type\":\"text\","
		 "\"text\":\"behind\"}]"},
		{"otari_", "return_code", "stderr"}},
	    {"67, it failed", M(USER "," SAID(PAIR(RAN("", "boom", "3")))),
		{"stderr:\\nboom\\nreturn_code: 3"}, {"stdout", "otari_"}},
	    {"67, files",
		M(USER "," SAID(PAIR("\"type\":\"code_execution_result\",\"stdout\":\"\","
				     "\"stderr\":\"\",\"return_code\":0,\"content\":[{\"type\":"
				     "\"code_execution_output\",\"file_id\":\"file-1\"}]"))),
		{"files: file-1"}, {"otari_"}},
	    {"67, backticks in the code",
		M(USER "," SAID(CODE_USE("otari_srvtoolu_1", "x = '```'") "," CODE_RESULT(
		    "otari_srvtoolu_1", RAN("", "", "0")))),
		{"\\n````python\\nx = '```'\\n````"}, {"otari_"}},
	    {"67, a result without its call",
		M(USER "," SAID(CODE_RESULT("otari_srvtoolu_1", RAN("42", "", "0")))),
		{"[code was executed]\\nstdout:\\n42"}, {"```"}},
	    {"67, a call without its result",
		M(USER "," SAID(CODE_USE("otari_srvtoolu_1", "1") "," TEXT("x"))), {"\"x\""},
		{"otari_", "executed"}},
	    {"68",
		M(USER "," SAID(PAIR("\"type\":\"code_execution_tool_result_error\","
				     "\"error_code\":\"unavailable\""))),
		{"print(6 * 7)", "error: unavailable"}, {"otari_", "stdout"}},
	    {"68, without a code",
		M(USER "," SAID(PAIR("\"type\":\"code_execution_tool_result_error\""))),
		{"error: unavailable"}, {"otari_"}},
	};

	check(WIRE_MESSAGES, WIRE_MESSAGES, rows, ARRAY_LEN(rows));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) { /* whoever answers next */
		struct row other = rows[i];
		other.has[0] = i == 0 ? "print(6 * 7)" : other.has[0];
		check(WIRE_MESSAGES, WIRE_CHAT, &other, 1);
		check(WIRE_MESSAGES, WIRE_RESPONSES, &other, 1);
	}
}

Test(fold, n69_anthropics_own_execution_is_untouched)
{
	static const char *const kept[] = {
	    CODE_USE("srvtoolu_1", "print(1)") "," CODE_RESULT("srvtoolu_1", RAN("1\\n", "", "0"))};

	check_untouched(WIRE_MESSAGES, kept, 1,
	    M(USER "," SAID(CODE_USE("srvtoolu_1", "print(1)") "," CODE_RESULT(
		"srvtoolu_1", RAN("1\\n", "", "0")))));
}

#define R(items) "{\"model\":\"m\",\"input\":[{\"role\":\"user\",\"content\":\"q\"}," items "]}"
#define ITEM(id, status, logs)                                                                     \
	"{\"type\":\"code_interpreter_call\",\"id\":\"" id                                         \
	"\",\"code\":\"print(6 * 7)\",\"container_id\":\"c\",\"status\":\"" status                 \
	"\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"" logs "\"}]}"

Test(fold, n70_71_an_item_of_ours_becomes_a_message_and_a_providers_stays)
{
	static const struct row rows[] = {
	    {"70",
		R(ITEM(
		    "otari_ci_1", "completed", "42\\n") ",{\"role\":\"user\",\"content\":\"go\"}"),
		{"\"q\"",
		    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"
		    "\"output_text\",",
		    "print(6 * 7)", "logs:\\n42"},
		{"otari_", "status: ", "code_interpreter_call"}},
	    {"71",
		R(ITEM("otari_ci_1", "failed", "boom") ",{\"role\":\"user\",\"content\":\"go\"}"),
		{"logs:\\nboom", "status: failed"}, {"otari_"}},
	    {"71, our search",
		R("{\"type\":\"web_search_call\",\"id\":\"otari_ws_1\",\"status\":\"completed\"},{"
		  "\"role\":\"user\",\"content\":\"go\"}"),
		{"\"go\""}, {"otari_", "web_search_call"}},
	};
	static const char *const kept[] = {ITEM("ci_1", "completed", "1")};

	check(WIRE_RESPONSES, WIRE_RESPONSES, rows, ARRAY_LEN(rows));
	check_untouched(WIRE_RESPONSES, kept, 1,
	    R(ITEM("ci_1", "completed", "1") ",{\"role\":\"user\",\"content\":\"go\"}"));
}

/* --- ids of ours in the places of a client's own ------------------------------------------------
 */
#define CALL_USE(id)                                                                               \
	"{\"type\":\"tool_use\",\"id\":\"" id                                                      \
	"\",\"name\":\"code_execution\",\"input\":{\"code\":\"print(6 * 7)\"}}"
#define ANSWERED(content, result)                                                                  \
	"{\"role\":\"assistant\",\"content\":[" content "]},{\"role\":\"user\",\"content\":["      \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"otari_srvtoolu_1\"," result "}]}"

Test(fold, a_plain_result_for_a_call_of_ours_is_text_on_every_wire)
{
	static const struct row messages[] = {
	    {"beside the pair",
		M(USER "," ANSWERED(PAIR(RAN("42\\n", "", "0")), "\"content\":\"forty-two\"")),
		{"print(6 * 7)", "\"[result of what was executed]", "forty-two"}, {"otari_"}},
	    {"instead of it",
		M(USER "," ANSWERED(CALL_USE("otari_srvtoolu_1"), "\"content\":\"forty-two\"")),
		{"[code was executed]\\n```python\\nprint(6 * 7)\\n```", "forty-two"},
		{"otari_", "tool_use", "tool_call", "function_call"}},
	    {"with a picture",
		M(USER "," ANSWERED(CALL_USE("otari_srvtoolu_1"),
		    "\"is_error\":true,\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
		    "\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}}]")),
		{"[error of what was executed]", "QUJD"}, {"otari_", "tool_result"}},
	    {"beside the client's own",
		M(USER ",{\"role\":\"assistant\",\"content\":[" CALL_USE(
		    "otari_srvtoolu_1") "," CALL_USE("toolu_9") "]},{\"role\":\"user\",\"content\":"
								"[{\"type\":\"tool_result\",\"tool_"
								"use_id\":\"otari_srvtoolu_1\","
								"\"content\":"
								"\"ours\"},{\"type\":\"tool_"
								"result\",\"tool_use_id\":\"toolu_"
								"9\",\"content\":"
								"\"theirs\"}]}"),
		{"ours", "theirs", "toolu_9"}, {"otari_"}},
	};
	static const struct row responses[] = {
	    {"item and output",
		R(ITEM("otari_ci_1", "completed", "42\\n") ",{\"type\":\"function_call_output\","
							   "\"call_id\":\"otari_ci_1\",\"output\":"
							   "\"forty-two\"}"),
		{"print(6 * 7)", "forty-two"}, {"otari_", "function_call"}},
	    {"call and output",
		R("{\"type\":\"function_call\",\"call_id\":\"otari_ci_1\",\"name\":"
		  "\"bash_code_execution\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"},"
		  "{\"type\":\"function_call_output\",\"call_id\":\"otari_ci_1\",\"output\":"
		  "\"a\"}"),
		{"```bash\\nls\\n```", "[result of what was executed]"},
		{"otari_", "function_call", "tool"}},
	};
	static const struct row chat[] = {
	    {"call and message",
		"{\"model\":\"m\",\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":null,"
		"\"tool_calls\":[{\"id\":\"otari_srvtoolu_1\",\"type\":\"function\",\"function\":"
		"{\"name\":\"search\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\","
		"\"tool_call_id\":\"otari_srvtoolu_1\",\"content\":\"found\"}]}",
		{"[the tool search was used]", "found"}, {"otari_", "tool_call", "\"tool\""}},
	};

	for (int to = WIRE_CHAT; to <= WIRE_RESPONSES; to++) {
		check(WIRE_MESSAGES, (enum wire)to, messages, ARRAY_LEN(messages));
		check(WIRE_RESPONSES, (enum wire)to, responses, ARRAY_LEN(responses));
		check(WIRE_CHAT, (enum wire)to, chat, ARRAY_LEN(chat));
	}
}

Test(fold, no_provider_is_asked_for_a_container_of_ours)
{
#define WITH(member) "{\"model\":\"m\",\"max_tokens\":9," member ",\"messages\":[" USER "]}"
#define INTERPRETER(container)                                                                     \
	"{\"model\":\"m\",\"tools\":[{\"type\":\"code_interpreter\",\"container\":" container      \
	"}],\"input\":\"q\"}"
	static const struct row messages[] = {
	    {"by its id", WITH("\"container\":\"otari_cntr_1\""), {"\"q\""},
		{"otari_", "container"}},
	    {"in an object", WITH("\"container\":{\"id\":\"otari_cntr_1\"}"), {"\"q\""},
		{"otari_", "container"}},
	    {"with skills", WITH("\"container\":{\"id\":\"otari_cntr_1\",\"skills\":[1]}"),
		{"\"container\":{\"skills\":[1]}"}, {"otari_"}},
	    {"the provider's", WITH("\"container\":\"container_1\""),
		{"\"container\":\"container_1\""}, {NULL}},
	};
	static const struct row responses[] = {
	    {"by its id", INTERPRETER("\"otari_cntr_1\""), {"\"container\":{\"type\":\"auto\"}"},
		{"otari_"}},
	    {"the provider's", INTERPRETER("\"cntr_1\""), {"\"container\":\"cntr_1\""}, {NULL}},
	};

	check(WIRE_MESSAGES, WIRE_MESSAGES, messages, ARRAY_LEN(messages));
	check(WIRE_RESPONSES, WIRE_RESPONSES, responses, ARRAY_LEN(responses));
}
