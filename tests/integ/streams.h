/* streams.h - many open answers at once, on bare sockets: what libcurl's easy handles are too heavy
 * for
 *
 * Every stream is a blocking socket with a receive time limit; a failure fails the test.
 */
#ifndef OTARI_TESTS_INTEG_STREAMS_H
#define OTARI_TESTS_INTEG_STREAMS_H

#include "tests/integ/harness.h"

/* Sends POST path with body and the server's key; returns the socket. */
int stream_open(struct server *s, const char *path, const char *body);
/* Reads until text came by (true), or the end, or the time limit. */
bool stream_wait(int fd, const char *text);
/* Value of an unlabelled metric on the admin listener, summed over its lines; -1: absent. */
double server_metric(struct server *s, const char *name);
/* Resident memory of the daemon's processes with this title, KiB together. */
long server_rss_kib(struct server *s, const char *title);
/* As many descriptors as the hard limit allows: for this process and what it starts. */
void raise_fd_limit(void);

#endif
