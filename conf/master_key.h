/* master_key.h - the first master key: a 0600 file in the state directory
 *
 * Process: master (which asks for it on behalf of the builder; it may be root).
 */
#ifndef OTARI_CONF_MASTER_KEY_H
#define OTARI_CONF_MASTER_KEY_H

#include <stdbool.h>

#include "base/err.h"

#define MASTER_KEY_BYTES_MAX 1024u

/* Opens path for reading; when it is missing, makes it first: mode 0600, whole or not at all, one
 * line with a new random key. A symbolic link, something that is no regular file or a file that
 * others may read is refused. *ret_created says whether it was made now (log the path, never the
 * key). The caller owns *ret_fd. */
MUST_CHECK enum err_code master_key_open(
    const char *path, int *ret_fd, bool *ret_created, struct err *reterr);

#endif
