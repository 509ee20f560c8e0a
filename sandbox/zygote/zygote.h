/* zygote.h - what the spawner says to a zygote: a Python with its libraries loaded, forked into
 * sessions
 *
 * Process: zygote (its library, compiled plain as otari-zygote.so) and spawner. One SEQPACKET
 *          datagram a message; both ends come from one build.
 * Order:   setup (struct zygote_setup and its filter in one datagram); the zygote answers seq 0
 * when all is loaded; then one request, one answer. Trust:   no session can reach the socket: it is
 * closed before the first byte of a session's code.
 */
#ifndef OTARI_SANDBOX_ZYGOTE_ZYGOTE_H
#define OTARI_SANDBOX_ZYGOTE_ZYGOTE_H

#include <stdint.h>

#include "ipc/lease.h"

/* Descriptors that the zygote finds open. 1 and 2 are a pipe, as in a session (what Python finds
 * there once it believes for ever), whose other end nobody reads. */
enum { ZYGOTE_AT_CTL = 3, ZYGOTE_AT_PROGRAM, ZYGOTE_AT_DRIVER, ZYGOTE_AT_SINK, ZYGOTE_AT_END };

/* Where its library lies in the spawner's root; a session's own tmpfs covers the folder. */
#define ZYGOTE_LIBRARY "dev/shm/otari-zygote.so"

#define ZYGOTE_INSNS_MAX 4096u

struct zygote_setup {
	struct sandbox_settings settings;
	uint32_t insns;   /* struct sock_filter that follow */
	uint32_t without; /* JAIL_WITHOUT_* */
};

enum zygote_op {
	ZYGOTE_FORK = 1, /* an interpreter for the session */
	ZYGOTE_TEST, /* a process that runs the self-test and tells its rows on the request socket
		      */
};

/* Descriptors that come with a request; then up to ZYGOTE_JOINS of the session's cgroups, to be
 * joined by. */
enum { ZYGOTE_FD_PID, ZYGOTE_FD_OUT, ZYGOTE_FD_ERR, ZYGOTE_FD_REQUEST, ZYGOTE_FDS };
#define ZYGOTE_JOINS   3u
#define ZYGOTE_FDS_MAX (ZYGOTE_FDS + ZYGOTE_JOINS)

struct zygote_request {
	uint32_t op; /* enum zygote_op */
	uint32_t reserved;
	uint64_t seq; /* not 0 */
};

struct zygote_answer {
	uint64_t seq;
	int32_t sys_errno; /* 0: forked; loaded when seq is 0 */
	char text[116];    /* seq 0: the modules that could not be loaded */
};

#endif
