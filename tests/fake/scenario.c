/* scenario.c - what the fake provider does, by the model that is asked for
 *
 *   text          "You said: " and the last user text
 *   reasoning     the same after some reasoning
 *   tool          calls for the step after "run:": "bash: COMMAND", "edit: ARGUMENTS" as they are,
 *                 or a program; given the result, repeats it
 *   parallel      the same, one call for each step between lines "---"
 *   steps         the same, one call a turn
 *   rounds-N      N calls one after the other, then text
 *   forever       a call, whatever came before
 *   client        calls the client's first own function with {}
 *   gated         as tool; half of the call comes, the rest after POST /_go
 *   tool-cut      as tool; the connection closes half-way through the call
 *   mixed         a code call and a client's call in one turn; then text
 *   badjson       a code call whose arguments are not JSON; then text
 *   length        a code call that the token limit cut; then text
 *   big-BYTES     a text of that many bytes
 *   slow-MS       text, that long between two pieces
 *   stall         half of a text, then nothing more; the connection stays open
 *   mute          nothing at all
 *   cut           half of a text, then the connection closes
 *   endless       text without an end
 *   flood         the same in large pieces, faster than anybody wants it
 *   error-event   half of a text, then the stream's error event
 *   err-STATUS    that HTTP error, 429 and 529 with Retry-After: 7
 *   bench         a fixed answer, made once: for measuring what is in front of this
 *   recorded/X    the file X of the folder OTARI_RECORDED
 */
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/mem.h"
#include "tests/fake/fake.h"
#include "tools/demo-model/chat_reply.h"

#define PROGRAM_DEFAULT "print(6 * 7)"

static const char *
error_type(enum fake_wire wire, int status)
{
	if (wire != FAKE_MESSAGES)
		return status == 401   ? "authentication_error"
		       : status >= 500 ? "server_error"
				       : "invalid_request_error";
	switch (status) {
	case 401:
		return "authentication_error";
	case 403:
		return "permission_error";
	case 404:
		return "not_found_error";
	case 413:
		return "request_too_large";
	case 429:
		return "rate_limit_error";
	case 529:
		return "overloaded_error";
	default:
		return status >= 500 ? "api_error" : "invalid_request_error";
	}
}

static json_t *
error_json(enum fake_wire wire, int status, const char *text)
{
	if (wire != FAKE_MESSAGES)
		return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", text, "type",
		    error_type(wire, status), "param", status == 400 ? "messages[0]" : NULL, "code",
		    status == 400   ? "context_length_exceeded"
		    : status == 401 ? "invalid_api_key"
				    : NULL);
	return json_pack("{s:s, s:{s:s, s:s}, s:s}", "type", "error", "error", "type",
	    error_type(wire, status), "message", text, "request_id", "req_fake");
}

static void
add_json(struct pace *p, json_t *root, bool event)
{
	char *text = json_dumps(root, JSON_COMPACT);

	if (event)
		pace_add_event(p, json_string_value(json_object_get(root, "type")), str_c(text));
	else
		pace_add(p, str_c(text));
	free(text);
	json_decref(root);
}

void
scenario_error(struct evhttp_request *req, enum fake_wire wire, int status, const char *text)
{
	struct pace *p = pace_new(req, 0);

	if (status == 429 || status == 529)
		evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", "7");
	add_json(p, error_json(wire, status, text), false);
	pace_run(p, status, "application/json", PACE_END);
}

/* The number after prefix in the model's name, or false. */
static bool
numbered(const struct ask *q, const char *prefix, uint64_t *ret)
{
	struct str model = str_c(q->model);

	return str_starts(model, str_c(prefix)) && str_u64(str_from(model, strlen(prefix)), ret);
}

static bool
is(const struct ask *q, const char *model)
{
	return strcmp(q->model, model) == 0;
}

static void
add_code_call(struct answer *a, const struct ask *q, struct str code)
{
	struct answer_call *c;

	c = answer_add_call(a, q->wire == FAKE_MESSAGES ? "toolu_" : "call_",
	    q->talk.run_name != NULL ? q->talk.run_name : "code_execution");
	if (c != NULL)
		answer_call_code(c, code);
}

static void
add_client_call(struct answer *a, const struct ask *q)
{
	struct answer_call *c;

	c = answer_add_call(a, q->wire == FAKE_MESSAGES ? "toolu_" : "call_",
	    q->client_tool != NULL ? q->client_tool : "get_time");
	if (c != NULL)
		buf_add(&c->arguments, STR("{\"zone\": \"UTC\"}"));
}

/* "bash: …", "edit: …" or a program; a function that is not there is called by its usual name. */
static void
add_step(struct answer *a, const struct ask *q, struct str step)
{
	const char *prefix = q->wire == FAKE_MESSAGES ? "toolu_" : "call_";
	struct answer_call *c;

	if (str_starts(step, STR("edit:"))) {
		c = answer_add_call(
		    a, prefix, q->editor != NULL ? q->editor : "text_editor_code_execution");
		if (c != NULL)
			buf_add(&c->arguments, str_trim(str_from(step, 5)));
	} else if (str_starts(step, STR("bash:"))) {
		c = answer_add_call(a, prefix, q->bash != NULL ? q->bash : "bash_code_execution");
		if (c != NULL)
			answer_call_member(c, "command", str_trim(str_from(step, 5)));
	} else {
		add_code_call(a, q, step);
	}
}

/* One call for each step after "run:", or the one default program. */
static void
add_programs(struct answer *a, const struct ask *q, bool several)
{
	struct str text = str_trim(buf_str(&q->talk.user));
	size_t at = str_find(text, STR("run:"));

	text = at == SIZE_MAX ? STR(PROGRAM_DEFAULT) : str_trim(str_from(text, at + 4));
	while (several && (at = str_find(text, STR("\n---\n"))) != SIZE_MAX) {
		add_step(a, q, str_sub(text, 0, at));
		text = str_from(text, at + 5);
	}
	add_step(a, q, text);
}

/* The step after those that have a result; false: there is no more. */
static bool
add_next_step(struct answer *a, const struct ask *q)
{
	struct str rest = str_trim(buf_str(&q->talk.user));
	size_t at = str_find(rest, STR("run:"));

	rest = at == SIZE_MAX ? STR("") : str_trim(str_from(rest, at + 4));
	for (size_t n = 0; rest.len > 0; n++) {
		at = str_find(rest, STR("\n---\n"));
		if (n == q->talk.result_count) {
			add_step(a, q, str_sub(rest, 0, at));
			return true;
		}
		rest = at == SIZE_MAX ? STR("") : str_from(rest, at + 5);
	}
	return false;
}

static void
say_user(struct answer *a, const struct ask *q)
{
	buf_add(&a->text, STR("You said: "));
	buf_add(&a->text, str_trim(buf_str(&q->talk.user)));
}

/* A turn that calls something until enough results are there. */
static bool
make_calls(struct answer *a, const struct ask *q)
{
	uint64_t rounds = 1;
	struct answer_call *c;

	if (is(q, "steps"))
		return add_next_step(a, q);
	(void)numbered(q, "rounds-", &rounds);
	if (q->talk.result_count >= rounds && !is(q, "forever"))
		return false;
	if (is(q, "parallel") || is(q, "tool") || is(q, "gated") || is(q, "tool-cut")) {
		add_programs(a, q, is(q, "parallel"));
	} else if (is(q, "client")) {
		add_client_call(a, q);
	} else if (is(q, "mixed")) {
		add_programs(a, q, false);
		add_client_call(a, q);
	} else if (is(q, "badjson") || is(q, "length")) {
		add_programs(a, q, false);
		c = &a->calls[0];
		c->arguments.len -= 2;
		c->arguments.ptr[c->arguments.len] = '\0';
		a->cut = is(q, "length");
	} else if (is(q, "forever") || str_starts(str_c(q->model), STR("rounds-"))) {
		struct buf code = BUF_INIT(64);

		buf_printf(&a->text, "Round %zu. ", q->talk.result_count + 1);
		buf_printf(&code, "print(%zu)", q->talk.result_count + 1);
		add_code_call(a, q, buf_str(&code));
		buf_done(&code);
	} else {
		return false;
	}
	return true;
}

static void
make_answer(struct answer *a, const struct ask *q)
{
	uint64_t n;

	a->input_tokens = (int64_t)((q->talk.system.len + q->talk.users.len) / 4 + 10);
	if (make_calls(a, q))
		return;
	if (q->talk.result_count > 0) {
		buf_add(&a->text, STR("Result: "));
		buf_add(&a->text, str_trim(buf_str(&q->talk.results)));
	} else if (numbered(q, "big-", &n)) {
		for (uint64_t i = 0; i < n && i < (32u << 20); i++)
			buf_addc(&a->text, (char)('a' + i % 26));
	} else {
		if (is(q, "reasoning"))
			buf_add(&a->reasoning, STR("The user wants an answer, so I give one."));
		say_user(a, q);
		if (is(q, "stall") || is(q, "cut") || is(q, "error-event"))
			buf_add(&a->text, STR(" (and there would be a good deal more to say)"));
	}
}

/* The endings that break off do so half-way: the tail of the pieces is what they leave out. */
static const char *const id_prefixes[] = {
    [FAKE_CHAT] = "chatcmpl-", [FAKE_MESSAGES] = "msg_", [FAKE_RESPONSES] = "resp_"};

static void
write_answer(struct pace *p, struct answer *a, const struct ask *q, bool include_usage)
{
	switch (q->wire) {
	case FAKE_CHAT:
		if (q->stream)
			chat_reply_stream(p, a, include_usage);
		else
			chat_reply_whole(p, a);
		break;
	case FAKE_MESSAGES:
		(q->stream ? messages_reply_stream : messages_reply_whole)(p, a);
		break;
	case FAKE_RESPONSES:
		(q->stream ? responses_reply_stream : responses_reply_whole)(p, a);
		break;
	}
}

static char flood[256 * 1024];

static void
send_answer(struct ask *q)
{
	enum pace_end end = PACE_END;
	uint64_t delay_ms = 0;
	struct answer a;
	struct pace *p;

	(void)numbered(q, "slow-", &delay_ms);
	memset(flood, 'a', sizeof(flood));
	p = pace_new(q->req, (unsigned)delay_ms);
	answer_init(&a, id_prefixes[q->wire], str_c(q->model));
	make_answer(&a, q);
	write_answer(p, &a, q, q->include_usage);
	if (is(q, "stall"))
		end = PACE_STALL;
	else if (is(q, "cut"))
		end = PACE_CUT;
	else if (is(q, "endless") || is(q, "flood"))
		end = PACE_REPEAT;
	if (is(q, "flood"))
		pace_add(p, str_n(flood, sizeof(flood)));
	if (is(q, "tool-cut") && a.call_count > 0)
		end = PACE_CUT;
	if ((end != PACE_END && !is(q, "flood")) || is(q, "error-event"))
		pace_halve(p);
	if (is(q, "gated") && a.call_count > 0)
		pace_gate(p);
	if (is(q, "error-event"))
		add_json(p, error_json(q->wire, 529, "overloaded in the middle"), q->stream);
	pace_run(p, 200, q->stream ? "text/event-stream" : "application/json", end);
	answer_done(&a);
}

/* The answer of "bench", made once for each wire and form and sent as one buffer. */
static void
send_fixed(struct ask *q)
{
	static struct buf made[3][2];
	struct buf *b = &made[q->wire][q->stream];
	struct evbuffer *out = evbuffer_new();
	struct answer a;
	struct pace *p;

	if (b->len == 0) {
		buf_init(b, 1u << 20);
		p = pace_new(q->req, 0);
		answer_init(&a, "chatcmpl-", str_c(q->model));
		for (int i = 0; i < 16; i++)
			buf_add(&a.text, STR("fourteen bytes"));
		write_answer(p, &a, q, true);
		pace_take(p, b);
		answer_done(&a);
	}
	evhttp_add_header(evhttp_request_get_output_headers(q->req), "Content-Type",
	    q->stream ? "text/event-stream" : "application/json");
	evbuffer_add_reference(out, b->ptr, b->len, NULL, NULL);
	evhttp_send_reply(q->req, 200, NULL, out);
	evbuffer_free(out);
}

void
scenario_run(struct ask *q)
{
	uint64_t status;

	if (q->model == NULL) {
		scenario_error(q->req, q->wire, 400, "model: a string is expected");
	} else if (numbered(q, "err-", &status) && status >= 400 && status < 600) {
		scenario_error(q->req, q->wire, (int)status, "the scenario is an error");
	} else if (is(q, "bench")) {
		send_fixed(q);
	} else if (is(q, "mute")) {
		pace_hang(pace_new(q->req, 0));
	} else if (str_starts(str_c(q->model), STR("recorded/"))) {
		if (!recorded_run(q, q->model + strlen("recorded/")))
			scenario_error(q->req, q->wire, 404, "no such recording");
	} else {
		send_answer(q);
	}
}
