/* environment.h - the start environment: into a sealed memfd for the builder, then wiped
 *
 * Process: master. It may hold keys and passwords; nothing but the builder ever sees it.
 */
#ifndef OTARI_MASTER_ENVIRONMENT_H
#define OTARI_MASTER_ENVIRONMENT_H

#include <stddef.h>

#include "base/err.h"

/* Copies what sanitizers, the C library and systemd need, moves everything else into a sealed memfd
 * ("NAME=value\0" each) and overwrites the original bytes, which /proc shows. Before any thread. */
MUST_CHECK enum err_code environment_take(int *ret_fd, struct err *reterr);
/* Bytes of the wiped start environment, which follow the arguments in memory. */
size_t environment_spare_bytes(void);
/* NULL-terminated; lives as long as the process. */
char *const *environment_of_children(void);
/* NOTIFY_SOCKET of the service manager, or NULL. */
const char *environment_notify_socket(void);

#endif
