/* A turn of each provider, shown to each client, comes back whole with the client's next request:
 * text, call with its arguments as bytes, and the reasoning that only that provider can read. */
#include <criterion/criterion.h>

#include "tests/unit/dialectfix.h"

#define BIG "18446744073709551615"

static const char *const answers[] = {
    [WIRE_CHAT] =
	"{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{"
	"\"index\":0,\"finish_reason\":\"tool_calls\",\"message\":{\"role\":\"assistant\","
	"\"reasoning_content\":\"deep\",\"content\":\"said\",\"tool_calls\":[{\"id\":\"c1\","
	"\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"n\\\":" BIG
	"}\"}}]}}]}",
    [WIRE_MESSAGES] =
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","
	"\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,"
	"\"output_tokens\":1},\"content\":[{\"type\":\"thinking\",\"thinking\":\"deep\","
	"\"signature\":\"SIG.1\"},{\"type\":\"redacted_thinking\",\"data\":\"RED.1\"},{\"type\":"
	"\"text\",\"text\":\"said\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"f\","
	"\"input\":{\"n\":" BIG "}}]}",
    [WIRE_RESPONSES] =
	"{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"completed\","
	"\"model\":\"m\",\"output\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{"
	"\"type\":\"summary_text\",\"text\":\"deep\"}],\"encrypted_content\":\"ENC.1\"},{\"type\":"
	"\"reasoning\",\"id\":\"rs_2\",\"summary\":[],\"encrypted_content\":\"ENC.2\"},{\"type\":"
	"\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":["
	"{\"type\":\"output_text\",\"text\":\"said\",\"annotations\":[]}]},{\"type\":\"function_"
	"call\",\"id\":\"fc_1\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{\\\"n\\\":" BIG
	"}\",\"status\":\"completed\"}],\"usage\":{\"input_tokens\":1,\"output_tokens\":1,"
	"\"total_tokens\":2}}",
};

/* What the provider must get back; reasoning apart, which a Chat client cannot keep for others. */
static const struct {
	const char *said, *call, *result;
	const char *reasoning[2];
} wanted[] = {
    [WIRE_CHAT] = {"\"content\":\"said\"",
	"\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"n\\\":" BIG "}\"}",
	"\"tool_call_id\":\"c1\",\"content\":\"r\"",
	{"\"reasoning_content\":\"deep\"", "\"reasoning_content\":\"deep\""}},
    [WIRE_MESSAGES] = {"\"text\":\"said\"",
	"\"id\":\"c1\",\"name\":\"f\",\"input\":{\"n\":" BIG "}", "\"tool_use_id\":\"c1\"",
	{"\"thinking\":\"deep\",\"signature\":\"SIG.1\"", "\"data\":\"RED.1\""}},
    [WIRE_RESPONSES] = {"\"text\":\"said\"", "\"arguments\":\"{\\\"n\\\":" BIG "}\"",
	"\"call_id\":\"c1\",\"output\":\"r\"",
	{"\"encrypted_content\":\"ENC.1\"", "\"encrypted_content\":\"ENC.2\""}},
};

static const struct str secrets[] = {
    [WIRE_MESSAGES] = STR_INIT("SIG.1"), [WIRE_RESPONSES] = STR_INIT("ENC.1")};

static struct str
next_request(struct arena *a, enum wire client, struct str answer)
{
	struct jval v;
	cr_assert_eq(jdoc_parse(a, answer, &v, NULL), ERR_OK, "%.*s", STR_FMT(answer));
	if (client == WIRE_CHAT)
		return arena_printf(a,
		    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"},%.*s,{"
		    "\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"}]}",
		    STR_FMT(jv_raw(jv_get(jv_at(jv_get(v, "choices"), 0), "message"))));
	if (client == WIRE_MESSAGES)
		return arena_printf(a,
		    "{\"model\":\"m\",\"max_tokens\":5,\"messages\":[{\"role\":\"user\","
		    "\"content\":"
		    "\"q\"},{\"role\":\"assistant\",\"content\":%.*s},{\"role\":\"user\","
		    "\"content\":"
		    "[{\"type\":\"tool_result\",\"tool_use_id\":\"c1\",\"content\":\"r\"}]}]}",
		    STR_FMT(jv_raw(jv_get(v, "content"))));
	struct str items = jv_raw(jv_get(v, "output"));
	return arena_printf(a,
	    "{\"model\":\"m\",\"store\":false,\"input\":[{\"role\":\"user\",\"content\":\"q\"},%.*"
	    "s,{"
	    "\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"r\"}]}",
	    STR_FMT(str_sub(items, 1, items.len - 2)));
}

static void
check(enum wire provider, enum wire client, bool stream)
{
	struct arena *a = arena_new(64u << 20);
	struct fix_way way = {.from = provider, .to = client, .stream_out = stream};
	struct fix_answer got;
	fix_answer(a, &way, str_c(answers[provider]), 0, &got);
	cr_assert(got.ended, "%s", got.log.ptr);
	struct str answer = stream ? fix_accumulate(a, client, got.bytes) : got.bytes;
	struct str body = next_request(a, client, answer);
	struct str back = fix_translate_native(a, client, provider, body);
	const char *parts[] = {wanted[provider].said, wanted[provider].call,
	    wanted[provider].result, wanted[provider].reasoning[0], wanted[provider].reasoning[1]};
	/* A streamed answer is put together by a library that loses big numbers. */
	bool exact = !stream || client != WIRE_MESSAGES;
	size_t n = client == WIRE_CHAT && provider != WIRE_CHAT ? 3 : ARRAY_LEN(parts);
	for (size_t i = 0; i < n; i++)
		cr_expect((i == 1 && !exact) || str_find(back, str_c(parts[i])) != SIZE_MAX,
		    "%s → %s, %s: no %s in\n%s\nafter\n%s", wire_name(provider), wire_name(client),
		    stream ? "streamed" : "whole", parts[i], back.ptr, body.ptr);
	/* And nobody else sees what only that provider can read, nor any mark of ours. */
	for (int w = WIRE_CHAT; w <= WIRE_RESPONSES; w++) {
		struct str other = fix_translate_native(a, client, (enum wire)w, body);
		if (w == (int)provider || provider == WIRE_CHAT)
			continue;
		cr_expect(str_find(other, STR("otari_rs_")) == SIZE_MAX, "%s", other.ptr);
		cr_expect(str_find(other, secrets[provider]) == SIZE_MAX, "%s", other.ptr);
	}
	arena_free(&a);
}

Test(dialect_replay, every_turn_comes_back_whole, .timeout = 30)
{
	for (int provider = WIRE_CHAT; provider <= WIRE_RESPONSES; provider++)
		for (int client = WIRE_CHAT; client <= WIRE_RESPONSES; client++) {
			check((enum wire)provider, (enum wire)client, false);
			check((enum wire)provider, (enum wire)client, true);
		}
}
