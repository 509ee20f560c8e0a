#include "tests/integ/talks.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/mem.h"

char *
talk_body(const char *path, const char *model, const char *tools, bool stream, const char *talk,
    const char *more)
{
	struct buf b = BUF_INIT(8u << 20);

	buf_printf(&b, "{\"model\":\"%s\",\"stream\":%s,\"tools\":[%s],\"%s\":[%s]%s%s}", model,
	    stream ? "true" : "false", tools, strcmp(path, ANSWERS) == 0 ? "input" : "messages",
	    talk, strcmp(path, MESSAGES) == 0 ? ",\"max_tokens\":999" : "", more);
	char *text = mem_strndup(b.ptr, b.len);
	buf_done(&b);
	return text;
}

void
talk_ask(struct server *s, const char *path, const char *model, const char *tools, bool stream,
    const char *talk, const char *more, struct reply *r)
{
	char *body = talk_body(path, model, tools, stream, talk, more);

	server_ask(s, "POST", path, str_c(body), NULL, r);
	mem_free(body);
}

json_t *
talk_json(struct server *s, const char *path, const char *model, const char *tools,
    const char *talk, const char *more)
{
	struct reply r;

	talk_ask(s, path, model, tools, false, talk, more, &r);
	cr_assert_eq(r.status, 200, "%s %s: %ld %s", path, model, r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	reply_done(&r);
	return root;
}

char *
provider_saw(struct server *s, int back)
{
	char path[64];
	struct reply r;

	(void)snprintf(path, sizeof(path), "/_last?back=%d", back);
	fake_ask(s, "GET", path, STR_NULL, &r);
	cr_assert_eq(r.status, 200, "the provider was not asked so often");
	json_t *root = reply_json(&r);
	char *text = mem_strdup(at(root, "body"));
	json_decref(root);
	reply_done(&r);
	return text;
}

json_int_t
provider_count(struct server *s)
{
	struct reply r;

	fake_ask(s, "GET", "/_count", STR_NULL, &r);
	json_t *root = reply_json(&r);
	json_int_t n = at_int(root, "count");
	json_decref(root);
	reply_done(&r);
	return n;
}

void
provider_answers(struct server *s, const char *text, bool is_stream)
{
	struct reply r;
	json_t *next = json_pack("{s:s, s:[s]}", "content_type",
	    is_stream ? "text/event-stream" : "application/json", "pieces", text);
	char *body = json_dumps(next, 0);

	fake_ask(s, "POST", "/_next", str_c(body), &r);
	cr_assert(r.status == 200 || r.status == 204, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	free(body);
	json_decref(next);
}

size_t
occurrences(const char *in, const char *what)
{
	size_t n = 0;

	for (const char *p = in; (p = strstr(p, what)) != NULL; p += strlen(what))
		n++;
	return n;
}

struct types
types_of(const json_t *list)
{
	struct types ret = {""};
	size_t i, used = 0;
	json_t *one;

	json_array_foreach(list, i, one)
		if (used < sizeof(ret.s))
			used += (size_t)snprintf(ret.s + used, sizeof(ret.s) - used, "%s%s",
			    i > 0 ? " " : "", at(one, "type"));
	return ret;
}

const json_t *
of_type(const json_t *list, const char *type)
{
	size_t i;
	const json_t *one;

	json_array_foreach(list, i, one)
		if (strcmp(at(one, "type"), type) == 0)
			return one;
	return NULL;
}
