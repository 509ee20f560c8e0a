/* dialect.h - what each wire format can do: one reader of requests, one writer of requests, one
 * reader of answers, one writer of answers. Three of each; never a translator between two.
 *
 * Process: worker. Pure: no I/O, no clock but what is passed in. All state lives in the given
 * arena. Files:   {chat,messages,responses}_in.c decode   …_out.c encode   …_events.c answers in
 * …_reply.c answers out
 */
#ifndef OTARI_WORKER_DIALECT_DIALECT_H
#define OTARI_WORKER_DIALECT_DIALECT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "worker/dialect/code_record.h"
#include "worker/dialect/conversation.h"
#include "worker/dialect/turn_event.h"

struct encode_options {
	struct str model; /* what the provider calls it */
	bool stream;
	bool native_openai; /* api.openai.com itself: max_completion_tokens, developer role, … */
	/* Mistral's own service: call ids of nine alphanumerics, no user message right behind a
	 * tool message, no stream_options. */
	bool is_mistral;
	int64_t default_max_tokens; /* for Messages, which requires one: 4096 unless configured */
};

struct reply_options {
	bool stream;
	bool include_usage;      /* Chat streams */
	struct str model;        /* shown instead of the provider's when not empty (alias) */
	const char *fallback_id; /* message id when the provider gave none: "msg_…", "chatcmpl-…" */
	const char *request_id; /* in errors; NULL: none */
	int64_t created_s;
	bool native_code;  /* show executions in the wire's own blocks */
	bool names_caller; /* … and who called: declarations of 2026 say that it was the model */
	const struct conversation *request; /* borrowed */
	/* Where clients find us, without a slash at the end: for links to files that code made.
	 * Empty: no links. */
	struct str public_base_url;
};

struct events; /* reader of one answer */
struct reply;  /* writer of one answer */

struct dialect {
	enum wire wire;
	const char *name;
	const char *path; /* of the provider's endpoint below its base: "/chat/completions" */
	/* Client's body → conversation. ERR_INPUT names the member ("messages[2].content[0].type:
	 * …"). Echoes of our own executions (ids "otari_…") are folded to text here (with their
	 * file ids). */
	enum err_code (*decode)(struct arena *a, struct str body, struct jval root,
	    struct conversation **ret, struct err *reterr);
	/* Conversation → provider's body, appended to out. Names what it cannot say in
	 * conv->dropped. */
	enum err_code (*encode)(struct conversation *conv, const struct encode_options *opt,
	    struct buf *out, struct err *reterr);
	/* events_new and reply_new give NULL when the arena is over its cap; every other call takes
	 * that NULL: readers fail with ERR_NOMEM, writers write nothing. */
	struct events *(*events_new)(struct arena *a, turn_on_event *on_event, void *arg);
	/* One SSE event of a streamed answer. ERR_PROTO: not what the wire allows. */
	enum err_code (*events_sse)(
	    struct events *e, struct str name, struct str data, struct err *reterr);
	/* A whole answer: the same events as a stream of it. */
	enum err_code (*events_whole)(struct events *e, struct str body, struct err *reterr);
	/* The upstream's stream ended: emits END, or ERROR when the answer is not complete. */
	enum err_code (*events_end)(struct events *e, struct err *reterr);
	/* After END or ERROR every call of a reader does nothing; END comes with the provider's own
	 * end mark ([DONE], message_stop), so that nobody need wait for the connection to close.
	 * Answers. Bytes are appended to out as they come about: SSE frames when streaming, else
	 * the whole JSON document at TURN_END (or nothing, when TURN_ERROR came: the caller answers
	 * with an error). TURN_START is passed once, FINISH and USAGE once at the end; blocks are
	 * numbered here. */
	struct reply *(*reply_new)(
	    struct arena *a, const struct reply_options *opt, struct buf *out);
	void (*reply_event)(struct reply *r, const struct turn_event *ev);
	/* An execution: between blocks only, and between its begin and its result nothing but pings
	 * may be written. In the wire's own blocks where native_code is on, and then in steps in a
	 * stream: begin while the model starts to write the call (of rec: id, container_id, tool),
	 * input with every piece of it (live_input.h), run when the input is closed (of rec: code
	 * too), and the record with its result. Each step that was left out is made up for by the
	 * next. Elsewhere the record alone matters: it is put on a list at the answer's end
	 * (code_list.h). */
	void (*reply_code_begin)(struct reply *r, const struct code_record *rec);
	void (*reply_code_input)(struct reply *r, struct str json, struct str text);
	void (*reply_code_run)(struct reply *r, const struct code_record *rec);
	void (*reply_code)(struct reply *r, const struct code_record *rec);
	/* Keep-alive while nothing happens (streams). */
	void (*reply_ping)(struct reply *r);
};

extern const struct dialect dialect_chat, dialect_messages, dialect_responses;
const struct dialect *dialect_of(enum wire w);

/* An error body of the wire: its own envelope at the top level (error types of the wire), plus the
 * member `detail` that upstream's clients read. type NULL: chosen from status. details_raw: a JSON
 * object put in as error.details, or STR_NULL. */
void dialect_error_body(enum wire w, int status, const char *type, struct str message,
    struct str details_raw, const char *request_id, struct buf *out);
/* The same in OpenAI's envelope, for errors whose member or code clients act on. NULL: null. */
void dialect_error_body_coded(
    int status, struct str message, const char *param, const char *code, struct buf *out);

/* Collects the events of one round into an assistant message of the conversation, so that the next
 * round replays the turn as the model produced it (reasoning with signatures included). */
struct turn_collect {
	struct conversation *conv;
	struct message *message; /* appended to conv by turn_collect_end */
	struct part *last;
	struct buf text; /* of all blocks, one behind the other */
	size_t from;     /* where the open one begins */
};
void turn_collect_init(struct turn_collect *c, struct conversation *conv, size_t max_bytes);
void turn_collect_event(struct turn_collect *c, const struct turn_event *ev);
/* ERR_TOOLARGE when the answer outgrew max_bytes. */
MUST_CHECK enum err_code turn_collect_end(
    struct turn_collect *c, struct message **ret, struct err *reterr);
void turn_collect_done(struct turn_collect *c);

#endif
