/* chat_reply.h - state of the Chat answer writer and what its files share; private to chat_reply*.c
 */
#ifndef OTARI_WORKER_DIALECT_CHAT_REPLY_H
#define OTARI_WORKER_DIALECT_CHAT_REPLY_H

#include "worker/dialect/citation.h"
#include "worker/dialect/reply.h"

struct chat_answer {
	struct chat_answer *next; /* sorted by number */
	uint32_t number;
	uint32_t calls;
	bool has_role, has_finish, has_refusal;
	struct turn_event finish;
	/* whole answers; JSON string insides or comma-separated values */
	struct buf *content, *reasoning, *refusal, *tool_calls, *annotations;
	struct str audio_raw;
	const char *reasoning_member;
	int64_t chars, block_at; /* characters of content so far; where the open text began */
};

struct chat_reply {
	struct reply base;
	struct chat_answer *choices, *current;
	bool legacy; /* the client speaks of functions, not of tools */
	bool custom; /* the open call is of a custom tool: its argument is free text */
	struct str call_id, block_name;
	struct buf *arguments; /* of the open call, where they cannot be passed on in pieces */
	bool args_begun;
	bool ran;                   /* code, since the last text */
	struct str extra_raw;       /* extra_content of the open call */
	struct citation_list notes; /* other wires', of the open text */
	struct token_usage usage;
	enum wire usage_wire;
};

/* "data: {…,"choices":[ — chat_close_chunk ends it. */
struct jw chat_open_chunk(struct chat_reply *c);
/* … "delta":{ — chat_close_delta ends it. The first delta of a choice names the role. */
struct jw chat_open_delta(struct chat_reply *c, struct chat_answer *ch);
void chat_close_delta(struct chat_reply *c, struct jw *w, const char *finish_reason);
/* The role chunk, if it did not go out yet. */
void chat_need_role(struct chat_reply *c, struct chat_answer *ch);
void chat_call_start(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev);
void chat_call_delta(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev);
void chat_call_stop(struct chat_reply *c, struct chat_answer *ch);
void chat_annotation(struct chat_reply *c, struct chat_answer *ch, const struct turn_event *ev);
/* At the end of a text: the annotations that waited for it. */
void chat_block_notes(struct chat_reply *c, struct chat_answer *ch);
void chat_end_stream(struct chat_reply *c);
void chat_end_whole(struct chat_reply *c);

#endif
