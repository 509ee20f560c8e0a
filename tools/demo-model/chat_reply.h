/* chat_reply.h - an answer in the Chat Completions format, streamed or whole */
#ifndef OTARI_TOOLS_DEMO_MODEL_CHAT_REPLY_H
#define OTARI_TOOLS_DEMO_MODEL_CHAT_REPLY_H

#include "tools/demo-model/answer.h"
#include "tools/demo-model/pace.h"

/* Adds the whole body as one piece. */
void chat_reply_whole(struct pace *p, struct answer *a);
/* Adds one piece a chunk: role, reasoning, text, calls, finish, usage if asked for, [DONE]. */
void chat_reply_stream(struct pace *p, struct answer *a, bool include_usage);

#endif
