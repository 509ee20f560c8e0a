/* demo-model - a scripted, OpenAI-compatible model service: what `make run` serves without a key
 *
 *   demo-model [-a ADDRESS] [-p PORT] [-d MILLISECONDS]
 *
 * POST /v1/chat/completions (streamed and whole), GET /v1/models. One process, one loop, loopback
 * unless told otherwise. Prints "demo-model: listening on http://ADDRESS:PORT/v1" when it serves.
 */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "base/str.h"
#include "tools/demo-model/chat_reply.h"
#include "tools/demo-model/script.h"

#define BODY_MAX (64 * 1024 * 1024)

static const char *const models[] = {"chart-1", "chart-1-mini"};

struct demo_env {
	struct event_base *base;
	unsigned delay_ms;
};

static void
reply_error(struct evhttp_request *req, int status, const char *type, const char *message)
{
	struct pace *p = pace_new(req, 0);
	json_t *root = json_pack(
	    "{s:{s:s, s:s, s:n, s:n}}", "error", "message", message, "type", type, "param", "code");
	char *text = json_dumps(root, JSON_COMPACT);

	pace_add(p, str_c(text));
	pace_run(p, status, "application/json", PACE_END);
	free(text);
	json_decref(root);
}

static json_t *
read_body(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);

	return json_loadb(
	    n > 0 ? (const char *)evbuffer_pullup(in, -1) : "", n, JSON_DECODE_INT_AS_REAL, NULL);
}

static bool
known_model(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		if (strcmp(name, models[i]) == 0)
			return true;
	return false;
}

static void
answer_request(struct demo_env *env, struct evhttp_request *req, const json_t *body)
{
	const json_t *choice = json_object_get(body, "tool_choice");
	const char *choice_text = json_string_value(choice);
	bool stream = json_is_true(json_object_get(body, "stream"));
	struct pace *p = pace_new(req, stream ? env->delay_ms : 0);
	struct answer a;
	struct talk t;

	talk_read(&t, body);
	answer_init(&a, "chatcmpl-", str_c(json_string_value(json_object_get(body, "model"))));
	a.input_tokens = (int64_t)((t.system.len + t.users.len + t.results.len) / 4 + 8);
	script_answer(&a, &t, choice_text == NULL || strcmp(choice_text, "none") != 0,
	    json_is_object(choice) ||
		(choice_text != NULL && strcmp(choice_text, "required") == 0));
	if (stream) {
		chat_reply_stream(p, &a,
		    json_is_true(
			json_object_get(json_object_get(body, "stream_options"), "include_usage")));
		pace_run(p, 200, "text/event-stream", PACE_END);
	} else {
		chat_reply_whole(p, &a);
		pace_run(p, 200, "application/json", PACE_END);
	}
	answer_done(&a);
	talk_done(&t);
}

static void
on_chat(struct evhttp_request *req, void *arg)
{
	json_t *body = NULL;
	const char *model;

	if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
		reply_error(req, 405, "invalid_request_error", "POST is expected here");
		return;
	}
	body = read_body(req);
	model = json_string_value(json_object_get(body, "model"));
	if (!json_is_object(body) || model == NULL ||
	    json_array_size(json_object_get(body, "messages")) == 0)
		reply_error(req, 400, "invalid_request_error",
		    "a JSON object with model and messages is expected");
	else if (!known_model(model))
		reply_error(req, 404, "invalid_request_error", "no such model");
	else
		answer_request(arg, req, body);
	json_decref(body);
}

static void
on_models(struct evhttp_request *req, void *arg)
{
	struct pace *p = pace_new(req, 0);
	json_t *list = json_array(), *root;
	char *text;

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		json_array_append_new(
		    list, json_pack("{s:s, s:s, s:i, s:s}", "id", models[i], "object", "model",
			      "created", 1764460800, "owned_by", "otari-demo"));
	root = json_pack("{s:s, s:o}", "object", "list", "data", list);
	text = json_dumps(root, JSON_COMPACT);
	pace_add(p, str_c(text));
	pace_run(p, 200, "application/json", PACE_END);
	free(text);
	json_decref(root);
}

static void
on_other(struct evhttp_request *req, void *arg)
{
	(void)arg;
	reply_error(req, 404, "invalid_request_error", "no such path");
}

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	event_base_loopbreak(arg);
}

static unsigned short
bound_port(struct evhttp_bound_socket *bound)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);

	memset(&ss, 0, sizeof(ss));
	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&ss, &n);
	return ntohs(((struct sockaddr_in *)(void *)&ss)->sin_port);
}

static int
usage(void)
{
	fputs("usage: demo-model [-a ADDRESS] [-p PORT] [-d MILLISECONDS]\n", stderr);
	return 2;
}

int
main(int argc, char **argv)
{
	struct demo_env env = {NULL, 8};
	struct evhttp *http;
	struct evhttp_bound_socket *bound;
	const char *address = "127.0.0.1";
	uint64_t port = 8100, delay = 8;
	int opt;

	while ((opt = getopt(argc, argv, "a:p:d:")) != -1) {
		if (opt == 'a')
			address = optarg;
		else if (opt == 'p'
			     ? !str_u64(str_c(optarg), &port) || port > 65535
			     : opt != 'd' || !str_u64(str_c(optarg), &delay) || delay > 60000)
			return usage();
	}
	if (optind != argc)
		return usage();
	env.delay_ms = (unsigned)delay;
	/* Started by a script that may be killed: never outlive it. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	env.base = event_base_new();
	http = evhttp_new(env.base);
	evhttp_set_max_body_size(http, BODY_MAX);
	evhttp_set_cb(http, "/v1/chat/completions", on_chat, &env);
	evhttp_set_cb(http, "/v1/models", on_models, &env);
	evhttp_set_gencb(http, on_other, &env);
	bound = evhttp_bind_socket_with_handle(http, address, (uint16_t)port);
	if (bound == NULL) {
		fprintf(stderr, "demo-model: cannot listen on %s:%llu\n", address,
		    (unsigned long long)port);
		return 1;
	}
	evsignal_add(evsignal_new(env.base, SIGINT, on_signal, env.base), NULL);
	evsignal_add(evsignal_new(env.base, SIGTERM, on_signal, env.base), NULL);
	printf("demo-model: listening on http://%s:%u/v1\n", address, (unsigned)bound_port(bound));
	fflush(stdout);
	event_base_dispatch(env.base);
	/* Answers may be half-way; there is nothing that must be put in order. */
	_exit(0);
}
