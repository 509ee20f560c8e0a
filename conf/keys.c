#include "conf/keys.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "conf/conf.h"

#define MIB    (1024ull * 1024ull)
#define GIB    (1024ull * MIB)
#define MS_MAX (24ull * 3600ull * 1000ull)

#define OFF(member) offsetof(struct conf, member)
#define GROUP(text) .group = text
#define TEXT(key, kind, value, when, what)                                                         \
	.name = #key, .type = kind, .off = OFF(key), .dflt = value, .effect = when, .doc = what
#define FLAG(key, value, when, what) TEXT(key, KT_BOOL, value, when, what)
#define NUMBER(key, value, in, least, most, when, what)                                            \
	TEXT(key, KT_UINT, value, when, what), .unit = in, .min = least, .max = most
#define AUTO(key, value, in, least, most, when, what)                                              \
	TEXT(key, KT_AUTO, value, when, what), .unit = in, .min = least, .max = most
#define CHOICE(key, value, list, first, when, what)                                                \
	TEXT(key, KT_ENUM, value, when, what), .choices = list, .min = first
#define SECTION(key, when, what) .name = #key, .type = KT_SECTION, .effect = when, .doc = what

#define SNAPSHOT EFFECT_SNAPSHOT
#define WORKERS  EFFECT_WORKERS
#define SPAWNER  EFFECT_SPAWNER
#define RESTART  EFFECT_RESTART

static const struct conf_key KEYS[] = {
    /* --- service --- */
    {GROUP("Service"),
	TEXT(host, KT_STR, "0.0.0.0", RESTART, "Address to listen on, numeric; :: for IPv6.")},
    {NUMBER(port, "8000", NULL, 0, 65535, RESTART,
	"TCP port to listen on; 0 lets the system choose one.")},
    {TEXT(admin_listen, KT_LISTEN, "127.0.0.1:8001", RESTART,
	"Address and port of /metrics and of the health details; none turns them off.")},
    {TEXT(public_base_url, KT_URL, NULL, SNAPSHOT,
	"Address under which clients reach this service, for links in answers.")},
    {AUTO(workers, "auto", NULL, 1, LIMIT_WORKERS, WORKERS,
	"Number of worker processes; auto is one for each processor.")},
    {TEXT(user, KT_STR, "otari", RESTART,
	"User that all processes but the master run as, when started as root.")},
    {TEXT(state_dir, KT_STR, NULL, RESTART,
	"Directory of everything Otari writes; /var/lib/otari for root, else ./run.")},
    {TEXT(pid_file, KT_WRITTEN, "otari.pid", RESTART, "File that holds the master's process id.")},
    {TEXT(control_socket, KT_WRITTEN, "control.sock", RESTART,
	"Socket through which otarictl reaches the master.")},
    {TEXT(tls_cert, KT_READ, NULL, WORKERS, "Certificate chain (PEM); turns TLS on.")},
    {TEXT(tls_key, KT_READ, NULL, WORKERS, "Private key of tls_cert (PEM).")},
    {TEXT(log_file, KT_WRITTEN, NULL, RESTART,
	"File for log lines, opened again on USR1; none is standard error.")},
    {CHOICE(log_level, "info", "error|warn|notice|info|debug", 0, WORKERS,
	"Least important level that is logged.")},
    {CHOICE(log_format, "json", "text|json", 0, WORKERS, "Form of log lines.")},
    {NUMBER(max_connections, "4096", NULL, 1, 1000000, WORKERS,
	"Open client connections of one worker.")},
    {NUMBER(
	max_body_bytes, "33554432", "bytes", 1024, GIB, SNAPSHOT, "Largest JSON request body.")},
    {NUMBER(http_head_timeout_ms, "15000", "ms", 100, MS_MAX, WORKERS,
	"Time for a request's head to arrive.")},
    {NUMBER(http_idle_timeout_ms, "75000", "ms", 100, MS_MAX, WORKERS,
	"Time that a kept connection may wait for its next request.")},
    {NUMBER(http_write_stall_ms, "60000", "ms", 100, MS_MAX, WORKERS,
	"Time without progress after which a client that does not read is dropped.")},
    {NUMBER(drain_timeout_ms, "60000", "ms", 0, MS_MAX, SNAPSHOT,
	"Time that running requests get when a worker, a replaced spawner or the service stops.")},
    {NUMBER(heartbeat_timeout_ms, "10000", "ms", 1000, MS_MAX, RESTART,
	"A worker whose loop stands still for this long is killed and replaced.")},

    /* --- storage --- */
    {GROUP("Database and administration"),
	TEXT(database_url, KT_DB_URL, "sqlite:///otari.db", RESTART,
	    "sqlite:///PATH (relative to state_dir) or mysql://user:password@host:3306/database.")},
    {TEXT(master_key, KT_SECRET, NULL, SNAPSHOT,
	"Key of the administrator; without one a key is made in state_dir/master.key.")},
    {TEXT(master_key_file, KT_READ, NULL, SNAPSHOT, "File whose first line is the master key.")},
    {NUMBER(sql_threads, "2", NULL, 1, 64, WORKERS,
	"Database connections of one worker, each with a thread.")},
    {NUMBER(io_threads, "2", NULL, 1, 64, WORKERS, "Threads of one worker for disk and hashing.")},
    {NUMBER(publish_timeout_ms, "2000", "ms", 100, 60000, SNAPSHOT,
	"Time for a change to be in force on every worker before the API answers 503.")},
    {NUMBER(policy_max_stale_s, "900", "s", 1, 30 * 86400, SNAPSHOT,
	"Time without the database after which requests are refused.")},

    /* --- requests --- */
    {GROUP("Requests"),
	CHOICE(require_pricing, "auto", "false|true|auto", 0, SNAPSHOT,
	    "Refuse what has no price; auto: once any price exists (not built yet).")},
    {FLAG(reject_user_mismatch, "false", SNAPSHOT,
	"Refuse a request whose user is not the key's own.")},
    {FLAG(strict_translation, "false", SNAPSHOT,
	"Refuse a request with fields that the model's API cannot carry, instead of naming them.")},
    {AUTO(rate_limit_rpm, NULL, NULL, 1, 10000000, SNAPSHOT, "Requests a minute of one user.")},
    {NUMBER(streaming_keepalive_interval_ms, "15000", "ms", 0, MS_MAX, SNAPSHOT,
	"Silence in a stream after which a keep-alive is sent; 0 turns it off.")},
    {NUMBER(upstream_connect_timeout_ms, "10000", "ms", 100, MS_MAX, SNAPSHOT,
	"Time to reach a provider.")},
    {NUMBER(upstream_first_byte_timeout_ms, "600000", "ms", 0, MS_MAX, SNAPSHOT,
	"Time for a provider's answer to begin; 0: no limit.")},
    {NUMBER(upstream_idle_timeout_ms, "300000", "ms", 0, MS_MAX, SNAPSHOT,
	"Silence inside a provider's answer after which it is given up; 0: no limit.")},

    /* --- files --- */
    {GROUP("Files"), FLAG(files_enabled, "true", WORKERS, "Serve the Files API.")},
    {CHOICE(files_backend, "local", "local|s3|url|fsspec", 0, WORKERS,
	"Where the bytes of files are kept.")},
    {TEXT(files_local_dir, KT_WRITTEN, "otari-files", WORKERS, "Directory of the local backend.")},
    {TEXT(files_s3_bucket, KT_STR, NULL, WORKERS, "Bucket of the s3 backend.")},
    {TEXT(files_s3_endpoint_url, KT_URL, NULL, WORKERS, "Address of an S3 service not Amazon's.")},
    {TEXT(files_s3_region, KT_STR, NULL, WORKERS, "Region of the bucket.")},
    {TEXT(files_url, KT_STR, NULL, WORKERS, "Root address of the url backend.")},
    {TEXT(files_storage_options, KT_PAIRS, NULL, WORKERS, "Options of the url backend.")},
    {NUMBER(
	files_max_bytes, "536870912", "bytes", 1, 1024 * GIB, SNAPSHOT, "Largest uploaded file.")},
    {NUMBER(files_inline_max_bytes, "33554432", "bytes", 0, GIB, SNAPSHOT,
	"Most bytes of files that are put into one request to a model.")},
    {AUTO(files_retention_hours, NULL, "hours", 1, 24 * 36500, SNAPSHOT,
	"Age at which files expire; none keeps them.")},
    {NUMBER(files_output_max_files, "20", NULL, 0, 1000, SNAPSHOT,
	"Files kept of one code execution.")},
    {NUMBER(files_output_max_bytes, "67108864", "bytes", 0, 16 * GIB, SNAPSHOT,
	"Bytes of files kept of one code execution.")},
    {NUMBER(files_sweep_interval_sec, "3600", "s", 0, 30 * 86400, SNAPSHOT,
	"Time between two sweeps of expired and deleted files; 0 turns them off.")},
    {FLAG(files_provider_copy, "false", SNAPSHOT,
	"Copy files that a provider's own code execution made, instead of fetching on demand (not "
	"built yet).")},
    {FLAG(file_understanding_enabled, "true", SNAPSHOT,
	"Put the contents of files that a request names into it, as text for models that cannot "
	"read them, and into the sandbox for its code. False: they go on as they came.")},

    /* --- responses --- */
    {GROUP("Responses"), NUMBER(responses_retention_hours, "720", "hours", 0, 24 * 36500, SNAPSHOT,
			     "Age at which kept answers of the Responses API expire; 0 keeps "
			     "them for ever.")},

    /* --- code execution --- */
    {GROUP("Code execution"), TEXT(sandbox_url, KT_STR, NULL, SPAWNER,
				  "\"local:\" runs code in Otari's own sandbox, http(s)://host "
				  "in another host's by the code-execution protocol; none leaves "
				  "code tools to the providers.")},
    {TEXT(sandbox_token, KT_SECRET, NULL, SNAPSHOT,
	"Bearer token for the sandbox that sandbox_url names.")},
    {TEXT(sandbox_token_file, KT_READ, NULL, SNAPSHOT, "File whose first line is that token.")},
    {TEXT(sandbox_ca_file, KT_READ, NULL, SNAPSHOT,
	"Certificates (PEM, readable by the service's user) that sign the remote sandbox's own; "
	"none: the system's.")},
    {CHOICE(code_execution_executor, NULL, "auto|otari|provider", 1, SNAPSHOT,
	"Who runs a provider's code tool; auto: the provider when it has one, else Otari.")},
    {TEXT(tools_header, KT_STR, NULL, SNAPSHOT,
	"Text in front of the hints that tell the model about Otari's tools.")},
    {TEXT(sandbox_purpose_hint, KT_STR, NULL, SNAPSHOT,
	"Text that tells the model what the sandbox is for.")},
    {TEXT(sandbox_session_image, KT_STR, NULL, SNAPSHOT, "Image of sessions on a remote sandbox.")},
    {TEXT(sandbox_allowed_session_images, KT_LIST, NULL, SNAPSHOT,
	"Images that a workspace may choose.")},
    {TEXT(sandbox_python, KT_STR, "/usr/bin/python3", SPAWNER,
	"Python interpreter of the host that sessions run.")},
    {TEXT(sandbox_rootfs, KT_READ, NULL, SPAWNER,
	"Directory to use as the sandbox's system instead of the host's.")},
    {TEXT(sandbox_preload, KT_LIST, NULL, SPAWNER,
	"Python modules that are loaded before sessions start, where they are installed; none: "
	"numpy, "
	"pandas and matplotlib.pyplot.")},
    {NUMBER(sandbox_pool_size, "4", NULL, 0, 256, SPAWNER, "Sessions kept ready.")},
    {NUMBER(sandbox_memory_bytes, "1073741824", "bytes", 64 * MIB, 1024 * GIB, SPAWNER,
	"Memory of one session; in a cgroup, what it writes to its directories counts too.")},
    {NUMBER(sandbox_pids, "64", NULL, 4, 4096, SPAWNER, "Processes and threads of one session.")},
    {NUMBER(sandbox_cpu, "100", "percent of one processor", 0, 100000, SPAWNER,
	"Processor time of one session, where there is a cpu cgroup; 0: no limit.")},
    {NUMBER(sandbox_workspace_bytes, "268435456", "bytes", MIB, 1024 * GIB, SPAWNER,
	"Size of a session's writable directories together.")},
    {NUMBER(sandbox_workspace_inodes, "8192", NULL, 64, 10000000, SPAWNER,
	"Files and directories of one session.")},
    {NUMBER(sandbox_file_bytes, "134217728", "bytes", MIB, 1024 * GIB, SPAWNER,
	"Largest file that code may write.")},
    {NUMBER(sandbox_open_files, "256", NULL, 16, 65536, SPAWNER, "Open files of one process.")},
    {NUMBER(sandbox_output_bytes, "1048576", "bytes", 1024, 64 * MIB, SPAWNER,
	"Bytes of output kept of one execution, for each of stdout and stderr.")},
    /* Each has an id of the range that a spawner gets (sandbox/jail/jail.h). */
    {AUTO(sandbox_max_sessions, "auto", NULL, 1, 15000, SPAWNER,
	"Sessions at a time; auto: from the host's memory.")},
    {AUTO(sandbox_max_sessions_per_workspace, NULL, NULL, 1, 65536, SPAWNER,
	"Sessions at a time of one workspace.")},
    {NUMBER(sandbox_queue_ms, "10000", "ms", 0, 600000, SPAWNER,
	"Time that a request waits for a free session before it is answered with 503.")},
    {NUMBER(sandbox_uid_base, "1900000000", NULL, 65536, 4000000000ull, SPAWNER,
	"First of the host's 65,536 user ids for sessions, when started as root; a spawner has a "
	"quarter.")},
    {FLAG(sandbox_require_cgroup, "false", SPAWNER,
	"Refuse to run code where a session's memory cannot be bounded by a cgroup.")},
    {TEXT(sandbox_serve, KT_LISTEN, NULL, SNAPSHOT,
	"Address and port where this host's sandbox is lent to other gateways.")},
    {TEXT(sandbox_serve_token, KT_SECRET, NULL, SNAPSHOT,
	"Bearer token that those gateways must send; needed but on a loopback address.")},
    {TEXT(
	sandbox_serve_token_file, KT_READ, NULL, SNAPSHOT, "File whose first line is that token.")},
    {NUMBER(sandbox_serve_max_sessions, "64", NULL, 1, 65536, SNAPSHOT,
	"Sessions lent to other gateways at a time.")},
    {NUMBER(sandbox_serve_idle_ms, "300000", "ms", 1000, MS_MAX, SNAPSHOT,
	"Time without a request after which a session that was lent is closed.")},

    /* --- sections --- */
    {GROUP("Sections"), SECTION(providers, SNAPSHOT,
			    "Services that serve models: name, then provider_type, api_base, "
			    "api_key or api_key_file, wire and more.")},
    {SECTION(aliases, SNAPSHOT, "Other names of models: name, then provider:model.")},
    {SECTION(routing, SNAPSHOT, "default_provider: for a model that names no provider.")},
    {TEXT(models, KT_LIST, NULL, SNAPSHOT, "Models that GET /v1/models lists: provider:model.")},
    {SECTION(workspaces, SNAPSHOT, "Workspaces and who runs code for them.")},
    {SECTION(users, SNAPSHOT, "Users: id, then alias and blocked.")},
    {SECTION(keys, SNAPSHOT, "API keys by the SHA-256 of the key.")},
    {SECTION(pricing, SNAPSHOT, "Prices of models, in USD for a million tokens.")},
    {SECTION(budgets, SNAPSHOT, "Spending limits (not built yet).")},
};
_Static_assert(sizeof(KEYS) / sizeof(KEYS[0]) <= CONF_KEYS_MAX, "origins has room for all");

const struct conf_key *
conf_keys(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(KEYS);
	return KEYS;
}

const struct conf_key *
conf_key_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
		if (str_eq(name, str_c(KEYS[i].name)))
			return &KEYS[i];
	return NULL;
}

size_t
conf_key_place(const struct conf_key *k)
{
	CHECK(k >= KEYS && k < KEYS + ARRAY_LEN(KEYS));
	return (size_t)(k - KEYS);
}

const char *
conf_effect_name(enum conf_effect e)
{
	switch (e) {
	case EFFECT_SNAPSHOT:
		return "snapshot";
	case EFFECT_WORKERS:
		return "recycle workers";
	case EFFECT_SPAWNER:
		return "new spawner";
	case EFFECT_RESTART:
		return "restart";
	}
	UNREACHABLE("effect");
}

/* --- nearest name ---------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 64u

/* Edit distance with exchanged neighbours, over at most NAME_MAX_BYTES. */
static unsigned
distance(struct str a, struct str b)
{
	unsigned rows[3][NAME_MAX_BYTES + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];
	for (unsigned j = 0; j <= b.len; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a.len; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b.len; j++) {
			unsigned same = a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1;
			unsigned best = last[j - 1] + same;
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] &&
			    a.ptr[i - 2] == b.ptr[j - 1] && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		unsigned *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[b.len];
}

static void
closer(struct str name, const char *known, unsigned *best, const char **ret)
{
	struct str k = str_c(known);
	if (k.len > NAME_MAX_BYTES)
		return;
	unsigned d = distance(name, k);
	/* One has the other as a part: meant, even when much is missing. */
	if (d > 2 && name.len >= 4 && (str_find(k, name) != SIZE_MAX || str_find(name, k) == 0))
		d = 2;
	if (d < *best) {
		*best = d;
		*ret = known;
	}
}

static unsigned
bound(struct str name)
{
	return name.len < 5 ? 2 : (unsigned)name.len / 3 + 1;
}

const char *
conf_nearest(struct str name, const char *const *names)
{
	const char *found = NULL;
	unsigned best = bound(name);
	if (name.len == 0 || name.len > NAME_MAX_BYTES)
		return NULL;
	for (; *names != NULL; names++)
		closer(name, *names, &best, &found);
	return found;
}

const char *
conf_key_nearest(struct str name)
{
	const char *found = NULL;
	unsigned best = bound(name);
	if (name.len == 0 || name.len > NAME_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
		closer(name, KEYS[i].name, &best, &found);
	return found;
}
