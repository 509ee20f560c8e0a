/* fake.h - the scriptable provider of the tests: what its parts agree on
 *
 * Process: fake-provider; one loop, one thread, loopback only.
 * Speaks Chat Completions (/v1/chat/completions), Messages (/v1/messages) and Responses
 * (/v1/responses). What it does is told by the model that is asked for (scenario.c has the list),
 * or in advance by POST /_next. It also plays a sandbox on another host, below /sandbox/
 * (sandbox.c).
 */
#ifndef OTARI_TESTS_FAKE_FAKE_H
#define OTARI_TESTS_FAKE_FAKE_H

#include <jansson.h>
#include <stdbool.h>

#include "tools/demo-model/answer.h"
#include "tools/demo-model/pace.h"
#include "tools/demo-model/talk.h"

struct evhttp_request;

enum fake_wire { FAKE_CHAT, FAKE_MESSAGES, FAKE_RESPONSES };

/* One request as the scenarios see it. */
struct ask {
	enum fake_wire wire;
	struct evhttp_request *req;
	json_t *body;
	const char *model;
	bool stream, include_usage;
	struct talk talk;
	const char *bash, *editor; /* the gateway's functions for those, or NULL */
	const char *client_tool;   /* a function that is none of them, or NULL */
};

/* ask.c: takes neither req nor body. */
void ask_read(struct ask *q, enum fake_wire wire, struct evhttp_request *req, json_t *body);
void ask_done(struct ask *q);

/* scenario.c: answers, whatever it is. */
void scenario_run(struct ask *q);
void scenario_error(struct evhttp_request *req, enum fake_wire wire, int status, const char *text);

/* messages_reply.c */
void messages_reply_whole(struct pace *p, struct answer *a);
void messages_reply_stream(struct pace *p, struct answer *a);

/* responses_reply.c */
void responses_reply_whole(struct pace *p, struct answer *a);
void responses_reply_stream(struct pace *p, struct answer *a);

/* recorded.c: the file of the folder OTARI_RECORDED that the model names; false: there is none. */
bool recorded_run(struct ask *q, const char *name);

/* sandbox.c: false: it is none of its paths. */
bool sandbox_run(struct evhttp_request *req);

/* control.c */
void control_note(struct evhttp_request *req); /* keeps it for GET /_last */
bool control_next(struct evhttp_request *req); /* answers by POST /_next, if any is waiting */
void control_handle(struct evhttp_request *req, void *arg);

#endif
