/* env.h - the start environment: look-up, ${NAME} in values, OTARI_* variables
 *
 * Process: builder, otari -t. Pure; the block is borrowed.
 */
#ifndef OTARI_CONF_ENV_H
#define OTARI_CONF_ENV_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Value of name in a block of NUL-terminated NAME=value texts; STR_NULL: not set. */
struct str env_get(struct str environ, struct str name);
/* NAME=value strings (NULL-terminated array, NULL allowed) as such a block. */
void conf_environ_block(struct buf *dst, char *const *environment);
/* Cuts the next NAME=value off *rest; texts without '=' are skipped. */
bool env_next(struct str *rest, struct str *ret_name, struct str *ret_value);
/* Replaces ${NAME} and ${NAME:-default}; $$ is one $; any other $ stays. ERR_INPUT for a variable
 * that is not set (and has no default) or a ${ without end. */
MUST_CHECK enum err_code env_expand(
    struct arena *a, struct str environ, struct str text, struct str *ret, struct err *reterr);

#endif
