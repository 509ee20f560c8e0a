/* conversation.h - the one canonical form of a request; every reader fills it, every writer reads
 * it
 *
 * Process: worker. Pure data, in the request's arena. All text is length-counted and borrowed from
 * the client's body or the arena; both live as long as the request. Rule:    what the gateway need
 * not understand stays a raw JSON span ("raw", "*_raw") with the wire it came from; a writer of the
 * same wire puts it back byte for byte, a writer of another wire maps what it can and names the
 * rest in `dropped`. Whoever changes a part, tool or field clears its raw span. Shape: Anthropic's:
 * tool results are parts of a user message. Chat's tool messages are read into user messages and
 * written out of them again. System and developer text may stand anywhere.
 */
#ifndef OTARI_WORKER_DIALECT_CONVERSATION_H
#define OTARI_WORKER_DIALECT_CONVERSATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum wire { WIRE_CHAT, WIRE_MESSAGES, WIRE_RESPONSES };

enum part_kind {
	PART_TEXT,
	PART_IMAGE,
	PART_DOCUMENT,
	PART_AUDIO,
	PART_UPLOAD, /* container_upload: a file for the code's working directory only */
	PART_REASONING,
	PART_REFUSAL,
	PART_CALL,   /* assistant asks for a tool */
	PART_RESULT, /* the tool's answer, in a user message */
	PART_OPAQUE, /* known to one wire only */
};

enum media_source { MEDIA_NONE, MEDIA_BASE64, MEDIA_URL, MEDIA_FILE_ID, MEDIA_TEXT };

struct media {
	enum media_source source;
	struct str data;       /* base64 text, URL, or plain text */
	struct str file_id;    /* MEDIA_FILE_ID, PART_UPLOAD */
	struct str media_type; /* "image/png"; empty: unknown */
	struct str filename;   /* empty: unknown */
	struct str detail;     /* image detail of Chat and Responses */
};

struct part {
	enum part_kind kind;
	struct part *next;
	struct str raw; /* the whole block as sent, or STR_NULL once it was changed or made by us */
	enum wire raw_wire;
	struct str text; /* TEXT, REFUSAL, REASONING (empty when redacted) */
	struct media media;
	/* CALL: call id; RESULT: id of the call it answers; REASONING: item id; TEXT: of the echoed
	 * execution that it stands for */
	struct str id;
	struct str name;      /* CALL: tool name */
	struct str arguments; /* CALL: JSON text as the model wrote it, perhaps not valid JSON */
	struct part *content; /* RESULT: text, image, document parts */
	bool is_error;        /* RESULT */
	struct str signature; /* REASONING: Messages' signature */
	struct str encrypted; /* REASONING: redacted data or Responses' encrypted_content */
	struct str cache_control_raw, citations_raw;
};

enum message_role { MESSAGE_SYSTEM, MESSAGE_DEVELOPER, MESSAGE_USER, MESSAGE_ASSISTANT };

struct message {
	enum message_role role;
	struct message *next;
	struct part *parts;
	struct part *tail; /* message_add's hint; may be behind the true end, NULL after parts were
			      removed */
	struct str raw;    /* whole message as sent when no part of it was changed, else STR_NULL */
	enum wire raw_wire;
	struct str name;      /* Chat's participant name */
	bool is_instructions; /* Responses' top-level text: no item of the input */
};

enum tool_kind {
	TOOL_FUNCTION,
	TOOL_CODE,   /* a code-execution declaration, by its type; see turn/executor.h */
	TOOL_OPAQUE, /* another server tool of one wire */
};

struct tool {
	enum tool_kind kind;
	struct tool *next;
	struct str raw;
	enum wire raw_wire;
	struct str type; /* as declared: "function", "custom", "code_execution_20250825", … */
	struct str name, description;
	struct str schema_raw; /* JSON schema of the parameters, or STR_NULL */
	int strict;            /* -1 not said, 0, 1 */
	struct str cache_control_raw;
	struct str purpose_hint;     /* gateway-only member, or empty */
	struct str *container_files; /* code_interpreter: tools[].container.file_ids */
	size_t container_file_count;
	bool is_excluded; /* a choice of allowed tools leaves it out: its own wire says so there,
			     other wires are not shown it */
	bool is_in_input; /* Responses' additional_tools item declares it: its own wire has it there
			   */
};

enum choice_kind {
	CHOICE_UNSET,
	CHOICE_AUTO,
	CHOICE_NONE,
	CHOICE_REQUIRED,
	CHOICE_NAMED,
	CHOICE_OPAQUE
};

struct tool_choice {
	enum choice_kind kind;
	struct str name; /* NAMED */
	struct str type; /* the declared type that NAMED or OPAQUE carried: "function",
			    "code_interpreter" */
	struct str raw;
	int parallel; /* -1 not said, 0, 1 */
};

enum format_kind { FORMAT_UNSET, FORMAT_TEXT, FORMAT_JSON_OBJECT, FORMAT_JSON_SCHEMA };

struct output_format {
	enum format_kind kind;
	struct str name, description, schema_raw;
	int strict;
};

struct field { /* a top-level member that the writer of the same wire puts back as it was sent */
	struct field *next;
	struct str key, raw;
};

struct dropped {
	struct dropped *next;
	struct str what; /* "chat.logit_bias" */
};

struct conversation {
	struct arena *arena;
	enum wire wire;   /* the client's */
	struct str model; /* as the client wrote it */
	struct message *messages, *last;
	struct tool *tools;
	struct tool_choice choice;
	struct output_format format;
	bool stream;
	bool include_usage; /* Chat: stream_options.include_usage */
	/* numbers as they were written; STR_NULL: not said */
	struct str max_tokens_raw, temperature_raw, top_p_raw, top_k_raw, seed_raw, n_raw;
	struct str presence_penalty_raw, frequency_penalty_raw;
	struct str *stop; /* stop sequences */
	size_t stop_count;
	struct str effort;       /* reasoning effort: minimal … max, or empty */
	struct str verbosity;    /* of Chat and Responses, or empty */
	struct str thinking_raw; /* Messages' thinking object as sent */
	struct str budget_raw;   /* its budget_tokens */
	struct str user;         /* Chat/Responses user, Messages metadata.user_id */
	struct str metadata_raw, service_tier_raw;
	struct field *extra, *extra_tail; /* in the order sent */
	struct dropped *dropped;
	/* Responses only; what a response object repeats as it was sent */
	int store; /* -1 not said, 0, 1; 0 for other wires */
	/* Written to a Responses provider while it is set; refused by the others. Whoever put the
	 * stored items in front of the input clears it. */
	struct str previous_response_id;
	struct str continued_id; /* then: what it was, for the response object to repeat; never sent
				  */
	struct str *include;     /* "reasoning.encrypted_content", … */
	size_t include_count;
	struct str include_raw, instructions_raw, text_raw, reasoning_raw;
	struct str tools_raw, tool_choice_raw;
	struct str reasoning_summary; /* empty: not said */
	/* gateway-only members, never forwarded */
	uint32_t max_tool_iterations; /* 0: not said */
	struct str tools_header, session_label;
	bool has_mcp_server_ids, has_thread;
	size_t added_bytes; /* of text that came to it after the client's body, about */
};

struct message *conversation_add(struct conversation *c, enum message_role role);
struct part *message_add(struct conversation *c, struct message *m, enum part_kind kind);
void conversation_drop(struct conversation *c, struct str what); /* each name once */
/* Calls change for every part, those of a tool's result before the result itself; where it says
 * that it changed one, what was sent of the result and the message around it is forgotten. */
void conversation_rewrite(
    struct conversation *c, bool (*change)(void *arg, struct part *p), void *arg);
void part_become_text(struct part *p, struct str text);
/* Did the client ask for this by `include`? */
bool conversation_includes(const struct conversation *c, const char *what);
const char *wire_name(enum wire w); /* "chat", "messages", "responses" */

#endif
