/* turn.h - one completion that the gateway understands: rounds of provider calls with code runs
 * between them
 *
 * Process: worker, loop thread.
 * Files:   turn.c       start, one round to the provider, its bytes
 *          encode.c     the provider's body, on an io thread when it is large
 *          round.c      a round's events: what is ours, what is not, when the round is over
 *          live.c       our calls as the client sees them while the model writes them
 *          run.c        our tool calls, one at a time, in order: code, files, result
 *          session.c    the code session: when it is opened, the request's files in it
 *          finish.c     the one place where a turn ends: settlement, last bytes, clean-up
 * Owns:    its state, which hangs on the request (req->state) and ends with it.
 * Life:    turn_start → rounds → exactly one of turn_finish, turn_fail; or the client goes away
 * (turn_close). A turn never ends inside a parser's callback: what decides there is acted on after
 * it returned.
 */
#ifndef OTARI_WORKER_TURN_TURN_H
#define OTARI_WORKER_TURN_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sse.h"
#include "worker/dialect/dialect.h"
#include "worker/turn/attach.h"
#include "worker/turn/carry.h"
#include "worker/turn/executor.h"
#include "worker/turn/extract_plan.h"
#include "worker/turn/gateway_tool.h"
#include "worker/turn/keep.h"
#include "worker/turn/live.h"
#include "worker/turn/outputs.h"
#include "worker/turn/tool_input.h"
#include "worker/upstream/call.h"

struct code_open;
struct code_session;
struct encoding;
struct event;
struct extract;
struct lend;
struct request;
struct seed;

struct turn_limits { /* copied from settings and policy */
	uint32_t max_rounds, exec_timeout_ms, queue_ms, keepalive_ms;
	uint32_t max_output_files;
	uint64_t max_output_bytes, max_inline_bytes;
	int64_t retention_hours; /* 0: for ever */
	bool is_strict;          /* what the provider cannot be told is refused, not dropped */
};

struct turn_plan { /* what the preamble found out; copied by turn_start */
	struct conversation *conv;
	struct target target;
	struct executor_decision decision;
	struct gateway_tools tools; /* that the model is shown; none: no code here */
	uint32_t documents;         /* formats that reach the model as they are (turn/document.h) */
	bool takes_files;           /* files that it names are shown and staged; else left */
	struct str image;           /* of its code session; empty: the sandbox's own */
	struct turn_limits limits;
	size_t body_bytes;                /* of the client: how much there is to encode, about */
	struct str user_id, workspace_id; /* whose files */
	struct str file_workspace;        /* scope of references; STR_NULL: all of the user's */
	struct str public_base_url;       /* for links to files; without a slash at the end */
	struct keep_plan keep;
};

struct tool_call { /* of ours, in one round */
	struct tool_call *next;
	enum code_tool tool;
	struct str id;
	struct str arguments;     /* a JSON object; empty: they are none, or cut */
	struct code_record shown; /* what the client sees of it before it ran */
};

struct turn_ending { /* one choice's FINISH */
	struct turn_ending *next;
	struct turn_event ev;
};

struct turn {
	struct request *req;
	struct turn_plan plan;
	const struct dialect *client, *provider;
	struct attach_plan files;
	struct attach *attaching;
	struct lend *lending;
	struct extract_plan documents;
	struct extract *extracting;
	/* answer */
	struct reply *reply;
	struct buf out;
	bool has_begun;     /* stream: the head is out */
	size_t start_bytes; /* of out: what the client reads before the first block */
	bool is_settled, wrote_since_tick;
	struct event *keepalive;
	/* the round under way */
	uint32_t rounds;
	struct upstream_call *call;
	struct events *events;
	struct sse_reader sse;
	struct encoding *encoding;
	struct buf body;  /* to the provider */
	struct buf whole; /* of the provider, when not streamed */
	bool is_sse, has_started, round_ended, is_collecting;
	struct turn_collect collect;
	bool in_own_call; /* the open block is a call of ours */
	struct turn_live live;
	struct tool_call *calls, **calls_end;
	bool has_foreign_call;
	struct carry carry;        /* what the client's next request must bring back to the model */
	enum finish_reason reason; /* of the first choice */
	struct turn_ending *endings, **endings_end;
	struct token_usage round_usage, usage;
	struct event *linger; /* END came, the connection did not close yet */
	/* a failure that the events told of; acted on outside the parser */
	int error_status;
	struct str error_type, error_message;
	/* code */
	struct code_open *opening;
	int64_t opening_us; /* when it began */
	struct code_session *session;
	void (*session_then)(struct turn *t); /* when there is one */
	bool session_is_used;                 /* something ran in it */
	bool has_reopened;
	struct seed *seeding;
	struct outputs *outputs;
	struct tool_call *running;
	struct tool_input input; /* of the running call */
	struct message *results; /* user message that collects this round's results */
	struct str container_id;
	struct str run_out, run_err; /* cleaned, of the call that just ran */
	int32_t run_code;
	struct edit_record run_edit;
	uint32_t billed, errors;
};

/* Answers the request, whatever happens. */
void turn_start(struct request *req, const struct turn_plan *plan);

/* --- between the files of this folder ------------------------------------------------------------
 */
void turn_round(struct turn *t); /* turn.c: the next provider call */
bool turn_on_turn_event(void *arg, const struct turn_event *ev); /* round.c */
void turn_round_end(struct turn *t);                             /* round.c: what now */
/* round.c: an event of a block that is not ours, to the client. */
void turn_show_block(struct turn *t, const struct turn_event *ev);
/* encode.c: the body of this round into t->body, then done; both at once when it is small. */
void turn_encode(struct turn *t, const struct encode_options *opt,
    void (*done)(struct turn *t, const struct err *err));
void turn_encode_cancel(struct turn *t);
/* session.c: then(t), at once or later, when there is a session with the request's files in it;
 * else the turn fails. */
void turn_with_session(struct turn *t, void (*then)(struct turn *t));
void turn_begin(struct turn *t); /* the first round, and before it a session that opens early */
void turn_session_close(struct turn *t);
void turn_run_calls(struct turn *t); /* run.c: from the first call of the round */
void turn_run_close(struct turn *t); /* run.c: gives everything of the sandbox back */
void turn_flush(struct turn *t);     /* turn.c: out → client, beginning the stream if needed */
void turn_finish(struct turn *t, enum finish_reason reason);                      /* finish.c */
void turn_fail(struct turn *t, int status, const char *type, struct str message); /* finish.c */
void turn_failf(struct turn *t, int status, const char *fmt, ...) PRINTF(3, 4);
void turn_close(struct request *req, bool aborted); /* finish.c */

#endif
