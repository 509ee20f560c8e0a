/* responses_reply.c - an answer in the Responses format, streamed or whole */
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake.h"

#define FRAGMENT_BYTES 14

static json_t *
response_json(const struct answer *a, json_t *output, const char *status)
{
	bool done = strcmp(status, "in_progress") != 0;
	json_t *usage =
	    !done ? json_null()
		  : json_pack("{s:I, s:{s:I}, s:I, s:{s:i}, s:I}", "input_tokens",
			(json_int_t)a->input_tokens, "input_tokens_details", "cached_tokens",
			(json_int_t)a->cached_tokens, "output_tokens", (json_int_t)a->output_tokens,
			"output_tokens_details", "reasoning_tokens", 0, "total_tokens",
			(json_int_t)(a->input_tokens + a->output_tokens));
	json_t *incomplete =
	    a->cut && done ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null();
	return json_pack("{s:s, s:s, s:i, s:s, s:n, s:o, s:s, s:o, s:b, s:s, s:[], s:o}", "id",
	    a->id, "object", "response", "created_at", 1786000000, "status", status, "error",
	    "incomplete_details", incomplete, "model", a->model, "output", output,
	    "parallel_tool_calls", 1, "tool_choice", "auto", "tools", "usage", usage);
}

static json_t *
part_json(struct str text)
{
	return json_pack(
	    "{s:s, s:s%, s:[]}", "type", "output_text", "text", text.ptr, text.len, "annotations");
}

static json_t *
message_json(const char *status, json_t *content)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", "msg_fake1", "type", "message",
	    "status", status, "role", "assistant", "content", content);
}

static json_t *
reasoning_json(struct str text)
{
	json_t *summary = json_array();
	if (text.len > 0)
		json_array_append_new(summary,
		    json_pack("{s:s, s:s%}", "type", "summary_text", "text", text.ptr, text.len));
	return json_pack(
	    "{s:s, s:s, s:o}", "id", "rs_fake1", "type", "reasoning", "summary", summary);
}

static json_t *
call_json(const struct answer_call *c, const char *status, struct str arguments)
{
	return json_pack("{s:s, s:s, s:s, s:s%, s:s, s:s}", "id", "fc_fake1", "type",
	    "function_call", "status", status, "arguments", arguments.ptr, arguments.len, "call_id",
	    c->id, "name", c->name);
}

static json_t *
output_json(const struct answer *a)
{
	json_t *output = json_array();
	if (a->reasoning.len > 0)
		json_array_append_new(output, reasoning_json(buf_str(&a->reasoning)));
	if (a->text.len > 0)
		json_array_append_new(output,
		    message_json("completed", json_pack("[o]", part_json(buf_str(&a->text)))));
	for (size_t i = 0; i < a->call_count; i++)
		json_array_append_new(
		    output, call_json(&a->calls[i], "completed", buf_str(&a->calls[i].arguments)));
	return output;
}

void
responses_reply_whole(struct pace *p, struct answer *a)
{
	answer_count(a);
	json_t *root = response_json(a, output_json(a), a->cut ? "incomplete" : "completed");
	char *text = json_dumps(root, JSON_COMPACT);
	pace_add(p, str_c(text));
	free(text);
	json_decref(root);
}

struct stream {
	struct pace *p;
	int sequence, index;
};

static void
add(struct stream *s, const char *type, json_t *data)
{
	json_object_set_new(data, "type", json_string(type));
	json_object_set_new(data, "sequence_number", json_integer(s->sequence++));
	char *text = json_dumps(data, JSON_COMPACT);
	pace_add_event(s->p, type, str_c(text));
	free(text);
	json_decref(data);
}

static void
add_item(struct stream *s, const char *type, json_t *item)
{
	add(s, type, json_pack("{s:i, s:o}", "output_index", s->index, "item", item));
}

/* Deltas and the closing event of one text: event names without their last word. */
static void
add_text(struct stream *s, const char *delta, const char *done, const char *member,
    const char *item_id, const char *position, struct str text)
{
	struct str piece;
	for (struct str rest = text; answer_fragment(&rest, FRAGMENT_BYTES, &piece);)
		add(s, delta,
		    json_pack("{s:s, s:i, s:i, s:s%}", "item_id", item_id, "output_index", s->index,
			position, 0, "delta", piece.ptr, piece.len));
	add(s, done,
	    json_pack("{s:s, s:i, s:i, s:s%}", "item_id", item_id, "output_index", s->index,
		position, 0, member, text.ptr, text.len));
}

static void
add_reasoning(struct stream *s, const struct answer *a)
{
	add_item(s, "response.output_item.added", reasoning_json(STR("")));
	add(s, "response.reasoning_summary_part.added",
	    json_pack("{s:s, s:i, s:i, s:{s:s, s:s}}", "item_id", "rs_fake1", "output_index",
		s->index, "summary_index", 0, "part", "type", "summary_text", "text", ""));
	add_text(s, "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
	    "text", "rs_fake1", "summary_index", buf_str(&a->reasoning));
	add_item(s, "response.output_item.done", reasoning_json(buf_str(&a->reasoning)));
	s->index++;
}

static void
add_message(struct stream *s, const struct answer *a)
{
	add_item(s, "response.output_item.added", message_json("in_progress", json_array()));
	add(s, "response.content_part.added",
	    json_pack("{s:s, s:i, s:i, s:o}", "item_id", "msg_fake1", "output_index", s->index,
		"content_index", 0, "part", part_json(STR(""))));
	add_text(s, "response.output_text.delta", "response.output_text.done", "text", "msg_fake1",
	    "content_index", buf_str(&a->text));
	add(s, "response.content_part.done",
	    json_pack("{s:s, s:i, s:i, s:o}", "item_id", "msg_fake1", "output_index", s->index,
		"content_index", 0, "part", part_json(buf_str(&a->text))));
	add_item(s, "response.output_item.done",
	    message_json("completed", json_pack("[o]", part_json(buf_str(&a->text)))));
	s->index++;
}

static void
add_call(struct stream *s, const struct answer_call *c)
{
	add_item(s, "response.output_item.added", call_json(c, "in_progress", STR("")));
	add_text(s, "response.function_call_arguments.delta",
	    "response.function_call_arguments.done", "arguments", "fc_fake1", "content_index",
	    buf_str(&c->arguments));
	add_item(s, "response.output_item.done", call_json(c, "completed", buf_str(&c->arguments)));
	s->index++;
}

void
responses_reply_stream(struct pace *p, struct answer *a)
{
	struct stream s = {.p = p};
	answer_count(a);
	add(&s, "response.created",
	    json_pack("{s:o}", "response", response_json(a, json_array(), "in_progress")));
	add(&s, "response.in_progress",
	    json_pack("{s:o}", "response", response_json(a, json_array(), "in_progress")));
	if (a->reasoning.len > 0)
		add_reasoning(&s, a);
	if (a->text.len > 0)
		add_message(&s, a);
	for (size_t i = 0; i < a->call_count; i++)
		add_call(&s, &a->calls[i]);
	const char *status = a->cut ? "incomplete" : "completed";
	add(&s, a->cut ? "response.incomplete" : "response.completed",
	    json_pack("{s:o}", "response", response_json(a, output_json(a), status)));
}
