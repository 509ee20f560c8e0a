/* What a client's anthropic-beta header means to whom. */
#include <signal.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/integ/harness.h"

TestSuite(betas, .timeout = 120);

#define ASK                                                                                        \
	"{\"model\":\"%s\",\"max_tokens\":64,\"messages\":[{\"role\":\"user\",\"content\":"        \
	"\"run: print(6 * 7)\"}]%s}"
#define CODE  ",\"tools\":[{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}]"
#define NAMES "code-execution-2025-08-25,files-api-2025-04-14, made-up-2031"

/* Asks with the betas; what reached the provider as anthropic-beta, "" for none. */
static struct str
sent(struct server *s, const char *model, const char *tools, const char *executor, char *to,
    size_t size)
{
	const char *const headers[] = {
	    "anthropic-beta: " NAMES, "anthropic-beta: second-2031", executor, NULL};
	char body[512];
	struct reply r;

	(void)snprintf(body, sizeof(body), ASK, model, tools);
	server_ask(s, "POST", "/v1/messages?beta=true", str_c(body),
	    &(struct ask_opts){.headers = headers}, &r);
	cr_assert_eq(r.status, 200, "%s: a request fails for a beta: %s", model, r.body.ptr);
	reply_done(&r);
	fake_ask(s, "GET", "/_last", STR_NULL, &r);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(to, size, str_c(at(root, "headers.anthropic-beta"))));
	json_decref(root);
	reply_done(&r);
	return str_c(to);
}

static void
expect(
    struct server *s, const char *model, const char *tools, const char *executor, const char *want)
{
	char got[512];

	cr_expect(str_eq(sent(s, model, tools, executor, got, sizeof(got)), str_c(want)),
	    "%s %s: %s", model, executor != NULL ? executor : "", got);
}

#define ALL "code-execution-2025-08-25, files-api-2025-04-14, made-up-2031, second-2031"

Test(betas, go_to_anthropic_alone_and_never_fail_a_request)
{
	struct server *s = start_with_sandbox();
	char more[512];
	struct reply r = {0};

	expect(s, "claude:text", "", NULL, ALL); /* as it came, on the fast path */
	expect(s, "claude:text", CODE, NULL, ALL);
	/* the declaration stays here, and so does its beta */
	expect(s, "claude:tool", CODE, "Otari-Code-Execution: otari",
	    "files-api-2025-04-14, made-up-2031, second-2031");
	expect(s, "fake:text", "", NULL, "");
	expect(s, "fake:tool", CODE, NULL, "");
	expect(s, "answers:tool", CODE, NULL, "");
	/* a server that speaks Messages and is not Anthropic's */
	(void)snprintf(more, sizeof(more),
	    "  other:\n    provider_type: somebody\n    wire: messages\n    api_base: "
	    "http://127.0.0.1:%d/v1\n    api_key: k\n",
	    s->fake_port);
	server_write_conf(s, more);
	cr_assert_eq(kill(s->pid, SIGHUP), 0);
	for (int i = 0; i < 400 && r.status != 200; i++) {
		reply_done(&r);
		pause_short();
		server_ask(s, "POST", "/v1/messages",
		    STR("{\"model\":\"other:text\",\"max_tokens\":9,\"messages\":[{\"role\":"
			"\"user\",\"content\":\"hi\"}]}"),
		    NULL, &r);
	}
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	expect(s, "other:text", "", NULL, "");
	expect(s, "other:tool", CODE, NULL, "");
	server_stop(&s);
}
