#include "tools/demo-model/chat_reply.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"

#define FRAGMENT_BYTES 14 /* of text; some words a chunk, as services do */

static json_t *
usage_json(const struct answer *a)
{
	return json_pack("{s:I, s:I, s:I, s:{s:I, s:i}, s:{s:i, s:i}}", "prompt_tokens",
	    (json_int_t)a->input_tokens, "completion_tokens", (json_int_t)a->output_tokens,
	    "total_tokens", (json_int_t)(a->input_tokens + a->output_tokens),
	    "prompt_tokens_details", "cached_tokens", (json_int_t)a->cached_tokens, "audio_tokens",
	    0, "completion_tokens_details", "reasoning_tokens", 0, "audio_tokens", 0);
}

static json_t *
buf_json(const struct buf *b)
{
	return b->len > 0 ? json_stringn(b->ptr, b->len) : json_null();
}

static const char *
finish_reason(const struct answer *a)
{
	if (a->cut)
		return "length";
	return a->call_count > 0 ? "tool_calls" : "stop";
}

static json_t *
calls_json(const struct answer *a)
{
	json_t *calls = json_array();

	for (size_t i = 0; i < a->call_count; i++) {
		const struct answer_call *c = &a->calls[i];

		json_array_append_new(
		    calls, json_pack("{s:s, s:s, s:{s:s, s:s%}}", "id", c->id, "type", "function",
			       "function", "name", c->name, "arguments",
			       c->arguments.len > 0 ? c->arguments.ptr : "", c->arguments.len));
	}
	return calls;
}

void
chat_reply_whole(struct pace *p, struct answer *a)
{
	json_t *message, *root;
	char *text;

	answer_count(a);
	message = json_pack("{s:s, s:o, s:n, s:[]}", "role", "assistant", "content",
	    buf_json(&a->text), "refusal", "annotations");
	if (a->reasoning.len > 0)
		json_object_set_new(message, "reasoning_content", buf_json(&a->reasoning));
	if (a->call_count > 0)
		json_object_set_new(message, "tool_calls", calls_json(a));
	root = json_pack("{s:s, s:s, s:I, s:s, s:[{s:i, s:o, s:n, s:s}], s:o, s:s}", "id", a->id,
	    "object", "chat.completion", "created", (json_int_t)clock_wall_s(), "model", a->model,
	    "choices", "index", 0, "message", message, "logprobs", "finish_reason",
	    finish_reason(a), "usage", usage_json(a), "system_fingerprint", "fp_script");
	text = json_dumps(root, JSON_COMPACT);
	pace_add(p, str_c(text));
	free(text);
	json_decref(root);
}

/* What every chunk of one stream repeats. */
struct chunk_ctx {
	struct pace *pace;
	const struct answer *a;
	int64_t created_s;
	bool usage;
};

/* Takes choices and usage (NULL: the member is null where the stream has one). */
static void
add_chunk(const struct chunk_ctx *x, json_t *choices, json_t *usage)
{
	json_t *root = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", x->a->id, "object",
	    "chat.completion.chunk", "created", (json_int_t)x->created_s, "model", x->a->model,
	    "system_fingerprint", "fp_script", "choices", choices);
	char *text;

	if (x->usage)
		json_object_set_new(root, "usage", usage != NULL ? usage : json_null());
	text = json_dumps(root, JSON_COMPACT);
	pace_add_event(x->pace, NULL, str_c(text));
	free(text);
	json_decref(root);
}

/* Takes delta. */
static void
add_delta(const struct chunk_ctx *x, json_t *delta, const char *finish)
{
	add_chunk(x,
	    json_pack("[{s:i, s:o, s:n, s:s?}]", "index", 0, "delta", delta, "logprobs",
		"finish_reason", finish),
	    NULL);
}

static void
add_text(const struct chunk_ctx *x, const char *member, const struct buf *b)
{
	struct str rest = buf_str(b), piece;

	while (answer_fragment(&rest, FRAGMENT_BYTES, &piece))
		add_delta(x, json_pack("{s:s%}", member, piece.ptr, piece.len), NULL);
}

static void
add_call(const struct chunk_ctx *x, size_t index)
{
	const struct answer_call *c = &x->a->calls[index];
	struct str rest = buf_str(&c->arguments), piece;

	add_delta(x,
	    json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index", (int)index,
		"id", c->id, "type", "function", "function", "name", c->name, "arguments", ""),
	    NULL);
	while (answer_fragment(&rest, 2 * FRAGMENT_BYTES, &piece))
		add_delta(x,
		    json_pack("{s:[{s:i, s:{s:s%}}]}", "tool_calls", "index", (int)index,
			"function", "arguments", piece.ptr, piece.len),
		    NULL);
}

void
chat_reply_stream(struct pace *p, struct answer *a, bool include_usage)
{
	const struct chunk_ctx x = {p, a, clock_wall_s(), include_usage};

	answer_count(a);
	add_delta(&x,
	    json_pack("{s:s, s:s?, s:n}", "role", "assistant", "content",
		a->text.len > 0 || a->call_count == 0 ? "" : NULL, "refusal"),
	    NULL);
	add_text(&x, "reasoning_content", &a->reasoning);
	add_text(&x, "content", &a->text);
	for (size_t i = 0; i < a->call_count; i++)
		add_call(&x, i);
	add_delta(&x, json_object(), finish_reason(a));
	if (include_usage)
		add_chunk(&x, json_array(), usage_json(a));
	pace_add_event(p, NULL, STR("[DONE]"));
}
