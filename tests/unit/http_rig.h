/* http_rig.h - a real HTTP server in a process of its own, and raw sockets to torture it with */
#ifndef OTARI_TESTS_UNIT_HTTP_RIG_H
#define OTARI_TESTS_UNIT_HTTP_RIG_H

#include <sys/types.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "worker/http/http.h"

struct rig_stats { /* shared with the server's process */
	atomic_uint requests, finished, aborted, closed, unread_errors, connections, drained;
	atomic_ullong body_bytes, written_bytes;
	atomic_int last_status;
};

struct rig {
	pid_t pid;
	int port;         /* with TLS when asked for */
	int plain_port;   /* a second listener, never with TLS */
	char ca_path[32]; /* with TLS: a file with its certificate */
	struct rig_stats *stats;
};

/* Defaults when cfg is NULL. Routes: see http_rig_server.c. */
void rig_start(struct rig *r, const struct http_server_config *cfg, bool tls);
/* The whole life of the server, in the child; its exit code. */
struct ssl_ctx_st;
int rig_serve(const int listen_fds[2], const struct http_server_config *cfg, struct ssl_ctx_st *ctx,
    struct rig_stats *stats);
void rig_stop(struct rig *r); /* fails the test when the server crashed or leaked a connection */
void rig_signal(const struct rig *r, int sig); /* SIGTERM: drain */
long rig_rss_kb(const struct rig *r);

int rig_connect(const struct rig *r);
void rig_send(int fd, struct str s);
/* False when the peer closed or reset before all was taken. */
bool rig_try_send(int fd, struct str s);
/* Reads to the end, or until ms passed without a byte; appends to b. 0: end, 1: time, -1: reset. */
int rig_read_all(int fd, struct buf *b, int ms);
/* Reads until b holds text; fails the test after 5 s. */
void rig_read_until(int fd, struct buf *b, const char *text);
/* One request on a connection of its own; the whole answer. Free with buf_done. */
struct buf rig_ask(const struct rig *r, struct str request);
bool rig_has(const struct buf *b, const char *text);
/* Waits (5 s at most) until *v is at least n. */
void rig_wait(atomic_uint *v, unsigned n);

#endif
