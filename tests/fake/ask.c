#include <string.h>

#include <event2/http.h>

#include "tests/fake/fake.h"

/* The blocks of one Messages turn, as the turns that Chat would have for them. */
static void
convert_user(json_t *list, const json_t *content)
{
	json_t *rest = json_array();
	size_t i;
	json_t *block;

	if (json_is_string(content)) {
		json_array_append_new(rest, json_pack("{s:O}", "text", content));
	} else {
		json_array_foreach(content, i, block) {
			const char *type = json_string_value(json_object_get(block, "type"));

			if (type != NULL && strcmp(type, "tool_result") == 0)
				json_array_append_new(
				    list, json_pack("{s:s, s:O?}", "role", "tool", "content",
					      json_object_get(block, "content")));
			else
				json_array_append(rest, block);
		}
	}
	if (json_array_size(rest) > 0)
		json_array_append_new(
		    list, json_pack("{s:s, s:O}", "role", "user", "content", rest));
	json_decref(rest);
}

static json_t *
convert(const json_t *body)
{
	json_t *messages = json_array(), *tools = json_array();
	size_t i;
	json_t *it;

	if (json_object_get(body, "system") != NULL)
		json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content",
						    json_object_get(body, "system")));
	json_array_foreach(json_object_get(body, "messages"), i, it) {
		const char *role = json_string_value(json_object_get(it, "role"));

		if (role != NULL && strcmp(role, "user") == 0)
			convert_user(messages, json_object_get(it, "content"));
	}
	json_array_foreach(json_object_get(body, "tools"), i, it)
		json_array_append_new(tools,
		    json_pack("{s:{s:O?, s:O?}}", "function", "name", json_object_get(it, "name"),
			"parameters", json_object_get(it, "input_schema")));
	return json_pack("{s:o, s:o}", "messages", messages, "tools", tools);
}

/* One item of a Responses input, as the Chat message that it would be. */
static void
convert_item(json_t *messages, const json_t *item)
{
	const char *type = json_string_value(json_object_get(item, "type"));
	const char *role = json_string_value(json_object_get(item, "role"));

	if (type != NULL && strcmp(type, "function_call_output") == 0)
		json_array_append_new(messages, json_pack("{s:s, s:O?}", "role", "tool", "content",
						    json_object_get(item, "output")));
	else if (role != NULL && strcmp(role, "assistant") != 0)
		json_array_append_new(messages,
		    json_pack("{s:s, s:O?}", "role", strcmp(role, "user") == 0 ? "user" : "system",
			"content", json_object_get(item, "content")));
}

static json_t *
convert_responses(const json_t *body)
{
	json_t *messages = json_array(), *tools = json_array();
	const json_t *input = json_object_get(body, "input");
	size_t i;
	json_t *it;

	if (json_is_string(json_object_get(body, "instructions")))
		json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content",
						    json_object_get(body, "instructions")));
	if (json_is_string(input))
		json_array_append_new(
		    messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
	json_array_foreach(input, i, it)
		convert_item(messages, it);
	json_array_foreach(json_object_get(body, "tools"), i, it)
		json_array_append_new(tools,
		    json_pack("{s:{s:O?, s:O?}}", "function", "name", json_object_get(it, "name"),
			"parameters", json_object_get(it, "parameters")));
	return json_pack("{s:o, s:o}", "messages", messages, "tools", tools);
}

static bool
is_called(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The gateway's own come last, under names that begin as these. */
static void
find_functions(struct ask *q)
{
	const json_t *tools = json_object_get(q->body, "tools");
	size_t i;
	json_t *tool;

	for (int pass = 0; pass < 2; pass++) {
		json_array_foreach(tools, i, tool) {
			const char *name = json_string_value(
			    json_object_get(json_object_get(tool, "function"), "name"));

			if (name == NULL)
				continue;
			if (pass == 0 && is_called(name, "bash_code_execution"))
				q->bash = name;
			else if (pass == 0 && is_called(name, "text_editor_code_execution"))
				q->editor = name;
			else if (pass == 1 && q->client_tool == NULL && name != q->bash &&
				 name != q->editor &&
				 (q->talk.run_name == NULL || strcmp(name, q->talk.run_name) != 0))
				q->client_tool = name;
		}
	}
}

void
ask_read(struct ask *q, enum fake_wire wire, struct evhttp_request *req, json_t *body)
{
	memset(q, 0, sizeof(*q));
	q->wire = wire;
	q->req = req;
	q->model = json_string_value(json_object_get(body, "model"));
	q->stream = json_is_true(json_object_get(body, "stream"));
	q->include_usage =
	    json_is_true(json_object_get(json_object_get(body, "stream_options"), "include_usage"));
	q->body = wire == FAKE_MESSAGES    ? convert(body)
		  : wire == FAKE_RESPONSES ? convert_responses(body)
					   : json_incref(body);
	talk_read(&q->talk, q->body);
	find_functions(q);
}

void
ask_done(struct ask *q)
{
	talk_done(&q->talk);
	json_decref(q->body);
}
