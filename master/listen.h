/* listen.h - listening sockets. Process: master; it keeps every one open while the port is served.
 *
 * Addresses are numeric. One SO_REUSEPORT socket a worker: the kernel spreads connections evenly,
 * and a worker that dies leaves its queue to its successor.
 */
#ifndef OTARI_MASTER_LISTEN_H
#define OTARI_MASTER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* *port 0: the kernel chooses and *port says which. is_first: nobody else may be listening there
 * (SO_REUSEPORT alone would silently share the port with another server of the same user). The
 * caller owns *ret_fd. */
MUST_CHECK enum err_code listen_open(
    struct str host, uint16_t *port, bool is_first, int *ret_fd, struct err *reterr);
/* "127.0.0.1:9000", "[::1]:9000". host points into text. */
MUST_CHECK enum err_code listen_split(
    struct str text, struct str *ret_host, uint16_t *ret_port, struct err *reterr);

#endif
