/* control.h - the control socket: otarictl asks, the master answers
 *
 * Process: master. SOCK_SEQPACKET, mode 0660; one command a datagram, one JSON object an answer.
 * Commands: status, generation, sandbox check, reload, drain, conf. What changes something is for
 *          root, the master's own user and `user` alone; the group may look. conf hands out the
 *          text of otari.conf in force, for root and the master's own user.
 * Limits:  CONTROL_CLIENTS_MAX connections, CONTROL_COMMAND_MAX bytes a command.
 */
#ifndef OTARI_MASTER_CONTROL_H
#define OTARI_MASTER_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define CONTROL_CLIENTS_MAX 16u
#define CONTROL_COMMAND_MAX 256u

struct control;
struct master;

MUST_CHECK enum err_code control_start(struct master *m, struct err *reterr);
void control_stop(struct master *m); /* removes the socket */
/* A publication that client `who` waits for is over. False: no client of ours. */
bool control_published(struct master *m, uint64_t who, const char *error);
/* A worker has tried the remote sandbox: for whoever waits for it. */
void control_tried(struct master *m, bool ok, struct str text);

#endif
