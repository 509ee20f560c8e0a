/* control_client.h - asking a running master over its control socket
 *
 * Process: otarictl, otari -t. Blocks, within the given time. The commands are in master/control.h.
 */
#ifndef OTARI_IPC_CONTROL_CLIENT_H
#define OTARI_IPC_CONTROL_CLIENT_H

#include <stddef.h>

#include "base/err.h"

/* path of any length. -1 with errno. */
int control_connect(const char *path);
/* The answer's bytes (JSON, no NUL) in dst; *ret_fd (NULL: none is wanted): a descriptor that came
 * with it, or -1; the caller owns it. ERR_IO: nobody there. ERR_TIMEOUT: no answer. */
MUST_CHECK enum err_code control_ask(const char *path, const char *command, int timeout_ms,
    char *dst, size_t size, size_t *ret_len, int *ret_fd, struct err *reterr);

#endif
