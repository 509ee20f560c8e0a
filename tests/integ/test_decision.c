/* Who runs the code that a request declares: provider or sandbox, in every dialect, without a pin.
 * Numbers are those of the acceptance list; test_policy.c has the rows with a pin.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/admin.h"

TestSuite(decision, .timeout = 180);

#define DATED          "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"
#define BARE           "{\"type\":\"code_execution\"}"
#define INTERP         "{\"type\":\"code_interpreter\",\"container\":{\"type\":\"auto\"}}"
#define OURS           "{\"type\":\"otari_code_execution\"}"
#define HINTED         "{\"type\":\"otari_code_execution\",\"purpose_hint\":\"sums of the month\"}"
#define MESSAGES       "/v1/messages"
#define ANSWERS        "/v1/responses"
#define KINDS_OF_DATED 3 /* what the model is shown for DATED */
#define CHAT           "/v1/chat/completions"

enum outcome {
	NATIVE,    /* ran here, answered in the declaration's own blocks */
	PLAIN,     /* ran here, no trace but the model's text */
	FORWARDED, /* the provider read the declaration */
};

struct row {
	const char *name, *path, *model, *tools, *header;
	enum outcome want;
};

static void
ask(struct server *s, const struct row *row, struct reply *r)
{
	static const char prompt[] = "run: print(6 * 7)";
	const char *const headers[] = {row->header, NULL};
	const struct ask_opts o = {.headers = row->header != NULL ? headers : NULL};
	struct buf body = BUF_INIT(1u << 16);

	buf_printf(&body, "{\"model\":\"%s\",\"tools\":[%s],", row->model, row->tools);
	if (strcmp(row->path, ANSWERS) == 0)
		buf_printf(&body, "\"input\":\"%s\"}", prompt);
	else
		buf_printf(&body,
		    "\"max_tokens\":1000,\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
		    prompt);
	server_ask(s, "POST", row->path, buf_str(&body), &o, r);
	buf_done(&body);
}

/* The tools of the provider's last request; owned by the caller. */
static json_t *
last_request(struct server *s)
{
	struct reply r;

	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	json_t *last = reply_json(&r);
	json_t *body = json_loads(at(last, "body"), 0, NULL);
	cr_assert_not_null(body);
	json_decref(last);
	reply_done(&r);
	return body;
}

static bool
holds_declaration(const json_t *request)
{
	size_t i;
	const json_t *t;

	json_array_foreach(json_object_get(request, "tools"), i, t)
		if (strncmp(at(t, "type"), "code_", 5) == 0)
			return true;
	return false;
}

static void
check(struct server *s, const struct row *row)
{
	struct reply r;

	ask(s, row, &r);
	cr_assert_eq(r.status, 200, "%s: %ld %s", row->name, r.status, r.body.ptr);
	bool is_native = strstr(r.body.ptr, "\"type\":\"server_tool_use\"") != NULL ||
			 strstr(r.body.ptr, "code_interpreter_call") != NULL;
	cr_expect_eq(is_native, row->want == NATIVE, "%s: %s", row->name, r.body.ptr);
	json_t *request = last_request(s);
	cr_expect_eq(holds_declaration(request), row->want == FORWARDED, "%s", row->name);
	if (row->want != FORWARDED) {
		cr_expect(strstr(r.body.ptr, "42") != NULL, "%s: %s", row->name, r.body.ptr);
		bool is_dated = strstr(row->tools, DATED) != NULL;
		cr_expect_eq(json_array_size(json_object_get(request, "tools")),
		    is_dated ? KINDS_OF_DATED : 1, "%s: nothing else in place of the declarations",
		    row->name);
	}
	json_decref(request);
	reply_done(&r);
}

Test(decision, auto_is_the_provider_where_it_has_the_tool)
{
	static const struct row rows[] = {
	    {"1", MESSAGES, "claude:text", DATED, NULL, FORWARDED},
	    {"2", MESSAGES, "fake:tool", DATED, NULL, NATIVE},
	    {"3", MESSAGES, "claude:tool", BARE, NULL, PLAIN},
	    {"5", MESSAGES, "claude:tool", DATED, "Otari-Code-Execution: otari", NATIVE},
	    {"5, older name", MESSAGES, "claude:tool", DATED, "X-Otari-Code-Execution:  OTARI ",
		NATIVE},
	    {"6", MESSAGES, "claude:text", BARE, "Otari-Code-Execution: provider", FORWARDED},
	    {"19", MESSAGES, "fake:tool", HINTED "," DATED, NULL, NATIVE},
	    {"21", ANSWERS, "answers:text", INTERP, NULL, FORWARDED},
	    {"22", ANSWERS, "answers:tool", INTERP, "Otari-Code-Execution: otari", NATIVE},
	    {"23", ANSWERS, "answers:tool", DATED, NULL, PLAIN},
	    {"interpreter on a chat model", ANSWERS, "fake:tool", INTERP, NULL, NATIVE},
	    {"never native on chat", CHAT, "fake:tool", DATED, NULL, PLAIN},
	    {"never native on chat", CHAT, "fake:tool", INTERP, NULL, PLAIN},
	    {"explicit", ANSWERS, "answers:tool", OURS, NULL, PLAIN},
	    {"blank header", MESSAGES, "claude:text", DATED, "Otari-Code-Execution;", FORWARDED},
	};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(s, &rows[i]);
	check(s, &rows[6]);
	json_t *request = last_request(s);
	char *text = json_dumps(request, 0);
	cr_expect(strstr(text, "sums of the month") != NULL, "19: the hint is used: %s", text);
	free(text);
	json_decref(request);
	server_stop(&s);
}

Test(decision, the_deployments_default_comes_before_auto)
{
	static const struct row kept[] = {
	    {"9, bare", MESSAGES, "claude:text", BARE, NULL, FORWARDED},
	    {"10", MESSAGES, "fake:tool", OURS, NULL, PLAIN},
	    {"a header beats it", MESSAGES, "fake:tool", DATED, "Otari-Code-Execution: otari",
		NATIVE},
	};
	static const struct row claimed[] = {
	    {"11", MESSAGES, "claude:tool", DATED, NULL, NATIVE},
	    {"11", ANSWERS, "answers:tool", INTERP, NULL, NATIVE},
	    {"a header beats it", MESSAGES, "claude:text", DATED, "Otari-Code-Execution: auto",
		FORWARDED},
	};
	struct server *s = start_with_sandbox();

	admin_must(
	    s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"provider\"}", 200);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		check(s, &kept[i]);
	/* 9; differs: row 22: a chat provider has no such tool, and the client is told */
	struct reply r;
	ask(s, &(struct row){"9", MESSAGES, "fake:text", DATED, NULL, FORWARDED}, &r);
	cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
	cr_expect(
	    str_find(reply_header(&r, "Otari-Dropped"), STR("code_execution_20250825")) != SIZE_MAX,
	    "%s", r.head.ptr);
	reply_done(&r);
	admin_must(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"otari\"}", 200);
	for (size_t i = 0; i < ARRAY_LEN(claimed); i++)
		check(s, &claimed[i]);
	server_stop(&s);
}

struct refusal {
	struct row row;
	long status;
	const char *says;
};

static void
check_refusal(struct server *s, const struct refusal *f)
{
	struct reply r;

	ask(s, &f->row, &r);
	cr_expect_eq(r.status, f->status, "%s: %ld %s", f->row.name, r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	bool is_messages = strcmp(f->row.path, MESSAGES) == 0;
	const char *detail = at(root, is_messages ? "detail.error.message" : "detail");
	cr_expect(
	    strstr(at(root, "error.message"), f->says) != NULL, "%s: %s", f->row.name, r.body.ptr);
	cr_expect_str_eq(detail, at(root, "error.message"), "%s: %s", f->row.name, r.body.ptr);
	if (is_messages)
		cr_expect_str_eq(at(root, "detail.error.type"), "invalid_request_error");
	json_decref(root);
	reply_done(&r);
}

Test(decision, refusals_have_their_dialects_envelope)
{
	static const struct refusal rows[] = {
	    {{"7", MESSAGES, "fake:tool", DATED, "X-Otari-Code-Execution: anthropic", 0}, 400,
		"otari-code-execution"},
	    {{"24", ANSWERS, "answers:tool", INTERP, "Otari-Code-Execution: anthropic", 0}, 400,
		"otari-code-execution"},
	    {{"7, nothing declared", CHAT, "fake:text", "", "Otari-Code-Execution: never", 0}, 400,
		"otari-code-execution"},
	    {{"20", MESSAGES, "claude:text", OURS "," DATED, NULL, 0}, 400,
		"cannot be combined with a provider-native"},
	    {{"20", ANSWERS, "answers:text", OURS "," INTERP, NULL, 0}, 400,
		"cannot be combined with a provider-native"},
	};
	struct server *s = start_with_sandbox();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_refusal(s, &rows[i]);
	server_stop(&s);
}

Test(decision, without_a_sandbox_declarations_are_the_providers)
{
	static const struct row forwarded[] = {
	    {"4", MESSAGES, "claude:text", DATED, NULL, FORWARDED},
	    {"4", ANSWERS, "answers:text", INTERP, NULL, FORWARDED},
	};
	static const struct refusal rows[] = {
	    {{"8", MESSAGES, "claude:text", DATED, "Otari-Code-Execution: otari", 0}, 400,
		"no sandbox is configured"},
	    {{"8", ANSWERS, "answers:text", INTERP, "Otari-Code-Execution: otari", 0}, 400,
		"no sandbox is configured"},
	    {{"explicit", CHAT, "fake:text", OURS, NULL, 0}, 400, "no sandbox is configured"},
	};
	struct server *s = server_start(NULL);

	/* no policy is read, and the deployment's default does not raise */
	put_policy(s, "{\"enabled\":false,\"executor\":\"otari\"}");
	admin_must(s, "PATCH", "/v1/tool-settings", "{\"code_execution_executor\":\"otari\"}", 200);
	for (size_t i = 0; i < ARRAY_LEN(forwarded); i++)
		check(s, &forwarded[i]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_refusal(s, &rows[i]);
	server_stop(&s);
}
