/* A sandbox on another host, below /sandbox/NAME: what it does is told by the name.
 *
 *   ok            runs nothing, says "ran" and names out.csv, whose bytes are "a,b"
 *   renamed       calls the session's id another name
 *   full-TEXT     503 with that Retry-After
 *   refuses       takes no file
 *   unfetchable   has not the file that it named
 *   python        422 for other tools
 *
 * GET /sandbox/_seen: how often what was asked, and the last body of a create.
 */
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/str.h"
#include "tests/fake/fake.h"

static struct {
	int creates, execs, gets, puts, deletes;
	json_t *last_create;
} seen;

static void
reply(struct evhttp_request *req, int status, const char *text)
{
	struct evbuffer *b = evbuffer_new();

	evbuffer_add(b, text, strlen(text));
	evhttp_send_reply(req, status, "", b);
	evbuffer_free(b);
}

static json_t *
body_of(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);

	return json_loadb(n > 0 ? (const char *)evbuffer_pullup(in, -1) : "", n, 0, NULL);
}

static void
show_seen(struct evhttp_request *req)
{
	json_t *root = json_pack("{s:i, s:i, s:i, s:i, s:i, s:O?}", "creates", seen.creates,
	    "execs", seen.execs, "gets", seen.gets, "puts", seen.puts, "deletes", seen.deletes,
	    "last_create", seen.last_create);
	char *text = json_dumps(root, 0);

	reply(req, 200, text);
	free(text);
	json_decref(root);
}

static void
create(struct evhttp_request *req, const char *name)
{
	seen.creates++;
	json_decref(seen.last_create);
	seen.last_create = body_of(req);
	if (strncmp(name, "full-", 5) == 0) {
		char after[32];

		(void)str_copy(after, sizeof(after), str_n(name + 5, strcspn(name + 5, "/")));
		evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", after);
		reply(req, 503, "{}");
	} else if (strncmp(name, "renamed/", 8) == 0) {
		reply(req, 201, "{\"session\":\"s1\"}");
	} else {
		reply(req, 201, "{\"session_id\":\"s1\"}");
	}
}

static void
execute(struct evhttp_request *req, const char *name)
{
	json_t *body = body_of(req);
	const char *tool = json_string_value(json_object_get(body, "tool"));

	seen.execs++;
	if (strncmp(name, "python/", 7) == 0 && strcmp(tool, "code_execution") != 0)
		reply(req, 422, "{\"detail\":\"unknown tool\"}");
	else
		reply(req, 200,
		    "{\"result_block\":{\"type\":\"code_execution_tool_result\",\"content\":{"
		    "\"type\":"
		    "\"code_execution_result\",\"stdout\":\"ran\\n\",\"stderr\":\"\",\"return_"
		    "code\":0,"
		    "\"content\":[{\"type\":\"code_execution_output\",\"file_id\":\"x\","
		    "\"filename\":"
		    "\"out.csv\"}]}}}");
	json_decref(body);
}

static void
files(struct evhttp_request *req, const char *name)
{
	if (evhttp_request_get_command(req) == EVHTTP_REQ_POST) {
		seen.puts++;
		reply(req, strncmp(name, "refuses/", 8) == 0 ? 413 : 201, "{}");
		return;
	}
	seen.gets++;
	if (strncmp(name, "unfetchable/", 12) == 0)
		reply(req, 404, "{}");
	else
		reply(req, 200, "a,b");
}

bool
sandbox_run(struct evhttp_request *req)
{
	const char *path = evhttp_request_get_uri(req);
	const char *name = path + strlen("/sandbox/");

	if (strncmp(path, "/sandbox/", strlen("/sandbox/")) != 0)
		return false;
	if (strcmp(name, "_seen") == 0) {
		show_seen(req);
	} else if (evhttp_request_get_command(req) == EVHTTP_REQ_DELETE) {
		seen.deletes++;
		reply(req, 204, "");
	} else if (strstr(path, "/exec") != NULL) {
		execute(req, name);
	} else if (strstr(path, "/files/list") != NULL) {
		reply(req, 200, "{\"files\":[]}");
	} else if (strstr(path, "/files") != NULL) {
		files(req, name);
	} else {
		create(req, name);
	}
	return true;
}
