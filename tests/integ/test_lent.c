/* One Otari's sandbox used by another, and the protocol between them as anybody may speak it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "base/mem.h"
#include "tests/integ/admin.h"
#include "tests/integ/program.h"
#include "tests/integ/streams.h"
#include "tests/integ/talks.h"

TestSuite(lent, .timeout = 240);

#define TOKEN "0123456789abcdef-token"
#define NEW   "{\"type\":\"code_execution_20250825\",\"name\":\"code_execution\"}"

struct pair {
	struct server *host, *gateway;
};

static struct server *
start_host(const char *more)
{
	static char conf[512];

	(void)snprintf(conf, sizeof(conf),
	    "sandbox_serve: \"127.0.0.1:0\"\nsandbox_serve_token: " TOKEN "\n%s", more);
	struct server *s = start_sandboxed(&(struct server_opts){.conf = conf});
	cr_assert(s->serve_port > 0);
	return s;
}

static struct pair
start_pair_with(const char *host_conf)
{
	static char url[64];
	struct pair p = {.host = start_host(host_conf)};

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", p.host->serve_port);
	p.gateway = server_start(&(struct server_opts){
	    .sandbox = url, .conf = "sandbox_token: " TOKEN "\n", .beside = p.host});
	return p;
}

static struct pair
start_pair(void)
{
	return start_pair_with("");
}

static void
stop_pair(struct pair *p)
{
	struct reply r;

	server_stop(&p->gateway);
	/* Every session of it was given back. */
	server_ask(p->host, "GET", "/health", STR_NULL,
	    &(struct ask_opts){.key = TOKEN, .serve = true}, &r);
	HAS(r, "\"sessions\":0");
	reply_done(&r);
	server_stop(&p->host);
}

static struct text
upload(struct server *s, const char *name, const char *bytes)
{
	struct reply r;
	struct text id;

	server_upload(s, "/v1/files", name, "text/csv", str_c(bytes), "user_data", NULL, &r);
	cr_assert_eq(r.status, 200, "%s: %s", name, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(id.s, sizeof(id.s), str_c(at(root, "id"))));
	json_decref(root);
	reply_done(&r);
	return id;
}

static void
expect_file(struct server *s, const char *id, const char *bytes)
{
	struct reply r;
	char path[256];

	(void)snprintf(path, sizeof(path), "/v1/files/%s/content", id);
	server_ask(s, "GET", path, STR_NULL, NULL, &r);
	cr_expect(r.status == 200 && strcmp(r.body.ptr, bytes) == 0, "%s: %ld %s", id, r.status,
	    r.body.ptr);
	reply_done(&r);
}

#define PROGRAM                                                                                    \
	"run: t = open('in.csv').read()\\nopen('out.csv', 'w').write(t * 2)\\nprint('got', t)"

static char *
user(const char *before_id, const char *file_id, const char *after_id, const char *text_type,
    const char *text)
{
	struct buf b = BUF_INIT(65536);

	buf_printf(&b, "{\"role\":\"user\",\"content\":[%s%s%s", before_id, file_id, after_id);
	buf_printf(&b, ",{\"type\":\"%s\",\"text\":\"%s\"}]}", text_type, text);
	char *s = mem_strndup(b.ptr, b.len);
	buf_done(&b);
	return s;
}

Test(lent, code_and_files_of_every_dialect_run_on_another_otari)
{
	struct pair p = start_pair();
	struct server *s = p.gateway;
	struct text in = upload(s, "in.csv", "4711");
	char *talk =
	    user("{\"type\":\"container_upload\",\"file_id\":\"", in.s, "\"}", "text", PROGRAM);
	json_t *root = talk_json(s, MESSAGES, "fake:tool", DATED, talk, "");
	const json_t *result = of_type(at_json(root, "content"), "code_execution_tool_result");

	cr_expect(strstr(at(result, "content.stdout"), "got 4711") != NULL, "%s",
	    at(result, "content.stdout"));
	cr_expect_eq(at_int(result, "content.return_code"), 0);
	cr_expect_eq(
	    json_array_size(at_json(result, "content.content")), 1, "the input is no output");
	expect_file(s, at(result, "content.content.0.file_id"), "47114711");
	json_decref(root);
	mem_free(talk);

	talk = user("{\"type\":\"input_file\",\"file_id\":\"", in.s, "\"}", "input_text", PROGRAM);
	root = talk_json(s, ANSWERS, "fake:tool", INTERP, talk, "");
	const json_t *call = of_type(at_json(root, "output"), "code_interpreter_call");
	cr_expect(call != NULL && strcmp(at(call, "status"), "completed") == 0);
	char *whole = json_dumps(root, 0);
	cr_expect(
	    strstr(whole, "got 4711") != NULL && strstr(whole, "out.csv") != NULL, "%s", whole);
	free(whole);
	json_decref(root);
	mem_free(talk);

	talk = user("{\"type\":\"file\",\"file\":{\"file_id\":\"", in.s, "\"}}", "text", PROGRAM);
	root = talk_json(s, CHAT, "fake:tool", OURS, talk, "");
	const char *text = at(root, "choices.0.message.content");
	cr_expect(strstr(text, "got 4711") != NULL, "%s", text);
	const char *id = strstr(text, "out.csv (file_id: ");
	cr_assert(id != NULL, "%s", text);
	struct text out = {""};
	(void)sscanf(id, "out.csv (file_id: %63[^)]", out.s);
	expect_file(s, out.s, "47114711");
	json_decref(root);
	mem_free(talk);
	stop_pair(&p);
}

Test(lent, a_stream_and_every_kind_of_tool)
{
	struct pair p = start_pair();
	struct reply r;

	talk_ask(p.gateway, MESSAGES, "fake:tool", NEW, true, SAYS("run: print(6 * 7)"), "", &r);
	cr_expect_eq(r.status, 200);
	HAS(r, "\"stdout\":\"42\\n\"");
	HAS(r, "message_stop");
	reply_done(&r);
	talk_ask(p.gateway, MESSAGES, "fake:steps", NEW, false,
	    SAYS("run: bash: echo $((6*7)) > n; exit 3\\n---\\nedit: "
		 "{\\\"command\\\":\\\"view\\\",\\\"path\\\":\\\"n\\\"}\\n---\\nedit: "
		 "{\\\"command\\\":\\\"str_replace\\\",\\\"path\\\":\\\"n\\\",\\\"old_str\\\":"
		 "\\\"42\\\",\\\"new_str\\\":\\\"43\\\"}\\n---\\nprint(open('n').read())"),
	    "", &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"type\":\"bash_code_execution_result\"");
	HAS(r, "\"return_code\":3");
	HAS(r, "\"type\":\"text_editor_code_execution_view_result\"");
	HAS(r, "\"lines\":[\"-42\",\"+43\"]");
	HAS(r, "\"stdout\":\"43\\n\\n\"");
	reply_done(&r);
	stop_pair(&p);
}

Test(lent, otarictl_says_whether_it_can_be_reached)
{
	struct pair p = start_pair();
	const char *const argv[] = {
	    "otarictl", "-c", p.gateway->conf_path, "sandbox", "check", NULL};
	char out[4096];

	cr_expect_eq(program_run("otarictl", argv, out, sizeof(out)), 0, "%s", out);
	cr_expect(strstr(out, "tried by a worker: code ran in ") != NULL, "%s", out);
	p.host->opts.beside = p.gateway;
	server_stop(&p.host);
	p.gateway->opts.beside = NULL;
	cr_expect_eq(program_run("otarictl", argv, out, sizeof(out)), 1, "%s", out);
	cr_expect(strstr(out, "not usable: ") != NULL, "%s", out);
	server_stop(&p.gateway);
}

Test(lent, a_reload_moves_the_sandbox_to_another_host_and_back)
{
	static char url[64];
	struct server *host = start_host("");
	struct server *s = start_sandboxed(&(struct server_opts){.beside = host, .workers = 1});
	struct reply r;
	char out[4096];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", host->serve_port);
	for (int i = 0; i < 2; i++) {
		long from = server_log_end(host);
		const char *word = i == 0 ? "\"sandbox\":\"remote\"" : "\"sandbox\":\"ready\"";
		bool is_there = false;
		s->opts.sandbox = i == 0 ? url : "local:";
		server_write_conf(s, i == 0 ? "sandbox_token: " TOKEN "\n" : "");
		cr_assert_eq(program_otarictl(s, "reload", out, sizeof(out)), 0, "%s", out);
		for (int n = 0; n < 400 && !is_there; n++) {
			server_ask(
			    s, "GET", "/health", STR_NULL, &(struct ask_opts){.key = ""}, &r);
			is_there = strstr(r.body.ptr, word) != NULL;
			reply_done(&r);
			pause_short();
		}
		cr_assert(is_there, "%s", word);
		talk_ask(s, MESSAGES, "fake:tool", DATED, false, SAYS("run: print(6 * 7)"), "", &r);
		cr_expect_eq(r.status, 200, "%ld %s", r.status, r.body.ptr);
		HAS(r, "\"stdout\":\"42\\n\"");
		reply_done(&r);
		if (i == 0)
			cr_expect(server_wait_log(host, "/exec", &from), "it did not run there");
	}
	server_stop(&s);
	server_stop(&host);
}

/* E8 of the list of public bug reports. */
Test(lent, e8_all_files_are_there_in_every_round)
{
	struct pair p = start_pair();
	struct text ids[3];
	struct buf talk = BUF_INIT(65536);
	struct reply r;
	char name[32], bytes[32];

	buf_add(&talk, STR("{\"role\":\"user\",\"content\":["));
	for (int i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "f%d.csv", i);
		(void)snprintf(bytes, sizeof(bytes), "bytes-%d", i);
		ids[i] = upload(p.gateway, name, bytes);
		buf_printf(&talk, "{\"type\":\"container_upload\",\"file_id\":\"%s\"},", ids[i].s);
	}
	buf_add(
	    &talk, STR("{\"type\":\"text\",\"text\":\"run: print(open('f0.csv').read())\\n---\\n"
		       "print(open('f1.csv').read())\\n---\\nprint(open('f2.csv').read())\"}]}"));
	talk_ask(p.gateway, MESSAGES, "fake:steps", DATED, false, talk.ptr, "", &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(bytes, sizeof(bytes), "\"bytes-%d\\n\"", i);
		HAS(r, bytes);
	}
	reply_done(&r);
	buf_done(&talk);
	stop_pair(&p);
}

Test(lent, a_sandbox_that_is_away_is_an_http_error_also_of_a_stream)
{
	struct pair p = start_pair();
	struct reply r;

	json_int_t before = provider_count(p.gateway);
	p.host->opts.beside = p.gateway;
	server_stop(&p.host);
	p.gateway->opts.beside = NULL;
	server_expect(p.gateway, "no code session");
	for (int stream = 0; stream < 2; stream++) {
		talk_ask(
		    p.gateway, MESSAGES, "fake:tool", DATED, stream == 1, SAYS("run: 1"), "", &r);
		cr_expect_eq(r.status, 502, "%ld %s", r.status, r.body.ptr);
		HAS(r, "unreachable");
		LACKS(r, "127.0.0.1");
		reply_done(&r);
	}
	cr_expect_eq(provider_count(p.gateway), before, "no model was asked");
	server_stop(&p.gateway);
}

/* --- the protocol itself --------------------------------------------------------------------- */

static const struct ask_opts as_peer = {.key = TOKEN, .serve = true};

static void
peer(struct server *s, const char *method, const char *path, const char *body, struct reply *r)
{
	server_ask(s, method, path, body != NULL ? str_c(body) : STR_NULL, &as_peer, r);
}

/* The host gave the session up while the model was still writing its first call. */
Test(lent, a_session_that_waited_too_long_is_opened_again)
{
	struct pair p = start_pair_with("sandbox_serve_idle_ms: 1000\n");
	struct text id = upload(p.gateway, "in.csv", "4711");
	char *talk =
	    user("{\"type\":\"container_upload\",\"file_id\":\"", id.s, "\"}", "text", PROGRAM);
	char *body = talk_body(MESSAGES, "fake:gated", DATED, true, talk, "");
	struct reply r;
	bool is_given_up = false;
	int fd = stream_open(p.gateway, MESSAGES, body);

	cr_assert(stream_wait(fd, "server_tool_use"));
	while (!is_given_up) { /* the suite's time limit ends it */
		peer(p.host, "GET", "/health", NULL, &r);
		is_given_up = strstr(r.body.ptr, "\"sessions\":0") != NULL;
		reply_done(&r);
		pause_short();
	}
	fake_ask(p.gateway, "POST", "/_go", STR("{}"), &r);
	reply_done(&r);
	cr_expect(stream_wait(fd, "\"stdout\":\"got 4711"));
	(void)close(fd);
	mem_free(body);
	mem_free(talk);
	stop_pair(&p);
}

static struct text
new_session(struct server *s)
{
	struct reply r;
	struct text id;

	peer(s, "POST", "/sessions", "{\"image\":\"whatever\"}", &r);
	cr_assert_eq(r.status, 201, "%ld %s", r.status, r.body.ptr);
	json_t *root = reply_json(&r);
	cr_assert(str_copy(id.s, sizeof(id.s), str_c(at(root, "session_id"))));
	json_decref(root);
	reply_done(&r);
	return id;
}

static struct text
in(const struct text *id, const char *rest)
{
	struct text t;

	(void)snprintf(t.s, sizeof(t.s), "/sessions/%.80s%s", id->s, rest);
	return t;
}

static void
expect_status(struct server *s, const char *method, const char *path, const char *body, long status)
{
	struct reply r;

	peer(s, method, path, body, &r);
	cr_expect_eq(r.status, status, "%s %s %s: %ld %s", method, path, body != NULL ? body : "",
	    r.status, r.body.ptr);
	reply_done(&r);
}

#define EXEC(code)                                                                                 \
	"{\"tool\":\"code_execution\",\"input\":{\"code\":\"" code "\"},\"timeout_seconds\":20}"

Test(lent, the_protocol_answers_as_it_says)
{
	struct server *s = start_host("");
	struct text id = new_session(s);
	struct reply r;

	peer(s, "GET", "/health", NULL, &r);
	HAS(r, "\"tools\":[\"code_execution\",\"bash_code_execution\",\"text_editor_code_"
	       "execution\"]");
	reply_done(&r);
	peer(s, "POST", in(&id, "/exec").s,
	    EXEC("n = open('a b.txt', 'w').write('hey')\\nprint(1)"), &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	HAS(r, "\"type\":\"code_execution_tool_result\"");
	HAS(r, "\"stdout\":\"1\\n\",\"stderr\":\"\",\"return_code\":0");
	HAS(r, "\"filename\":\"a b.txt\"");
	reply_done(&r);
	peer(s, "GET", in(&id, "/files/list").s, NULL, &r);
	HAS(r, "\"path\":\"a b.txt\",\"size_bytes\":3,\"mime_type\":\"text/plain\"");
	reply_done(&r);
	peer(s, "GET", in(&id, "/files?path=a%20b.txt").s, NULL, &r);
	cr_expect(r.status == 200 && strcmp(r.body.ptr, "hey") == 0);
	cr_expect(str_eq(reply_header(&r, "content-length"), STR("3")));
	reply_done(&r);
	server_upload(
	    s, in(&id, "/files").s, "in.bin", "text/plain", STR("a\0b"), "user_data", &as_peer, &r);
	cr_expect_eq(r.status, 201, "%s", r.body.ptr);
	reply_done(&r);
	peer(s, "POST", in(&id, "/exec").s, EXEC("print(open('in.bin','rb').read())"), &r);
	HAS(r, "b'a\\\\x00b'");
	LACKS(r, "filename");
	reply_done(&r);

	expect_status(s, "GET", in(&id, "/files?path=nothing").s, NULL, 404);
	expect_status(s, "GET", in(&id, "/files").s, NULL, 400);
	expect_status(s, "GET", in(&id, "/files?path=../../etc/passwd").s, NULL, 403);
	expect_status(s, "GET", in(&id, "/files?path=/etc/passwd").s, NULL, 403);
	expect_status(s, "POST", in(&id, "/exec").s, "{\"tool\":\"rm\",\"input\":{}}", 422);
	expect_status(
	    s, "POST", in(&id, "/exec").s, "{\"tool\":\"code_execution\",\"input\":{}}", 400);
	expect_status(s, "POST", in(&id, "/exec").s, "nonsense", 400);
	expect_status(s, "POST", "/sessions", "[]", 400);
	expect_status(s, "PUT", in(&id, "/exec").s, "{}", 405);
	expect_status(s, "GET", "/v1/models", NULL, 404);
	expect_status(s, "POST", "/sessions/sbx_none/exec", EXEC("1"), 404);
	expect_status(s, "DELETE", in(&id, "").s, NULL, 204);
	expect_status(s, "DELETE", in(&id, "").s, NULL, 404);
	expect_status(s, "POST", in(&id, "/exec").s, EXEC("1"), 404);
	server_ask(s, "POST", "/sessions", STR("{}"),
	    &(struct ask_opts){.key = "wrong", .serve = true}, &r);
	cr_expect_eq(r.status, 401);
	reply_done(&r);
	server_ask(
	    s, "POST", "/sessions", STR("{}"), &(struct ask_opts){.key = "", .serve = true}, &r);
	cr_expect_eq(r.status, 401);
	reply_done(&r);
	server_stop(&s);
}

Test(lent, what_the_code_planted_is_not_followed)
{
	struct server *s = start_host("");
	struct text id = new_session(s);
	struct reply r;

	expect_status(s, "POST", in(&id, "/exec").s,
	    EXEC("import os\\nos.symlink('/etc/passwd', 'link')\\nos.symlink('/etc', "
		 "'folder')\\nos.mkfifo('pipe')\\nos.mkdir('real')"),
	    200);
	expect_status(s, "GET", in(&id, "/files?path=link").s, NULL, 404);
	expect_status(s, "GET", in(&id, "/files?path=folder/passwd").s, NULL, 404);
	expect_status(s, "GET", in(&id, "/files?path=pipe").s, NULL, 404);
	expect_status(s, "GET", in(&id, "/files?path=real").s, NULL, 404);
	peer(s, "GET", in(&id, "/files/list").s, NULL, &r);
	cr_expect_str_eq(r.body.ptr, "{\"files\":[]}");
	reply_done(&r);
	server_stop(&s);
}

Test(lent, sessions_are_bounded_and_end_by_themselves)
{
	struct server *s = start_host("sandbox_serve_max_sessions: 1\nsandbox_serve_idle_ms: 4000\n"
				      "sandbox_file_bytes: 1MiB\n");
	struct text id = new_session(s);
	char *big = mem_alloc((2u << 20) + 1);
	struct reply r;
	bool is_free = false;

	peer(s, "POST", "/sessions", "{}", &r);
	cr_expect_eq(r.status, 503);
	cr_expect(reply_header(&r, "retry-after").len > 0);
	reply_done(&r);
	server_upload(s, in(&id, "/files").s, "big", "text/plain", str_n(big, 2u << 20),
	    "user_data", &as_peer, &r);
	cr_expect_eq(r.status, 413, "%ld", r.status);
	reply_done(&r);
	mem_free(big);
	/* A call that is longer than the idle time keeps it. */
	peer(s, "POST", in(&id, "/exec").s, EXEC("import time; time.sleep(5); print(7)"), &r);
	cr_expect_eq(r.status, 200, "%s", r.body.ptr);
	reply_done(&r);
	while (!is_free) { /* the suite's time limit ends it */
		peer(s, "POST", "/sessions", "{}", &r);
		is_free = r.status == 201;
		reply_done(&r);
		pause_short();
	}
	expect_status(s, "GET", in(&id, "/files/list").s, NULL, 404);
	server_stop(&s);
}

Test(lent, a_worker_that_is_replaced_closes_its_sessions)
{
	struct server *s = start_host("");
	struct text id = new_session(s);
	long at_end = server_log_end(s);

	server_write_conf(s, "sql_threads: 3\n");
	kill(s->pid, SIGHUP);
	cr_assert(server_wait_log(s, "child ended", &at_end));
	cr_assert(server_wait_log(s, "child ended", &at_end)); /* both workers */
	expect_status(s, "POST", in(&id, "/exec").s, EXEC("1"), 404);
	id = new_session(s);
	expect_status(s, "POST", in(&id, "/exec").s, EXEC("1"), 200);
	server_stop(&s);
}
