/* serve.h - the listener of sandbox_serve, which a reload may move. Process: master.
 *
 * Worker 1 has it, at its start or by message; its lent sessions survive the move.
 */
#ifndef OTARI_MASTER_SERVE_H
#define OTARI_MASTER_SERVE_H

#include "base/err.h"

struct master;

/* At the start. ERR_OK also where none is configured. */
MUST_CHECK enum err_code serve_open(struct master *m, struct err *reterr);
/* The configuration has changed. What cannot be listened on is logged, and the old one stays; the
 * next reload tries again. */
void serve_change(struct master *m);
void serve_tell(const struct master *m); /* logs where it is */
void serve_close(struct master *m);

#endif
