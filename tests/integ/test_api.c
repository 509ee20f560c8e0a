/* Credentials, keys, models and files through the HTTP API. */
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/fd.h"
#include "tests/integ/program.h"

TestSuite(api, .timeout = 120);

Test(api, errors_have_the_envelope_of_their_dialect)
{
	static const struct {
		const char *method, *path, *body, *key;
		long status;
		const char *type_at, *type;
	} rows[] = {
	    {"POST", "/v1/chat/completions", "{\"model\":\"fake:text\",\"messages\":[]}", "wrong",
		401, "error.code", "invalid_api_key"},
	    {"POST", "/v1/responses", "{\"model\":\"nobody:x\",\"input\":\"a\"}", NULL, 404,
		"error.code", "model_not_found"},
	    {"POST", "/v1/messages", "{\"model\":\"fake:text\",\"messages\":[],\"max_tokens\":1}",
		"wrong", 401, "error.type", "authentication_error"},
	    {"POST", "/v1/messages", "{}", "", 401, "error.type", "authentication_error"},
	    {"POST", "/v1/messages", "{", NULL, 400, "error.type", "invalid_request_error"},
	    {"POST", "/v1/messages",
		"{\"model\":\"nobody:x\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\","
		"\"content\":"
		"\"a\"}]}",
		NULL, 404, "error.type", "not_found_error"},
	    {"GET", "/v1/nothing", NULL, NULL, 404, "", ""},
	    {"GET", "/api/v1/keys", NULL, NULL, 403, "", ""},
	    {"DELETE", "/v1/chat/completions", NULL, NULL, 405, "", ""},
	    {"POST", "/v1/responses", "{\"model\":\"fake:text\",\"input\":7}", NULL, 400,
		"error.type", "invalid_request_error"},
	    {"GET", "/v1/responses/resp_none", NULL, NULL, 404, "error.type",
		"invalid_request_error"},
	    {"DELETE", "/v1/responses/resp_none", NULL, NULL, 404, "error.type",
		"invalid_request_error"},
	};
	struct server *s = server_start(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct ask_opts o = {.key = rows[i].key};
		struct reply r;
		json_t *root;

		server_ask(s, rows[i].method, rows[i].path, str_c(rows[i].body), &o, &r);
		cr_expect_eq(r.status, rows[i].status, "%s %s (row %zu): %ld %s", rows[i].method,
		    rows[i].path, i, r.status, r.body.ptr);
		root = reply_json(&r);
		if (rows[i].type[0] != '\0')
			cr_expect_str_eq(
			    at(root, rows[i].type_at), rows[i].type, "row %zu: %s", i, r.body.ptr);
		json_decref(root);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(api, every_refusal_names_its_request)
{
	struct server *s = server_start(&(struct server_opts){.conf = "max_body_bytes: 1024\n"});
	struct buf big = BUF_INIT(1 << 20), got = BUF_INIT(1 << 16);
	struct reply r;
	struct err err;
	char chunk[4096];
	int fd = server_connect(s);

	buf_add(&big, STR("{\"model\":\""));
	for (int i = 0; i < 3000; i++)
		buf_addc(&big, 'm');
	server_ask(s, "POST", "/v1/messages", buf_str(&big), NULL, &r);
	cr_expect_eq(r.status, 413);
	cr_expect(str_starts(reply_header(&r, "request-id"), STR("req_")), "%s", r.head.ptr);
	cr_expect(strstr(r.body.ptr, "\"request_id\":\"req_") != NULL, "%s", r.body.ptr);
	reply_done(&r);

	cr_assert_eq(fd_write_all(fd, STR("BREW /v1/messages HTCPCP/1.0\r\n\r\n"), &err), ERR_OK);
	for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;)
		buf_addn(&got, chunk, (size_t)n);
	close(fd);
	cr_expect(str_starts(buf_str(&got), STR("HTTP/1.1 ")), "%s", got.ptr);
	cr_expect(strstr(got.ptr, "\r\nrequest-id: req_") != NULL, "%s", got.ptr);
	buf_done(&got);
	buf_done(&big);
	server_stop(&s);
}

Test(api, keys_are_made_listed_used_and_deleted)
{
	struct server *s = server_start(NULL);
	const struct ask_opts master = {.key = s->master_key};
	struct ask_opts mine = {.key = NULL};
	char key[128], path[128];
	struct reply r;
	json_t *root;

	server_ask(s, "POST", "/api/v1/keys", STR("{\"key_name\":\"second\"}"), &master, &r);
	root = reply_json(&r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	cr_assert(str_copy(key, sizeof(key), str_c(at(root, "key"))));
	cr_expect(strncmp(key, "gw-", 3) == 0 && strlen(key) == 67, "%s", key);
	(void)snprintf(path, sizeof(path), "/api/v1/keys/%s", at(root, "id"));
	json_decref(root);
	reply_done(&r);

	mine.key = key;
	for (int i = 0; i < 8; i++) { /* whichever worker answers: it is in force */
		server_ask(s, "GET", "/v1/models", STR_NULL, &mine, &r);
		cr_expect_eq(r.status, 200, "%ld", r.status);
		reply_done(&r);
	}
	server_ask(s, "GET", "/api/v1/keys", STR_NULL, &master, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(strstr(r.body.ptr, "second") != NULL);
	cr_expect(strstr(r.body.ptr, key) == NULL, "a key is shown twice");
	reply_done(&r);

	server_ask(s, "DELETE", path, STR_NULL, &master, &r);
	cr_expect_eq(r.status, 204, "%ld", r.status);
	reply_done(&r);
	for (int i = 0; i < 8; i++) {
		server_ask(s, "GET", "/v1/models", STR_NULL, &mine, &r);
		cr_expect_eq(r.status, 401, "%ld", r.status);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(api, a_key_is_taken_from_any_of_the_three_headers)
{
	struct server *s = server_start(NULL);
	static const char *const formats[] = {
	    "Authorization: Bearer %s", "x-api-key: %s", "Otari-Key: %s", "Otari-Key: Bearer %s"};

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		char line[256];
		const char *const headers[] = {line, NULL};
		const struct ask_opts o = {.key = "", .headers = headers};
		struct reply r;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(line, sizeof(line), formats[i], s->key);
#pragma GCC diagnostic pop
		server_ask(s, "GET", "/api/v1/models", STR_NULL, &o, &r);
		cr_expect_eq(r.status, 200, "%s: %ld", formats[i], r.status);
		cr_expect(reply_header(&r, "x-request-id").len > 0 ||
			  reply_header(&r, "request-id").len > 0);
		reply_done(&r);
	}
	server_stop(&s);
}

Test(api, models_are_listed)
{
	struct server *s = server_start(NULL);
	struct reply r;
	json_t *root;

	server_ask(s, "GET", "/v1/models", STR_NULL, NULL, &r);
	cr_assert_eq(r.status, 200);
	root = reply_json(&r);
	cr_expect(json_is_array(json_object_get(root, "data")));
	cr_expect(strstr(r.body.ptr, "\"fake:text\"") != NULL, "%s", r.body.ptr);
	json_decref(root);
	reply_done(&r);
	server_stop(&s);
}

#define CSV "month,revenue\nJan,120\nFeb,99\n"

static void
file_life(struct server *s, bool anthropic)
{
	static const char *const version[] = {"anthropic-version: 2023-06-01", NULL};
	const struct ask_opts o = {.headers = anthropic ? version : NULL};
	char path[256], content[300];
	struct reply r;
	json_t *root;

	server_upload(s, "/v1/files", "sales.csv", "text/csv", STR(CSV),
	    anthropic ? NULL : "user_data", &o, &r);
	cr_assert_eq(r.status, 200, "%s", r.body.ptr);
	root = reply_json(&r);
	cr_expect_str_eq(at(root, "filename"), "sales.csv");
	if (anthropic) {
		cr_expect_str_eq(at(root, "type"), "file");
		cr_expect_str_eq(at(root, "mime_type"), "text/csv");
		cr_expect_eq(at_int(root, "size_bytes"), sizeof(CSV) - 1);
	} else {
		cr_expect_str_eq(at(root, "object"), "file");
		cr_expect_str_eq(at(root, "purpose"), "user_data");
		cr_expect_eq(at_int(root, "bytes"), sizeof(CSV) - 1);
	}
	(void)snprintf(path, sizeof(path), "/v1/files/%s", at(root, "id"));
	(void)snprintf(content, sizeof(content), "%s/content", path);
	json_decref(root);
	reply_done(&r);

	server_ask(s, "GET", content, STR_NULL, &o, &r);
	cr_expect_eq(r.status, 200);
	cr_expect(str_eq(buf_str(&r.body), STR(CSV)));
	cr_expect(str_eq(reply_header(&r, "content-length"), STR("29")));
	reply_done(&r);
	server_ask(s, "GET", "/v1/files", STR_NULL, &o, &r);
	cr_expect(strstr(r.body.ptr, "sales.csv") != NULL, "%s", r.body.ptr);
	reply_done(&r);
	server_ask(s, "DELETE", path, STR_NULL, &o, &r);
	cr_expect_eq(r.status, 200);
	reply_done(&r);
	server_ask(s, "GET", path, STR_NULL, &o, &r);
	cr_expect_eq(r.status, 404);
	reply_done(&r);
	server_ask(s, "GET", content, STR_NULL, &o, &r);
	cr_expect_eq(r.status, 404);
	reply_done(&r);
}

Test(api, a_file_lives_in_both_shapes)
{
	struct server *s = server_start(NULL);

	file_life(s, true);
	file_life(s, false);
	server_stop(&s);
}

Test(api, a_file_belongs_to_its_user)
{
	struct server *s = server_start(NULL);
	const struct ask_opts master = {.key = s->master_key};
	struct ask_opts other = {.key = NULL};
	char key[128], path[256];
	struct reply r;
	json_t *root;

	server_upload(s, "/v1/files", "a.txt", "text/plain", STR("mine"), "user_data", NULL, &r);
	root = reply_json(&r);
	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", at(root, "id"));
	json_decref(root);
	reply_done(&r);
	server_ask(s, "POST", "/api/v1/keys", STR("{\"user_id\":\"someone-else\"}"), &master, &r);
	root = reply_json(&r);
	cr_assert(str_copy(key, sizeof(key), str_c(at(root, "key"))));
	json_decref(root);
	reply_done(&r);
	other.key = key;
	server_ask(s, "GET", path, STR_NULL, &other, &r);
	cr_expect_eq(r.status, 404, "%ld %s", r.status, r.body.ptr);
	reply_done(&r);
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect_eq(r.status, 200);
	reply_done(&r);
	server_stop(&s);
}
