/* What a client's SDK makes of a Responses stream, strict about what SDKs stumble over (openai-wire
 * §4.5, §4.6): numbering, order, ids, every piece against its closing event, and the last event
 * against all of them. */
#include <jansson.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/sse.h"
#include "tests/unit/dialectfix.h"

struct racc {
	json_t *response; /* of the first event */
	json_t *output;   /* items as accumulated */
	json_t *final;
	json_int_t sequence;
	bool is_item_open, failed;
};

static const char *
text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	cr_assert(s != NULL, "no %s", key);
	return s;
}

static size_t
index_of(const json_t *v, const char *key)
{
	json_t *i = json_object_get(v, key);
	cr_assert(json_is_integer(i), "no %s in %s", key, text_of(v, "type"));
	return (size_t)json_integer_value(i);
}

static void
append(json_t *object, const char *key, const json_t *delta)
{
	json_t *old = json_object_get(object, key);
	cr_assert(json_is_string(old) && json_is_string(delta), "%s does not go on", key);
	size_t n = json_string_length(old), more = json_string_length(delta);
	struct buf b = BUF_INIT(64u << 20);
	cr_assert(more > 0, "an empty delta of %s", key);
	buf_addn(&b, json_string_value(old), n);
	buf_addn(&b, json_string_value(delta), more);
	json_object_set_new(object, key, json_stringn(b.ptr, b.len));
	buf_done(&b);
}

static void
same(const json_t *a, const json_t *b, const char *what)
{
	char *x = json_dumps(a, JSON_COMPACT | JSON_ENCODE_ANY);
	char *y = json_dumps(b, JSON_COMPACT | JSON_ENCODE_ANY);
	cr_assert(json_equal(a, b), "%s: %s against %s", what, x != NULL ? x : "nothing",
	    y != NULL ? y : "nothing");
	free(x);
	free(y);
}

/* The item that an event is about. */
static json_t *
item_of(struct racc *acc, const json_t *v)
{
	json_t *item = json_array_get(acc->output, index_of(v, "output_index"));
	cr_assert(item != NULL, "missing output for %s", text_of(v, "type"));
	cr_assert(
	    acc->is_item_open && index_of(v, "output_index") + 1 == json_array_size(acc->output),
	    "%s for an item that is closed", text_of(v, "type"));
	if (json_object_get(v, "item_id") != NULL)
		cr_assert_str_eq(text_of(v, "item_id"), text_of(item, "id"));
	return item;
}

/* --- parts --- */

/* {added, delta, done of the text, done of the part}: where the part is and what it holds */
static const struct {
	const char *prefix, *list, *index, *type, *member;
	bool has_logprobs;
} texts[] = {
    {"response.output_text.", "content", "content_index", "output_text", "text", true},
    {"response.refusal.", "content", "content_index", "refusal", "refusal", false},
    {"response.reasoning_text.", "content", "content_index", "reasoning_text", "text", false},
    {"response.reasoning_summary_text.", "summary", "summary_index", "summary_text", "text", false},
};

static void
part_added(struct racc *acc, const json_t *v, const char *list, const char *index)
{
	json_t *item = item_of(acc, v), *parts = json_object_get(item, list);
	if (parts == NULL && strcmp(text_of(item, "type"), "reasoning") == 0) {
		json_object_set_new(item, list, json_array());
		parts = json_object_get(item, list);
	}
	cr_assert(json_is_array(parts), "output.%s is not iterable", list);
	cr_assert_eq(index_of(v, index), json_array_size(parts));
	json_array_append_new(parts, json_deep_copy(json_object_get(v, "part")));
}

static json_t *
part_of(struct racc *acc, const json_t *v, const char *list, const char *index)
{
	json_t *parts = json_object_get(item_of(acc, v), list);
	json_t *part = json_array_get(parts, index_of(v, index));
	cr_assert(part != NULL, "missing content for %s", text_of(v, "type"));
	cr_assert_eq(index_of(v, index) + 1, json_array_size(parts), "a part that is closed");
	return part;
}

static bool
text_event(struct racc *acc, const json_t *v, const char *type)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t n = strlen(texts[i].prefix);
		if (strncmp(type, texts[i].prefix, n) != 0)
			continue;
		json_t *part = part_of(acc, v, texts[i].list, texts[i].index);
		cr_assert_str_eq(text_of(part, "type"), texts[i].type);
		if (strcmp(type + n, "delta") == 0) {
			append(part, texts[i].member, json_object_get(v, "delta"));
		} else if (strcmp(type + n, "done") == 0) {
			same(json_object_get(v, texts[i].member),
			    json_object_get(part, texts[i].member), type);
		} else if (strcmp(type + n, "annotation.added") == 0) {
			json_t *notes = json_object_get(part, "annotations");
			cr_assert_eq(index_of(v, "annotation_index"), json_array_size(notes));
			json_array_append(notes, json_object_get(v, "annotation"));
			return true;
		} else {
			cr_assert_fail("event %s", type);
		}
		if (texts[i].has_logprobs)
			cr_assert(json_is_array(json_object_get(v, "logprobs")), "no logprobs");
		return true;
	}
	return false;
}

static bool
part_event(struct racc *acc, const json_t *v, const char *type)
{
	if (strcmp(type, "response.content_part.added") == 0)
		part_added(acc, v, "content", "content_index");
	else if (strcmp(type, "response.reasoning_summary_part.added") == 0)
		part_added(acc, v, "summary", "summary_index");
	else if (strcmp(type, "response.content_part.done") == 0)
		same(json_object_get(v, "part"), part_of(acc, v, "content", "content_index"), type);
	else if (strcmp(type, "response.reasoning_summary_part.done") == 0)
		same(json_object_get(v, "part"), part_of(acc, v, "summary", "summary_index"), type);
	else
		return text_event(acc, v, type);
	return true;
}

/* --- items --- */

static const struct {
	const char *delta, *done, *item, *member;
} strings[] = {
    {"response.function_call_arguments.delta", "response.function_call_arguments.done",
	"function_call", "arguments"},
    {"response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
	"custom_tool_call", "input"},
    {"response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done",
	"code_interpreter_call", "code"},
    {"response.mcp_call_arguments.delta", "response.mcp_call_arguments.done", "mcp_call",
	"arguments"},
};

static bool
string_event(struct racc *acc, const json_t *v, const char *type)
{
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		bool is_delta = strcmp(type, strings[i].delta) == 0;
		if (!is_delta && strcmp(type, strings[i].done) != 0)
			continue;
		json_t *item = item_of(acc, v);
		cr_assert_str_eq(text_of(item, "type"), strings[i].item);
		if (is_delta)
			append(item, strings[i].member, json_object_get(v, "delta"));
		else
			same(json_object_get(v, strings[i].member),
			    json_object_get(item, strings[i].member), type);
		return true;
	}
	return false;
}

static bool
progress_event(struct racc *acc, const json_t *v, const char *type)
{
	static const char *const known[] = {"response.code_interpreter_call.in_progress",
	    "response.code_interpreter_call.interpreting",
	    "response.code_interpreter_call.completed", "response.web_search_call.in_progress",
	    "response.web_search_call.searching", "response.web_search_call.completed",
	    "response.file_search_call.in_progress", "response.file_search_call.searching",
	    "response.file_search_call.completed", "response.image_generation_call.in_progress",
	    "response.image_generation_call.generating", "response.image_generation_call.completed",
	    "response.mcp_list_tools.in_progress", "response.mcp_list_tools.completed",
	    "response.mcp_list_tools.failed", "response.mcp_call.in_progress",
	    "response.mcp_call.completed", "response.mcp_call.failed"};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(type, known[i]) == 0) {
			(void)item_of(acc, v);
			return true;
		}
	return false;
}

static void
item_added(struct racc *acc, const json_t *v)
{
	json_t *item = json_object_get(v, "item");
	const char *type = text_of(item, "type");
	cr_assert(!acc->is_item_open, "an item while another is open");
	cr_assert_eq(index_of(v, "output_index"), json_array_size(acc->output));
	if (strcmp(type, "message") == 0)
		cr_assert_eq(json_array_size(json_object_get(item, "content")), 0);
	if (strcmp(type, "reasoning") == 0)
		cr_assert(json_is_array(json_object_get(item, "summary")));
	if (strcmp(type, "function_call") == 0) {
		cr_assert_str_eq(text_of(item, "arguments"), "");
		cr_assert_str_neq(text_of(item, "call_id"), text_of(item, "id"));
	}
	json_array_append_new(acc->output, json_deep_copy(item));
	acc->is_item_open = true;
}

/* What pieces never bring. */
static void
without(json_t *item, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		json_object_del(item, *keys);
}

static void
item_done(struct racc *acc, const json_t *v)
{
	static const char *const whole_only[] = {
	    "status", "encrypted_content", "outputs", "output", "error", "results", "result", NULL};
	json_t *have = item_of(acc, v), *item = json_object_get(v, "item");
	json_t *given = json_deep_copy(item);
	if (strcmp(text_of(item, "type"), "message") == 0 ||
	    strcmp(text_of(item, "type"), "function_call") == 0)
		cr_assert(text_of(item, "status") != NULL);
	without(given, whole_only);
	without(have, whole_only);
	same(given, have, "output_item.done");
	json_decref(given);
	json_array_set(acc->output, index_of(v, "output_index"), item);
	acc->is_item_open = false;
}

/* --- the response --- */

static void
check_object(const json_t *r, const char *status)
{
	static const char *const required[] = {"id", "object", "created_at", "error",
	    "incomplete_details", "instructions", "max_output_tokens", "metadata", "model",
	    "output", "parallel_tool_calls", "previous_response_id", "reasoning", "store",
	    "temperature", "text", "tool_choice", "tools", "top_p", "truncation", "usage", "user"};
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
		cr_assert(json_object_get(r, required[i]) != NULL, "no %s", required[i]);
	cr_assert(json_is_array(json_object_get(r, "output")), "rsp.output is not iterable");
	cr_assert_str_eq(text_of(r, "status"), status);
}

static void
terminal(struct racc *acc, const json_t *v, const char *status)
{
	acc->final = json_incref(json_object_get(v, "response"));
	check_object(acc->final, status);
	cr_assert(!acc->is_item_open, "an item stayed open");
	same(json_object_get(acc->final, "output"), acc->output, "the last event's output");
	same(json_object_get(acc->final, "id"), json_object_get(acc->response, "id"), "id");
	cr_assert(json_is_object(json_object_get(acc->final, "usage")));
}

static void
event(struct racc *acc, struct str name, const json_t *v)
{
	const char *type = text_of(v, "type");
	cr_assert(acc->final == NULL && !acc->failed, "%s behind the end", type);
	cr_assert(str_eq(name, str_c(type)), "event and type differ: %s", type);
	cr_assert_eq(index_of(v, "sequence_number"), (size_t)acc->sequence, "%s", type);
	acc->sequence++;
	if (acc->response == NULL) {
		cr_assert_str_eq(type, "response.created");
		acc->response = json_incref(json_object_get(v, "response"));
		check_object(acc->response, "in_progress");
		cr_assert_eq(json_array_size(json_object_get(acc->response, "output")), 0);
	} else if (strcmp(type, "response.in_progress") == 0) {
		cr_assert_eq(acc->sequence, 2);
	} else if (strcmp(type, "response.output_item.added") == 0) {
		item_added(acc, v);
	} else if (strcmp(type, "response.output_item.done") == 0) {
		item_done(acc, v);
	} else if (strcmp(type, "response.completed") == 0) {
		terminal(acc, v, "completed");
	} else if (strcmp(type, "response.incomplete") == 0) {
		terminal(acc, v, "incomplete");
	} else {
		cr_assert(part_event(acc, v, type) || string_event(acc, v, type) ||
			      progress_event(acc, v, type),
		    "Unhandled response stream event %s", type);
	}
}

static enum err_code
on_frame(void *arg, struct str name, struct str data)
{
	json_t *v = json_loadb(data.ptr, data.len, JSON_ALLOW_NUL, NULL);
	cr_assert(v != NULL, "no JSON: %.*s", (int)data.len, data.ptr);
	event(arg, name, v);
	json_decref(v);
	return ERR_OK;
}

struct str
fix_accumulate_responses(struct arena *a, struct str sse)
{
	struct racc acc = {.output = json_array()};
	struct sse_reader r;
	sse_init(&r, 64u << 20);
	cr_assert_eq(sse_feed(&r, sse, on_frame, &acc, NULL), ERR_OK);
	sse_done(&r);
	cr_assert(acc.final != NULL, "no end: %.*s", (int)sse.len, sse.ptr);
	char *text = json_dumps(acc.final, JSON_COMPACT);
	cr_assert(text != NULL);
	struct str ret = arena_str(a, str_c(text));
	free(text);
	json_decref(acc.final);
	json_decref(acc.response);
	json_decref(acc.output);
	return ret;
}
