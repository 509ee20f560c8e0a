/* peer.h - HTTP/1.1 messages over a blocking socket, as far as a bench needs them
 *
 * Process: bench programs. Owns: the descriptor and the bytes that came. Loopback, trusted peers:
 * what is not understood ends the program.
 */
#ifndef OTARI_TOOLS_BENCH_PEER_H
#define OTARI_TOOLS_BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct peer {
	int fd; /* -1: none */
	struct buf in;
};

void peer_init(struct peer *p, int fd);
void peer_done(struct peer *p);
/* A connection to 127.0.0.1. */
void peer_connect(struct peer *p, uint16_t port);
/* 127.0.0.1, a port of the kernel's choice. */
int peer_listen(uint16_t *ret_port);
void peer_write(struct peer *p, struct str bytes);
/* Reads what is there, once; false: the other side has gone. */
bool peer_read(struct peer *p);
/* Is a whole message (Content-Length or chunked) at the front? Points into the buffer; a chunked
 * body is returned as it came. */
bool peer_message(const struct peer *p, struct str *ret_head, struct str *ret_body);
/* Drops the message at the front. */
void peer_next(struct peer *p);
/* Sends, and waits for the whole answer, which stays in the buffer until peer_next. */
struct str peer_ask(struct peer *p, struct str request);

_Noreturn void bench_die(const char *why);

#endif
