/* Answers to a Chat client that still speaks of functions: it has place for one call. */
#include <criterion/criterion.h>

#include "base/json.h"
#include "tests/unit/dialectfix.h"

TestSuite(chat_functions, .timeout = 20);

#define REQUEST                                                                                    \
	"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"functions\":[{"   \
	"\"name\":\"f\"}]}"
#define CALL(id, n)                                                                                \
	"{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"     \
	"\"{\\\"n\\\":" n "}\"}}"
#define ANSWER                                                                                     \
	"{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[" \
	"{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL( \
	    "a", "1") "," CALL("b", "2") "]},\"finish_reason\":\"tool_calls\"}]}"

/* Whoever joins a stream's pieces would get the arguments of both as one text. */
Test(chat_functions, the_first_of_two_calls_is_the_answer_streamed_or_not)
{
	for (int stream = 0; stream < 2; stream++) {
		struct arena *a = arena_new(16u << 20);
		struct fix_answer got;
		struct jval root;
		const struct fix_way way = {.from = WIRE_CHAT,
		    .to = WIRE_CHAT,
		    .stream_out = stream == 1,
		    .request = fix_must_decode(a, WIRE_CHAT, REQUEST)};

		fix_answer(a, &way, STR(ANSWER), 0, &got);
		cr_expect_eq(str_find(got.bytes, STR("{\\\"n\\\":2}")), SIZE_MAX, "%.*s",
		    STR_FMT(got.bytes));
		cr_expect(
		    str_find(got.bytes, STR("\"finish_reason\":\"function_call\"")) != SIZE_MAX);
		if (!stream) {
			cr_assert_eq(jdoc_parse(a, got.bytes, &root, NULL), ERR_OK);
			struct jval call = jv_get(
			    jv_get(jv_at(jv_get(root, "choices"), 0), "message"), "function_call");
			cr_expect(jv_str_is(jv_get(call, "arguments"), "{\"n\":1}"));
		}
		arena_free(&a);
	}
}
