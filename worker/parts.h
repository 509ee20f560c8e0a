/* parts.h - opens and closes what a worker consists of, in one order and its reverse
 *
 * Process: worker, loop thread.
 */
#ifndef OTARI_WORKER_PARTS_H
#define OTARI_WORKER_PARTS_H

#include <stdbool.h>

#include "base/err.h"

struct parts;
struct worker_env;

/* Snapshots and secrets are there. *spawner_fd (-1: none yet) is taken where the sandbox is this
 * host's. Fills env. */
MUST_CHECK enum err_code parts_open(
    struct worker_env *env, int *spawner_fd, struct parts **ret, struct err *reterr);
/* Takes fd: one more listening socket. */
MUST_CHECK enum err_code parts_listen(struct parts *p, int fd, bool is_admin, struct err *reterr);
/* Lends this host's sandbox on this listening socket, in the place of another; -1: not any more
 * (worker/serving.h). Takes fd. */
MUST_CHECK enum err_code parts_serve_sandbox(struct parts *p, int fd, struct err *reterr);
/* A new policy, with its secrets, is in use. Another sandbox takes the place of env->code at once;
 * what runs in the old one runs on. */
void parts_reconfigure(struct parts *p, int *spawner_fd);
/* Stops accepting; on_drained when no connection and no job is left. */
void parts_drain(struct parts *p, void (*on_drained)(void *arg), void *arg);
void parts_close(struct parts **p); /* everything that still runs is broken off */

#endif
