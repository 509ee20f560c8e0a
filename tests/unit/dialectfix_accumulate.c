/* What a client's SDK makes of a stream, strict about what SDKs stumble over (anthropic-wire §4.5,
 * openai-wire §2.7). */
#include <jansson.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/sse.h"
#include "tests/unit/dialectfix.h"

struct acc {
	enum wire wire;
	json_t *answer;  /* Messages: message; Chat: completion */
	struct buf json; /* partial_json of the open block */
	int open;        /* index of the open block, or -1 */
	bool stopped, done, has_delta;
};

static void
append(json_t *object, const char *key, const char *text)
{
	const char *old = json_string_value(json_object_get(object, key));
	json_t *s = json_pack("s++", old != NULL ? old : "", text, "");
	cr_assert(s != NULL);
	json_object_set_new(object, key, s);
}

/* --- Messages --- */

static void
block_delta(struct acc *acc, json_t *block, json_t *d)
{
	const char *type = json_string_value(json_object_get(d, "type"));
	const char *kind = json_string_value(json_object_get(block, "type"));
	cr_assert(type != NULL && kind != NULL);
	if (strcmp(type, "text_delta") == 0) {
		cr_assert_str_eq(kind, "text");
		append(block, "text", json_string_value(json_object_get(d, "text")));
	} else if (strcmp(type, "thinking_delta") == 0) {
		cr_assert_str_eq(kind, "thinking");
		append(block, "thinking", json_string_value(json_object_get(d, "thinking")));
	} else if (strcmp(type, "signature_delta") == 0) {
		cr_assert_str_eq(kind, "thinking");
		json_object_set(block, "signature", json_object_get(d, "signature"));
	} else if (strcmp(type, "input_json_delta") == 0) {
		cr_assert(strstr(kind, "tool_use") != NULL, "input for %s", kind);
		acc->has_delta = true;
		json_t *p = json_object_get(d, "partial_json");
		buf_addn(&acc->json, json_string_value(p), json_string_length(p));
	} else if (strcmp(type, "citations_delta") == 0) {
		if (!json_is_array(json_object_get(block, "citations")))
			json_object_set_new(block, "citations", json_array());
		json_array_append(
		    json_object_get(block, "citations"), json_object_get(d, "citation"));
	} else {
		cr_assert_fail("delta %s", type);
	}
}

static void
block_stop(struct acc *acc, json_t *block)
{
	const char *kind = json_string_value(json_object_get(block, "type"));
	if (strcmp(kind, "text") == 0)
		cr_assert(
		    json_string_length(json_object_get(block, "text")) > 0, "an empty text block");
	if (strcmp(kind, "tool_use") == 0 && json_object_size(json_object_get(block, "input")) == 0)
		cr_assert(acc->has_delta, "a call without input delta");
	if (acc->json.len > 0) {
		json_t *input = json_loadb(acc->json.ptr, acc->json.len, JSON_ALLOW_NUL, NULL);
		if (input == NULL) /* cut by a token limit */
			input = json_pack("{s:s%}", "_raw", acc->json.ptr, acc->json.len);
		json_object_set_new(block, "input", input);
	}
	buf_clear(&acc->json);
	acc->open = -1;
}

static void
messages_event(struct acc *acc, struct str name, json_t *v)
{
	const char *type = json_string_value(json_object_get(v, "type"));
	json_t *content = json_object_get(acc->answer, "content");
	int index = (int)json_integer_value(json_object_get(v, "index"));
	cr_assert(!acc->stopped, "%s behind the end", type);
	cr_assert(type != NULL && str_eq(name, str_c(type)), "event and type differ: %s", type);
	if (strcmp(type, "message_start") == 0) {
		cr_assert(acc->answer == NULL, "a second message_start");
		acc->answer = json_incref(json_object_get(v, "message"));
		cr_assert(json_is_object(json_object_get(acc->answer, "usage")));
		cr_assert(json_is_array(json_object_get(acc->answer, "content")));
		return;
	}
	if (strcmp(type, "ping") == 0)
		return;
	cr_assert(acc->answer != NULL, "%s before message_start", type);
	if (strcmp(type, "content_block_start") == 0) {
		cr_assert_eq(acc->open, -1);
		cr_assert_eq(index, (int)json_array_size(content), "index %d", index);
		json_array_append(content, json_object_get(v, "content_block"));
		acc->open = index;
		acc->has_delta = false;
	} else if (strcmp(type, "content_block_delta") == 0) {
		cr_assert_eq(acc->open, index);
		block_delta(
		    acc, json_array_get(content, (size_t)index), json_object_get(v, "delta"));
	} else if (strcmp(type, "content_block_stop") == 0) {
		cr_assert_eq(acc->open, index);
		block_stop(acc, json_array_get(content, (size_t)index));
	} else if (strcmp(type, "message_delta") == 0) {
		cr_assert_eq(acc->open, -1);
		json_object_update(acc->answer, json_object_get(v, "delta"));
		json_object_set(acc->answer, "usage", json_object_get(v, "usage"));
		const char *key;
		json_t *value;
		json_object_foreach(v, key, value)
			if (strcmp(key, "type") != 0 && strcmp(key, "delta") != 0)
				json_object_set(acc->answer, key, value);
	} else if (strcmp(type, "message_stop") == 0) {
		cr_assert(json_is_string(json_object_get(acc->answer, "stop_reason")));
		acc->stopped = true;
	} else {
		cr_assert_fail("event %s", type);
	}
}

/* --- Chat --- */

static json_t *
chat_choice(struct acc *acc, json_t *choice)
{
	json_t *choices = json_object_get(acc->answer, "choices");
	json_int_t index = json_integer_value(json_object_get(choice, "index"));
	while ((json_int_t)json_array_size(choices) <= index)
		json_array_append_new(
		    choices, json_pack("{s:I,s:{s:n,s:n},s:n,s:n}", "index",
				 (json_int_t)json_array_size(choices), "message", "content",
				 "refusal", "logprobs", "finish_reason"));
	return json_array_get(choices, (size_t)index);
}

static void
chat_call(json_t *message, json_t *d)
{
	json_t *calls = json_object_get(message, "tool_calls");
	if (calls == NULL) {
		calls = json_array();
		json_object_set_new(message, "tool_calls", calls);
	}
	cr_assert(json_is_integer(json_object_get(d, "index")), "a call delta without index");
	size_t index = (size_t)json_integer_value(json_object_get(d, "index"));
	cr_assert(index <= json_array_size(calls), "a gap in the calls");
	if (index == json_array_size(calls)) {
		cr_assert(json_is_string(json_object_get(d, "id")) &&
			      json_is_string(json_object_get(d, "type")),
		    "the first delta lacks id or type");
		json_t *call = json_deep_copy(d);
		json_object_del(call, "index");
		json_array_append_new(calls, call);
		return;
	}
	json_t *call = json_array_get(calls, index);
	const char *more =
	    json_string_value(json_object_get(json_object_get(d, "function"), "arguments"));
	if (json_object_get(d, "extra_content") != NULL)
		json_object_set(call, "extra_content", json_object_get(d, "extra_content"));
	append(json_object_get(call, "function"), "arguments", more != NULL ? more : "");
}

static void
chat_delta(json_t *choice, json_t *d)
{
	json_t *message = json_object_get(choice, "message"), *value;
	const char *key;
	cr_assert(
	    json_is_null(json_object_get(choice, "finish_reason")) || json_object_size(d) == 0,
	    "content behind the finish");
	json_object_foreach(d, key, value) {
		size_t i;
		json_t *item;
		if (strcmp(key, "tool_calls") == 0) {
			json_array_foreach(value, i, item)
				chat_call(message, item);
		} else if (strcmp(key, "annotations") == 0) {
			if (json_object_get(message, key) == NULL)
				json_object_set_new(message, key, json_array());
			json_array_extend(json_object_get(message, key), value);
		} else if (strcmp(key, "role") == 0 || !json_is_string(value)) {
			if (!json_is_null(value))
				json_object_set(message, key, value);
		} else if (json_string_length(value) > 0) {
			append(message, key, json_string_value(value));
		}
	}
}

static void
chat_event(struct acc *acc, json_t *v)
{
	size_t i;
	json_t *choice, *choices = json_object_get(v, "choices");
	cr_assert(!acc->done, "a chunk behind [DONE]");
	cr_assert(json_is_array(choices), "a chunk without choices");
	if (acc->answer == NULL)
		acc->answer = json_pack("{s:O,s:s,s:O,s:O,s:[]}", "id", json_object_get(v, "id"),
		    "object", "chat.completion", "created", json_object_get(v, "created"), "model",
		    json_object_get(v, "model"), "choices");
	cr_assert(json_equal(json_object_get(v, "id"), json_object_get(acc->answer, "id")));
	json_array_foreach(choices, i, choice) {
		json_t *have = chat_choice(acc, choice);
		chat_delta(have, json_object_get(choice, "delta"));
		if (!json_is_null(json_object_get(choice, "finish_reason")))
			json_object_set(
			    have, "finish_reason", json_object_get(choice, "finish_reason"));
	}
	if (json_is_object(json_object_get(v, "usage"))) {
		cr_assert_eq(json_array_size(choices), 0, "usage beside choices");
		json_object_set(acc->answer, "usage", json_object_get(v, "usage"));
	}
}

static void
chat_close(struct acc *acc)
{
	size_t i;
	json_t *choice;
	cr_assert(acc->done, "no [DONE]");
	json_array_foreach(json_object_get(acc->answer, "choices"), i, choice) {
		json_t *m = json_object_get(choice, "message");
		cr_assert(json_is_string(json_object_get(m, "role")), "no role");
		cr_assert(json_is_string(json_object_get(choice, "finish_reason")), "no finish");
		if (json_is_null(json_object_get(m, "content")) &&
		    json_object_get(m, "tool_calls") == NULL &&
		    json_object_get(m, "audio") == NULL &&
		    json_object_get(m, "function_call") == NULL &&
		    json_is_null(json_object_get(m, "refusal")))
			json_object_set_new(m, "content", json_string(""));
	}
}

static enum err_code
on_frame(void *arg, struct str name, struct str data)
{
	struct acc *acc = arg;
	if (acc->wire == WIRE_CHAT && str_eq(data, STR("[DONE]"))) {
		acc->done = true;
		return ERR_OK;
	}
	json_t *v = json_loadb(data.ptr, data.len, JSON_ALLOW_NUL, NULL);
	cr_assert(v != NULL, "no JSON: %.*s", (int)data.len, data.ptr);
	if (acc->wire == WIRE_CHAT)
		chat_event(acc, v);
	else
		messages_event(acc, name, v);
	json_decref(v);
	return ERR_OK;
}

struct str
fix_accumulate(struct arena *a, enum wire w, struct str sse)
{
	if (w == WIRE_RESPONSES)
		return fix_accumulate_responses(a, sse);
	struct acc acc = {.wire = w, .open = -1};
	struct sse_reader r;
	buf_init(&acc.json, 64u << 20);
	sse_init(&r, 64u << 20);
	cr_assert_eq(sse_feed(&r, sse, on_frame, &acc, NULL), ERR_OK);
	sse_done(&r);
	cr_assert(acc.answer != NULL, "no answer: %.*s", (int)sse.len, sse.ptr);
	if (w == WIRE_CHAT)
		chat_close(&acc);
	else
		cr_assert(acc.stopped, "no message_stop");
	char *text = json_dumps(acc.answer, JSON_COMPACT);
	cr_assert(text != NULL);
	struct str ret = arena_str(a, str_c(text));
	free(text);
	json_decref(acc.answer);
	buf_done(&acc.json);
	return ret;
}
