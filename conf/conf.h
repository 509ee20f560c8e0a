/* conf.h - the whole configuration: otari.conf, the environment and the defaults, checked
 *
 * Process: builder; otari -t and otarictl, which use the same code. Pure but for the clock: reads
 * no file but the text it is given; files that hold secrets are named here and read by the builder.
 * Owns:    struct conf and all it points to, in its own arena; texts are followed by a NUL.
 * Order:   environment beats the file beats the default.
 * Paths:   what Otari writes is relative to state_dir, what it reads to the folder of the file;
 * all are absolute after conf_load.
 */
#ifndef OTARI_CONF_CONF_H
#define OTARI_CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/str.h"
#include "conf/keys.h"
#include "conf/report.h"
#include "ipc/master_conf.h"
#include "ipc/snapshot.h"

#define CONF_ARENA_BYTES   (64u * 1024u * 1024u)
#define CONF_ENVIRON_BYTES (4u * 1024u * 1024u)

struct conf_list {
	struct str *items;
	uint32_t count;
};

struct conf_pair {
	struct str name, value;
};

struct conf_pairs {
	struct conf_pair *items;
	uint32_t count;
};

struct conf_provider {
	struct str name, type, api_base, api_key, api_key_file, proxy;
	struct conf_pairs headers;
	enum snap_wire wire;
	int native_code_execution;                   /* -1: auto */
	int native_documents;                        /* -1: auto */
	uint32_t connect_ms, first_byte_ms, idle_ms; /* 0: the deployment's */
	uint32_t max_tokens_default;
	struct conf_list models; /* without the provider's name */
	bool key_from_environ;   /* picked up, not declared */
	uint32_t line;           /* 0: made from the environment alone */
};

struct conf_alias {
	struct str name, target;
	uint32_t line;
};

struct conf_policy {
	bool enabled;
	enum snap_executor executor; /* EXECUTOR_UNSET: the deployment's */
	struct str default_purpose_hint, image;
	uint32_t max_iterations, exec_timeout_s; /* 0: the deployment's */
	struct conf_list tools;
	bool tools_set;
};

struct conf_workspace {
	struct str id, name;
	bool has_policy;
	struct conf_policy policy;
	uint32_t line;
};

struct conf_user {
	struct str id, alias;
	bool blocked, blocked_set;
	uint32_t line;
};

struct conf_key_entry {
	struct str id, name, hash_hex, user_id, workspace; /* workspace: name or id; STR_NULL */
	struct conf_list allowed_models;
	bool allowed_set, active;
	int64_t expires_at_s; /* 0: never */
	uint32_t line;
};

struct conf_price {
	struct str model; /* "provider:model" */
	double input_per_million, output_per_million;
	uint32_t line;
};

struct conf {
	struct arena *arena;
	struct conf_origin origins[CONF_KEYS_MAX]; /* by place in the key table */

	/* service */
	struct str host, admin_listen, public_base_url, user;
	struct str state_dir, pid_file, control_socket;
	struct str tls_cert, tls_key;
	uint64_t port, workers; /* workers 0: auto */
	uint64_t log_level, log_format;
	struct str log_file;
	uint64_t max_connections, http_head_timeout_ms, http_idle_timeout_ms;
	uint64_t http_write_stall_ms, drain_timeout_ms, heartbeat_timeout_ms, max_body_bytes;
	/* storage and threads */
	struct str database_url, master_key, master_key_file;
	uint64_t sql_threads, io_threads, publish_timeout_ms, policy_max_stale_s;
	/* requests */
	uint64_t require_pricing, rate_limit_rpm, streaming_keepalive_interval_ms;
	bool reject_user_mismatch, strict_translation;
	uint64_t upstream_connect_timeout_ms, upstream_first_byte_timeout_ms;
	uint64_t upstream_idle_timeout_ms;
	struct str tools_header;
	/* files */
	bool files_enabled, file_understanding_enabled, files_provider_copy;
	uint64_t files_backend;
	struct str files_local_dir, files_s3_bucket, files_s3_endpoint_url, files_s3_region;
	struct str files_url;
	struct conf_pairs files_storage_options;
	uint64_t files_max_bytes, files_inline_max_bytes, files_retention_hours;
	uint64_t files_output_max_files, files_output_max_bytes, files_sweep_interval_sec;
	/* responses */
	uint64_t responses_retention_hours;
	/* code execution */
	struct str sandbox_url, sandbox_session_image, sandbox_purpose_hint, sandbox_python;
	struct str sandbox_rootfs, sandbox_serve;
	struct str sandbox_token, sandbox_token_file, sandbox_ca_file;
	struct str sandbox_serve_token, sandbox_serve_token_file;
	uint64_t sandbox_serve_max_sessions, sandbox_serve_idle_ms;
	struct conf_list sandbox_allowed_session_images, sandbox_preload;
	uint64_t code_execution_executor; /* enum snap_executor; 0: not set */
	uint64_t sandbox_pool_size, sandbox_memory_bytes, sandbox_pids, sandbox_cpu;
	uint64_t sandbox_workspace_bytes, sandbox_workspace_inodes, sandbox_file_bytes;
	uint64_t sandbox_open_files, sandbox_output_bytes, sandbox_max_sessions;
	uint64_t sandbox_max_sessions_per_workspace, sandbox_queue_ms, sandbox_uid_base;
	bool sandbox_require_cgroup;

	/* sections */
	struct conf_provider *providers;
	struct conf_alias *aliases;
	struct conf_workspace *workspaces;
	struct conf_user *users;
	struct conf_key_entry *keys;
	struct conf_price *prices;
	struct conf_list models; /* "provider:model" */
	struct str default_provider;
	uint32_t provider_count, alias_count, workspace_count, user_count, key_count, price_count;
	uint32_t routing_line;
};

struct conf_source {
	const char *file;   /* for messages and for relative paths; "otari.conf" */
	struct str text;    /* its contents */
	struct str environ; /* NAME=value texts, each followed by a NUL; may be empty */
	struct str cwd;     /* absolute */
	bool as_root;       /* state_dir's default: /var/lib/otari, else cwd/run */
};

/* report was initialised by the caller and says everything; ERR_INPUT (the first error) when it
 * holds an error. Returns owned; free with conf_free. */
MUST_CHECK enum err_code conf_load(const struct conf_source *src, struct conf_report *report,
    struct conf **ret, struct err *reterr);
void conf_free(struct conf **c); /* NULL allowed */

/* Where a key of the table got its value. */
const struct conf_origin *conf_origin_of(const struct conf *c, const char *key);
/* STR_NULL / NULL: not declared. */
const struct conf_provider *conf_provider(const struct conf *c, struct str name);
const struct conf_workspace *conf_workspace(const struct conf *c, struct str name_or_id);
/* database_url without its password, in a. */
struct str conf_database_place(const struct conf *c, struct arena *a);
/* The master's part. Strings stay in c. */
void conf_master(const struct conf *c, struct master_conf *ret);
/* "local", "s3", "url" */
const char *conf_files_backend(const struct conf *c);

/* The effective configuration as YAML, every key with its origin, secrets as "***". */
void conf_dump(const struct conf *c, struct buf *dst);
/* A line for each key whose value differs: "name: old -> new  (how it takes effect)". Returns how
 * many. Sections and secrets are named only. */
unsigned conf_diff(const struct conf *old, const struct conf *now, struct buf *dst);
/* The text that the service behind this control socket runs with; -1: none answers, or not to us.
 */
typedef int conf_running_fn(const char *control_socket);
/* otari -t: reads path (NULL: nothing but defaults and environment), writes "file:line: message"
 * lines and a last line to out_fd; of a good file also what a reload would change (running NULL
 * allowed). 0: good, 1: not. */
int conf_test(const char *path, char *const *environment, conf_running_fn *running, int out_fd);
/* For otarictl: the control socket that the file names, also when the rest of it is wrong or holds
 * variables that only the service has. */
MUST_CHECK enum err_code conf_find_control(
    const char *path, char *const *environment, char *dst, size_t size, struct err *reterr);

#endif
