#include "tools/demo-model/talk.h"

#include <string.h>

#define TEXT_MAX (64u * 1024u * 1024u)

/* A string, or the texts of a list of parts. */
static void
add_content(struct buf *dst, const json_t *content)
{
	size_t i;
	const json_t *part;

	if (json_is_string(content)) {
		buf_addn(dst, json_string_value(content), json_string_length(content));
		buf_addc(dst, '\n');
		return;
	}
	json_array_foreach(content, i, part) {
		const json_t *file = json_object_get(part, "file");

		if (json_is_string(json_object_get(part, "text")))
			add_content(dst, json_object_get(part, "text"));
		else if (json_is_string(json_object_get(file, "filename")))
			add_content(dst, json_object_get(file, "filename"));
	}
}

const char *
talk_find_runner(const json_t *tools)
{
	const char *found = NULL;
	size_t i;
	const json_t *tool;

	json_array_foreach(tools, i, tool) {
		const json_t *fn = json_object_get(tool, "function");
		const char *name = json_string_value(json_object_get(fn, "name"));
		const json_t *props =
		    json_object_get(json_object_get(fn, "parameters"), "properties");
		const json_t *code = json_object_get(props, "code");

		if (name == NULL || (code == NULL && strcmp(name, "code_execution") != 0))
			continue;
		if (strcmp(name, "code_execution") == 0)
			return name;
		if (found == NULL && json_object_size(props) == 1)
			found = name;
	}
	return found;
}

void
talk_read(struct talk *t, const json_t *request)
{
	size_t i;
	const json_t *message;

	memset(t, 0, sizeof(*t));
	buf_init(&t->system, TEXT_MAX);
	buf_init(&t->user, TEXT_MAX);
	buf_init(&t->users, TEXT_MAX);
	buf_init(&t->results, TEXT_MAX);
	json_array_foreach(json_object_get(request, "messages"), i, message) {
		const char *role = json_string_value(json_object_get(message, "role"));
		const json_t *content = json_object_get(message, "content");

		if (role == NULL)
			continue;
		if (strcmp(role, "user") == 0) {
			buf_clear(&t->user);
			buf_clear(&t->results);
			t->result_count = 0;
			add_content(&t->user, content);
			add_content(&t->users, content);
		} else if (strcmp(role, "tool") == 0) {
			add_content(&t->results, content);
			t->result_count++;
		} else if (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0) {
			add_content(&t->system, content);
		}
	}
	t->run_name = talk_find_runner(json_object_get(request, "tools"));
}

void
talk_done(struct talk *t)
{
	buf_done(&t->system);
	buf_done(&t->user);
	buf_done(&t->users);
	buf_done(&t->results);
}
