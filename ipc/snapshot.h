/* snapshot.h - the policy and config cache: sealed, position-independent images, mapped read-only
 *
 * Process: built by the builder (snapshot_build.c), checked and mapped by workers and the sweeper.
 * Layout:  a header (magic, layout version, kind, generation, total size, CRC of nothing: the seal
 * is the proof), then tables and a string pool. All references are byte offsets from the start
 * (struct snap_str, struct snap_table); every one is checked once in snapshot_map, so readers need
 * no checks. Owns:    struct snapshot holds the mapping; get/put; the last put unmaps. Not
 * thread-safe: loop thread only; what threads or long streams need is copied into the request's
 * arena first. Limits:  LIMIT_SNAPSHOT_BYTES.
 */
#ifndef OTARI_IPC_SNAPSHOT_H
#define OTARI_IPC_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/str.h"

struct snap_str {
	uint32_t off, len; /* off 0: absent (STR_NULL) */
};
struct snap_table {
	uint32_t off, count;
};

enum snap_executor { EXECUTOR_UNSET, EXECUTOR_AUTO, EXECUTOR_OTARI, EXECUTOR_PROVIDER };
enum snap_wire { SNAP_WIRE_CHAT, SNAP_WIRE_MESSAGES, SNAP_WIRE_RESPONSES };

/* Everything a worker or the sweeper reads of otari.conf and of the runtime settings. Flat scalars;
 * a new key is a new member at the end of its group. */
struct snap_settings {
	struct snap_str public_base_url, tools_header, sandbox_purpose_hint;
	struct snap_str files_backend, files_local_dir, state_dir, sandbox_url;
	struct snap_str master_key_sha256; /* 32 raw bytes, or absent */
	uint32_t code_execution_executor;  /* enum snap_executor */
	uint32_t files_enabled, file_understanding_enabled,
	    require_pricing; /* pricing: 0 false 1 true 2 auto */
	uint32_t reject_user_mismatch, strict_translation, files_provider_copy;
	uint64_t max_body_bytes, files_max_bytes, files_inline_max_bytes;
	uint64_t files_output_max_bytes;
	uint32_t files_output_max_files;
	uint32_t files_retention_hours; /* 0: for ever */
	uint32_t files_sweep_interval_s;
	uint32_t responses_retention_hours; /* 0: for ever */
	uint32_t keepalive_ms;              /* streams; 0: off */
	uint32_t publish_timeout_ms, policy_max_stale_s;
	uint32_t sql_threads, io_threads;
	uint32_t sandbox_queue_ms, sandbox_output_bytes;
	uint32_t upstream_connect_ms, upstream_first_byte_ms, upstream_idle_ms;
	uint32_t http_head_timeout_ms, http_idle_timeout_ms, http_write_stall_ms, max_connections;
	uint32_t drain_timeout_ms;
	struct snap_str sandbox_session_image, sandbox_ca_file;
	uint32_t sandbox_serve_max_sessions, sandbox_serve_idle_ms;
	uint64_t sandbox_file_bytes;
};

struct snap_header_pair {
	struct snap_str name, value;
};
struct snap_provider {
	struct snap_str name;          /* instance: the part before ':' in a model */
	struct snap_str provider_type; /* "openai", "anthropic", "mistral", …: decides "native" */
	struct snap_str api_base;      /* without trailing slash */
	struct snap_str secret;        /* name of its key in the secrets segment, or absent */
	struct snap_str proxy;
	struct snap_table headers;                   /* snap_header_pair */
	uint32_t wire;                               /* enum snap_wire */
	int32_t native_code_execution;               /* -1: by the table of turn/executor.h; 0, 1 */
	int32_t native_documents;                    /* -1: by the table of turn/document.h; 0, 1 */
	uint32_t connect_ms, first_byte_ms, idle_ms; /* 0: settings */
	uint32_t max_tokens_default;                 /* for the Messages wire */
};
struct snap_alias {
	struct snap_str name, target; /* "provider:model" */
};
struct snap_model {
	struct snap_str id; /* "provider:model" listed by GET /models */
};
struct snap_workspace {
	struct snap_str id, name;
	int64_t created_s;
	uint32_t policy_configured, policy_enabled, executor; /* enum snap_executor */
	int32_t max_iterations, exec_timeout_s;               /* 0: not set */
	struct snap_str default_purpose_hint, image;
	uint32_t tools_set;  /* policy lists tool kinds */
	uint32_t tools_mask; /* 1 python, 2 bash, 4 text editor */
};

/* What the file or the environment decides and the API may therefore not change. */
struct snap_declared {
	struct snap_str what;  /* "workspace/ID", "policy/WORKSPACE", "key/ID", "setting/KEY" */
	struct snap_str where; /* "otari.conf:12", for a person */
};

struct snap_policy {
	struct snap_settings settings;
	struct snap_table providers, aliases, models, workspaces;
	struct snap_str default_provider; /* for a model without "provider:", or absent */
	struct snap_table declared;       /* snap_declared */
	struct snap_table session_images; /* snap_model: what a workspace may choose */
};

struct snap_key { /* sorted by hash */
	unsigned char hash[SHA256_BYTES];
	struct snap_str id, user_id, workspace_id;
	int64_t expires_s; /* 0: never */
	uint32_t is_active, user_blocked;
	struct snap_table allowed_models; /* snap_model; count 0 with off 0: all */
	int32_t reject_user_mismatch;     /* -1: deployment's */
};
struct snap_keys {
	struct snap_table keys;
	uint32_t is_delta; /* over the base: entries replace by hash; is_active 0 removes */
	uint64_t base_generation;
};

enum snap_kind { SNAP_POLICY = 1, SNAP_KEYS = 2 };
struct snapshot;

/* Takes fd. Checks seals, magic, version, kind, size and every offset. ERR_PROTO. */
MUST_CHECK enum err_code snapshot_map(
    int fd, enum snap_kind kind, struct snapshot **ret, struct err *reterr);
struct snapshot *snapshot_get(struct snapshot *s);
void snapshot_put(struct snapshot **s);
uint64_t snapshot_generation(const struct snapshot *s);
unsigned snapshot_alive(void); /* mappings of this process; for the leak test */

const struct snap_policy *snapshot_policy(const struct snapshot *s);
const struct snap_keys *snapshot_keys(const struct snapshot *s);
struct str snapshot_str(const struct snapshot *s, struct snap_str ref);
/* Element i of a table whose records have the given size (CHECKed against count). */
const void *snapshot_at(
    const struct snapshot *s, struct snap_table t, uint32_t i, size_t record_size);
#define SNAP_AT(s, table, type, i) ((const type *)snapshot_at((s), (table), (i), sizeof(type)))

/* Look-ups; NULL when absent. */
const struct snap_provider *snapshot_provider(const struct snapshot *s, struct str name);
const struct snap_alias *snapshot_alias(const struct snapshot *s, struct str name);
const struct snap_workspace *snapshot_workspace(const struct snapshot *s, struct str id);
const struct snap_key *snapshot_key(
    const struct snapshot *s, const unsigned char hash[SHA256_BYTES]);
/* Where it is declared, or STR_NULL: it is the API's. */
struct str snapshot_declared(const struct snapshot *s, struct str what);
bool snapshot_has_image(const struct snapshot *s, struct str image);

#endif
