/* control.c - what a test asks the fake provider itself
 *
 *   GET  /_last[?back=N]  {"method","uri","headers":{…},"body":"…"} of the Nth request before the
 *                         last; 404 when there were not so many
 *   GET  /_count          {"count":N} requests since the start or the reset
 *   POST /_reset          forgets requests and waiting answers
 *   POST /_go             lets the answer of "gated" go on
 *   POST /_next           {"status"?,"content_type"?,"headers"?:{…},"pieces":["…"],"delay_ms"?,
 *                         "end"?:"end|cut|stall|repeat"}: the answer to the next request, in turn
 */
#include <sys/queue.h>

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "tests/fake/fake.h"

#define KEPT_MAX 256

static json_t *kept;    /* array, the newest at the end */
static json_t *waiting; /* array of answers */
static size_t count;

static const char *
method_name(enum evhttp_cmd_type cmd)
{
	switch (cmd) {
	case EVHTTP_REQ_GET:
		return "GET";
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_DELETE:
		return "DELETE";
	default:
		return "other";
	}
}

void
control_note(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);
	const char *bytes = n > 0 ? (const char *)evbuffer_pullup(in, -1) : "";
	json_t *headers = json_object(), *body;
	struct evkeyval *kv;

	TAILQ_FOREACH(kv, evhttp_request_get_input_headers(req), next) {
		char name[256];

		if (!str_copy(name, sizeof(name), str_c(kv->key)))
			continue;
		for (char *c = name; *c != '\0'; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		json_object_set_new(headers, name, json_string(kv->value));
	}
	body = json_stringn(bytes, n);
	if (kept == NULL)
		kept = json_array();
	json_array_append_new(kept,
	    json_pack("{s:s, s:s, s:o, s:o}", "method",
		method_name(evhttp_request_get_command(req)), "uri", evhttp_request_get_uri(req),
		"headers", headers, "body", body != NULL ? body : json_null()));
	if (json_array_size(kept) > KEPT_MAX)
		json_array_remove(kept, 0);
	count++;
}

static enum pace_end
end_of(const json_t *next)
{
	static const char *const names[] = {"end", "cut", "stall", "repeat"};
	static const enum pace_end ends[] = {PACE_END, PACE_CUT, PACE_STALL, PACE_REPEAT};
	const char *name = json_string_value(json_object_get(next, "end"));

	for (size_t i = 0; name != NULL && i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return ends[i];
	return PACE_END;
}

bool
control_next(struct evhttp_request *req)
{
	json_t *next = json_incref(json_array_get(waiting, 0)), *value;
	const char *type, *key;
	struct pace *p;
	size_t i;

	if (next == NULL)
		return false;
	json_array_remove(waiting, 0);
	p = pace_new(req, (unsigned)json_integer_value(json_object_get(next, "delay_ms")));
	json_object_foreach(json_object_get(next, "headers"), key, value)
		evhttp_add_header(
		    evhttp_request_get_output_headers(req), key, json_string_value(value));
	json_array_foreach(json_object_get(next, "pieces"), i, value)
		pace_add(p, str_n(json_string_value(value), json_string_length(value)));
	type = json_string_value(json_object_get(next, "content_type"));
	i = (size_t)json_integer_value(json_object_get(next, "status"));
	pace_run(p, i == 0 ? 200 : (int)i, type != NULL ? type : "application/json", end_of(next));
	json_decref(next);
	return true;
}

static void
reply(struct evhttp_request *req, int status, const json_t *root)
{
	struct pace *p = pace_new(req, 0);
	char *text = json_dumps(root, JSON_COMPACT);

	pace_add(p, str_c(text != NULL ? text : "{}"));
	pace_run(p, status, "application/json", PACE_END);
	free(text);
}

static const json_t *
nth_last(struct evhttp_request *req)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	uint64_t back = 0;
	struct str q = str_c(query);
	size_t n = json_array_size(kept);

	if (str_starts(q, STR("back=")) && !str_u64(str_from(q, 5), &back))
		return NULL;
	return back < n ? json_array_get(kept, n - 1 - back) : NULL;
}

void
control_handle(struct evhttp_request *req, void *arg)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);
	json_t *root = json_object();
	const json_t *last;

	(void)arg;
	if (strcmp(path, "/_last") == 0) {
		last = nth_last(req);
		reply(req, last != NULL ? 200 : 404, last != NULL ? last : root);
	} else if (strcmp(path, "/_count") == 0) {
		json_object_set_new(root, "count", json_integer((json_int_t)count));
		reply(req, 200, root);
	} else if (strcmp(path, "/_go") == 0) {
		pace_go();
		reply(req, 200, root);
	} else if (strcmp(path, "/_reset") == 0) {
		json_array_clear(kept);
		json_array_clear(waiting);
		count = 0;
		reply(req, 200, root);
	} else {
		json_t *next =
		    json_loadb(n > 0 ? (const char *)evbuffer_pullup(in, -1) : "", n, 0, NULL);

		if (waiting == NULL)
			waiting = json_array();
		if (next != NULL)
			json_array_append(waiting, next);
		reply(req, next != NULL ? 200 : 400, root);
		json_decref(next);
	}
	json_decref(root);
}
