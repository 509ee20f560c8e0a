#include "ipc/msg.h"

#include <stddef.h>

#include "base/err.h"
#include "base/limits.h"
#include "ipc/fds.h"

#define M    (1u << ROLE_MASTER)
#define B    (1u << ROLE_BUILDER)
#define W    (1u << ROLE_WORKER)
#define S    (1u << ROLE_SWEEPER)
#define TEXT 4096u

static const struct msg_info table[MSG_TYPE_MAX] = {
    /*                   name           senders    bytes            fds */
    [MSG_HELLO] = {"hello", B | W | S, 256, 0},
    [MSG_READY] = {"ready", B | W | S, 0, 0},
    [MSG_POLICY] = {"policy", M, 64, 1},
    [MSG_KEYS] = {"keys", M, 64, 1},
    [MSG_SECRETS] = {"secrets", M, 0, 1},
    [MSG_ACK] = {"ack", W | S, 64, 0},
    [MSG_PUBLISH] = {"publish", W | S, 64, 0},
    [MSG_PUBLISHED] = {"published", M, TEXT, 0},
    [MSG_LISTEN] = {"listen", M, 64, 1},
    [MSG_SPAWNER] = {"spawner", M, 64, 1},
    [MSG_DRAIN] = {"drain", M, 64, 0},
    [MSG_RECYCLE] = {"recycle", W, 0, 0},
    [MSG_LEAVING] = {"leaving", W, 0, 0},
    [MSG_REOPEN] = {"reopen", M, 0, 1},
    [MSG_BUILD] = {"build", M, 2 * TEXT + 256, 0},
    [MSG_BUILT] = {"built", B, LIMIT_MSG_BYTES, 8},
    [MSG_FILE_WANTED] = {"file wanted", B, TEXT + 64, 0},
    [MSG_FILE] = {"file", M, 64, 1},
    [MSG_TRY] = {"try", M, 0, 0},
    [MSG_TRIED] = {"tried", W, TEXT, 0},
};

const struct msg_info *
msg_info(uint32_t t)
{
	return t > 0 && t < MSG_TYPE_MAX ? &table[t] : NULL;
}

const char *
msg_name(enum msg_type t)
{
	const struct msg_info *i = msg_info((uint32_t)t);
	return i != NULL ? i->name : "unknown";
}
