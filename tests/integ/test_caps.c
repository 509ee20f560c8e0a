/* Where the loop ends before the model is done: the round cap, no free sandbox, a client that left.
 */
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(caps, .timeout = 240);

#define GO  "{\"role\":\"user\",\"content\":\"go\"}"
#define TWO ",\"max_tool_iterations\":2"

/* differs: row 17. */
Test(caps, rounds_end_a_native_turn_so_that_it_can_be_gone_on_from)
{
	struct server *s = start_with_sandbox();
	struct reply r;

	for (int stream = 0; stream < 2; stream++) {
		talk_ask(s, MESSAGES, "fake:forever", DATED, stream, GO, TWO, &r);
		cr_expect_eq(r.status, 200);
		HAS(r, "\"stop_reason\":\"pause_turn\"");
		HAS(r, "\"stdout\":\"2\\n\"");
		LACKS(r, "\"stdout\":\"3\\n\"");
		reply_done(&r);
		talk_ask(s, ANSWERS, "fake:forever", INTERP, stream, GO, TWO, &r);
		cr_expect_eq(r.status, 200);
		HAS(r, "\"status\":\"incomplete\"");
		HAS(r, "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}");
		HAS(r, "\"logs\":\"2\\n\"");
		if (stream) {
			HAS(r, "event: response.incomplete\n");
			LACKS(r, "event: response.completed\n");
			LACKS(r, "event: error\n");
		}
		reply_done(&r);
	}
	server_stop(&s);
}

Test(caps, rounds_are_a_422_where_nothing_was_shown)
{
	static const char *const paths[] = {CHAT, MESSAGES, ANSWERS};
	static const char *const ends[] = {"data: {\"error\":", "event: error\n", "event: error\n"};
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		talk_ask(s, paths[i], "fake:forever", OURS, false, GO, TWO, &r);
		cr_expect_eq(r.status, 422, "%s: %ld %s", paths[i], r.status, r.body.ptr);
		HAS(r, "more than 2 rounds");
		HAS(r, "\"invalid_request_error\"");
		reply_done(&r);
		/* "Round 1. " is out by then */
		talk_ask(s, paths[i], "fake:forever", OURS, true, GO, TWO, &r);
		cr_expect_eq(r.status, 200);
		HAS(r, ends[i]);
		HAS(r, "more than 2 rounds");
		LACKS(r, "message_stop");
		LACKS(r, "response.completed");
		reply_done(&r);
	}
	cr_expect(server_wait_sql(s, "SELECT count(*) FROM usage_logs WHERE status_code = 422", 6),
	    "usage says how it ended");
	server_stop(&s);
}

/* What the client was shown, as it sends it back. */
static char *
echoed(const struct reply *r, const char *list, const char *before, const char *behind)
{
	json_t *root = reply_json(r);
	char *text = json_dumps(json_object_get(root, list), JSON_COMPACT);
	struct buf b = BUF_INIT(4u << 20);

	buf_printf(&b, GO ",%s%.*s%s", before,
	    list[0] == 'o' ? (int)strlen(text) - 2 : (int)strlen(text),
	    list[0] == 'o' ? text + 1 : text, behind);
	char *talk = mem_strndup(b.ptr, b.len);
	free(text);
	json_decref(root);
	buf_done(&b);
	return talk;
}

Test(caps, a_paused_turn_goes_on_at_a_provider_that_continues_none)
{
	static const char *const models[] = {"fake:forever", "claude:forever", "answers:forever"};
	struct server *s = start_with_sandbox();
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(models) * 2; i++) {
		bool is_answers = i % 2 == 1;
		const char *path = is_answers ? ANSWERS : MESSAGES;
		const char *tool = is_answers ? INTERP : DATED;
		const char *model = models[i / 2];
		static const char *const header[] = {"Otari-Code-Execution: otari", NULL};
		char *body = talk_body(path, model, tool, false, GO, TWO);
		server_ask(s, "POST", path, str_c(body), &(struct ask_opts){.headers = header}, &r);
		mem_free(body);
		cr_assert_eq(r.status, 200, "%s: %s", model, r.body.ptr);
		char *talk =
		    is_answers ? echoed(&r, "output", "", "")
			       : echoed(&r, "content", "{\"role\":\"assistant\",\"content\":", "}");
		reply_done(&r);
		body = talk_body(path, model, tool, false, talk, ",\"max_tool_iterations\":1");
		server_ask(s, "POST", path, str_c(body), &(struct ask_opts){.headers = header}, &r);
		mem_free(body);
		cr_expect_eq(r.status, 200, "%s: %s", model, r.body.ptr);
		reply_done(&r);
		char *got = provider_saw(s, 0);
		const char *ran = strstr(got, "print(2)");
		const char *go_on = ran != NULL ? strstr(ran, "Continue.") : NULL;
		cr_expect(go_on != NULL, "%s %s: %s", path, model, got);
		cr_expect(strstr(got, "otari_") == NULL, "%s %s: %s", path, model, got);
		cr_expect(
		    go_on != NULL && strstr(go_on, "assistant") == NULL, "%s: %s", model, got);
		mem_free(got);
		mem_free(talk);
	}
	server_stop(&s);
}

/* --- no free sandbox -------------------------------------------------------------------------- */

#define SLOW                                                                                       \
	"{\"role\":\"user\",\"content\":\"run: import time\\nprint(1, flush=True)\\n"              \
	"time.sleep(300)\"}"

static bool
wait_metric(struct server *s, const char *name, double n)
{
	for (int i = 0; i < 3000; i++) {
		if (server_metric(s, name) >= n)
			return true;
		pause_short();
	}
	return false;
}

static bool
wait_idle(struct server *s)
{
	for (int i = 0; i < 3000; i++) {
		if (server_metric(s, "otari_sandbox_sessions_leased") <= 0)
			return true;
		pause_short();
	}
	return false;
}

/* A request whose code runs and does not end; the only session there may be is its. */
static int
hold_session(struct server *s)
{
	double before = server_metric(s, "otari_sandbox_leases_total");
	char *body = talk_body(MESSAGES, "fake:tool", DATED, true, SLOW, "");
	int fd = stream_open(s, MESSAGES, body);

	mem_free(body);
	cr_assert(wait_metric(s, "otari_sandbox_leases_total", before + 1), "no session");
	return fd;
}

/* differs: row 16. */
Test(caps, a_full_sandbox_is_waited_for_and_then_a_503_in_every_dialect)
{
	static const struct {
		const char *path, *tool, *begun, *call; /* the error after text was sent */
	} rows[] = {
	    {CHAT, OURS, "data: {\"error\":", ""},
	    {MESSAGES, DATED, "event: error\ndata: {\"type\":\"error\"",
		"\"error_code\":\"unavailable\""},
	    {ANSWERS, INTERP, "event: error\n", "\"status\":\"failed\",\"code\":\"print("},
	};
	struct server *s = start_sandboxed(&(struct server_opts){
	    .workers = 1, .conf = "sandbox_max_sessions: 1\nsandbox_queue_ms: 300\n"});
	struct reply r;

	server_expect(s, "no code session");
	int fd = hold_session(s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		talk_ask(s, rows[i].path, "fake:tool", rows[i].tool, false,
		    "{\"role\":\"user\",\"content\":\"run: print(1)\"}", "", &r);
		cr_expect_eq(r.status, 503, "%s: %ld %s", rows[i].path, r.status, r.body.ptr);
		cr_expect(str_eq(reply_header(&r, "retry-after"), STR("5")), "%s", r.head.ptr);
		HAS(r, "\"detail\"");
		HAS(r, "all sandboxes are in use");
		reply_done(&r);
		/* a stream of which nothing was seen yet is a refusal as well */
		talk_ask(s, rows[i].path, "fake:tool", OURS, true,
		    "{\"role\":\"user\",\"content\":\"run: print(1)\"}", "", &r);
		cr_expect_eq(r.status, 503, "%s: %ld %s", rows[i].path, r.status, r.body.ptr);
		cr_expect(str_eq(reply_header(&r, "retry-after"), STR("5")), "%s", r.head.ptr);
		reply_done(&r);
		talk_ask(s, rows[i].path, "fake:rounds-1", rows[i].tool, true, GO, "", &r);
		cr_expect_eq(r.status, 200);
		HAS(r, rows[i].begun);
		HAS(r, "sandbox");
		HAS(r, rows[i].call); /* what the client saw begin has an end */
		LACKS(r, "message_stop");
		LACKS(r, "response.completed");
		reply_done(&r);
	}
	(void)close(fd);
	cr_expect(wait_idle(s), "the session is still held");
	server_stop(&s);
}

/* A stream that has nothing to show yet does not keep its client in the dark for long. */
Test(caps, a_stream_begins_while_its_code_runs)
{
	static const char *const paths[] = {CHAT, MESSAGES, ANSWERS};
	static const char *const pings[] = {": ping", "event: ping", ": ping"};
	struct server *s = start_sandboxed(
	    &(struct server_opts){.workers = 1, .conf = "streaming_keepalive_interval_ms: 100\n"});

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char *body = talk_body(paths[i], "fake:tool", OURS, true, SLOW, "");
		int fd = stream_open(s, paths[i], body);
		cr_expect(stream_wait(fd, pings[i]), "%s", paths[i]);
		(void)close(fd);
		mem_free(body);
	}
	cr_expect(wait_idle(s), "a session is still held");
	server_stop(&s);
}

Test(caps, who_waits_gets_the_session_that_comes_free)
{
	struct server *s = start_sandboxed(&(struct server_opts){
	    .workers = 1, .conf = "sandbox_max_sessions: 1\nsandbox_queue_ms: 60000\n"});
	int first = hold_session(s);
	char *body = talk_body(MESSAGES, "fake:tool", DATED, true,
	    "{\"role\":\"user\",\"content\":\"run: print(6 * 7)\"}", "");
	int second = stream_open(s, MESSAGES, body);

	cr_assert(wait_metric(s, "otari_requests_active", 3)); /* this one counts as well */
	(void)close(first);
	cr_expect(stream_wait(second, "\"stdout\":\"42\\n\""));
	(void)close(second);
	mem_free(body);
	server_stop(&s);
}

/* --- a client that left ----------------------------------------------------------------------- */

Test(caps, j9_code_ends_and_the_session_comes_back_when_the_client_leaves)
{
	static const char *const paths[] = {CHAT, MESSAGES, ANSWERS};
	struct server *s = start_sandboxed(&(struct server_opts){
	    .workers = 1, .conf = "sandbox_max_sessions: 1\nsandbox_queue_ms: 60000\n"});
	struct reply r;

	for (size_t i = 0; i < ARRAY_LEN(paths) * 2; i++) {
		double before = server_metric(s, "otari_sandbox_leases_total");
		char *body = talk_body(paths[i / 2], "fake:tool", OURS, i % 2, SLOW, "");
		int fd = stream_open(s, paths[i / 2], body);
		cr_assert(wait_metric(s, "otari_sandbox_leases_total", before + 1));
		(void)close(fd);
		mem_free(body);
		/* 300 s of sleep are not waited for: the next code has the one session there is */
		talk_ask(s, CHAT, "fake:tool", OURS, false,
		    "{\"role\":\"user\",\"content\":\"run: print(6 * 7)\"}", "", &r);
		cr_expect_eq(r.status, 200, "%s", r.body.ptr);
		HAS(r, "42");
		reply_done(&r);
	}
	cr_expect(wait_idle(s), "the session is still held");
	/* the tokens of the round that ended are paid */
	cr_expect(server_wait_sql(s,
	    "SELECT count(*) FROM usage_logs WHERE status_code = 499 AND completion_tokens > 0",
	    6));
	server_stop(&s);
}
