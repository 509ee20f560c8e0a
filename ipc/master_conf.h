/* master_conf.h - what the master learns of otari.conf: no secret, nothing to parse
 *
 * Process: made by the builder, read by the master (and by otarictl for the control socket).
 * Owns:    nothing; the strings live in the arena given to the decoder, or with the builder, and
 * are followed by a NUL. STR_NULL: not set.
 * Paths are absolute here: the builder resolved them against state_dir and the start directory.
 */
#ifndef OTARI_IPC_MASTER_CONF_H
#define OTARI_IPC_MASTER_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

/* 0 in a number: "the spawner decides from the host" where its comment says so. */
struct sandbox_conf {
	struct str url;     /* "local:" or "http(s)://…"; STR_NULL: no sandbox configured */
	struct str python;  /* host path of the interpreter */
	struct str rootfs;  /* directory used instead of the host's /usr; STR_NULL */
	struct str preload; /* comma-separated module names for the zygotes; STR_NULL: none */
	struct str serve;   /* host:port where protocol v1 is served; STR_NULL: nowhere */
	uint32_t pool_size, pids, cpu_percent; /* cpu_percent 100: one core; 0: no bound */
	uint64_t memory_bytes, workspace_bytes, file_bytes, output_bytes;
	uint32_t workspace_inodes, open_files;
	uint32_t max_sessions;               /* 0: from host memory */
	uint32_t max_sessions_per_workspace; /* 0: no bound of its own */
	uint32_t queue_ms;
	uint32_t uid_base; /* first host uid of the range used as root */
	bool require_cgroup;
};

struct master_conf {
	struct str host;         /* address to listen on, numeric */
	struct str admin_listen; /* "host:port", STR_NULL: none */
	struct str user;         /* for children when started as root */
	struct str state_dir, pid_file, control_socket;
	struct str log_file; /* STR_NULL: standard error */
	struct str tls_cert; /* STR_NULL: plain HTTP */
	uint32_t port;       /* 0: the kernel chooses (tests) */
	uint32_t workers;    /* 1..LIMIT_WORKERS; "auto" is resolved */
	uint32_t log_level;  /* enum log_level */
	bool log_json;
	uint32_t drain_timeout_ms, publish_timeout_ms, heartbeat_timeout_ms;
	struct sandbox_conf sandbox;
};

void master_conf_encode(const struct master_conf *c, struct buf *dst);
/* Strings are copied into a. ERR_PROTO. */
MUST_CHECK enum err_code master_conf_decode(
    struct arena *a, struct str bytes, struct master_conf *ret, struct err *reterr);
void sandbox_conf_encode(const struct sandbox_conf *c, struct buf *dst);
MUST_CHECK enum err_code sandbox_conf_decode(
    struct arena *a, struct str bytes, struct sandbox_conf *ret, struct err *reterr);

#endif
