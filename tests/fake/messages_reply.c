/* messages_reply.c - an answer in the Messages format, streamed or whole */
#include <stdlib.h>

#include "tests/fake/fake.h"

#define FRAGMENT_BYTES 14

static const char *
stop_reason(const struct answer *a)
{
	if (a->cut)
		return "max_tokens";
	return a->call_count > 0 ? "tool_use" : "end_turn";
}

static json_t *
usage_json(const struct answer *a, int64_t output)
{
	return json_pack("{s:I, s:i, s:I, s:I}", "input_tokens", (json_int_t)a->input_tokens,
	    "cache_creation_input_tokens", 0, "cache_read_input_tokens",
	    (json_int_t)a->cached_tokens, "output_tokens", (json_int_t)output);
}

static json_t *
message_json(const struct answer *a, json_t *content, const char *stop, int64_t output)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:n, s:o}", "id", a->id, "type",
	    "message", "role", "assistant", "model", a->model, "content", content, "stop_reason",
	    stop, "stop_sequence", "usage", usage_json(a, output));
}

static void
add(struct pace *p, const char *type, json_t *data)
{
	char *text;

	json_object_set_new(data, "type", json_string(type));
	text = json_dumps(data, JSON_COMPACT);
	pace_add_event(p, type, str_c(text));
	free(text);
	json_decref(data);
}

void
messages_reply_whole(struct pace *p, struct answer *a)
{
	json_t *content = json_array(), *root;
	char *text;

	answer_count(a);
	if (a->reasoning.len > 0)
		json_array_append_new(
		    content, json_pack("{s:s, s:s%, s:s}", "type", "thinking", "thinking",
				 a->reasoning.ptr, a->reasoning.len, "signature", "c2lnbmVk"));
	if (a->text.len > 0)
		json_array_append_new(content,
		    json_pack("{s:s, s:s%}", "type", "text", "text", a->text.ptr, a->text.len));
	for (size_t i = 0; i < a->call_count; i++) {
		json_t *input =
		    json_loadb(a->calls[i].arguments.ptr, a->calls[i].arguments.len, 0, NULL);

		json_array_append_new(content,
		    json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", a->calls[i].id,
			"name", a->calls[i].name, "input", input != NULL ? input : json_object()));
	}
	root = message_json(a, content, stop_reason(a), a->output_tokens);
	text = json_dumps(root, JSON_COMPACT);
	pace_add(p, str_c(text));
	free(text);
	json_decref(root);
}

/* One block: its start, deltas of the given kind and member, an optional signature, its stop. */
static void
add_block(struct pace *p, int index, json_t *start, const char *kind, const char *member,
    struct str rest, const char *signature)
{
	struct str piece;

	add(p, "content_block_start",
	    json_pack("{s:i, s:o}", "index", index, "content_block", start));
	if (index == 0)
		add(p, "ping", json_object());
	while (answer_fragment(&rest, FRAGMENT_BYTES, &piece))
		add(p, "content_block_delta",
		    json_pack("{s:i, s:{s:s, s:s%}}", "index", index, "delta", "type", kind, member,
			piece.ptr, piece.len));
	if (signature != NULL)
		add(p, "content_block_delta",
		    json_pack("{s:i, s:{s:s, s:s}}", "index", index, "delta", "type",
			"signature_delta", "signature", signature));
	add(p, "content_block_stop", json_pack("{s:i}", "index", index));
}

void
messages_reply_stream(struct pace *p, struct answer *a)
{
	int index = 0;

	answer_count(a);
	add(p, "message_start",
	    json_pack("{s:o}", "message", message_json(a, json_array(), NULL, 1)));
	if (a->reasoning.len > 0)
		add_block(p, index++,
		    json_pack(
			"{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""),
		    "thinking_delta", "thinking", buf_str(&a->reasoning), "c2lnbmVk");
	if (a->text.len > 0)
		add_block(p, index++, json_pack("{s:s, s:s}", "type", "text", "text", ""),
		    "text_delta", "text", buf_str(&a->text), NULL);
	for (size_t i = 0; i < a->call_count; i++)
		add_block(p, index++,
		    json_pack("{s:s, s:s, s:s, s:{}}", "type", "tool_use", "id", a->calls[i].id,
			"name", a->calls[i].name, "input"),
		    "input_json_delta", "partial_json", buf_str(&a->calls[i].arguments), NULL);
	add(p, "message_delta",
	    json_pack("{s:{s:s, s:n}, s:{s:I}}", "delta", "stop_reason", stop_reason(a),
		"stop_sequence", "usage", "output_tokens", (json_int_t)a->output_tokens));
	add(p, "message_stop", json_object());
}
