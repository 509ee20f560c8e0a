/* fake-provider - see fake.h
 *
 *   fake-provider [-p PORT]
 *
 * Prints "fake-provider: listening on http://127.0.0.1:PORT/v1" when it serves. Dies with its
 * parent.
 */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "tests/fake/fake.h"

#define BODY_MAX (256 * 1024 * 1024)

static void
serve(struct evhttp_request *req, enum fake_wire wire)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t n = evbuffer_get_length(in);
	json_t *body;
	struct ask q;

	control_note(req);
	if (control_next(req))
		return;
	body = json_loadb(
	    n > 0 ? (const char *)evbuffer_pullup(in, -1) : "", n, JSON_DECODE_INT_AS_REAL, NULL);
	if (!json_is_object(body)) {
		scenario_error(req, wire, 400, "the body is not a JSON object");
	} else {
		ask_read(&q, wire, req, body);
		scenario_run(&q);
		ask_done(&q);
	}
	json_decref(body);
}

static void
on_chat(struct evhttp_request *req, void *arg)
{
	(void)arg;
	serve(req, FAKE_CHAT);
}

static void
on_messages(struct evhttp_request *req, void *arg)
{
	(void)arg;
	serve(req, FAKE_MESSAGES);
}

static void
on_responses(struct evhttp_request *req, void *arg)
{
	(void)arg;
	serve(req, FAKE_RESPONSES);
}

static void
on_other(struct evhttp_request *req, void *arg)
{
	(void)arg;
	if (sandbox_run(req))
		return;
	control_note(req);
	if (!control_next(req))
		scenario_error(req, FAKE_CHAT, 404, "no such path");
}

static void
on_term(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	event_base_loopbreak(arg);
}

int
main(int argc, char **argv)
{
	static const char *const control[] = {"/_last", "/_count", "/_reset", "/_next", "/_go"};
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *bound;
	struct sockaddr_in sin;
	socklen_t n = sizeof(sin);
	uint64_t port = 0;

	if (argc == 3 && strcmp(argv[1], "-p") == 0
		? !str_u64(str_c(argv[2]), &port) || port > 65535
		: argc != 1) {
		fputs("usage: fake-provider [-p PORT]\n", stderr);
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	evhttp_set_max_body_size(http, BODY_MAX);
	evhttp_set_timeout(http, 3600);
	evhttp_set_cb(http, "/v1/chat/completions", on_chat, NULL);
	evhttp_set_cb(http, "/v1/messages", on_messages, NULL);
	evhttp_set_cb(http, "/v1/responses", on_responses, NULL);
	for (size_t i = 0; i < ARRAY_LEN(control); i++)
		evhttp_set_cb(http, control[i], control_handle, NULL);
	evhttp_set_gencb(http, on_other, NULL);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", (uint16_t)port);
	if (bound == NULL ||
	    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&sin, &n) != 0) {
		fputs("fake-provider: cannot listen\n", stderr);
		return 1;
	}
	/* A client that is killed must not end it. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	evsignal_add(evsignal_new(base, SIGTERM, on_term, base), NULL);
	evsignal_add(evsignal_new(base, SIGINT, on_term, base), NULL);
	printf("fake-provider: listening on http://127.0.0.1:%u/v1\n", ntohs(sin.sin_port));
	fflush(stdout);
	event_base_dispatch(base);
	/* Answers may be half-way; there is nothing that must be put in order. */
	_exit(0);
}
